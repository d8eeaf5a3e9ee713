"""Where a batch ends: at the end of each stream, or after a share of its backlog; and where it is split into tasks."""

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


def position_after(
    client: Client, key: bytes, place: Position, state: StreamState, entries: int, fetch: int
) -> tuple[Position, list[StreamId]]:
    """The position `entries` entries after `place`, and about MARKS ids on the way, at even distances.

    It reads all those entries: O(entries), in pages of `fetch`.
    """
    after, seen = place.id, 0
    marks: list[StreamId] = []
    every = max(entries // MARKS, 1)
    while seen < entries:
        count = min(fetch, entries - seen)
        page = decode(client.framed(packed("XRANGE", key, exclusive(after), ids.text(state.last), "COUNT", count)))
        if not len(page):
            return end_position(state), marks
        texts = page.texts(page.id_at[(-seen - 1) % every :: every])
        marks += [ids.parse(one) for one in texts.to_pylist()]
        after = ids.parse(page.last_id())
        seen += len(page)
        if len(page) < count:
            break
    if after >= state.last:
        return end_position(state), marks
    # A deleted entry counts in entries-added and was not read here: then the count is unknown.
    known = place.added is not None and state.max_deleted <= place.id
    return Position(after, place.added + seen if known and place.added is not None else None), marks


def cuts_of(
    client: Client, key: bytes, after: StreamId, end: Position, marks: list[StreamId], entries: int, parts: int
) -> tuple[StreamId, ...]:
    """The ids at which to split a range into `parts`: counted marks if there are any, else found by sampling."""
    if parts < 2 or entries < 2:
        return ()
    if marks:
        return tuple(sorted({marks[at - 1] for at in even_cuts(0, len(marks), parts)}))
    return tuple(find_cuts(client, key, after, end.id, entries, parts))
