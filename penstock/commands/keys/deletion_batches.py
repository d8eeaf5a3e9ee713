"""Batches of DEL and UNLINK of one key each in a pipeline; keys.py is the oracle.

Tests: law commands/test_batches.
"""

from penstock.commands.common import batch_keys
from penstock.commands.common.overwriting import delete
from penstock.engine.context import Context
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch


@batched("DEL", POSITIONS)
def del_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    return _remove(ctx, batch, replies, is_lazy=ctx.settings.yes("lazyfree-lazy-user-del"))


@batched("UNLINK", POSITIONS)
def unlink_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    return _remove(ctx, batch, replies, is_lazy=True)


def _remove(ctx: Context, batch: RequestBatch, replies: list[bytes], is_lazy: bool) -> int:
    """Remove a key for each request; returns how many requests. It ends before a key past its time."""
    if batch.width != 2:
        return 0
    keys = batch_keys.free(ctx, batch.words_at(1))
    removed: list[int] = []
    for at, key in enumerate(keys):
        if delete(ctx, key, is_lazy):
            removed.append(at)
            replies.append(reply.ONE)
        else:
            replies.append(reply.ZERO)
    batch_keys.log_each(ctx, batch, removed)
    return len(keys)
