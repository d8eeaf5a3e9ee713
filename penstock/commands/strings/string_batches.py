"""Batches of GET, SET, INCR and DECR in a pipeline, whatever their keys are; strings.py and set_command.py are oracles.

Run in a row by their handlers, they take two to three times as much time. A batch ends before a request that does more
than its like: its key has another type, its time is over, a client waits for it, or the request is refused.

Tests: law commands/test_batches.
"""

from typing import Final

from penstock.commands.common import batch_keys
from penstock.commands.common.overwriting import overwrite
from penstock.commands.keys.expiry import set_expiry
from penstock.commands.strings.set_command import moment_of
from penstock.engine.arguments import integer
from penstock.engine.context import Context
from penstock.engine.table.command_table import REPLY_BYTES, batched
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import POSITIONS, RequestBatch
from penstock.storage.streams.ids import decimal

MOST_COUNTED: Final = 2**60  # below it the compiled build has numbers that are no objects


@batched("GET", POSITIONS)
def get_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Answer GETs; returns how many."""
    null = reply.null(ctx.resp3)
    done = hits = size = 0
    for key in batch_keys.current(ctx, batch.words_at(1)):
        value = ctx.value(key)
        if value is None:
            replies.append(null)
        elif isinstance(value, bytes) and size < REPLY_BYTES:
            replies.append(reply.bulk(value))
            size += len(value)
            hits += 1
        else:
            break
        done += 1
    ctx.statistics.hits += hits
    ctx.statistics.misses += done - hits
    return done


@batched("SET", POSITIONS)
def set_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run SETs without options, or with EX or PX and a number; returns how many."""
    if batch.width == 5:
        return _set_for_times(ctx, batch, replies)
    if batch.width != 3:
        return 0
    keys, values = batch_keys.free(ctx, batch.words_at(1)), batch.words_at(2)
    for at, key in enumerate(keys):
        overwrite(ctx, key, values[at])
    replies.extend([reply.OK] * len(keys))
    return _changed(ctx, batch, len(keys))


def _set_for_times(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run SETs with the same option, EX or PX; it ends before a number that is refused."""
    keys, values, options = batch_keys.free(ctx, batch.words_at(1)), batch.words_at(2), batch.words_at(3)
    numbers, option, is_logged = batch.words_at(4), options[0].upper(), ctx.effects.log is not None
    if option not in (b"EX", b"PX") or options.count(options[0]) < len(options):
        return 0
    logged: list[bytes] = []
    time, when_ms, done = b"", 0, 0
    for at, key in enumerate(keys):
        value, number = values[at], numbers[at]
        if number != time:
            try:
                when_ms = moment_of(ctx, option, number, b"set")
            except ReplyError:
                break
            time = number
        overwrite(ctx, key, value, keeps_expiry=True)
        set_expiry(ctx, key, when_ms)
        replies.append(reply.OK)
        done += 1
        if is_logged:
            logged.append(reply.bulks([b"SET", key, value, b"PXAT", b"%d" % when_ms]))
    ctx.dirty += done
    if logged:
        ctx.effects.add_units(ctx.db_index, logged)
    return done


@batched("INCR", POSITIONS)
def increment_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run INCRs; returns how many."""
    return _count(ctx, batch, replies, 1)


@batched("DECR", POSITIONS)
def decrement_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run DECRs; returns how many."""
    return _count(ctx, batch, replies, -1)


def _count(ctx: Context, batch: RequestBatch, replies: list[bytes], step: int) -> int:
    """Add to numbers, for requests of one key in a row at once; returns how many requests are done."""
    keys = batch_keys.free(ctx, batch.words_at(1))
    done, most = 0, len(keys)
    while done < most:
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        text = ctx.value(key)
        number = 0
        if isinstance(text, bytes):
            try:
                number = integer(text)
            except ReplyError:
                break
        elif text is not None:
            break
        if not -MOST_COUNTED <= number <= MOST_COUNTED:  # it may get too large: the single request decides
            break
        for _ in range(done, stop):
            number += step
            replies.append(reply.integer(number))
        ctx.put(key, decimal(number))
        done = stop
    return _changed(ctx, batch, done)


def _changed(ctx: Context, batch: RequestBatch, done: int) -> int:
    """Note and log the first requests of a batch; returns how many they are."""
    ctx.dirty += done
    batch_keys.log_first(ctx, batch, done)
    return done
