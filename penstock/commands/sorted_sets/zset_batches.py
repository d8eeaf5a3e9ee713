"""Batches of ZADD in a pipeline; zset_adding.py is the oracle.

Tests: law commands/test_batches.
"""

from penstock.commands.common import batch_keys
from penstock.commands.common.overwriting import create
from penstock.commands.sorted_sets.zset_values import Limits
from penstock.engine.context import Context
from penstock.engine.numbers import float_word
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch
from penstock.storage.types.sorted_sets import SortedSet


@batched("ZADD", POSITIONS)
def zadd_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run ZADDs of one member each and without options; returns how many.

    It ends before a score that is none, a key of another type, one past its time or that a client waits for.
    """
    if batch.width != 4:
        return 0
    keys, scores = batch_keys.free(ctx, batch.words_at(1)), _scores(batch.words_at(2))
    if len(scores) < len(keys):
        keys = keys[: len(scores)]
    members, is_logged = batch.words_at(3), ctx.effects.log is not None
    limits = Limits(ctx)
    logged: list[int] = []
    done = 0
    while done < len(keys):
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        changed = 0
        found = ctx.value(key)
        if found is None:
            found = limits.new_set(members[done : done + 1])
            create(ctx, key, found)
        elif not isinstance(found, SortedSet):
            break
        limits.expect(found, 1)
        for at in range(done, stop):
            score, member = scores[at], members[at]
            old = limits.add(found, member, score)
            replies.append(reply.ONE if old is None else reply.ZERO)
            if old is None or old != score:
                changed += 1
                if is_logged:
                    logged.append(at)
        if changed:
            ctx.touch(key)
            ctx.event("z", b"zadd", key)
            ctx.dirty += changed
        done = stop
    batch_keys.log_each(ctx, batch, logged)
    return done


def _scores(words: list[bytes]) -> list[float]:
    """The scores up to the first word that is no score, for example an option."""
    scores: list[float] = []
    try:
        for word in words:
            scores.append(float_word(word))
    except ReplyError:
        pass
    return scores
