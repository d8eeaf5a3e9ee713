"""The gate: whether a request may be run or queued, asked where a bit of state.py says that there is a doubt."""

from penstock.engine import intents, protected_commands, refusals
from penstock.engine.engine_state import EngineState
from penstock.engine.replication.replication import MASTER_DOWN
from penstock.engine.session import NO_CLIENT, Session
from penstock.engine.state import FOLLOWING, NEEDS_REPLICAS, RESTRICTED
from penstock.engine.table.row import Row
from penstock.errors import ReplyError


def admit(engine: EngineState, session: Session, row: Row, request: list[bytes]) -> None:
    """The gates before a request is run or queued, in Redis's order (Redis 8.6.3)."""
    protected_commands.require_allowed(engine.settings, session, row)
    if not session.authenticated and not row.no_auth:
        raise ReplyError(b"NOAUTH Authentication required.")
    if session.queue is not None and row.no_multi:
        raise ReplyError(b"ERR Command not allowed inside a transaction")
    if session.state & RESTRICTED:
        engine.access.admit(session, row, request)
    if engine.cluster is not None:
        engine.cluster.admit(session, row, request)
    if _lacks_memory(engine) and intents.needs_memory(engine, session, row, request):
        raise refusals.out_of_memory()
    if engine.trouble is not None and (row.name == "PING" or intents.may_write(engine, session, row, request)):
        raise ReplyError(engine.trouble)
    if engine.state & NEEDS_REPLICAS and intents.may_write(engine, session, row, request):
        engine.replication.admit_write()
    if engine.state & FOLLOWING:
        if intents.may_write(engine, session, row, request):
            engine.replication.admit_write_on_replica()
        if engine.replication.is_stale() and intents.needs_master(engine, session, row, request):
            raise ReplyError(MASTER_DOWN)
    if session.resp == 2 and session.is_subscribed and not row.pubsub:
        raise ReplyError(
            b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed"
            b" in this context" % row.label
        )
    if engine.loading and not row.loading:
        raise refusals.loading()
    if engine.busy:
        is_hard = row.name != "SHUTDOWN" or b"NOSAVE" in [word.upper() for word in request[1:]]
        if "allow_busy" not in row.flags or not is_hard:
            raise ReplyError(engine.scripts.busy_text())
    if session.is_replica and not row.for_replicas:
        session.closing = True
        raise ReplyError(b"ERR Replica can't interact with the keyspace")
    if session.monitors and (row.write or "readonly" in row.flags):
        raise ReplyError(b"ERR Replica can't interact with the keyspace")


def evict_due(engine: EngineState, now_us: int) -> None:
    """Evict what is due though no request asks for room, as Redis 8.6.3 does after CONFIG SET maxmemory."""
    if not engine.loading:
        engine.context.begin(NO_CLIENT, now_us)
        engine.memory.is_due = False
        _lacks_memory(engine)


def _lacks_memory(engine: EngineState) -> bool:
    """Make room where memory is limited; whether there is none."""
    if not engine.memory.limit or engine.loading or _leaves_memory_to_master(engine):
        return False
    return engine.memory.fails_to_make_room()


def _leaves_memory_to_master(engine: EngineState) -> bool:
    return engine.state & FOLLOWING != 0 and engine.settings.yes("replica-ignore-maxmemory")


def abort(engine: EngineState, session: Session, refusal: ReplyError) -> ReplyError:
    """EXEC itself is refused: the transaction, if one is open, and the watches go (Redis 8.6.3)."""
    session.queue = None
    session.queue_failed = False
    engine.unwatch(session)
    if refusal.text.startswith((b"CROSSSLOT", b"CLUSTERDOWN")):
        return refusal
    return ReplyError(b"EXECABORT Transaction discarded because of: " + refusal.text.removeprefix(b"ERR "))
