"""A batch of XACKs in one group: the ids of all requests are looked up together."""

from itertools import compress, repeat

from penstock.engine.context import Context
from penstock.engine.policies import retention, settling
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import COLUMNS, RequestBatch
from penstock.storage.streams import ids
from penstock.storage.streams.group import Group
from penstock.storage.streams.stream import Stream


def _depends_on_order(stream: Stream, group: Group) -> bool:
    """Whether policies make of acknowledgements what depends on their order.

    With KEY, what they free is ready in their order. With MAXLEN n ACKED, the first go that are above the limit.
    """
    if stream.policies is None:
        return False
    has_keys = group.policy is not None and group.policy.keys is not None
    return has_keys or (stream.policies.settings.max_length > 0 and retention.is_acked(stream.policies))


@batched("XACK", COLUMNS)
def acknowledge_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run XACKs with one id each in one group; returns how many requests were run. xack.py is the oracle."""
    if batch.names or len(batch.prefix) != 3:
        return 0
    head, words = batch.prefix, batch.columns[0]
    stream = ctx.value(head[1])
    if not isinstance(stream, Stream):
        return 0
    group = stream.groups.get(head[2])
    if group is None or _depends_on_order(stream, group):
        return 0
    try:
        wanted = ids.parse_all(words)
    except ValueError:
        return 0
    acknowledged = group.acknowledge_all(wanted)
    ctx.engine.statistics.hits += len(words)
    ctx.dirty += acknowledged.count(1)
    if ctx.effects.log is not None and any(acknowledged):
        opening = b"*4\r\n" + b"".join(map(reply.bulk, head))
        lines = list(map(b"".join, zip(repeat(opening), map(reply.bulk, compress(words, acknowledged)))))
        ctx.effects.add_units(ctx.db_index, lines)
    if stream.policies is not None and any(acknowledged):
        settling.acknowledged(ctx, head[1], stream, [wanted.id_at(at) for at, one in enumerate(acknowledged) if one])
    replies.extend(map((reply.ZERO, reply.ONE).__getitem__, acknowledged))
    return len(words)
