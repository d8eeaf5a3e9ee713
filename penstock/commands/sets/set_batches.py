"""Batches of SADD in a pipeline; set_members.py is the oracle.

Tests: law commands/test_batches.
"""

from penstock.commands.common import batch_keys
from penstock.commands.common.overwriting import create
from penstock.commands.sets.set_members import limits
from penstock.engine.context import Context
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch
from penstock.storage.types.sets import Set


@batched("SADD", POSITIONS)
def sadd_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run SADDs of one member each; returns how many.

    It ends before a key of another type, one past its time, one with members that expire or that a client waits for.
    """
    if batch.width != 3:
        return 0
    keys, members = batch_keys.free(ctx, batch.words_at(1)), batch.words_at(2)
    limit = limits(ctx)
    added: list[int] = []
    done = 0
    while done < len(keys):
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        before = len(added)
        found = ctx.value(key)
        if found is None:
            found = Set.made(members[done : done + 1], limit)
            create(ctx, key, found)
            replies.append(reply.ONE)
            added.append(done)
            done += 1
        elif not isinstance(found, Set) or found.due is not None:
            break
        for at in range(done, stop):
            if found.add_one(members[at], limit):
                replies.append(reply.ONE)
                added.append(at)
            else:
                replies.append(reply.ZERO)
        if len(added) > before:
            ctx.touch(key)
            ctx.event("s", b"sadd", key)
            ctx.dirty += len(added) - before
        done = stop
    batch_keys.log_each(ctx, batch, added)
    return done
