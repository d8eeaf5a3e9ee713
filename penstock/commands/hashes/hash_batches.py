"""Batches of HSET in a pipeline; hash_fields.py is the oracle.

Tests: law commands/test_batches; model storage/test_packed_hashes.
"""

from penstock.commands.common import batch_keys
from penstock.commands.common.overwriting import create
from penstock.commands.hashes.hash_access import note_size
from penstock.engine.context import Context
from penstock.engine.part_expiry import notify_changed
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import NO_WORDS, POSITIONS, RequestBatch
from penstock.storage.types.hashes import Hash


@batched("HSET", POSITIONS)
def hset_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run HSETs; returns how many.

    It ends before a key of another type, one past its time or that a client waits for, and before a hash with
    times of expiry of its fields; it does not begin where events tell fields.
    """
    if batch.width % 2 or ctx.key_events.of_parts:
        return 0
    keys, has_one_field = batch_keys.free(ctx, batch.words_at(1)), batch.width == 4
    fields, values = (batch.words_at(2), batch.words_at(3)) if has_one_field else (NO_WORDS, NO_WORDS)
    done = 0
    while done < len(keys):
        key, stop = keys[done], batch_keys.stretch_end(keys, done)
        found = ctx.value(key)
        if found is None:
            found = Hash()
            create(ctx, key, found)
        elif not isinstance(found, Hash) or found.due is not None:
            break
        for at in range(done, stop):
            if has_one_field and len(found):
                field, value = fields[at], values[at]
                replies.append(reply.ONE if found.put(field, value) else reply.ZERO)
                if not found.is_large:
                    found.outgrow_by(field, value, ctx.form_limits.hash_fields, ctx.form_limits.hash_bytes)
                continue
            words = batch.words_from(2, at)
            replies.append(reply.integer(found.put_all(words)))
            note_size(ctx, found, words)
        notify_changed(ctx, key, found, b"hset", (), (stop - done) * (batch.width - 2) // 2)
        done = stop
    batch_keys.log_first(ctx, batch, done)
    return done
