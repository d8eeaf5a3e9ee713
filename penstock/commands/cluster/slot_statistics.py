"""CLUSTER SLOT-STATS: how many keys the slots of this node have (Redis 8.6.3; Valkey 9.1.2 replies the same).

Tests: transcripts cluster_slot_stats; cases commands/test_cluster.
"""

from collections import Counter
from typing import Final

from penstock.commands.cluster.cluster_nodes import VARIES, node_of
from penstock.engine import arguments, refusals
from penstock.engine.cluster.hash_slots import SLOTS, slot_of
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

METRIC: Final = b"KEY-COUNT"
ORDERS: Final = (b"ASC", b"DESC")


@command(
    "CLUSTER|SLOT-STATS filter:<slotsrange:SLOTSRANGE (start-slot:integer end-slot:integer)"
    " | orderby:ORDERBY (metric [limit:LIMIT limit] order:[ASC|DESC])>",
    f"8.2.0 loading stale | tips {VARIES} request_policy:all_shards",
    "Counts the keys of slots.",
    "O(N) where N is the number of keys in the database",
)
def cluster_slot_stats(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    form = args[2].upper()
    if form == b"SLOTSRANGE" and len(args) == 5:
        first, last = arguments.slot(args[3]), arguments.slot(args[4])
        if first > last:
            raise ReplyError(b"ERR Start slot number %d is greater than end slot number %d" % (first, last))
        counts = Counter(map(slot_of, ctx.db.values))
        return _reply(ctx, counts, [slot for slot in range(first, last + 1) if node.owns(slot)])
    if form != b"ORDERBY":
        raise refusals.unknown_or_wrong(args[1], args[0])
    if args[3].upper() != METRIC:
        raise ReplyError(b"ERR Unrecognized sort metric for ORDERBY.")
    limit, is_ascending = _read_order(args)
    counts = Counter(map(slot_of, ctx.db.values))
    owned = [slot for slot in range(SLOTS) if node.owns(slot)]
    sign = 1 if is_ascending else -1
    return _reply(ctx, counts, sorted(owned, key=lambda slot: sign * counts[slot])[:limit])


def _read_order(args: list[bytes]) -> tuple[int, bool]:
    """How many slots are shown, and whether those with few keys come first."""
    limit, order, at = 0, b"", 4
    while at < len(args):
        word = args[at].upper()
        if word == b"LIMIT" and at + 1 < len(args):
            _refuse_second(limit > 0)
            at += 1
            refusal = b"ERR Limit has to lie in between 1 and 16384 (maximum number of slots)."
            limit = arguments.within(1, SLOTS, args[at], refusal)
        elif word in ORDERS:
            _refuse_second(order != b"")
            order = word
        else:
            raise refusals.syntax()
        at += 1
    return limit or SLOTS, order == b"ASC"


def _refuse_second(has_first: bool) -> None:
    if has_first:
        raise ReplyError(b"ERR Multiple filters of the same type are disallowed.")


def _reply(ctx: Context, counts: Counter[int], slots: list[int]) -> bytes:
    name = reply.bulk(b"key-count")
    return reply.array(
        [
            reply.array([reply.integer(slot), reply.mapping([(name, reply.integer(counts[slot]))], ctx.resp3)])
            for slot in slots
        ]
    )
