"""Where a batch ends: at the end of each stream, or after a share of its backlog; and where it is split into tasks."""

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, joined
from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source.entry_pages import Page, decode
from penstock.pipeline.connector.source.id_ranges import even_cuts
from penstock.pipeline.connector.source.offsets import Position
from penstock.pipeline.connector.source.page_requests import MOST_REQUESTS, PageRequests
from penstock.pipeline.connector.source.range_splitter import exclusive, find_cuts
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

SAMPLES: Final = 16  # entries that are read to estimate the bytes of the others
MARKS: Final = 256  # ids kept while entries are counted, at even distances: the range can be split there
UNCOUNTING: Final = (b"ERR unknown command", b"NOPERM")  # replies of servers that cannot be asked to count


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
    return Position(state.last, state.added, seen=state)


def entry_bytes(client: Client, backlogs: Sequence[tuple[bytes, Position, StreamState]]) -> tuple[int, int]:
    """The bytes of some of the entries after these positions, and how many entries they are, at most SAMPLES."""
    each = max(SAMPLES // max(len(backlogs), 1), 1)
    requests: list[Request] = [
        ["XRANGE", key, exclusive(at), ids.text(state.last), "COUNT", 1]
        for key, place, state in backlogs
        for at in (place.id, *even_cuts(max(place.id, state.first - 1), state.last, each))[:each]
    ]
    replies = client.framed(joined(requests))
    return len(replies), len(decode(replies, len(requests)))


@dataclass(frozen=True, slots=True)
class Counted:
    """The position after `entries` entries, which were counted; `marks` are ids among them, one after each `every`.

    `is_end`: there are no more entries.
    """

    end: Position
    entries: int
    marks: list[StreamId]
    every: int
    is_end: bool


class Counting:
    """Entries of a stream after a position: at most `entries` and about `most_bytes` of them are counted."""

    __slots__ = ("_after", "_bytes", "_entries", "_every", "_marks", "_place", "_seen", "_state", "key")

    def __init__(
        self, key: bytes, place: Position, state: StreamState, entries: int, most_bytes: int | None = None
    ) -> None:
        self.key = key
        self._place = place
        self._state = state
        self._entries = entries
        self._bytes = most_bytes
        self._every = max(entries // MARKS, 1)
        self._after = place.id
        self._marks: list[StreamId] = []
        self._seen = 0

    @property
    def left(self) -> int:
        return self._entries - self._seen

    @property
    def is_by_bytes(self) -> bool:
        return self._bytes is not None

    def to_be_counted(self) -> Request:
        """For a server that counts by itself: `counted` takes the reply."""
        bounds = exclusive(self._after), ids.text(self._state.last)
        return ["PENSTOCK.XCOUNT", self.key, *bounds, "COUNT", self._entries, "EVERY", self._every]

    def counted(self, reply: Reply) -> Counted:
        self._seen, places = reply
        self._marks = [ids.parse(one) for one in places[: self._seen // self._every]]
        if places:
            self._after = ids.parse(places[-1])
        return self._result(self._seen < self._entries or self._after >= self._state.last)

    def request(self, count: int) -> Request:
        """For a server that does not count: `take` reads the reply."""
        return ["XRANGE", self.key, exclusive(self._after), ids.text(self._state.last), "COUNT", min(count, self.left)]

    def take(self, page: Page, number: int, count: int, mean_bytes: int) -> Counted | None:
        """Take the entries of a reply, the page's `number`th; what was counted, if that is all."""
        rows, asked = page.counts[number], min(count, self.left)
        if rows:
            begin = sum(page.counts[:number])
            places = page.id_at[begin : begin + rows][(-self._seen - 1) % self._every :: self._every]
            self._marks += [ids.parse(one) for one in page.texts(places).to_pylist()]
            self._after = ids.parse(page.last_id(number))
            self._seen += rows
        if self._bytes is not None:
            self._bytes -= rows * mean_bytes
        is_end = rows < asked or self._after >= self._state.last
        if not is_end and self.left and (self._bytes is None or self._bytes > 0):
            return None
        return self._result(is_end)

    def _result(self, is_end: bool) -> Counted:
        if is_end:
            return Counted(end_position(self._state), self._seen, self._marks, self._every, True)
        # Entries that are missing between here and `place` count as missing after here: they are reported at the end.
        added = None if self._place.added is None else self._place.added + self._seen
        return Counted(Position(self._after, added), self._seen, self._marks, self._every, False)


def count_entries(client: Client, wanted: Sequence[Counting], fetch: int, fetch_bytes: int) -> dict[bytes, Counted]:
    """Count entries of some streams, by key, with about MARKS ids on the way, at even distances.

    Penstock counts them, in one round trip for MOST_REQUESTS streams. For other servers, and where bytes are counted,
    all those entries are read, of many streams in one round trip: O(entries), in pages of at most `fetch`.
    """
    found = _counted_by_server(client, [one for one in wanted if not one.is_by_bytes])
    asking = PageRequests(client, fetch, fetch_bytes)
    waiting = deque(one for one in wanted if one.key not in found)
    while waiting:
        count, asked = asking.entries, [waiting.popleft()]
        room = count - min(asked[0].left, count)
        while waiting and waiting[0].left <= room and len(asked) < MOST_REQUESTS:
            room -= waiting[0].left
            asked.append(waiting.popleft())
        page = asking.page([one.request(count) for one in asked], asked[0].key)
        if page is None:
            waiting.extendleft(reversed(asked))
            continue
        for number, one in reversed(list(enumerate(asked))):
            counted = one.take(page, number, count, asking.mean_bytes)
            if counted is None:
                waiting.appendleft(one)
            else:
                found[one.key] = counted
    return found


def _counted_by_server(client: Client, wanted: list[Counting]) -> dict[bytes, Counted]:
    """What the server counted, by key. A stream that it refuses to count is not among them, and is to be read."""
    found: dict[bytes, Counted] = {}
    for first in range(0, len(wanted), MOST_REQUESTS):
        if not client.counts:
            break
        some = wanted[first : first + MOST_REQUESTS]
        replies = client.pipeline([one.to_be_counted() for one in some])
        for one, reply in zip(some, replies, strict=True):
            if not isinstance(reply, ReplyError):
                found[one.key] = one.counted(reply)
            elif reply.text.startswith(UNCOUNTING):
                client.counts = False
    return found


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
