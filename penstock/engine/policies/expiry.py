"""EXPIRE, EXPIREAT: an entry that was not taken in time moves to the dead letters, or is dropped.

From its moment on, an entry is not handed out. One without an owner moves then; one that a consumer has, when that
attempt ends, or instead of being handed out again (dead_letters.py); a new one, once no new one is in front of it.
"""

from typing import Final

from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.engine.policies import dead_letters, entry_fields, retention
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.entry_moments import EntryMoments
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import PendingBlock
from penstock.storage.streams.segment import SegmentRun
from penstock.storage.streams.stream import Stream

MOST: Final = 1000  # entries that a command moves; a tick goes on
RETRY_MS: Final = 1000  # dead letters that cannot be written are tried again


def note_released(policy: GroupPolicy, block: PendingBlock, slot: int) -> None:
    """An entry has no owner now, and is known. O(log n)."""
    expiring = policy.expiring
    if expiring is not None and block.segment.is_live(slot):
        entry_id = block.id_at(slot)
        expiring.set(entry_id, entry_fields.expires_ms(policy.settings, entry_id, block.segment.entry(slot)))


def run(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, most: int) -> int:
    """Move what has expired and has no owner, at most so many entries: how many. O(1) if there are none."""
    if not policy.settings.expires:
        return 0
    policy.expire_candidates(ctx.now_ms)
    moved = 0
    expiring = _expiring(group, policy)
    while moved < most and expiring.first_ms() <= ctx.now_ms:
        entry_id = expiring.first()
        found = group.pel.by_id.find(entry_id)
        assert found is not None, "an entry that was released is pending"
        if not found[0].segment.is_live(found[1]) or group.is_new_again(found):
            expiring.drop(entry_id)  # what a position set back made new moves as new
        elif dead_letters.move(ctx, key, stream, group, policy, found, found[0].counts[found[1]]):
            moved += 1
        else:
            break
    passed = pass_over(ctx, key, stream, group, policy, most - moved)
    if passed:
        ctx.signal(key)  # a read that could not move all of them has not seen what is behind them
    return moved + passed


def pass_over(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, most: int) -> int:
    """Move the new entries that have expired up to the first that has not, at most so many: how many."""
    passed: list[SegmentRun] = []
    for segment, start, stop in stream.unread(group, most) if most > 0 else []:
        for slot in range(start, stop):
            entry_id, entry = segment.id_at(slot), segment.entry(slot)
            if entry_fields.expires_ms(policy.settings, entry_id, entry) > ctx.now_ms:
                return _passed(ctx, key, stream, group, passed)
            pending = group.pel.by_id.find(entry_id)  # the group's position was set back
            if pending is not None:
                count = pending[0].counts[pending[1]]
                is_moved = dead_letters.set_aside(ctx, key, stream, group, policy, pending, count)
            else:
                is_moved = dead_letters.put_new_aside(ctx, key, group, policy, entry_id, entry)
            if not is_moved:
                return _passed(ctx, key, stream, group, passed)
            passed.append((segment, slot, slot + 1))
    return _passed(ctx, key, stream, group, passed)


def _passed(ctx: Context, key: bytes, stream: Stream, group: Group, passed: list[SegmentRun]) -> int:
    if passed:
        stream.advance_group(group, passed)
        group_effects.log_position(ctx, key, stream, group)
        ctx.count_group_changes(key, len(passed))
        if stream.policies is not None:
            retention.note_done(stream, stream.policies, [segment.id_at(slot) for segment, slot, _ in passed])
    return len(passed)


def next_ms(ctx: Context, stream: Stream, group: Group, policy: GroupPolicy) -> int:
    """When `run` has something to do; NEVER if it has nothing. O(1)."""
    if not policy.settings.expires:
        return NEVER
    due_ms = _expiring(group, policy).first_ms()
    if policy.choice is not None:
        due_ms = min(due_ms, policy.choice.expiring.first_ms())
    for segment, slot, _ in stream.unread(group, 1):
        due_ms = min(due_ms, entry_fields.expires_ms(policy.settings, segment.id_at(slot), segment.entry(slot)))
    return ctx.now_ms + RETRY_MS if policy.blocked and due_ms <= ctx.now_ms else due_ms


def _expiring(group: Group, policy: GroupPolicy) -> EntryMoments:
    """When what has no owner expires. O(released) when it is first asked for."""
    if policy.expiring is None:
        policy.expiring = EntryMoments()
        for block, slot in group.pel.order.in_nack_zone():
            if policy.is_known(block.id_at(slot)):
                note_released(policy, block, slot)
    return policy.expiring
