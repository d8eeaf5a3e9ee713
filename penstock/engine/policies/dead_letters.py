"""Dead letters: what may not be delivered again moves to another stream, whole, with why.

An entry is *exhausted* once its delivery count has reached MAXDELIVER, or was saturated by XNACK FATAL. It moves when
an attempt ends, or instead of being handed out again. A move is an XADD and an XACK in one unit.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import policy_notes, retention, targets
from penstock.protocol import entries
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import MAX_COUNT, PendingSlot
from penstock.storage.streams.stream import Stream

ADDED: Final = (b"_stream", b"_group", b"_id", b"_deliveries", b"_consumer", b"_reason")
"""The fields behind an entry's own in a dead letter; the pipeline's jobs read them."""


def is_exhausted(policy: GroupPolicy, count: int) -> bool:
    """Whether an entry with this delivery count must move instead of being delivered again."""
    settings = policy.settings
    if settings.dead_letter is None:
        return False
    return count >= MAX_COUNT or (settings.max_deliver != NONE and count >= settings.max_deliver)


def is_due(policy: GroupPolicy, found: PendingSlot) -> bool:
    """Whether a pending entry is there and exhausted."""
    block, slot = found
    return block.segment.is_live(slot) and is_exhausted(policy, block.counts[slot])


def bury(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, found: PendingSlot, count: int
) -> bool:
    """Move a live pending entry to the dead letters, if they can take it; returns whether they could.

    count: with which it is exhausted, MAX_COUNT for FATAL; then the entry's own count says how often it was delivered.
    """
    target = policy.settings.dead_letter
    assert target is not None, "an entry is exhausted only if there are dead letters"
    problem = targets.problem_with(ctx, key, target)
    if problem:
        policy.blocked = problem
        policy_notes.stuck(ctx, key, group.name, problem)
        return False
    policy.blocked = b""
    block, slot = found
    entry_id = block.id_at(slot)
    deliveries = block.counts[slot] if count == MAX_COUNT else count
    reason = b"fatal" if count == MAX_COUNT else b"delivered %d times" % count
    added = (key, group.name, ids.text(entry_id), b"%d" % deliveries, group.pel.owner_name(found), reason)
    fields = entries.fields_of(block.segment.entry(slot))
    for name, word in zip(ADDED, added, strict=True):
        fields += (name, word)
    targets.append(ctx, target, fields)
    group.pel.forget(block, slot)
    ctx.log(b"XACK", key, group.name, ids.text(entry_id))
    ctx.dirty += 1
    policy.dead_lettered += 1
    ctx.policies.dead_lettered += 1
    policy_notes.moved(ctx, key, group.name, target)
    if stream.policies is not None:
        retention.note_done(stream, stream.policies, [entry_id])
    return True


def bury_all(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, slots: list[PendingSlot]
) -> None:
    """`bury` for exhausted entries, each with its own count."""
    for block, slot in slots:
        bury(ctx, key, stream, group, policy, (block, slot), block.counts[slot])


def added_to(fields: list[bytes]) -> list[bytes]:
    """What a dead letter says behind its own fields, in the order of ADDED; empty if the entry is none."""
    is_dead_letter = len(fields) > 2 * len(ADDED) and tuple(fields[-2 * len(ADDED) :: 2]) == ADDED
    return fields[1 - 2 * len(ADDED) :: 2] if is_dead_letter else []


def without_added(fields: list[bytes]) -> list[bytes]:
    """An entry's own fields, if it is a dead letter; else all."""
    return fields[: -2 * len(ADDED)] if added_to(fields) else fields
