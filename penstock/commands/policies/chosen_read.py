"""XREADGROUP `>` in a group with PRIORITY or FAIR: first deliveries in the order that choosing.py says.

What is chosen may be new or wait already; new entries in front of a chosen new one wait from then on.
"""

from penstock.commands.streams.reading.group_delivery import ReadTarget
from penstock.commands.streams.reading.xread import Budget
from penstock.engine.aof import group_effects
from penstock.engine.aof.group_effects import Released
from penstock.engine.context import Context
from penstock.engine.policies import choosing, dead_letters, entry_fields, expiry, keys, limits, retention, settling
from penstock.storage.policies.choice import Choice
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.pending_block import PendingSlot, in_runs
from penstock.storage.streams.segment import SegmentRun


def read_first(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    consumer: Consumer,
    max_count: int,
    room: limits.Room,
    budget: Budget,
) -> list[bytes]:
    """Hand out the best candidates, one after the other: the entries' bytes."""
    if max_count <= 0 or not room.left:
        return []
    choice = choosing.current(target.stream, target.group, policy, ctx.now_ms)
    chosen = choose(target, policy, choice, max_count, room, budget, ctx.now_ms)
    if not chosen:
        choice.end_read()
        if choosing.is_behind_expired(choice):
            _pass_over_expired(ctx, target, policy, choice)
        return []
    shown = [segment.entry(slot) for segment, slot, _ in chosen]
    _hand_out(ctx, target, policy, choice, consumer, chosen)
    return shown


def choose(
    target: ReadTarget,
    policy: GroupPolicy,
    choice: Choice,
    max_count: int,
    room: limits.Room,
    budget: Budget,
    now_ms: int,
) -> list[SegmentRun]:
    """The best candidates in the order of delivery, as runs of one entry. Changes only the choice.

    None behind more entries that have expired than one read moves.
    """
    if choosing.is_behind_expired(choice):
        return []
    stream, group = target.stream, target.group
    order = keys.order_of(stream, group, policy)
    chosen: list[SegmentRun] = []
    position = group.last_id
    while len(chosen) < max_count and room.left:
        entry_id = choosing.next_candidate(stream, choice, order)
        found = None if entry_id is None else stream.find(entry_id)
        if entry_id is None or found is None or not budget.take(found[0].entry(found[1])):
            break
        room.take(entry_id)
        choice.pick(entry_id, group.pel.by_id.find(entry_id) is not None)
        chosen.append((found[0], found[1], found[1] + 1))
        position = max(position, entry_id)
        choosing.reach(stream, policy, choice, position, now_ms)
    return chosen


def _hand_out(
    ctx: Context, target: ReadTarget, policy: GroupPolicy, choice: Choice, consumer: Consumer, chosen: list[SegmentRun]
) -> None:
    stream, group = target.stream, target.group
    chosen_ids = [segment.id_at(slot) for segment, slot, _ in chosen]
    passed = stream.runs(group.last_id + 1, max(chosen_ids), stream.length)
    aside = _pass_over(ctx, target, policy, choice, passed, set(chosen_ids))
    taken = [_give(target, policy, consumer, run, ctx.now_ms) for run in chosen]
    choice.end_read()
    group_effects.log_held(ctx, target.key, group, in_runs(taken))
    if passed:
        _advance(ctx, target, choice, passed, aside)
    ctx.count_group_changes(target.key, len(chosen))
    consumer.active_ms = ctx.now_ms
    settling.delivered(ctx, target.key, stream, group, ctx.now_ms)


def _pass_over_expired(ctx: Context, target: ReadTarget, policy: GroupPolicy, choice: Choice) -> None:
    """So many new entries have expired that a read moves these alone, and what is alive between them waits."""
    stream, group = target.stream, target.group
    passed = stream.runs(group.last_id + 1, choice.expired[expiry.MOST - 1], stream.length)
    aside = _pass_over(ctx, target, policy, choice, passed, set())
    _advance(ctx, target, choice, passed, aside)
    ctx.count_group_changes(target.key, max(len(aside), 1))
    ctx.blocking.serve_later(ctx.db_index, target.key)


def _advance(ctx: Context, target: ReadTarget, choice: Choice, passed: list[SegmentRun], aside: list[StreamId]) -> None:
    """The group's position passes new entries, of which some went aside."""
    stream, group = target.stream, target.group
    stream.advance_group(group, passed)
    choice.advance_to(group.last_id)
    group_effects.log_position(ctx, target.key, stream, group)
    if aside and stream.policies is not None:
        retention.note_done(stream, stream.policies, aside)


def _give(target: ReadTarget, policy: GroupPolicy, consumer: Consumer, run: SegmentRun, now_ms: int) -> PendingSlot:
    """Make a consumer the owner of an entry that was never delivered."""
    stream, group = target.stream, target.group
    segment, slot, _ = run
    entry_id = segment.id_at(slot)
    pending = group.pel.by_id.find(entry_id)
    order = keys.order_of(stream, group, policy)
    if pending is None and order is not None:
        order.add(entry_id, entry_fields.key_value(policy.settings, segment.entry(slot)))
    if pending is not None and entry_id <= group.last_id:
        group.pel.give(pending, consumer, now_ms, pending[0].counts[pending[1]] + 1)
    else:
        group.pel.deliver([run], consumer, now_ms)
    if order is not None:
        order.own(entry_id)
    pending = group.pel.by_id.find(entry_id)
    assert pending is not None, "it was delivered"
    return pending


def _pass_over(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    choice: Choice,
    passed: list[SegmentRun],
    chosen_ids: set[StreamId],
) -> list[StreamId]:
    """Of new entries, those that were not chosen wait, and those that have expired go aside: the ids of the latter."""
    stream, group = target.stream, target.group
    order = keys.order_of(stream, group, policy)
    released: list[Released] = []
    aside: list[StreamId] = []
    for segment, start, stop in passed:
        for slot in range(start, stop):
            entry_id = segment.id_at(slot)
            if entry_id in chosen_ids:
                continue
            if group.pel.by_id.find(entry_id) is not None:
                if entry_id not in choice.waiting:
                    choice.drop(entry_id)  # by a position set back it was new; it is with its consumer again
                continue
            entry = segment.entry(slot)
            known = choice.ranks.get(entry_id)  # all were read, so an unknown one has expired
            if known is None and dead_letters.put_new_aside(ctx, target.key, group, policy, entry_id, entry):
                aside.append(entry_id)
                continue
            block, at, _ = group.pel.force_released(segment, slot, 0)
            released.append((block, at, block.counts[at : at + 1]))
            if order is not None:
                order.add(entry_id, entry_fields.key_value(policy.settings, entry) if known is None else known[1])
            if known is None:
                policy.release(entry_id, 0)  # a tick moves it, when the dead letters can take it
            else:
                choice.pass_over(entry_id)
            expiry.note_released(policy, block, at)
    if released:
        group_effects.log_released(ctx, target.key, group, released)
    return aside
