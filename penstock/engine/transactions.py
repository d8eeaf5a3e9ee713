"""Transactions as the gate meets them: what they may write, and how they are given up."""

from penstock.engine.engine_state import EngineState
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.errors import ReplyError


def may_write(session: Session, row: Row) -> bool:
    """Whether a request may change data: a command that writes, or EXEC of a transaction that has one."""
    return row.write or (row.name == "EXEC" and any(queued.write for queued, _ in session.queue or ()))


def abort(engine: EngineState, session: Session, refusal: ReplyError) -> ReplyError:
    """EXEC itself is refused: the transaction, if one is open, and the watches go (Redis 8.6.3)."""
    session.queue = None
    session.queue_failed = False
    engine.unwatch(session)
    if refusal.text.startswith((b"CROSSSLOT", b"CLUSTERDOWN")):
        return refusal
    return ReplyError(b"EXECABORT Transaction discarded because of: " + refusal.text.removeprefix(b"ERR "))
