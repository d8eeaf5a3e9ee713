"""Retention: a standing trim (MAXLEN, MAXAGE, MAXBYTES) that the server runs after commands and when time comes.

KEEPREF and DELREF remove the oldest entries, as XTRIM does. ACKED removes only what no group needs: what every group
has read and none has pending. A stream without groups needs everything. Below the *floor*, ACKED removes nothing: there
are entries that a group's position passed over without their being handed out.

Entries that no group needs are found when they are acknowledged. What may have become unneeded otherwise (a group was
destroyed, the policy is new, a log was loaded) is found by a sweep over the stream, slice by slice. With IDLEGROUP only
groups that are not idle are asked; while all are, everything is kept.

MAXBYTES counts the names and values of entries, and keeps the newest entry, whatever its size.
"""

from heapq import heappop, heappush
from typing import Final

from penstock.engine.aof import trim_effects
from penstock.engine.context import Context
from penstock.engine.policies import entry_fields, policy_notes
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.byte_count import ByteCount
from penstock.storage.policies.stream_policies import AT_ONCE, NONE, SWEPT, StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.ids import IdColumns, StreamId, halves
from penstock.storage.streams.segment import count_of
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import ACKNOWLEDGED, DELETE_REFERENCES, KEEP_REFERENCES, Trim

SLICE: Final = 10_000  # entries that a command removes
SHORT_SLICE: Final = 1000  # that a tick removes one by one, or a sweep looks at
COUNTED: Final = 5000  # entries to count the bytes of at a time


def run(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, most: int) -> list[StreamId]:
    """Remove what may go now, at most about `most` entries; returns what idle groups may have pending of it."""
    settings = policies.settings
    count_bytes(stream, policies)
    removed_ids: list[StreamId] = []
    if not settings.trims:
        return removed_ids
    if settings.references == ACKNOWLEDGED:
        removed_ids = _trim_done(ctx, key, stream, policies, most)
        removed = len(removed_ids)
    else:
        is_quick = settings.references == KEEP_REFERENCES  # whole nodes at a time
        removed = _trim_oldest(ctx, key, stream, policies, SLICE if is_quick else most)
    if removed:
        policies.trimmed += removed
        ctx.policies.trimmed += removed
        ctx.dirty += removed
        ctx.touch(key)
        ctx.event("t", b"xtrim", key)
    return removed_ids if policies.idle else []


def next_ms(stream: Stream, policies: StreamPolicies) -> int:
    """When something comes of age; AT_ONCE if `run` has more to do, NEVER if it has nothing. O(1)."""
    settings = policies.settings
    if not settings.shows_more and not settings.trims:
        return NEVER
    count = policies.byte_count
    if settings.shows_more and (count is None or count.counted_to < stream.last_id):
        return AT_ONCE
    if not settings.trims or not stream.length:
        return NEVER
    if settings.references == ACKNOWLEDGED:
        if keeps_all(stream, policies):
            return NEVER
        if policies.sweep_from != SWEPT:
            return AT_ONCE
        if not policies.done:
            return NEVER
        return AT_ONCE if _is_too_large(stream, policies, policies.done[0]) else _of_age_ms(policies, policies.done[0])
    if _is_too_large(stream, policies, stream.first_id):
        return AT_ONCE
    return _of_age_ms(policies, stream.first_id)


def _of_age_ms(policies: StreamPolicies, entry_id: StreamId) -> int:
    max_age_ms = policies.settings.max_age_ms
    return NEVER if max_age_ms == NONE else (entry_id >> 64) + max_age_ms


def _is_too_large(stream: Stream, policies: StreamPolicies, entry_id: StreamId) -> bool:
    """Whether MAXLEN or MAXBYTES has an entry removed, if no older one may be. O(1)."""
    max_length = policies.settings.max_length
    return (max_length != NONE and stream.length > max_length) or _has_too_many_bytes(stream, policies, entry_id)


def _has_too_many_bytes(stream: Stream, policies: StreamPolicies, entry_id: StreamId) -> bool:
    max_bytes, count = policies.settings.max_bytes, policies.byte_count
    is_over = max_bytes != NONE and count is not None and count.total > max_bytes
    return is_over and entry_id != stream.last_live_id


def count_bytes(stream: Stream, policies: StreamPolicies) -> None:
    """Count the bytes of entries that were added, COUNTED at most. O(fields) each."""
    if not policies.settings.shows_more:
        policies.byte_count = None
        return
    if policies.byte_count is None:
        policies.byte_count = ByteCount(entry_fields.size_of)
    count = policies.byte_count
    if count.counted_to == stream.last_id:
        return
    runs = stream.runs(count.counted_to + 1, ids.MAX, COUNTED)
    for segment, start, stop in runs:
        count.count(segment, start, stop)
    if count_of(runs) < COUNTED:
        count.counted_to = stream.last_id


# -- KEEPREF, DELREF ---------------------------------------------------------------------------------------------------


def _trim_oldest(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, most: int) -> int:
    """Remove the oldest entries that are above a limit, `most` of each limit; returns how many."""
    settings = policies.settings
    removed_ids: list[StreamId] = []
    length = stream.length
    trims: list[Trim] = []
    if settings.max_length != NONE and length > settings.max_length:
        trims.append(Trim(True, max(settings.max_length, length - most), False, 0, settings.references))
        stream.trim(trims[0], removed_ids)
    too_old = ctx.now_ms - settings.max_age_ms
    if settings.max_age_ms != NONE and too_old >= 0 and stream.length and stream.first_id >> 64 <= too_old:
        runs = stream.runs(ids.ZERO, ids.MAX, most)
        end = (too_old + 1) << 64
        if count_of(runs) == most:
            segment, _, stop = runs[-1]
            end = min(end, segment.id_at(stop - 1) + 1)
        trims.append(Trim(False, end, False, 0, settings.references))
        stream.trim(trims[-1], removed_ids)
    if stream.length and _has_too_many_bytes(stream, policies, stream.first_id):
        trims.append(Trim(False, _first_kept(stream, policies, most), False, 0, settings.references))
        stream.trim(trims[-1], removed_ids)
    if stream.length < length:
        is_delref = settings.references == DELETE_REFERENCES
        trim_effects.log_head_trim(ctx, key, stream, removed_ids if is_delref else None)
        for trim in trims:
            trim_effects.drop_deleted_references(ctx, key, stream, trim)
    return length - stream.length


def _first_kept(stream: Stream, policies: StreamPolicies, most: int) -> StreamId:
    """The first entry that MAXBYTES keeps, or the one behind `most`. O(fields) for each entry before it."""
    count, last_id = policies.byte_count, stream.last_live_id
    assert count is not None, "MAXBYTES counts"
    total, end = count.total, ids.ZERO
    for segment, start, stop in stream.runs(ids.ZERO, ids.MAX, most):
        for slot in range(start, stop):
            if total <= policies.settings.max_bytes or segment.id_at(slot) == last_id:
                return segment.id_at(slot)
            total -= count.size_at(segment, slot)
            end = segment.id_at(slot) + 1
    return end


# -- ACKED -------------------------------------------------------------------------------------------------------------


def _trim_done(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, most: int) -> list[StreamId]:
    """Remove the oldest entries above a limit that no group needs, `most` of them; returns which."""
    removed_ids: list[StreamId] = []
    if keeps_all(stream, policies):
        return removed_ids
    if policies.sweep_from != SWEPT:
        _sweep(stream, policies)
    max_deleted_id = stream.max_deleted_id
    done, sweep_from = policies.done, policies.sweep_from
    while done and (sweep_from == SWEPT or done[0] < sweep_from) and _is_above_limits(ctx, stream, policies, done[0]):
        if len(removed_ids) >= most:
            break
        entry_id = heappop(done)
        if entry_id > policies.floor and not _is_needed(stream, policies, entry_id) and stream.delete(entry_id):
            removed_ids.append(entry_id)
    stream.max_deleted_id = max_deleted_id  # a trim leaves it
    if removed_ids:
        # All unneeded entries below the last removed one went, too, unless a floor keeps some. XTRIM asks all groups.
        takes_all = policies.floor == ids.ZERO and not policies.idle
        trim_effects.log_acked_trim(ctx, key, stream, removed_ids, takes_all)
    return removed_ids


def _is_above_limits(ctx: Context, stream: Stream, policies: StreamPolicies, entry_id: StreamId) -> bool:
    """Whether an unneeded entry must go. If it need not, no newer one must."""
    settings = policies.settings
    if _is_too_large(stream, policies, entry_id):
        return True
    return settings.max_age_ms != NONE and ctx.now_ms - (entry_id >> 64) >= settings.max_age_ms


def _sweep(stream: Stream, policies: StreamPolicies) -> None:
    """Look for unneeded entries among the next SHORT_SLICE. O(SHORT_SLICE * groups * log b)."""
    runs = stream.runs(max(policies.sweep_from, policies.floor + 1), ids.MAX, SHORT_SLICE)
    count = count_of(runs)
    for segment, start, stop in runs:
        for slot in range(start, stop):
            entry_id = segment.id_at(slot)
            if not _is_needed(stream, policies, entry_id):
                heappush(policies.done, entry_id)
            policies.sweep_from = entry_id + 1
    if count < SHORT_SLICE:
        policies.sweep_from = SWEPT


def note_done(stream: Stream, policies: StreamPolicies, entry_ids: list[StreamId]) -> None:
    """A group needs these entries no more: remember those that no group needs. O(groups + log n) each."""
    settings = policies.settings
    if settings.references != ACKNOWLEDGED or not settings.trims or keeps_all(stream, policies):
        return
    sweep_from = policies.sweep_from
    for entry_id in entry_ids:
        is_swept = sweep_from == SWEPT or entry_id < sweep_from
        is_done = is_swept and entry_id > policies.floor and not _is_needed(stream, policies, entry_id)
        if is_done and stream.find(entry_id) is not None:
            heappush(policies.done, entry_id)


def passes_over(stream: Stream, policies: StreamPolicies, after: StreamId, position: StreamId) -> bool:
    """Whether a group that moves from `after` to `position` skips entries, there or to come, that no group needs then.

    O(entries between) at worst.
    """
    if position > stream.last_id:
        return True
    return any(
        not _is_needed(stream, policies, segment.id_at(slot))
        for segment, start, stop in stream.runs(after + 1, position, stream.length)
        for slot in range(start, stop)
    )


def keeps_all(stream: Stream, policies: StreamPolicies) -> bool:
    """Whether ACKED removes nothing: there is no group, or all are idle. O(1)."""
    return len(stream.groups) == len(policies.idle)


def _is_needed(stream: Stream, policies: StreamPolicies, entry_id: StreamId) -> bool:
    """Whether a group that is not idle has an entry pending, or has not read that far. O(groups * log b)."""
    idle = policies.idle
    if not idle:
        return stream.is_referenced(entry_id)
    ms, seq = halves(entry_id)
    groups = [group for name, group in stream.groups.items() if name not in idle]
    return any(not group.has_reached(ms, seq) or group.pel.by_id.find(entry_id) is not None for group in groups)


def go_together(stream: Stream, policies: StreamPolicies, wanted: IdColumns) -> bool:
    """Whether the same entries go if these are acknowledged together as one after the other.

    Those go that were acknowledged first, and of several the lowest: these are the same ones if the ids ascend.
    """
    if not is_acked(policies) or policies.settings.max_length == 0:
        return True
    count = policies.byte_count
    is_counted = count is None or count.counted_to == stream.last_id
    if is_counted and (not stream.length or not _is_too_large(stream, policies, stream.first_id)):
        return True
    return policies.sweep_from == SWEPT and not policies.done and wanted.ascends()


# -- IDLEGROUP --------------------------------------------------------------------------------------------------------


def look_at_groups(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies) -> None:
    """Note which groups are idle now. O(groups), but for the readers of several keys that are blocked here.

    A group that is looked at first counts as just read.
    """
    idle_ms, used_ms = policies.settings.idle_group_ms, policies.used_ms
    if idle_ms == NONE:
        policies.forget_uses()
        return
    former, policies.idle, policies.idle_due_ms = policies.idle, set(), NEVER
    policies.used_ms = {name: used_ms.get(name, ctx.now_ms) for name in stream.groups}
    for name, since_ms in policies.used_ms.items():
        if ctx.now_ms - since_ms < idle_ms:
            policies.idle_due_ms = min(policies.idle_due_ms, since_ms + idle_ms)
        elif ctx.blocking.has_reader(ctx.db_index, key, name):
            policies.idle_due_ms = min(policies.idle_due_ms, ctx.now_ms + idle_ms)
        else:
            policies.idle.add(name)
    if policies.idle != former:
        policies.start_sweep()
        policy_notes.idle(ctx, key, sorted(policies.idle - former), idle_ms)


def is_acked(policies: StreamPolicies) -> bool:
    """Whether entries go when no group needs them."""
    return policies.settings.trims and policies.settings.references == ACKNOWLEDGED


REFERENCE_NAMES: Final = {KEEP_REFERENCES: b"keepref", DELETE_REFERENCES: b"delref", ACKNOWLEDGED: b"acked"}
