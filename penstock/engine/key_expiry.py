"""Overdue keys and fields that nobody asks for: each tick removes some of them."""

from typing import Final

from penstock.engine import field_expiry
from penstock.engine.engine_state import EngineState
from penstock.engine.session import NOBODY

EXPIRED_A_TICK: Final = 1000  # keys removed by one tick at most, so that a tick stays short


def expire_overdue(engine: EngineState, now_us: int) -> None:
    """Remove overdue keys of all databases, each logged as a unit of its own, then overdue fields."""
    ctx = engine.context
    ctx.begin(NOBODY, now_us)
    for db_index, db in enumerate(engine.keyspace.databases):
        if db.deadlines and db.deadlines[0][0] < ctx.now_ms:
            ctx.select(db_index)
            for key in db.overdue(ctx.now_ms, EXPIRED_A_TICK):
                if ctx.expire(key):
                    engine.statistics.expired_active += 1
                engine.effects.end_unit()
        if db.fields_due.first_ms() < ctx.now_ms:
            ctx.select(db_index)
            field_expiry.expire_overdue(ctx)
