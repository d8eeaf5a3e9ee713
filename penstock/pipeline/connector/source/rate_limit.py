"""Where a batch ends: at the end of each stream, or after a share of its backlog; and where it is split into tasks."""

import itertools
from dataclasses import dataclass
from typing import Final

from penstock.pipeline.connector.connection.client import Client, packed
from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.entry_pages import decode
from penstock.pipeline.connector.source.id_ranges import even_cuts
from penstock.pipeline.connector.source.offsets import Position
from penstock.pipeline.connector.source.range_splitter import exclusive, find_cuts
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

MARKS: Final = 256  # ids kept while entries are counted, at even distances: the range can be split there


def backlog(place: Position, state: StreamState) -> int:
    """How many entries a stream has after a position.

    Exact if none of them were deleted and the position has a count (`added`); else estimated from the ids.
    """
    if state.last <= place.id or not state.length:
        return 0
    if place.added is not None:
        return max(min(state.added - place.added, state.length), 0)
    if place.id < state.first:
        return state.length
    span = max(state.last - state.first, 1)
    return max(state.length * (state.last - place.id) // span, 1)


def end_position(state: StreamState) -> Position:
    """The position after the last entry there is now; entries added later have greater ids."""
    return Position(state.last, state.added)


@dataclass(frozen=True, slots=True)
class Counted:
    """The position after `entries` entries, which were read for it; `marks` are ids among them, one after each `every`.

    `is_end`: there are no more entries.
    """

    end: Position
    entries: int
    marks: list[StreamId]
    every: int
    is_end: bool


def count_entries(client: Client, key: bytes, place: Position, state: StreamState, entries: int, fetch: int) -> Counted:
    """Count up to `entries` entries after `place`, with about MARKS ids on the way, at even distances.

    It reads all those entries: O(entries), in pages of `fetch`.
    """
    after, seen = place.id, 0
    marks: list[StreamId] = []
    every = max(entries // MARKS, 1)
    while seen < entries:
        count = min(fetch, entries - seen)
        page = decode(client.framed(packed("XRANGE", key, exclusive(after), ids.text(state.last), "COUNT", count)))
        if not len(page):
            return Counted(end_position(state), seen, marks, every, True)
        texts = page.texts(page.id_at[(-seen - 1) % every :: every])
        marks += [ids.parse(one) for one in texts.to_pylist()]
        after = ids.parse(page.last_id())
        seen += len(page)
        if len(page) < count:
            return Counted(end_position(state), seen, marks, every, True)
    if after >= state.last:
        return Counted(end_position(state), seen, marks, every, True)
    # Entries that are missing between here and `place` count as missing after here: they are told of at the end.
    added = None if place.added is None else place.added + seen
    end = Position(after, added, since=place.since_if(state.max_deleted))
    return Counted(end, seen, marks, every, False)


def counted_cuts(counted: Counted, parts: int) -> tuple[tuple[StreamId, ...], tuple[int, ...]]:
    """The ids at which to split what was counted into `parts`, and the entries in each."""
    at = sorted({one for one in even_cuts(0, len(counted.marks), parts) if one}) if parts > 1 else []
    bounds = [0, *(one * counted.every for one in at), counted.entries]
    counts = tuple(upto - begin for begin, upto in itertools.pairwise(bounds))
    return tuple(counted.marks[one - 1] for one in at), counts


def sampled_cuts(
    client: Client, key: bytes, after: StreamId, end: Position, entries: int, parts: int
) -> tuple[StreamId, ...]:
    """The ids at which to split a range into `parts`, found by sampling."""
    if parts < 2 or entries < 2:
        return ()
    return tuple(find_cuts(client, key, after, end.id, entries, parts))
