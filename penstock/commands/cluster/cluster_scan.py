"""CLUSTERSCAN: iterate over the keys of a cluster, from node to node (Valkey 9.1.2).

A cursor is `LAST-{TAG}-POSITION`. The tag is in the slot from which on a node walks through its keys, so clients send
the cursor to the node that has the slot. Keys of all slots up to LAST are shown in one walk: a run of slots that the
node owns, since keys are not kept by slot. The position is one of the keys' HashOrder, which is the same at every node:
a walk goes on where its first slot is, and begins anew with the next slot that the node does not own.

Tests: cases commands/test_cluster_scan, commands/test_valkey_dialect.
"""

import re
from typing import Final

from penstock.commands.cluster.cluster_nodes import node_of
from penstock.commands.common.key_scan import KeyScan
from penstock.commands.common.scan_cursor import MAX_UINT64
from penstock.engine import arguments
from penstock.engine.cluster.hash_slots import SLOTS, SlotTags, slot_of
from penstock.engine.cluster.node import NOT_OWNED, Node
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

START: Final = b"0"
NO_SLOT: Final = -1
MOST_MET: Final = 1000  # keys that a step meets at most to show COUNT of them, if COUNT is lower

_CURSOR: Final = re.compile(rb"([^-]*)-[^-]*-([0-9]{1,20})", re.DOTALL)
_WILD: Final = re.compile(rb"[*?\[\\]")


@command(
    "CLUSTERSCAN cursor:string [MATCH match-pattern:pattern] [COUNT count] [TYPE type] [SLOT slot:integer]",
    "9.1.0 readonly | keys 1 not_key | acl keyspace | traits goes_by_cursor | "
    "tips nondeterministic_output request_policy:special response_policy:special | only_in valkey",
    "Iterates over the keys of a cluster, some in each call.",
    "O(COUNT) for every call. A complete iteration is O(N) for each run of slots that a node owns, N being the "
    "number of its keys; with SLOT, O(N).",
)
def clusterscan(ctx: Context, args: list[bytes]) -> bytes:
    node = node_of(ctx)
    options, only = KeyScan(), NO_SLOT
    for at in range(2, len(args), 2):
        option = args[at].upper()
        if option == b"SLOT" and at + 1 < len(args):
            if only != NO_SLOT:
                raise ReplyError(b"ERR SLOT option can only be specified once")
            only = arguments.slot(args[at + 1])
        else:
            options.read(ctx, option, args, at)
    wanted = _slot_of_pattern(options.pattern)
    if args[1] == START:
        first = max(only, 0) if wanted == NO_SLOT else wanted
        return _step([], START if only not in (NO_SLOT, first) else _fresh(node.tags, first))
    first, last, position = _read_cursor(args[1])
    if only not in (NO_SLOT, first):
        raise ReplyError(b"ERR Cursor slot mismatch with SLOT argument")
    if wanted not in (NO_SLOT, first):
        return _step([], _fresh(node.tags, wanted) if wanted > first and only == NO_SLOT else START)
    is_one = max(only, wanted) != NO_SLOT
    last = first if is_one else _end_of_walk(node, first, last, position)
    shown, position = _walk(ctx, options.count, first, last, position)
    if position:
        following = b"%d-{%b}-%d" % (last, node.tags.of(first), position)
    else:
        following = START if is_one or last + 1 == SLOTS else _fresh(node.tags, last + 1)
    return _step(options.chosen(ctx, shown), following)


def _step(keys: list[bytes], cursor: bytes) -> bytes:
    return reply.array([reply.bulk(cursor), reply.bulks(keys)])


def _fresh(tags: SlotTags, slot: int) -> bytes:
    """The cursor of a walk that has not begun."""
    return b"0-{%b}-0" % tags.of(slot)


def _read_cursor(word: bytes) -> tuple[int, int, int]:
    """The first slot of a walk, the last one, and the position; the last is read only where it follows the first."""
    parts = _CURSOR.fullmatch(word)
    if parts is None or int(parts[2]) > MAX_UINT64:
        raise ReplyError(b"ERR Invalid cursor")
    first = slot_of(word)
    last = int(parts[1]) if arguments.is_integer(parts[1]) else NO_SLOT
    return first, last, int(parts[2]) if first <= last < SLOTS else 0


def _end_of_walk(node: Node, first: int, last: int, position: int) -> int:
    """The last slot of a walk. Slots that a node no longer has end it before; those that it got since it began wait."""
    end = node.owned.find(NOT_OWNED, first)
    own = max(first, (SLOTS if end < 0 else end) - 1)
    return min(last, own) if position else own


def _walk(ctx: Context, count: int, first: int, last: int, position: int) -> tuple[list[bytes], int]:
    """The keys in these slots of one step, and the next position; 0 at the end.  O(count) or O(MOST_MET)."""
    share = SLOTS // (last + 1 - first)
    met, position = ctx.db.in_order(ctx.now_ms).walk(position, max(count, min(count * share, MOST_MET)))
    return [key for key in met if first <= slot_of(key) <= last], position


def _slot_of_pattern(pattern: bytes | None) -> int:
    """The slot of all keys that match a pattern; NO_SLOT if they may be in several.

    >>> [_slot_of_pattern(word) for word in (b"{foo}*", b"foo", b"f*", b"*{foo}", b"{f*}", b"a{}*")]
    [12182, 12182, -1, -1, -1, -1]
    """
    if pattern is None:
        return NO_SLOT
    start = pattern.find(b"{")
    end = pattern.find(b"}", start + 1) if start >= 0 else -1
    return NO_SLOT if _WILD.search(pattern[:end] if end > start + 1 else pattern) else slot_of(pattern)
