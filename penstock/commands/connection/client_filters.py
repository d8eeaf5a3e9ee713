"""The conditions of CLIENT KILL, and of CLIENT LIST as Valkey has it (Redis 8.6.3, Valkey 9.1.2).

Tests: transcripts client_kill; cases commands/test_clients, commands/test_valkey_dialect.
"""

from typing import Final, TypeAlias

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.session import Session
from penstock.engine.telemetry.client_line import capabilities, flags, kind_of
from penstock.errors import ReplyError

KINDS: Final = (b"normal", b"slave", b"replica", b"master", b"pubsub")
CONDITIONS: Final = frozenset((
    b"ID", b"TYPE", b"ADDR", b"LADDR", b"USER", b"MAXAGE", b"NAME", b"IDLE", b"FLAGS", b"LIB-NAME", b"LIB-VER", b"DB",
    b"CAPA", b"IP", b"NOT-ID", b"NOT-TYPE", b"NOT-ADDR", b"NOT-LADDR", b"NOT-USER", b"NOT-NAME", b"NOT-FLAGS",
    b"NOT-LIB-NAME", b"NOT-LIB-VER", b"NOT-DB", b"NOT-CAPA", b"NOT-IP",
))  # fmt: skip
IN_VALKEY: Final = (  # conditions that no Redis has, as they are declared
    "[NAME name@valkey-9.0.0]", "[IDLE idle:integer@valkey-9.0.0]", "[FLAGS flags@valkey-9.0.0]",
    "[LIB-NAME lib-name@valkey-9.0.0]", "[LIB-VER lib-ver@valkey-9.0.0]", "[DB db:integer@valkey-9.0.0]",
    "[CAPA capa@valkey-9.0.0]", "[IP ip@valkey-9.0.0]",
    "[not-client-type:NOT-TYPE <NORMAL|MASTER|REPLICA|PUBSUB>@valkey-9.0.0]",
    "[NOT-ID not-client-id:integer@valkey-9.0.0 [not-client-id ...]]", "[NOT-USER not-username@valkey-9.0.0]",
    '[not-addr:NOT-ADDR "ip:port"@valkey-9.0.0]', '[not-laddr:NOT-LADDR "ip:port"@valkey-9.0.0]',
    "[NOT-NAME not-name@valkey-9.0.0]", "[NOT-FLAGS not-flags@valkey-9.0.0]",
    "[NOT-LIB-NAME not-lib-name@valkey-9.0.0]", "[NOT-LIB-VER not-lib-ver@valkey-9.0.0]",
    "[NOT-DB not-db:integer@valkey-9.0.0]", "[NOT-CAPA not-capa@valkey-9.0.0]", "[NOT-IP not-ip@valkey-9.0.0]",
)  # fmt: skip
NEGATION: Final = b"NOT-"
FLAGS: Final = frozenset(b"AbBcdeEiIMNOPrRStTuUx")  # that a client can have
CAPABILITIES: Final = frozenset(b"r")
BAD_ID: Final = b"ERR client-id should be greater than 0"

Wanted: TypeAlias = int | bytes | frozenset[int]


class ClientFilter:
    """Which clients are meant: those for which every condition holds. Of a repeated condition, the last counts."""

    __slots__ = ("_conditions", "skips_me")

    def __init__(self, skips_me: bool) -> None:
        self._conditions: dict[bytes, Wanted] = {}
        self.skips_me = skips_me

    def chosen(self, ctx: Context) -> list[Session]:
        """Those of all clients, in their order."""
        return [
            session
            for session in ctx.clients.listed()
            if not (self.skips_me and session is ctx.session) and self._matches(session, ctx.now_ms)
        ]

    def _matches(self, session: Session, now_ms: int) -> bool:
        return all(
            _holds(session, word.removeprefix(NEGATION), wanted, now_ms) != word.startswith(NEGATION)
            for word, wanted in self._conditions.items()
        )

    def read(self, ctx: Context, args: list[bytes]) -> None:
        """Read the words after the command's."""
        at = 2
        while at < len(args):
            option = args[at].upper()
            if at + 1 == len(args):
                raise refusals.syntax()
            if option == b"SKIPME" and args[at + 1].lower() in (b"yes", b"no"):
                self.skips_me = args[at + 1].lower() == b"yes"
            elif option not in CONDITIONS or ctx.hides(option):
                raise refusals.syntax()
            elif ctx.compatibility.is_valkey and option.endswith(b"ID"):
                at = self._read_ids(option, args, at + 1)
                continue
            else:
                self._conditions[option] = _wanted(ctx, option, option.removeprefix(NEGATION), args[at + 1])
            at += 2

    def _read_ids(self, option: bytes, args: list[bytes], at: int) -> int:
        """Add the ids that stand from a place on; returns where they end."""
        found = self._conditions.get(option, frozenset())
        ids = set(found) if isinstance(found, frozenset) else set()
        first = at
        while at < len(args) and arguments.is_integer(args[at]):
            if int(args[at]) <= 0:
                raise ReplyError(BAD_ID)
            ids.add(int(args[at]))
            at += 1
        if at == first:
            raise refusals.syntax()
        self._conditions[option] = frozenset(ids)
        return at


def kind(word: bytes, is_valkey: bool = False) -> bytes:
    """Read a client type, `slave` for a replica; ReplyError if there is no such type."""
    name = word.lower()
    if name == b"primary" and is_valkey:
        return b"master"
    if name not in KINDS:
        raise ReplyError(b"ERR Unknown client type '%b'" % refusals.c_string(word))
    return b"slave" if name == b"replica" else name


def _wanted(ctx: Context, option: bytes, condition: bytes, value: bytes) -> Wanted:
    """The value of a condition; `option` is its word with NOT-, as refusals have it."""
    if condition == b"ID":
        return frozenset((arguments.at_least(1, value, BAD_ID),))
    if condition in (b"MAXAGE", b"IDLE"):
        seconds = arguments.integer_or(value, b"ERR %b is not an integer or out of range" % option.lower())
        if seconds <= 0:
            raise ReplyError(b"ERR %b should be greater than 0" % option.lower())
        return seconds
    if condition == b"DB":
        number = arguments.integer_or(value, b"ERR %b is not an integer or out of range" % option)
        last = len(ctx.keyspace.databases) - 1
        if not 0 <= number <= last:
            raise ReplyError(b"ERR %b number should be between 0 and %d" % (option, last))
        return number
    if condition == b"TYPE":
        return kind(value, ctx.compatibility.is_valkey)
    if condition == b"USER" and value not in ctx.access.users:
        raise ReplyError(b"ERR No such user '%b'" % refusals.c_string(value))
    if condition in (b"FLAGS", b"CAPA") and not (FLAGS if condition == b"FLAGS" else CAPABILITIES).issuperset(value):
        place = b"NOT-%b" % condition if option.startswith(NEGATION) else b"provided"
        raise ReplyError(
            b"ERR Unknown %b found in the %b filter: %b" % (condition.lower(), place, refusals.c_string(value))
        )
    return value


def _holds(session: Session, condition: bytes, wanted: Wanted, now_ms: int) -> bool:
    """Whether a condition holds for a client, without regard to NOT-."""
    if isinstance(wanted, frozenset):
        return session.id in wanted
    if isinstance(wanted, int):
        if condition == b"DB":
            return session.db_index == wanted
        since_ms = session.connected_ms if condition == b"MAXAGE" else session.last_ms
        return (now_ms - since_ms) // 1000 >= wanted
    if condition == b"FLAGS":
        return set(flags(session).encode()).issuperset(wanted)
    if condition == b"CAPA":
        return set(capabilities(session).encode()).issuperset(wanted)
    return wanted == _text_of(session, condition) and (wanted != b"" or condition == b"USER")


def _text_of(session: Session, condition: bytes) -> bytes:
    """The client's value that a condition compares."""
    if condition == b"TYPE":
        return kind_of(session)
    if condition == b"ADDR":
        return session.address.encode()
    if condition == b"LADDR":
        return session.local_address.encode()
    if condition == b"IP":
        return session.address.rpartition(":")[0].strip("[]").encode()
    if condition == b"USER":
        return session.user.name
    if condition == b"NAME":
        return session.name
    return session.library_name if condition == b"LIB-NAME" else session.library_version
