"""What a request looks like to others (MONITOR, SLOWLOG): passwords are not shown.

Redis hides what a command took for a password, and shows the words of a request that was refused before that. Here
whatever may have been meant as one is hidden.
"""

from typing import Final

from penstock.engine import migrating

HIDDEN: Final = b"(redacted)"
SECRET_DIRECTIVES: Final = frozenset({
    b"requirepass", b"masterauth", b"masteruser", b"tls-key-file-pass", b"tls-client-key-file-pass",
})  # fmt: skip
USER_COMMANDS: Final = ("ACL|SETUSER", "ACL|GETUSER", "ACL|DELUSER")  # users' names, too


def redacted(name: str, request: list[bytes]) -> list[bytes]:
    """The request of the row `name` with its secrets hidden; the same list where there are none."""
    if name == "AUTH":
        return _hidden_from(request, 1)
    if name == "HELLO":
        return _hello(request)
    if name in USER_COMMANDS:
        return _hidden_from(request, 2)
    if name == "CONFIG|SET":
        return _config_set(request)
    if name == "MIGRATE":
        return _migrate(request)
    return request


def _hidden_from(request: list[bytes], at: int) -> list[bytes]:
    return [*request[:at], *[HIDDEN] * (len(request) - at)]


def _hello(request: list[bytes]) -> list[bytes]:
    """The words that HELLO takes for a user and a password; where it takes none, all that is behind an AUTH."""
    shown = list(request)
    at = 2
    if len(request) > 1 and request[1] not in (b"2", b"3"):
        return _behind_auth(shown, 1)
    while at < len(request):
        option = request[at].upper()
        if option == b"AUTH" and at + 2 < len(request):
            shown[at + 1] = shown[at + 2] = HIDDEN
            at += 3
        elif option == b"SETNAME" and at + 1 < len(request):
            at += 2
        else:
            return _behind_auth(shown, 2)
    return shown


def _migrate(request: list[bytes]) -> list[bytes]:
    """The words that MIGRATE takes for a user and a password; where an option is none, all that is behind an AUTH."""
    shown = list(request)
    at = migrating.OPTIONS_AT
    while at < len(request):
        option = request[at].upper()
        words = migrating.OPTIONS.words(option, request, at)
        if option == migrating.KEYS:
            break
        if not words:
            return _behind_auth(shown, at)
        if option in migrating.SECRETS:
            shown[at + 1 : at + words] = [HIDDEN] * (words - 1)
        at += words
    return shown


def _behind_auth(shown: list[bytes], at: int) -> list[bytes]:
    for place in range(at, len(shown)):
        if shown[place].upper() in migrating.SECRETS:
            return _hidden_from(shown, place + 1)
    return shown


def _config_set(request: list[bytes]) -> list[bytes]:
    """The values of directives that are secrets; of a request that is no pairs, whatever is behind their names."""
    is_pairs = len(request) % 2 == 0
    return [
        HIDDEN if at >= 3 and (at % 2 or not is_pairs) and request[at - 1].lower() in SECRET_DIRECTIVES else word
        for at, word in enumerate(request)
    ]
