"""Moving the test clock on: everything that comes due on the way is done at its moment, in order."""

from typing import Final

from penstock.clock import MovableClock
from penstock.engine.server_state import ServerState
from penstock.engine.state import PAUSED
from penstock.storage.deadlines import NEVER

TICKS_A_MOMENT: Final = 10_000  # more are not run at one moment: then something stays due


def advance(server: ServerState, clock: MovableClock, ms: int) -> None:
    """Move the clock by `ms`, tick by tick. Amounts to the same in one step as in several."""
    advance_us(server, clock, ms * 1000)


def advance_us(server: ServerState, clock: MovableClock, us: int) -> None:
    """As `advance`, in microseconds."""
    left_us = us
    ticks = 0
    server.runner.tick()
    while True:
        due_ms = _next_due_ms(server)
        step_us = max(due_ms * 1000 - clock.now_us(), 0)
        if due_ms == NEVER or step_us > left_us or ticks >= TICKS_A_MOMENT:
            break
        ticks = 0 if step_us else ticks + 1
        left_us -= step_us
        clock.advance_us(step_us)
        server.runner.tick()
    clock.advance_us(left_us)
    server.runner.tick()


def _next_due_ms(server: ServerState) -> int:
    """The next moment at which a tick has something to do, in unix ms; NEVER if there is none."""
    due_ms = server.runner.next_wakeup_ms() or NEVER
    if server.conditions.active_expiry and not server.conditions.bits & PAUSED:
        for db in server.keyspace.databases:
            expiry_ms = min(db.expiries.first_ms(), db.parts_due.first_ms())
            if expiry_ms != NEVER:
                due_ms = min(due_ms, expiry_ms + 1)
    return due_ms
