"""Work that is done ten times a second, even if no request comes."""

import asyncio
from typing import Final

from penstock.server.turns.turn import Turn

PERIOD_S: Final = 0.1
PERIODS_A_SECOND: Final = 10


class Cron:
    """Calls the engine's tick and the log writer's cron, and closes clients that are too slow or idle.

    It goes through all clients only if `timeout` is set, and then once a second.
    """

    __slots__ = ("_handle", "_period", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._period = 0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._handle = self._turn.loop.call_later(PERIOD_S, self._run)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _run(self) -> None:
        self.start()  # first: an exception below must not stop the cron
        turn = self._turn
        if turn.engine.conditions.cron_is_paused:
            return
        self._period += 1
        turn.tick()
        turn.look_after_log()
        if turn.replicas is not None:
            turn.outside(turn.replicas.cron)
        for connection in list(turn.output_blocked):
            connection.check_output()
        timeout_s = turn.engine.settings.number("timeout")
        if timeout_s and self._period % PERIODS_A_SECOND == 0:
            close_idle(turn, timeout_s)


def close_idle(turn: Turn, timeout_s: int) -> None:
    """Close clients that sent no request for longer than so many seconds, and do not wait for a reply."""
    now_ms = turn.engine.clock.now_us() // 1000
    for connection in list(turn.connections.values()):
        session = connection.session
        waits = session.blocked is not None or session.is_subscribed or session.is_replica
        if not waits and connection.is_settled() and (now_ms - session.last_ms) // 1000 > timeout_s:
            turn.server_log.verbose(f"Closing idle client {session.address}")
            connection.abort()
