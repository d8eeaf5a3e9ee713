"""A batch of XACKs in one group: the ids of all requests are looked up together.

Tests: law commands/test_batches, policies/test_policy_batches.
"""

from itertools import compress, repeat

from penstock.engine.context import Context
from penstock.engine.policies import keys, leases, retention, settling
from penstock.engine.table.command_table import batched
from penstock.protocol import reply
from penstock.protocol.request_batch import COLUMNS, RequestBatch
from penstock.storage.streams import ids
from penstock.storage.streams.ids import IdColumns
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream


def _go_together(ctx: Context, key: bytes, stream: Stream, group: Group, wanted: IdColumns) -> bool:
    """Whether policies make of the acknowledgements what they make of them one by one.

    With KEY or INFLIGHT, a blocked reader gets what is ready after each of them.
    """
    policies = stream.policies
    if policies is None:
        return True
    policy = group.policy
    if policy is not None and (policy.keys or policy.choice or policy.is_short) and ctx.is_awaited(key):
        return False
    return retention.go_together(stream, policies, wanted)


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
    if group is None:
        return 0
    try:
        wanted = ids.parse_all(words)
    except ValueError:
        return 0
    if not _go_together(ctx, head[1], stream, group, wanted):
        return 0
    acknowledged = group.pel.acknowledge_all(wanted)
    ctx.statistics.hits += len(words)
    ctx.count_group_changes(head[1], acknowledged.count(1))
    if ctx.effects.log is not None and any(acknowledged):
        opening = b"*4\r\n" + reply.words(head)
        lines = list(map(b"".join, zip(repeat(opening), map(reply.bulk, compress(words, acknowledged)))))
        ctx.effects.add_units(ctx.db_index, lines)
    if stream.policies is not None and any(acknowledged):
        if leases.are_kept(ctx):
            keys.make_next_ready_in_turn(ctx, group)
        settling.acknowledged(ctx, head[1], stream, [wanted.id_at(at) for at, one in enumerate(acknowledged) if one])
    replies.extend(map((reply.ZERO, reply.ONE).__getitem__, acknowledged))
    return len(words)
