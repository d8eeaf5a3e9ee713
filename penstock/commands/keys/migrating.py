"""MIGRATE: keys go to another server and away from here (Redis 8.6.3).

Tests: cases replication/test_migrate; law test_law_of_keys.
"""

from typing import Final

from penstock.commands.keys import payloads
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.engine.telemetry import redaction
from penstock.engine.waiting.migrating import TargetError
from penstock.errors import ReplyError
from penstock.protocol import reply

KEY_AT: Final = 3  # empty where KEYS names them
MOVED: Final = "RW access delete"
USUAL_TIMEOUT_MS: Final = 1000  # where none or a negative one is given
FAILURES: Final = {
    "connecting": b"IOERR error or timeout connecting to the client",
    "writing": b"IOERR error or timeout writing to target instance",
    "reading": b"IOERR error or timeout reading to target instance",
}
NO_KEY: Final = b"+NOKEY\r\n"
KEY_NOT_EMPTY: Final = b"ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"

OPTIONS_AT: Final = 6  # where the options begin
KEYS: Final = b"KEYS"  # the last option: keys follow, to the request's end
SECRETS: Final = {b"AUTH": 1, b"AUTH2": 2}  # options with words that are not shown, and how many those are
OPTIONS: Final = OptionTable({b"COPY": 0, b"REPLACE": 0, KEYS: 0} | SECRETS)


class Options:
    """The options after the timeout. login: AUTH and its arguments."""

    __slots__ = ("copies", "keys", "login", "replaces")

    def __init__(self, args: list[bytes]) -> None:
        self.copies = False
        self.replaces = False
        self.login: list[bytes] = []
        self.keys = [args[KEY_AT]]
        at = OPTIONS_AT
        while at < len(args):
            option = args[at].upper()
            words = OPTIONS.words(option, args, at)
            if not words:
                raise refusals.syntax()
            if option == b"COPY":
                self.copies = True
            elif option == b"REPLACE":
                self.replaces = True
            elif option in SECRETS:
                self.login = [b"AUTH", *args[at + 1 : at + words]]
            else:
                if args[KEY_AT]:
                    raise ReplyError(KEY_NOT_EMPTY)
                self.keys = args[at + 1 :]
                return
            at += words


def _find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The keys of MIGRATE: none if both ways name some; KEYS as the last word counts as none (Redis 8.6.3)."""
    places = range(KEY_AT, KEY_AT + 1)
    lists = OPTIONS.places_of(KEYS, args, OPTIONS_AT)
    if lists and lists[0] + 1 < len(args):
        places = range(lists[0] + 1, len(args)) if not args[KEY_AT] else range(0)
    return [KeyPlace(at, MOVED.split()) for at in places]


def _without_secrets(request: list[bytes]) -> list[bytes]:
    """Hide the user and the password of a request; after an unknown option, everything behind an AUTH."""
    shown = list(request)
    at = OPTIONS_AT
    while at < len(request):
        option = request[at].upper()
        words = OPTIONS.words(option, request, at)
        if option == KEYS:
            break
        if not words:
            return redaction.hidden_behind_auth(shown, at)
        if option in SECRETS:
            shown[at + 1 : at + words] = [redaction.HIDDEN] * (words - 1)
        at += words
    return shown


@command(
    'MIGRATE host port:integer key-selector:<key|empty-string:""> destination-db:integer timeout:integer '
    "[copy:COPY@3.0.0] [replace:REPLACE@3.0.0] "
    "[authentication:<auth:AUTH password@4.0.7|auth2:AUTH2 (username password)@6.0.0>]"
    " [keys:KEYS key#1@3.0.6 [key ...]]",
    f"2.6.0 write movablekeys | keys {KEY_AT} {MOVED}; KEYS@-2..-1 {MOVED} incomplete | acl dangerous "
    "| traits moves_slot_keys never_replicated | tips nondeterministic_output | arity -6",
    "Moves keys to another server, which RESTOREs them.",
    (
        "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target instance. See"
        " the pages of these commands for time complexity. Also an O(N) data transfer between the two instances is"
        " performed."
    ),
    find_keys=_find_keys,
    hide=_without_secrets,
    history=(
        ("3.0.0", "Added the `COPY` and `REPLACE` options."),
        ("3.0.6", "Added the `KEYS` option."),
        ("4.0.7", "Added the `AUTH` option."),
        ("6.0.0", "Added the `AUTH2` option."),
    ),
)
def migrate(ctx: Context, args: list[bytes]) -> bytes:
    """All clients wait meanwhile. What was moved is logged as DEL.

    The timeout is for each 64 KiB that are sent and for each line of the reply, as in Redis: a total would refuse
    what only takes long because it is large.
    """
    options = Options(args)
    timeout_ms = arguments.integer(args[5])
    db_index = arguments.integer(args[4])
    keys, requests = _restores(ctx, options)
    if not keys:
        return NO_KEY
    migrator = ctx.waiting.migrator
    host, port = (word.decode(errors="surrogateescape") for word in args[1:3])
    failure = b""
    answers: list[bytes] = []
    try:
        if migrator is None:
            raise TargetError("writing", [], is_late=True)
        answers = migrator.ask(
            host, port, timeout_ms if timeout_ms > 0 else USUAL_TIMEOUT_MS, db_index, options.login, requests
        )
    except TargetError as problem:
        answers = problem.answers
        failure = FAILURES[problem.doing]
    refused = [answer for answer in answers if answer.startswith(b"-")]
    if not options.copies:
        moved = [key for key, answer in zip(keys, answers, strict=False) if not answer.startswith(b"-")]
        _remove(ctx, moved)
    if refused:
        raise ReplyError(b"ERR Target instance replied with error: " + refused[0][1:])
    if failure:
        raise ReplyError(failure)
    return reply.OK


def _restores(ctx: Context, options: Options) -> tuple[list[bytes], list[list[bytes]]]:
    """The keys that exist, and a RESTORE of each; in a cluster one that the node takes which imports the slot."""
    restore = b"RESTORE" if ctx.cluster is None else b"RESTORE-ASKING"
    keys, requests = [], []
    for key in options.keys:
        value = ctx.value(key)
        if value is None:
            continue
        when_ms = ctx.db.expires.get(key)
        ttl_ms = 0 if when_ms is None else max(when_ms - ctx.now_ms, 1)
        request = [restore, key, b"%d" % ttl_ms, payloads.payload_of(value, ctx.settings)]
        requests.append([*request, b"REPLACE"] if options.replaces else request)
        keys.append(key)
    return keys, requests


def _remove(ctx: Context, moved: list[bytes]) -> None:
    """Delete the keys that are at the target now; a key that was named twice counts once."""
    moved_keys = []
    for key in moved:
        value = ctx.remove(key)
        if value is not None:
            ctx.free_lazily(value)
            ctx.event("g", b"del", key)
            ctx.dirty += 1
            moved_keys.append(key)
    if moved_keys:
        ctx.log(b"DEL", *moved_keys)
