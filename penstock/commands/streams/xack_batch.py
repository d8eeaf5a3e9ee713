"""XACKs that follow one another in a pipeline, of one group: what each acknowledges is looked up together."""

from itertools import compress, repeat

from penstock.engine.context import Context
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import RequestBatch
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream


@batched("XACK")
def acknowledge_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Acknowledge the one id that each request of a batch names, all in one group."""
    if batch.names or len(batch.prefix) != 3:
        return 0
    head, words = batch.prefix, batch.columns[0]
    stream = ctx.value(head[1])
    group = stream.groups.get(head[2]) if isinstance(stream, Stream) else None
    if group is None:
        return 0
    try:
        wanted = ids.parse_all(words)
    except ValueError:
        return 0
    gone = group.acknowledge_all(wanted)
    ctx.engine.statistics.hits += len(words)
    ctx.dirty += gone.count(1)
    if ctx.effects.log is not None and any(gone):
        begin = b"*4\r\n" + b"".join(map(reply.bulk, head))
        lines = list(map(b"".join, zip(repeat(begin), map(reply.bulk, compress(words, gone)))))
        ctx.effects.add_units(ctx.db_index, lines)
    replies.extend(map((reply.ZERO, reply.ONE).__getitem__, gone))
    return len(words)
