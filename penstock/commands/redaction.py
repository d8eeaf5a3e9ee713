"""What a request looks like to others (MONITOR, SLOWLOG): passwords are not shown."""

from typing import Final

HIDDEN: Final = b"(redacted)"
SECRET_DIRECTIVES: Final = frozenset({
    b"requirepass", b"masterauth", b"masteruser", b"tls-key-file-pass", b"tls-client-key-file-pass",
})  # fmt: skip


def redacted(name: str, request: list[bytes]) -> list[bytes]:
    """The request of the row `name` with its secrets hidden; the same list where there are none."""
    if name == "AUTH" and len(request) <= 3:
        return [request[0], *[HIDDEN] * (len(request) - 1)]
    if name == "HELLO":
        return _after_auth(request)
    if name == "ACL|SETUSER":
        return [*request[:2], *[HIDDEN] * (len(request) - 2)]
    if name == "CONFIG|SET":
        return [
            HIDDEN if at >= 3 and at % 2 == 1 and request[at - 1].lower() in SECRET_DIRECTIVES else word
            for at, word in enumerate(request)
        ]
    return request


def _after_auth(request: list[bytes]) -> list[bytes]:
    shown = list(request)
    at = 2
    while at < len(request):
        if request[at].upper() == b"AUTH" and at + 2 < len(request):
            shown[at + 1] = shown[at + 2] = HIDDEN
            at += 2
        at += 1
    return shown
