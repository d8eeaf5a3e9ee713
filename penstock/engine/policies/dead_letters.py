"""Dead letters: an entry that may not be delivered again moves to another stream, with the reason.

An entry is *exhausted* once its delivery count has reached MAXDELIVER, or was saturated by XNACK FATAL; it is *expired*
from the time of EXPIRE or EXPIREAT on (expiry.py). It moves when an attempt ends, or instead of being delivered
again. A move is an XADD and an XACK in one unit. Without DEADLETTER, an expired entry is only acknowledged.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import entry_fields, policy_lines, policy_notes, retention, targets
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import MAX_COUNT, PendingSlot
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

ADDED: Final = (b"_stream", b"_group", b"_id", b"_deliveries", b"_consumer", b"_reason")
"""The fields behind an entry's own in a dead letter; the pipeline's jobs read them."""
EXPIRED: Final = b"expired"  # a reason


def is_exhausted(policy: GroupPolicy, count: int) -> bool:
    """Whether an entry with this delivery count must move instead of being delivered again."""
    settings = policy.settings
    if settings.dead_letter is None:
        return False
    return count >= MAX_COUNT or (settings.max_deliver != NONE and count >= settings.max_deliver)


def is_expired(policy: GroupPolicy, segment: Segment, slot: int, now_ms: int) -> bool:
    """Whether a live entry has expired."""
    if not policy.settings.expires:
        return False
    return entry_fields.expires_ms(policy.settings, segment.id_at(slot), segment.entry(slot)) <= now_ms


def is_due(group: Group, policy: GroupPolicy, found: PendingSlot, now_ms: int) -> bool:
    """Whether a pending entry is there, and must not be delivered again: not where a position set back made it new."""
    block, slot = found
    if not block.segment.is_live(slot) or group.is_new_again(found):
        return False
    return is_exhausted(policy, block.counts[slot]) or is_expired(policy, block.segment, slot, now_ms)


def move(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, found: PendingSlot, count: int
) -> bool:
    """Move an exhausted or expired pending entry to the dead letters; False if these cannot be written.

    Also False if a position set back made it new: then it moves as new, or its reader would meet it once more.
    """
    return not group.is_new_again(found) and set_aside(ctx, key, stream, group, policy, found, count)


def set_aside(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, found: PendingSlot, count: int
) -> bool:
    """`move` for an entry that the group's position has passed, or passes now.

    count: MAX_COUNT for FATAL; then the entry's own count says how often it was delivered, or what was kept of it.
    """
    block, slot = found
    entry_id = block.id_at(slot)
    delivered, consumer = _attempt_of(group, policy, found)
    deliveries = delivered if count == MAX_COUNT else count
    reason = b"fatal" if count == MAX_COUNT else b"delivered %d times" % count
    if not is_exhausted(policy, count):
        reason = EXPIRED
    added = [key, group.name, ids.text(entry_id), b"%d" % deliveries, consumer, reason]
    if not append(ctx, group, policy, block.segment.entry(slot), added):
        return False
    group.pel.forget(block, slot)
    ctx.log(b"XACK", key, group.name, ids.text(entry_id))
    ctx.count_group_changes(key, 1)
    if stream.policies is not None:
        retention.note_done(stream, stream.policies, [entry_id])
    return True


def keep_attempt(ctx: Context, key: bytes, group: Group, policy: GroupPolicy, found: PendingSlot) -> None:
    """Dead letters cannot be written, and an entry is about to be released: keep what its dead letter will say."""
    entry_id = found[0].id_at(found[1])
    deliveries, consumer = policy.attempts[entry_id] = _attempt_of(group, policy, found)
    policy_lines.log_attempt(ctx, key, group, entry_id, deliveries, consumer)


def _attempt_of(group: Group, policy: GroupPolicy, found: PendingSlot) -> tuple[int, bytes]:
    """How often a pending entry was delivered, and its consumer; as kept, where FATAL and the release changed them."""
    block, slot = found
    count, consumer = block.counts[slot], group.pel.owner_name(found)
    kept = policy.attempts.get(block.id_at(slot)) if policy.attempts else None
    if kept is None:
        return count, consumer
    return kept[0] if count == MAX_COUNT else count, consumer or kept[1]


def append(ctx: Context, group: Group, policy: GroupPolicy, entry: bytes, added: list[bytes]) -> bool:
    """Append a dead letter if possible; `added` in the order of ADDED. Without DEADLETTER count the expired entry.

    Returns False if the entry must stay where it is.
    """
    target, key = policy.settings.dead_letter, added[0]
    if target is None:
        policy.expired += 1
        ctx.policies.expired += 1
        policy_notes.expired(ctx, key, group.name)
        return True
    problem = targets.problem_with(ctx, key, target)
    if problem:
        policy.blocked = problem  # until a tick has tried all again that could not move (leases.examine)
        policy_notes.stuck(ctx, key, group.name, problem)
        return False
    targets.append_with(ctx, target, entry, ADDED, added)
    policy.dead_lettered += 1
    ctx.policies.dead_lettered += 1
    policy_notes.moved(ctx, key, group.name, target)
    return True


def put_new_aside(
    ctx: Context, key: bytes, group: Group, policy: GroupPolicy, entry_id: StreamId, entry: bytes
) -> bool:
    """`append` for an entry that has expired, and was never delivered."""
    return append(ctx, group, policy, entry, [key, group.name, ids.text(entry_id), b"0", b"", EXPIRED])


def move_all(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, slots: list[PendingSlot]
) -> int:
    """`move` for exhausted and expired entries, each with its own count; returns how many moved."""
    moved = 0
    for block, slot in slots:
        moved += move(ctx, key, stream, group, policy, (block, slot), block.counts[slot])
    return moved


def added_to(fields: list[bytes]) -> list[bytes]:
    """The values that were added to a dead letter, in the order of ADDED; empty if the entry is no dead letter."""
    is_dead_letter = len(fields) > 2 * len(ADDED) and tuple(fields[-2 * len(ADDED) :: 2]) == ADDED
    return fields[1 - 2 * len(ADDED) :: 2] if is_dead_letter else []


def without_added(fields: list[bytes]) -> list[bytes]:
    """An entry's own fields, if it is a dead letter; else all."""
    return fields[: -2 * len(ADDED)] if added_to(fields) else fields
