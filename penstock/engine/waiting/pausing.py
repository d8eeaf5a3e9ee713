"""CLIENT PAUSE: requests are held back, all of them or those that may write, until the time is over or UNPAUSE.

FAILOVER holds those back that may write until it has ended (`hold_writes`).
"""

from penstock.engine import intents
from penstock.engine.server_state import ServerState
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply


def pause(server: ServerState, until_ms: int, all_requests: bool) -> None:
    """CLIENT PAUSE. A pause that lasts is made neither shorter nor milder by another (Redis 8.6.3)."""
    if server.context.now_ms < server.conditions.paused_until_ms:
        all_requests |= server.conditions.pauses_all
        until_ms = max(until_ms, server.conditions.paused_until_ms)
    server.conditions.paused_until_ms, server.conditions.pauses_all = until_ms, all_requests


def postpone(server: ServerState, session: Session, row: Row, request: list[bytes]) -> bool:
    """Hold a request back while its kind is paused."""
    now_ms = server.context.now_ms
    if not server.conditions.writes_paused(now_ms):
        return False
    pauses_all = server.conditions.pauses_all and now_ms < server.conditions.paused_until_ms
    if not (pauses_all or intents.may_spread(server, session, row, request)):
        return False
    session.blocked = BlockedRequest(session, row, request, session.db_index, [], 0, reply.NO_REPLY)
    session.blocked.postponed = True
    server.conditions.postponed.append(session.blocked)
    return True


def end(server: ServerState) -> list[BlockedRequest]:
    """The pause is over: the requests that were held back, in the order in which they came."""
    server.conditions.paused_until_ms = 0
    held, server.conditions.postponed = server.conditions.postponed, []
    return held


def is_held(blocked: BlockedRequest) -> bool:
    """Whether the client still waits for it."""
    session = blocked.session
    return not session.closed and session.blocked is blocked
