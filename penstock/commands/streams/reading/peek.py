"""PENSTOCK.PEEK: shows what `>` would deliver next to a consumer of a group, and delivers nothing.

Transcript: tests/transcripts/peek.txt. Law: tests/policies/test_peek.py.

Tests: transcripts peek; law policies/test_peek.
"""

from typing import Final

from penstock.commands.policies import chosen_read, keyed_read, leased_read
from penstock.commands.streams.reading.group_delivery import new_runs, target_of
from penstock.commands.streams.reading.read_arguments import UNLIMITED, ReadArguments
from penstock.commands.streams.reading.xrange import entries_of
from penstock.commands.streams.reading.xread import Budget
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.policies import entry_fields, expiry, keys, leases, limits
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.protocol import reply
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.pending.pending_block import RELEASED, PendingSlot

COUNT_AT: Final = 3  # where the option COUNT stands


@command(
    "PENSTOCK.PEEK key group [COUNT count]",
    f"{PENSTOCK_VERSION} readonly | keys 1 RO access",
    "Returns the entries that a group's next read would deliver, without delivering them.",
    "O(N) with N the number of entries returned, and of those that are held or wait before them.",
)
def penstock_peek(ctx: Context, args: list[bytes]) -> bytes:
    """An array of entries, as XREADGROUP's of one stream; empty where `>` would find nothing.

    In a group with a policy: first what may be delivered again, then new entries with a free value.
    """
    options = _options(args)
    target = target_of(ctx, args[1], args[2])
    budget = Budget(options, ctx.resp3)
    policy = leases.kept_policy(ctx, target.group)
    if policy is None:
        return entries_of(new_runs(target, options.count, budget))
    shown: list[bytes] = []
    taken: list[PendingSlot] = []
    count = min(options.count, limits.most_now(policy, ctx.now_ms))
    has_room = limits.room(target.group, policy)
    if policy.settings.ack_wait_ms != NONE and count:
        again = leased_read.next_redeliveries(ctx, target, policy, NONE, count, budget)
        shown, taken, has_room = again.shown, again.taken, again.room
    most = budget.max_count(count - len(shown))
    room = limits.Room(target.group, has_room, bool(shown))
    order = keys.order_of(target.stream, target.group, policy)
    choice = leases.current_choice(target.stream, target.group, policy, ctx.now_ms)
    if choice is not None:
        seen_to = choice.seen_to
        for block, slot in taken:
            if block.owners[slot] == RELEASED:
                choice.count_owned(entry_fields.key_value(policy.settings, block.segment.entry(slot)))
        runs = chosen_read.choose(target, policy, choice, most, room, budget, ctx.now_ms)
        choice.take_back(seen_to)
    elif order is not None or policy.settings.expires:
        moves = expiry.MOST  # so many would the read move that come before what it delivers
        runs = keyed_read.next_entries(target, policy, order, False, most, room, budget, ctx.now_ms, moves).taken
    else:
        runs = new_runs(target, room.most_of(target.stream, most), budget)
    for segment, start, stop in runs:
        shown += segment.entry_list(start, stop)
    return reply.array(shown)


def _options(args: list[bytes]) -> ReadArguments:
    """The options of the read that is asked about; COUNT as XREADGROUP has it: 0 and less are no limit."""
    options = ReadArguments()
    if len(args) > COUNT_AT:
        if len(args) != COUNT_AT + 2 or args[COUNT_AT].upper() != b"COUNT":
            raise refusals.syntax()
        count = arguments.integer(args[COUNT_AT + 1])
        options.count = count if count > 0 else UNLIMITED
    return options
