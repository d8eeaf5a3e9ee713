"""WAITAOF: who waits until the log has been synced up to where it was."""

from collections.abc import Callable
from typing import Final

from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply

SYNCED: Final = reply.array([reply.ONE, reply.ZERO])  # one copy here, none elsewhere
NOT_SYNCED: Final = reply.array([reply.ZERO, reply.ZERO])


class SyncWaiting:
    """Blocked requests, each with the unit of the log that must be safe for it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[BlockedRequest, int, bool]] = []

    def add(self, blocked: BlockedRequest, unit: int, wants_more: bool) -> None:
        """`wants_more`: it waits for replicas too, so that only its time ends it."""
        self._waiting.append((blocked, unit, wants_more))

    def settle(self, synced: int, release: Callable[[BlockedRequest], None]) -> None:
        """So many units are safe: release those whose unit is one of them."""
        if not self._waiting:
            return
        still = []
        for blocked, unit, wants_more in self._waiting:
            if blocked.session.blocked is not blocked:
                continue  # its time was up, or its client has gone
            if unit > synced:
                still.append((blocked, unit, wants_more))
            elif wants_more:
                blocked.timeout_reply = SYNCED
            else:
                release(blocked)
        self._waiting = still
