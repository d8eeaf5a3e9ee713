"""KEY: of each value of a field, one entry at a time, or PARALLEL ones, are handed out, in the order of the ids.

An entry is handed out only if fewer lower live ids with the same value are pending in the group. `>` passes over the
others: they become pending without an owner, with a delivery count of 0, and wait until their value is free.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies.entry_fields import key_value
from penstock.storage.policies.group_policy import GroupPolicy, GroupSettings
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.entry_deletion import deleted_below
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import RELEASED
from penstock.storage.streams.stream import Stream

MOST_WAITING: Final = 10_000  # then `>` goes no further


def order_of(stream: Stream, group: Group, policy: GroupPolicy) -> KeyOrder | None:
    """The pending entries by their values, up to date; None without KEY.

    O(1); O(pending) at the first call, and after entries became pending in another way than by a read.
    """
    if policy.settings.key_field is None:
        return None
    if policy.keys is None:
        policy.keys = KeyOrder(max(policy.settings.parallel, 1), policy.settings.chooses)
    order = policy.keys
    if len(order.values) < group.pel.count:
        for block, slot in group.pel.by_id.walk(0):
            entry_id = block.id_at(slot)
            if entry_id in order.values:
                continue
            if not block.segment.is_live(slot):
                order.values[entry_id] = None
                continue
            order.add(entry_id, key_value(policy.settings, block.segment.entry(slot)))
            if order.counts and block.owners[slot] != RELEASED:
                order.own(entry_id)
    return order


def most_waiting(settings: GroupSettings) -> int:
    """How many entries may be passed over (LOOKAHEAD)."""
    return MOST_WAITING if settings.look_ahead == NONE else settings.look_ahead


def waiting_count(policy: GroupPolicy, order: KeyOrder | None) -> int:
    """How many entries were passed over and still wait. O(1)."""
    waiting = 0 if policy.choice is None else len(policy.choice.waiting)
    return waiting + (0 if order is None else len(order.waiting))


def forget_deleted(stream: Stream, entry_ids: list[StreamId]) -> None:
    """Entries were deleted."""
    for group in stream.groups.values():
        policy = group.policy
        if policy is not None:
            for entry_id in entry_ids:
                policy.forget_deleted(entry_id)


def make_next_ready(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, order: KeyOrder
) -> None:
    """After a command: the next entry of each value that is free now is ready, and readers may get it."""
    below = deleted_below(stream)
    for block, slot in group.pel.by_id.between(order.deleted_below, below):
        policy.forget_deleted(block.id_at(slot))
    order.deleted_below = max(order.deleted_below, below)
    if order.full_at and not _is_full(stream, group, policy, order):
        order.full_at = 0
        ctx.signal(key)
    if order.freed:
        ctx.signal(key)
        _make_ready(policy, order, sorted(order.freed), ctx.now_ms)


def _is_full(stream: Stream, group: Group, policy: GroupPolicy, order: KeyOrder) -> bool:
    """Whether a read would end again where too many waited to go on. O(log n)."""
    if waiting_count(policy, order) < most_waiting(policy.settings):
        return False
    return any(segment.id_at(start) == order.full_at for segment, start, _ in stream.unread(group, 1))


def make_next_ready_in_turn(ctx: Context, group: Group) -> None:
    """As `make_next_ready` after each command of a batch, in which each command freed one value."""
    policy = group.policy
    if policy is not None and policy.keys is not None:
        _make_ready(policy, policy.keys, list(policy.keys.freed), ctx.now_ms)


def _make_ready(policy: GroupPolicy, order: KeyOrder, values: list[bytes], now_ms: int) -> None:
    freed = order.freed
    order.freed = {}
    for value in values:
        for entry_id in order.last_free(value, freed[value]):
            if entry_id in order.waiting:
                policy.release(entry_id, now_ms)
