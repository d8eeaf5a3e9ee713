"""Batches of LPUSH, RPUSH, LPOP and RPOP in a pipeline; list_ends.py is the oracle.

What goes to one list in a row is added or taken at once. A batch ends before a request that does more than its like:
its key has another type, its time is over, or a client waits for it.

Tests: law commands/test_batches.
"""

from penstock.commands.common import batch_keys
from penstock.commands.lists.list_ends import listpack_size, notify_popped, push
from penstock.engine.context import Context
from penstock.engine.table.command_table import REPLY_BYTES, batched
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch
from penstock.storage.types.lists import List


@batched("LPUSH", POSITIONS)
def lpush_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run LPUSHes; returns how many."""
    return _push(ctx, batch, replies, left=True)


@batched("RPUSH", POSITIONS)
def rpush_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run RPUSHes; returns how many."""
    return _push(ctx, batch, replies, left=False)


@batched("LPOP", POSITIONS)
def lpop_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run LPOPs without a count; returns how many."""
    return _pop(ctx, batch, replies, left=True)


@batched("RPOP", POSITIONS)
def rpop_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run RPOPs without a count; returns how many."""
    return _pop(ctx, batch, replies, left=False)


def _push(ctx: Context, batch: RequestBatch, replies: list[bytes], left: bool) -> int:
    keys, first_items = batch_keys.free(ctx, batch.words_at(1)), batch.words_at(2)
    limit, each, done = listpack_size(ctx), batch.width - 2, 0
    while done < len(keys):
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        found = ctx.value(key)
        if found is not None and not isinstance(found, List):
            break
        if each == 1:
            items = first_items[done:stop]
        else:
            items = []
            for at in range(done, stop):
                items += batch.words_from(2, at)
        total = push(ctx, key, found, left, items, limit) - len(items)
        for _ in range(done, stop):
            total += each
            replies.append(reply.integer(total))
        ctx.dirty += len(items)
        done = stop
    batch_keys.log_first(ctx, batch, done)
    return done


def _pop(ctx: Context, batch: RequestBatch, replies: list[bytes], left: bool) -> int:
    if batch.width != 2:
        return 0
    keys = batch_keys.free(ctx, batch.words_at(1))
    null = reply.null(ctx.resp3)
    popped: list[int] = []
    done = size = 0
    while done < len(keys) and size < REPLY_BYTES:
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        before = len(popped)
        found = ctx.value(key)
        if found is None:
            replies.extend([null] * (stop - done))
            done = stop
            continue
        if not isinstance(found, List):
            break
        while done < stop and found.length and size < REPLY_BYTES:
            item = found.pop_one(left)
            replies.append(reply.bulk(item))
            size += len(item)
            popped.append(done)
            done += 1
        notify_popped(ctx, key, found, left, len(popped) - before)
    batch_keys.log_each(ctx, batch, popped)
    return done
