"""Overdue keys and fields that nobody asks for: each tick removes some of them."""

from typing import Final

from penstock.engine import field_expiry
from penstock.engine.context import Context
from penstock.engine.engine_state import EngineState
from penstock.engine.session import NOBODY

EXPIRED_A_TICK: Final = 1000  # keys removed by one tick at most
MOST_US: Final = 2500  # in one tick: with those of EXPIRED_EVERY_MS a quarter of the loop's time, as in Redis
EXPIRED_EVERY_MS: Final = 10  # while more is overdue than one tick removes
LOOKED_AT: Final = 50  # keys between two looks at the clock


def expire_overdue(engine: EngineState, now_us: int) -> None:
    """Remove overdue keys of all databases, each logged as a unit of its own, then overdue fields.

    What is left, by count or by time, is the next tick's, which comes soon (`expiry_is_behind`).
    """
    ctx = engine.context
    ctx.begin(NOBODY, now_us)
    began_ns = engine.clock.now_ns()
    left = EXPIRED_A_TICK
    for db_index, db in enumerate(engine.keyspace.databases):
        if db.deadlines and db.deadlines[0][0] < ctx.now_ms:
            ctx.select(db_index)
            left = _expire_keys(ctx, left, began_ns // 1000 + MOST_US)
            if db.deadlines and db.deadlines[0][0] < ctx.now_ms:
                engine.expiry_is_behind = True
        if db.fields_due.first_ms() < ctx.now_ms:
            ctx.select(db_index)
            field_expiry.expire_overdue(ctx)
            if db.fields_due.first_ms() < ctx.now_ms:
                engine.expiry_is_behind = True
    engine.note_delay(b"expire-cycle", began_ns)


def _expire_keys(ctx: Context, most: int, until_us: int) -> int:
    """Remove at most so many overdue keys of the context's database until a time; how many may still be removed."""
    engine = ctx.engine
    while most > 0:
        keys = ctx.db.overdue(ctx.now_ms, min(most, LOOKED_AT))
        for key in keys:
            if expire_timed(ctx, key):
                engine.statistics.expired_active += 1
            engine.effects.end_unit()
        most -= len(keys)
        if len(keys) < LOOKED_AT or engine.clock.now_us() >= until_us:
            break
    return most


def expire_timed(ctx: Context, key: bytes) -> bool:
    """Remove an overdue key as `Context.expire` does; LATENCY tells if it took long."""
    began_ns = ctx.engine.clock.now_ns()
    is_removed = ctx.expire(key)
    ctx.engine.note_delay(b"expire-del", began_ns)
    return is_removed
