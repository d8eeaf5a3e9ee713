"""The gate: whether a request may be run or queued, asked where a bit of state.py says that there is a doubt."""

from penstock.engine import intents, protected_commands, refusals
from penstock.engine.cluster import slot_rules
from penstock.engine.replication.replication import MASTER_DOWN
from penstock.engine.server_state import ServerState
from penstock.engine.session import NO_CLIENT, Session
from penstock.engine.state import FOLLOWING, NEEDS_REPLICAS, RESTRICTED
from penstock.engine.table.row import Row
from penstock.errors import ReplyError


def admit(server: ServerState, session: Session, row: Row, request: list[bytes]) -> None:
    """The gates before a request is run or queued, in Redis's order (Redis 8.6.3)."""
    protected_commands.require_allowed(server.settings, session, row)
    if not session.authenticated and not row.no_auth:
        raise ReplyError(b"NOAUTH Authentication required.")
    if session.queue is not None and row.no_multi:
        named = b" '%b'" % row.label if server.compatibility.is_valkey else b""
        raise ReplyError(b"ERR Command%b not allowed inside a transaction" % named)
    if session.state & RESTRICTED:
        server.access.admit(session, row, request)
    if server.cluster is not None:
        server.cluster.admit(session, row, request, server.context.now_ms)
    if _lacks_memory(server) and intents.needs_memory(server, session, row, request):
        raise refusals.out_of_memory()
    if server.conditions.trouble is not None and (
        row.name == "PING" or intents.may_write(server, session, row, request)
    ):
        raise ReplyError(server.conditions.trouble)
    if server.conditions.bits & NEEDS_REPLICAS and intents.may_write(server, session, row, request):
        server.replication.admit_write()
    if server.conditions.bits & FOLLOWING:
        if intents.may_write(server, session, row, request):
            server.replication.admit_write_on_replica()
        if server.replication.is_stale() and intents.needs_master(server, session, row, request):
            raise ReplyError(MASTER_DOWN)
    if session.resp == 2 and session.is_subscribed and not row.pubsub:
        raise ReplyError(
            b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed"
            b" in this context" % row.label
        )
    if server.conditions.loading and not row.loading:
        raise refusals.loading()
    if server.conditions.busy:
        is_hard = row.name != "SHUTDOWN" or b"NOSAVE" in [word.upper() for word in request[1:]]
        if "allow_busy" not in row.flags or not is_hard:
            raise ReplyError(server.scripts.busy_text())
    if session.is_replica and not row.for_replicas:
        session.closing = True
        raise ReplyError(b"ERR Replica can't interact with the keyspace")
    if session.monitors and (row.write or "readonly" in row.flags):
        raise ReplyError(b"ERR Replica can't interact with the keyspace")


def evict_due(server: ServerState, now_us: int) -> None:
    """Evict without a request that needs memory, as Redis 8.6.3 does after CONFIG SET maxmemory."""
    if not server.conditions.loading:
        server.context.begin(NO_CLIENT, now_us)
        server.memory.is_due = False
        _lacks_memory(server)


def _lacks_memory(server: ServerState) -> bool:
    """Make room where memory is limited; whether there is none.

    Not while a script runs that takes long: its changes are one unit, and no key goes meanwhile (Redis 8.6.3).
    """
    conditions = server.conditions
    if not server.memory.limit or conditions.loading or conditions.busy or _leaves_memory_to_master(server):
        return False
    return server.memory.fails_to_make_room()


def _leaves_memory_to_master(server: ServerState) -> bool:
    return server.conditions.bits & FOLLOWING != 0 and server.settings.yes("replica-ignore-maxmemory")


def abort(server: ServerState, session: Session, refusal: ReplyError) -> ReplyError:
    """EXEC itself is refused: the transaction, if one is open, and the watches go (Redis 8.6.3)."""
    session.queue = None
    session.queue_failed = False
    server.clients.unwatch(session)
    if refusal.text.startswith(slot_rules.FOR_CLIENTS):
        return refusal
    return ReplyError(b"EXECABORT Transaction discarded because of: " + refusal.text.removeprefix(b"ERR "))
