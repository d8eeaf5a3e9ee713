"""Overdue keys and fields that nobody asks for: each tick removes some of them."""

from typing import Final

from penstock.engine import field_expiry
from penstock.engine.context import Context
from penstock.engine.engine_state import EngineState
from penstock.engine.session import NOBODY

EXPIRED_A_TICK: Final = 1000  # keys removed by one tick at most, so that a tick stays short


def expire_overdue(engine: EngineState, now_us: int) -> None:
    """Remove overdue keys of all databases, each logged as a unit of its own, then overdue fields."""
    ctx = engine.context
    ctx.begin(NOBODY, now_us)
    began_ns = engine.clock.now_ns()
    for db_index, db in enumerate(engine.keyspace.databases):
        if db.deadlines and db.deadlines[0][0] < ctx.now_ms:
            ctx.select(db_index)
            for key in db.overdue(ctx.now_ms, EXPIRED_A_TICK):
                if expire_timed(ctx, key):
                    engine.statistics.expired_active += 1
                engine.effects.end_unit()
        if db.fields_due.first_ms() < ctx.now_ms:
            ctx.select(db_index)
            field_expiry.expire_overdue(ctx)
    engine.note_delay(b"expire-cycle", began_ns)


def expire_timed(ctx: Context, key: bytes) -> bool:
    """Remove an overdue key as `Context.expire` does; LATENCY tells if it took long."""
    began_ns = ctx.engine.clock.now_ns()
    is_removed = ctx.expire(key)
    ctx.engine.note_delay(b"expire-del", began_ns)
    return is_removed
