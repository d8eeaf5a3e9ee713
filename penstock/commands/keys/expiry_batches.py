"""Batches of EXPIRE in a pipeline, whatever their keys are; expiry.py is the oracle.

Tests: law commands/test_batches.
"""

from penstock.commands.common import batch_keys
from penstock.commands.keys.expiry import moment, notify_expiry
from penstock.engine.arguments import integer
from penstock.engine.context import Context
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch


@batched("EXPIRE", POSITIONS)
def expire_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run EXPIREs without conditions; returns how many.

    It ends before a key past its time, and before a time that is no number or not to come.
    """
    if batch.width != 3:
        return 0
    values, expiries, is_logged = ctx.db.values, ctx.db.expiries, ctx.effects.log is not None
    keys, seconds = batch_keys.current(ctx, batch.words_at(1)), batch.words_at(2)
    logged: list[bytes] = []
    done = found = 0
    for at, key in enumerate(keys):
        try:
            number = integer(seconds[at])
            when_ms = moment(number, ctx.now_ms, True, b"expire")
        except ReplyError:
            break
        if number <= 0:
            break
        done += 1
        if not expiries.renew(key, when_ms):  # a key that has a time is there
            if key not in values:
                replies.append(reply.ZERO)
                continue
            expiries.set(key, when_ms)
        notify_expiry(ctx, key)
        replies.append(reply.ONE)
        found += 1
        if is_logged:
            logged.append(reply.bulks([b"PEXPIREAT", key, b"%d" % when_ms]))
    ctx.dirty += found
    if logged:
        ctx.effects.add_units(ctx.db_index, logged)
    return done
