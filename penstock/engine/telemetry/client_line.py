"""One client as CLIENT LIST describes it (Redis 8.6.3)."""

from typing import Final

from penstock.engine.session import Session
from penstock.engine.telemetry.client_memory import memory_of

REPLY_BUFFER: Final = 0  # replies are handed to the transport at once; none is kept here


def kind_of(session: Session) -> bytes:
    """As TYPE in CLIENT LIST and CLIENT KILL."""
    if session.is_master:
        return b"master"
    if session.is_replica:
        return b"slave"
    return b"pubsub" if session.is_subscribed else b"normal"


def flags(session: Session) -> str:
    """One letter for each thing that is not as usual; N for a usual client."""
    letters = "M" if session.is_master else ""
    if session.is_replica:
        letters += "S"
    if session.monitors:
        letters += "O"
    if session.is_subscribed:
        letters += "P"
    if session.queue is not None:
        letters += "x"
    if session.blocked is not None:
        letters += "b"
    if session.tracking is not None:
        letters += "t"
        if session.tracking.is_broken:
            letters += "R"
        if session.tracking.by_prefix:
            letters += "B"
    if session.watch_broken:
        letters += "d"
    if session.closing:
        letters += "c"
    if session.unix_socket:
        letters += "U"
    if session.reads_replicas:
        letters += "r"
    if session.no_evict:
        letters += "e"
    if session.no_touch:
        letters += "T"
    if session.imports:
        letters += "I"
    return letters or "N"


def capabilities(session: Session) -> str:
    """One letter for each thing that the client says it can do (Valkey 9.1.2)."""
    return "r" if session.redirects else ""


def line(session: Session, now_ms: int, hidden: frozenset[bytes] = frozenset()) -> str:
    """The description of one connection, without a line's end; `hidden` fields are left out."""
    shown: list[tuple[str, int | str]] = [
        ("id", session.id),
        ("addr", session.address),
        ("laddr", session.local_address),
        ("fd", session.endpoints.descriptor),
        ("name", _text(session.name)),
        ("age", max(now_ms - session.connected_ms, 0) // 1000),
        ("idle", max(now_ms - session.last_ms, 0) // 1000),
        ("flags", flags(session)),
        ("capa", capabilities(session)),
        ("db", session.db_index),
        ("sub", len(session.channels)),
        ("psub", len(session.patterns)),
        ("ssub", len(session.shard_channels)),
        ("multi", session.queued),
        ("watch", len(session.watched)),
        ("qbuf", session.query_buffer),
        ("qbuf-free", 0),
        ("argv-mem", session.args_memory),
        ("multi-mem", session.queued_bytes),
        ("rbs", REPLY_BUFFER),
        ("rbp", REPLY_BUFFER),
        ("obl", 0),
        ("oll", 1 if session.waiting_output else 0),
        ("omem", session.waiting_output),
        ("tot-mem", memory_of(session)),
        ("events", "rw" if session.waiting_output else "r"),
        ("cmd", session.last_command or "NULL"),
        ("user", "(superuser)" if session.is_master else _text(session.user.name)),
        ("redir", -1 if session.tracking is None else session.tracking.redirect),
        ("resp", session.resp),
        ("lib-name", _text(session.library_name)),
        ("lib-ver", _text(session.library_version)),
        ("io-thread", 0),
        ("tot-net-in", session.input_bytes),
        ("tot-net-out", session.output_bytes),
        ("tot-cmds", session.handled + session.called),
        ("read-events", session.reads),
        ("parse-batch-cmd-sum", session.handled),
        ("parse-batch-cnt", session.reads),
    ]
    return " ".join([f"{name}={value}" for name, value in shown if name.encode() not in hidden])


def _text(word: bytes) -> str:
    return word.decode(errors="surrogateescape")
