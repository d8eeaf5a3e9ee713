"""Entries that a query should have read and cannot: how many, between which ids, and why.

A stream's entries-added counter grows with every entry and never for another reason. So the entries that are missing
after a position are known: entries-added now, less entries-added at the position, less the entries after it that are
there. XINFO tells the last of these only if all entries are after the position, or none is; else they are counted by
the tasks that read them.

What took them is not always known. A trim takes the first entries, and leaves no trace; XDEL, XDELEX and XACKDEL raise
max-deleted-entry-id, which says nothing of how many they took. Sources: XINFO STREAM of Redis 8.6.3 and Penstock.
"""

from dataclasses import dataclass, replace
from typing import Final

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.id_ranges import IdRange
from penstock.pipeline.connector.source.offsets import Position
from penstock.pipeline.connector.source.source_options import ALWAYS, CERTAIN, NEVER
from penstock.pipeline.errors import report_loss
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

TRIMMED: Final = "trimmed"
DELETED: Final = "deleted"
TRIMMED_OR_DELETED: Final = "trimmedOrDeleted"
UNCOUNTED: Final = "uncounted"  # an upper bound: some of the removed entries may have been read before
WENT_BACK: Final = "wentBack"  # the stream was deleted, deleted and made anew, or the server lost its end

SENTENCES: Final = {
    TRIMMED: "were trimmed",
    DELETED: "were deleted one by one",
    TRIMMED_OR_DELETED: "were trimmed or deleted",
    WENT_BACK: "are gone, because the stream was made anew or its ids were set back,",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """`missing`: how many entries, as far as that is known.

    `is_certain`: it is a loss for certain, and no deletion of what is done. `resume_at` is the position from which a
    query goes on that does not end, None in a task.
    """

    cause: str
    missing: int
    text: str
    is_certain: bool
    resume_at: Position | None = None


def warn_or_end(loss: Loss, where: str, when: str, is_counted: bool = True) -> None:
    """DataLoss if the query is to end by `when`, the option failOnDataLoss; else a warning, or nothing.

    With `certain`, entries that were deleted one by one are counted without a warning, because such queues are used so;
    unless no driver counts them (`is_counted`).
    """
    ends = when == ALWAYS or (when == CERTAIN and loss.is_certain)
    if ends or when == NEVER or loss.cause != DELETED or not is_counted:
        report_loss(f"{where}: {loss.text}", ends)


# -- between two batches ----------------------------------------------------------------------------------------------


def beginning(state: StreamState) -> Position:
    """The position before a stream's first entry. Entries removed earlier count neither as read nor as missing."""
    return Position(ids.ZERO, state.removed)


def late_loss(state: StreamState) -> Loss | None:
    """The possible loss in a stream that a pattern has found while its query runs; None if all of it is there.

    It was made since the last scan, or renamed, or restored: then some of these entries are not the query's.
    """
    if not state.removed:
        return None
    text = f"the pattern found the stream when entries of it were gone already, at most {state.removed} unread ones"
    return Loss(UNCOUNTED, state.removed, f"{text}: they were trimmed or deleted", False)


def entries_after(entry_id: StreamId, state: StreamState) -> int | None:
    """How many entries a stream has after an id; None if that does not follow from XINFO."""
    if not state.length or state.last <= entry_id:
        return 0
    return state.length if state.first > entry_id else None


def find_loss(
    place: Position, state: StreamState | None, seen: StreamState | None, counted: int | None = None
) -> Loss | None:
    """Find entries after a position that were lost before a batch was planned; None if XINFO shows no loss.

    `state` is None for a missing stream; `seen` is its state at the last check, None if there was none; `counted` is
    the number of entries after the position, if they were counted.
    """
    seen = seen or place.seen
    known = 0 if seen is None or place.added is None else max(seen.added - place.added, 0)
    if state is None:
        if place.id == ids.ZERO and not place.added and (seen is None or not seen.added):
            return None
        text = f"the stream is gone, and {_at_least(known)} after {_text(place.id)}"
        return Loss(WENT_BACK, known, text, known > 0, Position(ids.ZERO, 0))
    read_up_to = place.id if place.seen is None else min(place.id, place.seen.last)  # which may be later entries' place
    if state.last < read_up_to or (place.added is not None and state.added < place.added):
        return _went_back(f"{_text(read_up_to)} was read", known, place, state)
    behind = entries_after(place.id, state) if counted is None else counted
    if seen is not None and is_earlier(state, seen):
        lost = _went_back(f"{_text(seen.last)} was seen", max(seen.added - state.added, 0), place, state)
        by_count = count_loss(place, state, behind)
        if by_count is None or by_count.cause != WENT_BACK:  # the entries after the position may be the old ones
            return replace(lost, resume_at=Position(place.id, None))
        return lost
    if place.added is None and place.seen is not None:
        lost_since = uncounted_loss(place.counted_from, place.seen, 0, state, behind)
        return lost_since and replace(lost_since, resume_at=Position(place.id, None, seen=state))
    return count_loss(place, state, behind)


def is_earlier(state: StreamState, seen: StreamState) -> bool:
    """Whether a stream is not what became of the one that was seen.

    None of its counters ever falls, nor the number of entries that were removed: those that were added, less those that
    are there. An entry that was added has raised the last id, and an entry that is gone was removed.
    """
    falls = state.last < seen.last or state.added < seen.added or state.max_deleted < seen.max_deleted
    if falls or (state.added > seen.added and state.last == seen.last):
        return True
    removed = state.removed - seen.removed
    gone = 0  # at least so many of those that were seen
    if seen.length and (not state.length or state.first > seen.last):
        gone = seen.length
    elif seen.length and state.first > seen.first:
        gone = 1
    if removed < gone or (state.length > 0 and state.first < seen.first):
        return True
    # An entry that was seen is there, and none after it was deleted: then no trim has taken one that came later.
    has_seen = state.length > 0 and state.first <= seen.last
    return has_seen and state.max_deleted <= seen.last and removed >= seen.length


def count_loss(place: Position, state: StreamState, behind: int | None, now: StreamState | None = None) -> Loss | None:
    """What was lost after a position that has `behind` entries after it; None if nothing was, or it is not known.

    `now`: the stream when they had been counted, if that was after `state`. Only it tells what was taken meanwhile.
    """
    if place.added is None and now is not None:
        return uncounted_loss(place.counted_from, state, 0, now)
    if place.added is None or behind is None:
        return None
    missing = state.added - place.added - behind
    if missing < 0:
        return _went_back(f"{_text(place.id)} was read with {place.added} entries added", 0, place, state)
    if not missing:
        return None
    now = now or state
    cause = WENT_BACK if is_earlier(now, state) else cause_of(place.counted_from, now)
    first = _text(now.first) if now.length else "none"
    return Loss(
        cause,
        missing,
        f"{missing} entries {SENTENCES[cause]} before they were read: those after {_text(place.counted_from)}, and the "
        f"first that is left is {first}",
        cause in (TRIMMED, WENT_BACK),
        Position(place.id, place.added + missing),
    )


def uncounted_since(place: Position, before: StreamState, now: StreamState | None) -> StreamId | None:
    """The `since` of a position up to which entries after `place` were counted between two states of the stream.

    None if none of them can have been removed before it was counted.
    """
    if place.since is not None or now is None or not now.length:
        return place.counted_from
    is_whole = now.max_deleted <= place.id and now.first <= max(place.id, before.first)
    return None if is_whole else place.id


def cause_of(after: StreamId, state: StreamState) -> str:
    """The cause of missing entries after an id; WENT_BACK if neither a trim nor a deletion can be the cause."""
    is_trimmed = not state.length or state.first > after  # else a trim would have taken the first entry before them
    if state.max_deleted > after:
        return TRIMMED_OR_DELETED if is_trimmed else DELETED
    return TRIMMED if is_trimmed else WENT_BACK


def _went_back(what: str, known: int, place: Position, state: StreamState) -> Loss:
    return Loss(
        WENT_BACK,
        known,
        f"the stream went backwards: {what}, and its last id is {_text(state.last)} ({state.added} entries ever, "
        f"{state.length} left): it was deleted and made anew, its ids were set back, or the server has lost its end; "
        f"{_at_least(known)} after {_text(place.id)}",
        True,
        beginning(state),
    )


def unknown_deletions(place: Position, seen: StreamState, reported: StreamId) -> Loss | None:
    """A loss by deletions after a position that other consumers have moved since, so that its size is not known.

    `reported` is the max-deleted-entry-id up to which all losses were reported.
    """
    if seen.max_deleted <= max(place.counted_from, reported):
        return None
    text = f"entries after {_text(place.counted_from)} were deleted one by one before they were read, others read too"
    return Loss(UNCOUNTED, 1, f"{text}, and it is not known how many", False)


def group_loss(read_up_to: StreamId, last_delivered: StreamId) -> Loss | None:
    """The loss if a shared group's position is before what its query has read; otherwise None.

    Either XGROUP SETID set the group back, or the server lost its end, perhaps with entries that were not read yet.
    """
    if last_delivered >= read_up_to:
        return None
    text = f"the group went backwards: {_text(read_up_to)} was read, and its last delivered id is "
    reasons = "the server has lost its end, or XGROUP SETID set the group back, and entries are read again"
    return Loss(WENT_BACK, 0, f"{text}{_text(last_delivered)}: {reasons}; {_at_least(0)}", False)


def pending_loss(entry_ids: list[bytes]) -> Loss:
    """The possible loss of entries that were pending for other consumers and are not in the stream any more."""
    first, last = (ids.text(one(map(ids.parse, entry_ids))).decode() for one in (min, max))
    where = first if len(entry_ids) == 1 else f"{len(entry_ids)} from {first} to {last}"
    text = f"pending entries of other consumers were trimmed or deleted before they could be claimed: {where}, at most"
    return Loss(UNCOUNTED, len(entry_ids), f"{text}, because a consumer may have finished one meanwhile", False)


# -- in a task --------------------------------------------------------------------------------------------------------


def range_loss(id_range: IdRange, rows: int, state: StreamState | None) -> Loss | None:
    """The loss in a range of which a task read `rows` entries; None if it read all of them."""
    count = len(id_range.ids) if id_range.ids else id_range.count
    if state is None or state.last < id_range.upto:
        missing = 0 if count is None else max(count - rows, 0)
        last = "is gone" if state is None else f"went backwards, its last id is {_text(state.last)}"
        return Loss(WENT_BACK, missing, f"the stream {last}: {_at_least(missing)}", True)
    if count is None:
        if id_range.planned is None:
            return Loss(UNCOUNTED, 0, "entries were trimmed while they were read, or deleted", False)
        return uncounted_loss(id_range.after, id_range.planned, id_range.spare, state)
    if rows > count:
        text = f"{rows} entries are where {count} were: the stream was deleted and made anew, or its ids were set back"
        return Loss(WENT_BACK, 0, text, True)
    if rows == count:
        return None
    cause = cause_of(id_range.after if id_range.since is None else id_range.since, state)
    text = f"{count - rows} of {count} entries {SENTENCES[cause]} before they were read"
    return Loss(cause, count - rows, text, cause in (TRIMMED, WENT_BACK))


def uncounted_loss(
    after: StreamId, planned: StreamState, spare: int, state: StreamState, behind: int | None = None
) -> Loss | None:
    """The possible loss of uncounted entries after an id since a stream was in the state `planned`.

    None if nothing was removed since then, or only `spare` entries, which were read before. `behind` is the number of
    entries after the id, if it is known.
    """
    if is_earlier(state, planned):
        return Loss(WENT_BACK, 0, "the stream was deleted and made anew, or the server has lost its end", True)
    removed = state.removed - planned.removed
    cause = cause_of(after, state)
    if cause == TRIMMED:
        removed -= spare
    if planned.last <= after and behind is not None:  # none of them was there, so those that are left were added since
        removed = min(removed, state.added - planned.added - behind)
    if removed <= 0 or cause == WENT_BACK or state.last <= after:
        return None
    return Loss(
        UNCOUNTED,
        removed,
        f"entries {SENTENCES[cause]} while they were read, at most {removed}: those after {_text(after)} were not "
        "counted",
        False,
    )


def _at_least(known: int) -> str:
    return f"at least {known} entries were not read" if known else "it is not known how many entries were not read"


def _text(entry_id: StreamId) -> str:
    return ids.text(entry_id).decode()
