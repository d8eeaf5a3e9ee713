"""Splits a long range of ids into parts with about the same number of entries, without reading it.

Ids are times, and entries come in bursts: equal spans of ids may hold nearly no entries, or nearly all. So the range
is sampled, in rounds. Each cell is narrowed to its first and last entry and split into equal spans; the first entries
of each span give its density; spans that are still too large become cells of the next round. Parts end within cells,
where the density says.

Producers that pipeline make many entries in one millisecond, and then none for some. Where a sample ends amid such a
millisecond, its last sequence number tells how many there are, and the next entry how long they stand for. A
millisecond that alone has more than a cell may hold is a cell of its own, and is split by sequence number.

Each round costs three or four round trips to the server, all of them together MOST_REQUESTS. No command counts entries:
a burst that no sample meets, within a cell, is not found, and then parts are uneven.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request
from penstock.pipeline.connector.source.id_ranges import even_cuts
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

PROBES: Final = 16  # parts a cell is cut into
SAMPLE: Final = 16  # entries read from each part
ROUNDS: Final = 8
CELLS: Final = 12  # at least: larger cells than a twelfth of all entries are cut again
PASSES: Final = 3  # in which what follows a burst is sampled by itself
BURST: Final = 8 * SAMPLE  # entries
LOST_ROUNDS: Final = 1  # in which all cells are cut because many entries are in none of them
MOST_REQUESTS: Final = 300  # more cost more than uneven parts do


@dataclass(frozen=True, slots=True)
class Cell:
    """A range and the number of entries in it, spread evenly as far as is known: counted if `exact`, else estimated."""

    after: StreamId
    upto: StreamId
    weight: float
    exact: bool


def find_cuts(client: Client, key: bytes, after: StreamId, upto: StreamId, entries: int, parts: int) -> list[StreamId]:
    """Ids that split `(after, upto]`, with about `entries` entries, into about `parts` parts of about equal size."""
    if parts < 2:
        return []
    largest = entries / CELLS
    cells = [Cell(after, upto, float(entries), False)]
    left = MOST_REQUESTS
    for number in range(ROUNDS):
        coarse = _coarse(cells, largest, entries, 1 <= number <= LOST_ROUNDS, left // (2 * PROBES))
        if not coarse:
            break
        sampler = _Sampler(client, key, largest)
        cells = sorted(
            [*(cell for cell in cells if cell not in coarse), *sampler.divide(coarse)], key=lambda cell: cell.after
        )
        left -= sampler.requests
    return _gather(cells, parts)


def _coarse(cells: list[Cell], largest: float, entries: int, everywhere: bool, most: int) -> set[Cell]:
    """The cells to sample again: the large ones, or all estimated ones while many entries are unaccounted for."""
    guessed = [cell for cell in cells if not cell.exact and cell.upto - cell.after > 1]
    missing = entries - sum(cell.weight for cell in cells)
    if missing <= largest or not everywhere:
        guessed = [cell for cell in guessed if cell.weight > largest]
    return set(sorted(guessed, key=lambda cell: (-cell.weight, cell.after))[:most])


class _Sampler:
    """One round: cells are cut, and what is in each piece is estimated."""

    def __init__(self, client: Client, key: bytes, largest: float) -> None:
        self._client = client
        self._key = key
        self._largest = largest
        self._found: list[Cell] = []
        self.requests = 0

    def divide(self, cells: set[Cell]) -> list[Cell]:
        """Each cell split into PROBES parts between its first and last entry, with the number of entries in each."""
        looks: list[Request] = []
        for cell in sorted(cells, key=lambda cell: cell.after):
            looks += [self._first(cell.after, cell.upto, 1), self._last(cell.after, cell.upto)]
        edges = self._ask(looks)
        parts: list[tuple[StreamId, StreamId]] = []
        for first, last in zip(edges[0::2], edges[1::2], strict=True):
            if first and last:
                begin, end = ids.parse(first[0][0]) - 1, ids.parse(last[0][0])
                bounds = {begin, *even_cuts(begin, end, PROBES), end}
                last_ms = end & ~ids.HALF
                if begin < last_ms:
                    bounds.add(last_ms - 1)  # a burst at the end has the last id's sequence number
                parts.extend(itertools.pairwise(sorted(bounds)))
        for _ in range(PASSES):
            parts = self._sample(parts, True)
        self._sample(parts, False)
        return self._found

    def _sample(self, parts: list[tuple[StreamId, StreamId]], apart: bool) -> list[tuple[StreamId, StreamId]]:
        """Estimate these parts. With `apart`, the rest of a part after a burst is returned instead of estimated."""
        dense: list[Sample] = []
        replies = self._ask([self._first(begin, end, SAMPLE) for begin, end in parts])
        for (begin, end), entries in zip(parts, replies, strict=True):
            if len(entries) < SAMPLE:
                self._found.append(Cell(begin, end, float(len(entries)), True))
                continue
            sample = Sample(begin, end, [ids.parse(entry[0]) for entry in entries])
            if sample.ends_amid_a_millisecond:
                dense.append(sample)
            else:
                self._found.append(sample.weighed(SAMPLE - 1, 0, sample.last))
        looks: list[Request] = []
        for sample in dense:
            looks += [self._last(sample.last - 1, sample.ms_end), self._first(sample.ms_end, sample.upto, 2)]
        replies = self._ask(looks)
        behind: list[tuple[StreamId, StreamId]] = []
        for sample, lasts, following in zip(dense, replies[0::2], replies[1::2], strict=True):
            last = ids.parse(lasts[0][0]) if lasts else sample.last  # it may have been trimmed meanwhile
            next_ids = [ids.parse(entry[0]) for entry in following]
            next_id = next_ids[0] if next_ids else None
            burst = sample.burst(last)
            # A pipeline comes after a pipeline; a lone entry after a long millisecond tells that this is over.
            goes_on = len(next_ids) == 2 and next_ids[0] >> 64 == next_ids[1] >> 64
            is_burst = burst.weight > self._largest or (burst.weight > BURST and not goes_on)
            if next_id is not None and not (apart and is_burst):
                self._found.append(sample.regular(burst.weight, next_id))
                continue
            self._found.append(burst)
            if sample.before:
                self._found.append(Cell(sample.after, burst.after, float(sample.before), True))
            if next_id is not None:
                behind.append((sample.ms_end, sample.upto))
        return behind

    def _ask(self, requests: list[Request]) -> list[Any]:
        replies = self._client.pipeline(requests)
        self.requests += len(requests)
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise reply
        return replies

    def _first(self, after: StreamId, upto: StreamId, count: int) -> Request:
        return ["XRANGE", self._key, exclusive(after), ids.text(upto), "COUNT", count]

    def _last(self, after: StreamId, upto: StreamId) -> Request:
        return ["XREVRANGE", self._key, ids.text(upto), exclusive(after), "COUNT", 1]


class Sample:
    """The first ids of a cell."""

    def __init__(self, after: StreamId, upto: StreamId, places: list[StreamId]) -> None:
        self.after = after
        self.upto = upto
        self.first, self.last = places[0], places[-1]
        last_ms = self.last & ~ids.HALF
        self.ends_amid_a_millisecond = places[-2] >= last_ms
        self.ms_begin = max(last_ms, self.first)
        self.ms_end = min(last_ms | ids.HALF, upto)
        self.before = sum(place < last_ms for place in places)  # entries of earlier milliseconds
        self._in_ms = [place for place in places if place >= last_ms]

    def weighed(self, usual: float, dense: float, next_id: StreamId) -> Cell:
        """A cell that has `usual` entries from its first up to another id, and so on, and besides `dense` entries."""
        ms = max((next_id >> 64) - (self.first >> 64), 1)
        spans = ((self.upto >> 64) - (self.first >> 64) + 1) / ms
        return Cell(self.after, self.upto, max(max(spans, 1.0) * usual + dense, float(SAMPLE)), False)

    def burst(self, last: StreamId) -> Cell:
        """The millisecond that the sample ends in; this is its last id."""
        first, seen = self._in_ms[0], len(self._in_ms) - 1
        counted = seen == self._in_ms[-1] - first  # a server gives sequence numbers without gaps
        weight = (last - first) * seen / max(self._in_ms[-1] - first, 1) + 1
        return Cell(first - 1, last, float(weight), counted)

    def regular(self, count: float, next_id: StreamId) -> Cell:
        """The cell if the entries go on as in the sample: `count` entries in a millisecond, and then the next id."""
        if self.before:
            return self.weighed(self.before, count, self.ms_begin)
        return self.weighed(count, 0, next_id)


def _gather(cells: list[Cell], parts: int) -> list[StreamId]:
    """The ids that end each part but the last: parts have equal weights, and cells are spread evenly."""
    share = sum(cell.weight for cell in cells) / parts
    cuts: list[StreamId] = []
    before = 0.0
    for cell in cells:
        while cell.weight and len(cuts) < parts - 1 and before + cell.weight >= share * (len(cuts) + 1):
            inside = (share * (len(cuts) + 1) - before) / cell.weight
            cuts.append(cell.after + int((cell.upto - cell.after) * Fraction(inside)))
        before += cell.weight
    return cuts


def exclusive(after: StreamId) -> bytes:
    """An exclusive lower bound, as XRANGE, XREVRANGE and XPENDING take it: `(id` (Redis 6.2 and later)."""
    return b"(" + ids.text(after)
