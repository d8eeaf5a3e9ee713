"""Scheduled entries: each entry of a stream with FORWARD moves to another stream when it is due.

Due is what the field AT says: unix ms, or `+ms` after the entry's own id; otherwise AFTER ms after its id. Entries move
in the order of (due, id), as one unit: XADDs to the target, XDEL here.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import dead_letters, entry_fields, policy_notes, targets
from penstock.engine.policies.tick_budget import TickBudget
from penstock.protocol import entries
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.stream_policies import AT_ONCE, StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.segment import count_of
from penstock.storage.streams.stream import Stream

SLICE: Final = 5000  # entries with moments that are read at a time
RETRY_MS: Final = 1000  # a target that cannot take entries is tried again


def note_new(stream: Stream, policies: StreamPolicies) -> None:
    """Read the moments of entries that were added, SLICE at most. O(log n) each."""
    if policies.settings.forward is None:
        return
    policies.scheduled_to = min(policies.scheduled_to, stream.last_id)
    if policies.scheduled_to == stream.last_id:
        return
    runs = stream.runs(policies.scheduled_to + 1, ids.MAX, SLICE)
    for segment, start, stop in runs:
        for slot in range(start, stop):
            entry_id = segment.id_at(slot)
            policies.scheduled.add((_due_ms(policies, entry_id, segment.entry(slot)), entry_id))
            policies.scheduled_to = entry_id
    if count_of(runs) < SLICE:
        policies.scheduled_to = stream.last_id


def run(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, budget: TickBudget) -> list[StreamId]:
    """Move what is due, as many entries as the tick's budget has; returns which were deleted here."""
    target = policies.settings.forward
    moved: list[StreamId] = []
    if target is None:
        return moved
    note_new(stream, policies)
    while policies.scheduled and policies.scheduled[0][0] <= ctx.now_ms and not budget.is_over():
        entry_id = policies.scheduled[0][1]
        entry = stream.entry(entry_id)
        if entry is not None:
            policies.blocked = targets.problem_with(ctx, key, target)
            if policies.blocked:
                policy_notes.stuck(ctx, key, None, policies.blocked)
                policies.retry_ms = ctx.now_ms + RETRY_MS
                break
            targets.append(ctx, target, dead_letters.without_added(entries.fields_of(entry)))
            stream.delete(entry_id)
            moved.append(entry_id)
            budget.moves -= 1
        del policies.scheduled[0]
    if moved:
        ctx.log(b"XDEL", key, *map(ids.text, moved))
        ctx.dirty += len(moved)
        ctx.touch(key)
        ctx.event("t", b"xdel", key)
        policies.forwarded += len(moved)
        ctx.policies.forwarded += len(moved)
    return moved


def next_ms(stream: Stream, policies: StreamPolicies) -> int:
    """When the next entry is due; AT_ONCE if moments are still to be read, NEVER if none is scheduled."""
    if policies.settings.forward is None:
        return NEVER
    if policies.scheduled_to < stream.last_id:
        return AT_ONCE
    while policies.scheduled and stream.find(policies.scheduled[0][1]) is None:
        del policies.scheduled[0]  # cancelled by XDEL
    if not policies.scheduled:
        return NEVER
    due_ms = policies.scheduled[0][0]
    return max(due_ms, policies.retry_ms) if policies.blocked else due_ms


def _due_ms(policies: StreamPolicies, entry_id: StreamId, entry: bytes) -> int:
    settings = policies.settings
    said_ms = None if settings.at_field is None else entry_fields.moment_in(settings.at_field, entry_id, entry)
    return (entry_id >> 64) + max(settings.after_ms, 0) if said_ms is None else said_ms
