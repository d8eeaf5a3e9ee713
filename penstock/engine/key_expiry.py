"""Overdue keys and fields that no request asks for: each tick removes some of them."""

from typing import Final

from penstock.engine import part_expiry
from penstock.engine.context import Context
from penstock.engine.server_state import ServerState
from penstock.engine.session import NO_CLIENT

EXPIRED_A_TICK: Final = 3000  # keys removed by one tick at most
MOST_US: Final = 2500  # in one tick: with those of EXPIRED_EVERY_MS a third of the loop's time (in Redis a quarter, or
# half of it where much is overdue, but 25 ms at once)
EXPIRED_EVERY_MS: Final = 5  # while more is overdue than one tick removes
LOOKED_AT: Final = 50  # keys between two looks at the clock


def expire_overdue(server: ServerState, now_us: int) -> None:
    """Remove overdue keys of all databases, each logged as a unit of its own, then overdue fields.

    If the limit of keys or of time is reached, the next tick comes soon (`ticks_are_behind`).
    """
    ctx = server.context
    ctx.begin(NO_CLIENT, now_us)
    began_us = server.clock.monotonic_us()
    left = EXPIRED_A_TICK
    for db_index, db in enumerate(server.keyspace.databases):
        if db.expiries.first_ms() < ctx.now_ms:
            ctx.select(db_index)
            left = _expire_keys(ctx, left, began_us + MOST_US)
            if db.expiries.first_ms() < ctx.now_ms:
                server.ticks_are_behind = True
        if db.parts_due.first_ms() < ctx.now_ms:
            ctx.select(db_index)
            part_expiry.expire_overdue(ctx)
            if db.parts_due.first_ms() < ctx.now_ms:
                server.ticks_are_behind = True
    if left < EXPIRED_A_TICK:
        server.statistics.expiry_usec += server.clock.monotonic_us() - began_us
    server.telemetry.note_delay(b"expire-cycle", began_us)


def _expire_keys(ctx: Context, most: int, until_us: int) -> int:
    """Remove at most so many overdue keys of the context's database until a time; how many may still be removed."""
    server = ctx.server
    is_timed = server.settings.number("latency-monitor-threshold") > 0  # then one after the other: LATENCY notes each
    at_once = 1 if is_timed else LOOKED_AT
    while most > 0 and ctx.db.expiries.first_ms() < ctx.now_ms:
        began_us = server.clock.monotonic_us()
        expired = ctx.expire_overdue(min(most, at_once))
        server.statistics.expired_active += expired
        if ctx.compatibility.is_valkey_since("9.2.0"):
            ctx.dirty += expired  # in others only what requests change counts for save points
        if is_timed:
            server.telemetry.note_delay(b"expire-del", began_us)
        most -= expired
        if server.clock.monotonic_us() >= until_us:
            server.statistics.expiry_cuts += 1
            break
    return most
