"""WAITAOF: who waits until the log has been synced up to where it was."""

from typing import TYPE_CHECKING, Final

from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

SYNCED: Final = reply.array([reply.ONE, reply.ZERO])  # one copy here, none elsewhere
NOT_SYNCED: Final = reply.array([reply.ZERO, reply.ZERO])


class SyncWaiting:
    """Blocked requests, each with the unit of the log that must be safe for it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[BlockedRequest, int, bool]] = []

    def add(self, blocked: BlockedRequest, unit: int, wants_more: bool) -> None:
        """`wants_more`: it waits for replicas too, so that only its time ends it."""
        self._waiting.append((blocked, unit, wants_more))

    def settle(self, engine: "Engine") -> None:
        """The log may have been synced since: release those whose unit is safe."""
        if not self._waiting:
            return
        synced = synced_units(engine)
        still = []
        for blocked, unit, wants_more in self._waiting:
            if blocked.session.blocked is not blocked:
                continue  # its time was up, or its client has gone
            if unit > synced:
                still.append((blocked, unit, wants_more))
            elif wants_more:
                blocked.timeout_reply = SYNCED
            else:
                engine.statistics.ran(blocked.row, 0, None)
                engine.release(blocked, SYNCED)
        self._waiting = still


def appended_units(engine: "Engine") -> int:
    """Units that the log has taken; 0 where there is none."""
    log = engine.persistence.log
    return 0 if log is None else log.appended


def synced_units(engine: "Engine") -> int:
    """Units that are safe."""
    log = engine.persistence.log
    return 0 if log is None else log.synced
