"""XREADGROUP `>` in a group with KEY or EXPIRE: new entries with a free value, in time; others wait, or go aside."""

from typing import Final

from penstock.commands.streams.reading.group_delivery import ReadTarget
from penstock.commands.streams.reading.xread import Budget
from penstock.engine.aof import group_effects
from penstock.engine.aof.group_effects import Released
from penstock.engine.context import Context
from penstock.engine.policies import choosing, entry_fields, expiry, keys, limits, settling
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.segment import SegmentRun

AT_A_TIME: Final = 100  # entries that are looked at together


def read_new(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    order: KeyOrder | None,
    consumer: Consumer,
    no_ack: bool,
    max_count: int,
    room: limits.Room,
    budget: Budget,
) -> list[bytes]:
    """Hand out new entries with a free value; the group passes over the others, which wait. The entries' bytes.

    Those that have expired move, expiry.MOST at most.
    """
    shown: list[bytes] = []
    moves_left = expiry.MOST
    while True:
        passed = next_entries(target, policy, order, no_ack, max_count - len(shown), room, budget, ctx.now_ms, 0)
        if order is not None and passed.full_at:
            order.full_at = passed.full_at
        if passed.all:
            shown += _hand_out(ctx, target, policy, order, consumer, no_ack, passed)
        if not passed.is_before_expired:
            return shown
        if not moves_left:
            ctx.blocking.serve_later(ctx.db_index, target.key)
            return shown
        moved = expiry.pass_over(ctx, target.key, target.stream, target.group, policy, moves_left)
        if not moved and not passed.all:
            return shown  # the dead letters cannot take it
        moves_left -= moved


def read_together(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    order: KeyOrder,
    consumer: Consumer,
    count: int,
    budget: Budget,
) -> list[list[bytes]]:
    """As `read_new` for several reads of `count` entries, while the budget lasts: what each gets that gets some."""
    wanted = budget.entries
    room = limits.Room(target.group, limits.room(target.group, policy), False)
    passed = next_entries(target, policy, order, False, wanted, room, budget, ctx.now_ms, 0)
    if not passed.all:
        return []
    shown = _hand_out(ctx, target, policy, order, consumer, False, passed)
    shares = [shown[at : at + count] for at in range(0, len(shown), count)]
    # Each read that goes over entries counts as a change, also one that goes over nothing but waiting ones at the end.
    ends_waiting = len(shown) < wanted and len(shown) % count == 0 and passed.waiting[-1:] == passed.all[-1:]
    ctx.dirty += max(len(shares) - 1 + ends_waiting, 0) if shares else 0
    return shares


def _hand_out(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    order: KeyOrder | None,
    consumer: Consumer,
    no_ack: bool,
    passed: "Passed",
) -> list[bytes]:
    group = target.group
    if order is not None:
        for entry_id, value in passed.values:
            order.add(entry_id, value)
    shown = [segment.entry(start) for segment, start, _ in passed.taken]
    becomes_pending = bool(passed.taken) and not no_ack
    if becomes_pending:
        group_effects.log_new(ctx, target.key, group, consumer.name, passed.taken)
    target.stream.advance_group(group, passed.all)
    if becomes_pending:
        group.pel.deliver(passed.taken, consumer, ctx.now_ms)
        consumer.active_ms = ctx.now_ms
        settling.delivered(ctx, target.key, target.stream, group, ctx.now_ms)
    released: list[Released] = []
    for segment, slot, _ in passed.waiting:
        if order is not None and group.pel.by_id.find(segment.id_at(slot)) is None:
            block, slot, _ = group.pel.force_released(segment, slot, 0)
            released.append((block, slot, block.counts[slot : slot + 1]))
            if policy.choice is None:
                order.waiting.add(block.id_at(slot))
            else:
                choosing.add_waiting(policy, policy.choice, block, slot)
            expiry.note_released(policy, block, slot)
    if released:
        group_effects.log_released(ctx, target.key, group, released)
    group_effects.log_position(ctx, target.key, target.stream, group)
    ctx.count_group_changes(target.key, 1)
    if no_ack:
        settling.read_without_ack(ctx, target.key, target.stream, passed.taken)
    return shown


class Passed:
    """New entries that a read goes over, each as a run of one: those handed out, those that wait, and all.

    `values`: ids and values that become pending, which the order of values does not have yet. is_before_expired: the
    next one has expired. full_at: the next one, where too many wait to go on; else 0.
    """

    __slots__ = ("all", "full_at", "is_before_expired", "taken", "values", "waiting")

    def __init__(self) -> None:
        self.is_before_expired = False
        self.full_at: StreamId = 0
        self.values: list[tuple[StreamId, bytes | None]] = []
        self.all: list[SegmentRun] = []
        self.taken: list[SegmentRun] = []
        self.waiting: list[SegmentRun] = []


def next_entries(
    target: ReadTarget,
    policy: GroupPolicy,
    order: KeyOrder | None,
    no_ack: bool,
    max_count: int,
    room: limits.Room,
    budget: Budget,
    now_ms: int,
    most_expired: int,
) -> Passed:
    """Go over new entries until `max_count` may be handed out, or too many wait. Changes nothing but the budget.

    most_expired: go on behind so many that have expired.
    """
    passed = Passed()
    settings = policy.settings
    waiting = keys.waiting_count(policy, order)
    position: StreamId = target.group.last_id
    most_waiting = keys.most_waiting(settings)
    taken: dict[bytes, int] = {}  # how many of each value become pending by this read
    while True:
        runs = target.stream.runs(position + 1, ids.MAX, AT_A_TIME)
        if not runs:
            return passed
        for segment, start, stop in runs:
            for slot in range(start, stop):
                is_full = waiting + len(passed.waiting) >= most_waiting
                if len(passed.taken) >= max_count or not room.admits(segment.id_at(slot)):
                    return passed
                if is_full and settings.look_ahead == NONE:
                    passed.full_at = segment.id_at(slot)
                    return passed
                position = segment.id_at(slot)
                run = (segment, slot, slot + 1)
                entry = segment.entry(slot)
                if settings.expires and entry_fields.expires_ms(settings, position, entry) <= now_ms:
                    if most_expired:
                        most_expired -= 1
                        continue
                    passed.is_before_expired = True
                    return passed
                value = None if order is None else entry_fields.key_value(settings, entry)
                waits = False
                if order is not None and value is not None:
                    waits = order.below(value, position) + taken.get(value, 0) >= order.parallel
                if waits:
                    if is_full:
                        passed.full_at = position
                        return passed
                    passed.waiting.append(run)
                elif budget.take(entry):
                    room.take(position)
                    passed.taken.append(run)
                else:
                    return passed
                passed.all.append(run)
                if order is not None and position not in order.values and (waits or not no_ack):
                    passed.values.append((position, value))
                    if value is not None:
                        taken[value] = taken.get(value, 0) + 1
