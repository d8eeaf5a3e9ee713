"""CLIENT LIST and CLIENT INFO: one line for each connection (Redis 8.6.3)."""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.session import Session
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_TRANSACTION: Final = -1
KINDS: Final = (b"normal", b"slave", b"replica", b"master", b"pubsub")
REPLY_BUFFER: Final = 0  # replies are handed to the transport at once; none is kept here


def kind_of(session: Session) -> bytes:
    """As TYPE in CLIENT LIST and CLIENT KILL; nobody is a replica or a master here."""
    return b"pubsub" if session.is_subscribed else b"normal"


def kind(word: bytes) -> bytes:
    """The kind of client that a word names."""
    name = word.lower()
    if name not in KINDS:
        raise ReplyError(b"ERR Unknown client type '%b'" % refusals.c_string(word))
    return name


def flags(session: Session) -> str:
    """One letter for each thing that is not as usual; N for a usual client."""
    letters = ""
    if session.monitors:
        letters += "O"
    if session.is_subscribed:
        letters += "P"
    if session.queue is not None:
        letters += "x"
    if session.parked is not None:
        letters += "b"
    if session.watch_broken:
        letters += "d"
    if session.closing:
        letters += "c"
    if session.unix_socket:
        letters += "U"
    if session.no_evict:
        letters += "e"
    if session.no_touch:
        letters += "T"
    return letters or "N"


def line(session: Session, now_ms: int, hidden: frozenset[bytes] = frozenset()) -> str:
    """The description of one connection, without a line's end; `hidden` fields are left out."""
    queue = session.queue
    memory = session.args_memory + session.query_buffer + session.waiting_output
    shown: list[tuple[str, int | str]] = [
        ("id", session.id),
        ("addr", session.address),
        ("laddr", session.local_address),
        ("fd", session.descriptor),
        ("name", _text(session.name)),
        ("age", max(now_ms - session.connected_ms, 0) // 1000),
        ("idle", max(now_ms - session.last_ms, 0) // 1000),
        ("flags", flags(session)),
        ("db", session.db_index),
        ("sub", len(session.channels)),
        ("psub", len(session.patterns)),
        ("ssub", len(session.shard_channels)),
        ("multi", NO_TRANSACTION if queue is None else len(queue)),
        ("watch", len(session.watched)),
        ("qbuf", session.query_buffer),
        ("qbuf-free", 0),
        ("argv-mem", session.args_memory),
        ("multi-mem", sum(len(word) for _, request in queue or () for word in request)),
        ("rbs", REPLY_BUFFER),
        ("rbp", REPLY_BUFFER),
        ("obl", 0),
        ("oll", 1 if session.waiting_output else 0),
        ("omem", session.waiting_output),
        ("tot-mem", memory),
        ("events", "rw" if session.waiting_output else "r"),
        ("cmd", session.last_command or "NULL"),
        ("user", _text(session.user)),
        ("redir", -1),
        ("resp", session.resp),
        ("lib-name", _text(session.library_name)),
        ("lib-ver", _text(session.library_version)),
        ("io-thread", 0),
        ("tot-net-in", session.input_bytes),
        ("tot-net-out", session.output_bytes),
        ("tot-cmds", session.handled),
        ("read-events", session.reads),
        ("parse-batch-cmd-sum", session.handled),
        ("parse-batch-cnt", session.reads),
    ]
    return " ".join([f"{name}={value}" for name, value in shown if name.encode() not in hidden])


def _text(word: bytes) -> str:
    return word.decode(errors="surrogateescape")


@command(
    "CLIENT|INFO",
    group="connection",
    since="6.2.0",
    flags="noscript loading stale",
    tips="nondeterministic_output",
    summary="Describes this connection.",
)
def client_info(ctx: Context, args: list[bytes]) -> bytes:
    return reply.verbatim(_lines(ctx, [ctx.session]), ctx.resp3)


@command(
    "CLIENT|LIST",
    "[client-type:TYPE <NORMAL|MASTER|REPLICA|PUBSUB>@5.0.0] [ID client-id@6.2.0 [client-id ...]]",
    group="connection",
    since="2.4.0",
    flags="admin noscript loading stale",
    tips="nondeterministic_output",
    complexity="O(N) where N is the number of client connections",
    history=(
        ("2.8.12", "Added unique client `id` field."),
        ("5.0.0", "Added optional `TYPE` filter."),
        ("6.0.0", "Added `user` field."),
        ("6.2.0", "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter."),
        ("7.0.0", "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."),
        ("7.0.3", "Added `ssub` field."),
        ("7.2.0", "Added `lib-name` and `lib-ver` fields."),
        ("7.4.0", "Added `watch` field."),
        ("8.0.0", "Added `io-thread` field."),
    ),
    summary="Describes connections, one a line.",
)
def client_list(ctx: Context, args: list[bytes]) -> bytes:
    sessions = ctx.engine.sessions
    chosen = list(sessions.values())
    if len(args) > 2:
        option = args[2].upper()
        if option == b"TYPE" and len(args) == 4:
            wanted = kind(args[3])
            chosen = [session for session in chosen if kind_of(session) == wanted]
        elif option == b"ID" and len(args) > 3:
            ids = [arguments.integer_or(word, b"ERR Invalid client ID") for word in args[3:]]
            chosen = [sessions[id] for id in ids if id in sessions]
        else:
            raise refusals.syntax()
    return reply.verbatim(_lines(ctx, chosen), ctx.resp3)


def _lines(ctx: Context, sessions: list[Session]) -> bytes:
    assert ctx.row is not None, "a request in hand has its row"
    hidden = ctx.row.hidden
    return "".join([line(session, ctx.now_ms, hidden) + "\n" for session in sessions]).encode(errors="surrogateescape")
