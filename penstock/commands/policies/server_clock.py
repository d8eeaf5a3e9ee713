"""PENSTOCK.CLOCK: stops the server's clock and moves it on, for tests of what takes minutes.

Tests: transcripts policies_leases; cases policies/test_clock.
"""

from typing import Final

from penstock.clock import MovableClock
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.engine.waiting import clock_moving
from penstock.errors import ReplyError
from penstock.protocol import reply

LATEST_MS: Final = 2**53  # the year 287396: microseconds of it are still exact in every client

_GOES_BACK: Final = b"ERR the clock cannot go back"


@command(
    "PENSTOCK.CLOCK action:<SET unix-time-milliseconds|ADVANCE milliseconds|RUN>",
    f"{PENSTOCK_VERSION} admin noscript no_multi | acl dangerous | group server",
    "Stops the server's clock, moves it, or lets it go on: for tests, with penstock-test-clock.",
    "O(N) where N is the number of moments at which something comes due on the way.",
)
def penstock_clock(ctx: Context, args: list[bytes]) -> bytes:
    """SET stops the clock. A clock that stands is not set back; one that runs may be: it is the machine's."""
    clock = ctx.clock
    if not isinstance(clock, MovableClock):
        raise ReplyError(b"ERR the clock is the system's: start the server with penstock-test-clock yes")
    word = args[1].upper()
    if word == b"RUN" and len(args) == 2:
        clock.run()
    elif word in (b"SET", b"ADVANCE") and len(args) == 3:
        number = arguments.integer(args[2])
        if word == b"SET":
            _set(ctx, clock, number)
        else:
            _advance(ctx, clock, number)
    else:
        raise refusals.syntax()
    return reply.OK


def _set(ctx: Context, clock: MovableClock, now_ms: int) -> None:
    if not 0 <= now_ms <= LATEST_MS:
        raise refusals.not_an_integer()
    if clock.is_stopped and now_ms * 1000 < clock.now_us():
        raise ReplyError(_GOES_BACK)
    clock.stop_at(now_ms)
    _tick(ctx, clock, 0)


def _advance(ctx: Context, clock: MovableClock, ms: int) -> None:
    if ms < 0:
        raise ReplyError(_GOES_BACK)
    if clock.now_us() // 1000 + ms > LATEST_MS:
        raise refusals.not_an_integer()
    _tick(ctx, clock, ms)


def _tick(ctx: Context, clock: MovableClock, ms: int) -> None:
    """Do what comes due. The tick runs in this request's context, which is its again afterwards."""
    session, row, args = ctx.session, ctx.row, ctx.args
    clock_moving.advance(ctx.server, clock, ms)
    ctx.begin(session, clock.now_us())
    ctx.resume(row, args)
