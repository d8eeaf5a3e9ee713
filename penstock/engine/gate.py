"""The gate: whether a request may be run or queued, asked where a bit of state.py says that there is a doubt."""

from penstock.engine import protected_commands, refusals, transactions
from penstock.engine.engine_state import EngineState
from penstock.engine.session import Session
from penstock.engine.state import RESTRICTED
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
    if engine.memory.limit and not engine.loading:
        engine.memory.admit(session, row)
    if engine.trouble is not None and (transactions.may_write(session, row) or row.name == "PING"):
        raise ReplyError(engine.trouble)
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
    if session.monitors and (row.write or "readonly" in row.flags):
        raise ReplyError(b"ERR Replica can't interact with the keyspace")
