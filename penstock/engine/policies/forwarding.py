"""Scheduled entries: each entry of a stream with FORWARD moves to another stream when it is due.

Due is what the field AT says: unix ms, or `+ms` after the entry's own id; otherwise AFTER ms after its id. Entries move
in the order of (due, id), as one unit: XADDs to the target, XDEL here.

With EVERY, an entry that has its field stays, and is copied at each time of a series that begins when it is due. Times
that are not behind the last copy's, `copied_to`, are over: the log has it in the copy's unit, so no crash copies twice.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import dead_letters, entry_fields, policy_lines, policy_notes, targets
from penstock.engine.policies.tick_budget import TickBudget
from penstock.protocol import entries
from penstock.storage.deadlines import NEVER
from penstock.storage.policies import recurrence
from penstock.storage.policies.recurrence import Recurrence
from penstock.storage.policies.stream_policies import AT_ONCE, StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.segment import count_of
from penstock.storage.streams.stream import Stream

SLICE: Final = 5000  # entries with moments that are read at a time
RETRY_MS: Final = 1000  # a target that cannot take entries is tried again
ONCE: Final = b"ONCE"
ALL: Final = b"ALL"
SKIP: Final = b"SKIP"
MOST_MISSED: Final = 1000  # times of an entry that ALL makes up for
LATEST_MS: Final = 60_000  # how late SKIP copies
COPIED: Final = (b"_stream", b"_id", b"_due")
"""The fields behind an entry's own in a copy."""


def note_new(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies) -> None:
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
            entry = segment.entry(slot)
            if _recurs(policies, entry):
                _schedule_copy(ctx, key, policies, entry_id, entry)
            else:
                policies.scheduled.add((_due_ms(policies, entry_id, entry), entry_id))
            policies.scheduled_to = entry_id
    if count_of(runs) < SLICE:
        policies.scheduled_to = stream.last_id


def run(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, budget: TickBudget) -> list[StreamId]:
    """Move or copy what is due, as many entries as the tick's budget has; returns which were deleted here."""
    target = policies.settings.forward
    moved: list[StreamId] = []
    if target is None:
        return moved
    note_new(ctx, key, stream, policies)
    copied = policies.copied
    is_circle = target != key and targets.leads_back(ctx, key, target)  # by a new name
    while policies.scheduled and policies.scheduled[0][0] <= ctx.now_ms and not budget.is_over():
        due_ms, entry_id = policies.scheduled[0]
        entry = stream.entry(entry_id)
        if entry is not None:
            policies.blocked = targets.problem_with(ctx, key, target)
            if is_circle:
                policies.blocked = b"%b leads back to the stream itself" % target
            if policies.blocked:
                policy_notes.stuck(ctx, key, None, policies.blocked)
                policies.retry_ms = ctx.now_ms + RETRY_MS
                break
        del policies.scheduled[0]
        if entry is None:
            policies.catching_up.discard(entry_id)
        elif _recurs(policies, entry):
            budget.moves -= _copy(ctx, key, policies, target, entry, due_ms, entry_id)
        else:
            targets.append(ctx, target, dead_letters.without_added(entries.fields_of(entry)))
            stream.delete(entry_id)
            moved.append(entry_id)
            budget.moves -= 1
    if policies.copied > copied:
        policy_lines.log_copied_to(ctx, key, policies)
        ctx.policies.copied += policies.copied - copied
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
        policies.catching_up.discard(policies.scheduled[0][1])
        del policies.scheduled[0]  # cancelled by XDEL
    if not policies.scheduled:
        policies.blocked = b""
        return NEVER
    due_ms = policies.scheduled[0][0]
    return max(due_ms, policies.retry_ms) if policies.blocked else due_ms


def _due_ms(policies: StreamPolicies, entry_id: StreamId, entry: bytes) -> int:
    settings = policies.settings
    said_ms = None if settings.at_field is None else entry_fields.moment_in(settings.at_field, entry_id, entry)
    return (entry_id >> 64) + max(settings.after_ms, 0) if said_ms is None else said_ms


# -- EVERY ------------------------------------------------------------------------------------------------------------


def _recurs(policies: StreamPolicies, entry: bytes) -> bool:
    field = policies.settings.every_field
    return field is not None and entry_fields.value_of(field, entry) is not None


def _series(policies: StreamPolicies, entry_id: StreamId, entry: bytes) -> Recurrence | None:
    """When an entry with EVERY's field recurs; None if the field says no series."""
    field = policies.settings.every_field
    word = None if field is None else entry_fields.value_of(field, entry)
    return None if word is None else recurrence.read(word, _due_ms(policies, entry_id, entry))


def _schedule_copy(ctx: Context, key: bytes, policies: StreamPolicies, entry_id: StreamId, entry: bytes) -> None:
    """Note an entry's first time that is later than its id, and behind the last copy."""
    series = _series(policies, entry_id, entry)
    done_ms, done_id = policies.copied_to
    from_ms = max((entry_id >> 64) + 1, done_ms if entry_id > done_id else done_ms + 1)
    next_ms = NEVER if series is None else series.first_from(from_ms)
    if next_ms != NEVER:
        policies.scheduled.add((next_ms, entry_id))
    elif policies.settings.every_field is not None:
        policy_notes.no_series(ctx, key, policies.settings.every_field, entry_id)


def _copy(
    ctx: Context, key: bytes, policies: StreamPolicies, target: bytes, entry: bytes, due_ms: int, entry_id: StreamId
) -> int:
    """Copy an entry that is due, or pass over the time, as MISSED says, and note its next one; how many copies."""
    series = _series(policies, entry_id, entry)
    assert series is not None, "the entry was scheduled"
    wanted_ms = _wanted_ms(policies, series, due_ms, entry_id, ctx.now_ms)
    if wanted_ms != due_ms:
        policy_notes.missed(ctx, key, entry_id)
        if wanted_ms != NEVER:
            policies.scheduled.add((wanted_ms, entry_id))
        return 0
    targets.append_with(ctx, target, entry, COPIED, [key, ids.text(entry_id), b"%d" % due_ms])
    policies.copied += 1
    policies.copied_to = (due_ms, entry_id)
    next_ms = series.first_from(due_ms + 1)
    if next_ms > ctx.now_ms:
        policies.catching_up.discard(entry_id)
    if next_ms != NEVER:
        policies.scheduled.add((next_ms, entry_id))
    return 1


def _wanted_ms(policies: StreamPolicies, series: Recurrence, due_ms: int, entry_id: StreamId, now_ms: int) -> int:
    """The time of an entry that is to be copied next, of those from `due_ms` on; with SKIP it may be still to come."""
    latest_ms = series.last_until(now_ms)
    if policies.settings.missed == ALL:
        if entry_id in policies.catching_up:
            return due_ms
        policies.catching_up.add(entry_id)
        return series.back(latest_ms, MOST_MISSED - 1, due_ms)
    if policies.settings.missed == SKIP and now_ms - latest_ms > LATEST_MS:
        return series.first_from(latest_ms + 1)
    return latest_ms


def take_over(key: bytes, policies: StreamPolicies, target: Stream, now_ms: int) -> None:
    """Go on behind the last copy that a former master made: its log's private lines are not sent to replicas.

    It is among the target's newest SLICE entries, or is not found; then times since the synchronization come once more.
    """
    for segment, slot in target.runs_back(ids.ZERO, ids.MAX, SLICE):
        fields = entries.fields_of(segment.entry(slot))
        if len(fields) > 2 * len(COPIED) and tuple(fields[-2 * len(COPIED) :: 2]) == COPIED and fields[-5] == key:
            try:
                copied_to = (int(fields[-1]), ids.parse(fields[-3]))
            except ValueError:
                continue  # a client's own entry
            if copied_to[0] <= now_ms:
                policies.copied_to = max(policies.copied_to, copied_to)
                policies.start_schedule()
                return
