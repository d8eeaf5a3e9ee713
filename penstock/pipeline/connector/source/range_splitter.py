"""Splits a long range of ids into parts with about the same number of entries, without reading it.

Ids are times, and entries come in bursts: equal spans of ids may hold nearly no entries, or nearly all. So the range
is sampled, in rounds. Each cell is narrowed to its first and last entry and split into equal spans; the first entries
of each span give its density; spans that are still too large become cells of the next round. While the estimates sum
up to far fewer entries than there are, all estimated spans are sampled again. A million entries within one millisecond
are split by sequence number, because the cell is first narrowed to that millisecond.

Producers that pipeline make many entries in one millisecond, and then none for some. Where a sample ends amid such a
millisecond, its last sequence number tells how many there are, and the next entry how long they stand for.

Each round costs two or three round trips to the server.
"""

import itertools
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request
from penstock.pipeline.connector.source.id_ranges import even_cuts
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

PROBES: Final = 16  # parts a cell is cut into
SAMPLE: Final = 16  # entries read from each part
ROUNDS: Final = 12
MOST_CELLS: Final = 64  # cut in one round


@dataclass(frozen=True, slots=True)
class Cell:
    """A range and the number of entries in it: counted if `exact`, else estimated."""

    after: StreamId
    upto: StreamId
    weight: float
    exact: bool


def find_cuts(client: Client, key: bytes, after: StreamId, upto: StreamId, entries: int, parts: int) -> list[StreamId]:
    """Ids that split `(after, upto]`, with about `entries` entries, into about `parts` parts of about equal size."""
    if parts < 2:
        return []
    target = entries / parts / 2  # cells of half a part: gathering them gives parts of nearly the right weight
    cells = [Cell(after, upto, float(entries), False)]
    for _ in range(ROUNDS):
        coarse = _coarse(cells, target, entries)
        if not coarse:
            break
        cells = sorted(
            [*(cell for cell in cells if cell not in coarse), *_divide(client, key, coarse)],
            key=lambda cell: cell.after,
        )
    return _gather(cells, parts)


def _coarse(cells: list[Cell], target: float, entries: int) -> set[Cell]:
    """The cells to sample again: the large ones, or all estimated ones while many entries are unaccounted for."""
    guessed = [cell for cell in cells if not cell.exact]
    missing = entries - sum(cell.weight for cell in cells)
    if missing <= target:
        guessed = [cell for cell in guessed if cell.weight > target]
    return set(sorted(guessed, key=lambda cell: (-cell.weight, cell.after))[:MOST_CELLS])


def _divide(client: Client, key: bytes, cells: set[Cell]) -> list[Cell]:
    """Each cell split into PROBES parts between its first and last entry, with the number of entries in each part."""
    looks: list[Request] = []
    for cell in sorted(cells, key=lambda cell: cell.after):
        looks.append(["XRANGE", key, exclusive(cell.after), ids.text(cell.upto), "COUNT", 1])
        looks.append(["XREVRANGE", key, ids.text(cell.upto), exclusive(cell.after), "COUNT", 1])
    edges = client.pipeline(looks)
    parts: list[tuple[StreamId, StreamId]] = []
    for first, last in zip(edges[0::2], edges[1::2], strict=True):
        _refuse(first)
        _refuse(last)
        if first and last:
            begin, end = ids.parse(first[0][0]) - 1, ids.parse(last[0][0])
            bounds = [begin, *even_cuts(begin, end, PROBES), end]
            parts.extend(itertools.pairwise(bounds))
    samples = client.pipeline(
        [["XRANGE", key, exclusive(begin), ids.text(end), "COUNT", SAMPLE] for begin, end in parts]
    )
    found: list[Cell] = []
    dense: list[Sample] = []
    for (begin, end), sample in zip(parts, samples, strict=True):
        _refuse(sample)
        if len(sample) < SAMPLE:
            found.append(Cell(begin, end, float(len(sample)), True))
            continue
        places = [ids.parse(entry[0]) for entry in sample]
        looked = Sample(begin, end, places)
        if places[-2] >> 64 == places[-1] >> 64:
            dense.append(looked)
        else:
            found.append(looked.weighed(SAMPLE - 1, 0, places[-1]))
    return found + _looked_closer(client, key, dense)


class Sample:
    """The first ids of a cell."""

    def __init__(self, after: StreamId, upto: StreamId, places: list[StreamId]) -> None:
        self.after = after
        self.upto = upto
        self.first = places[0]
        self.last_ms = places[-1] >> 64
        self.before = sum(place >> 64 < self.last_ms for place in places)  # entries of earlier milliseconds

    def weighed(self, usual: float, dense: float, next_id: StreamId) -> Cell:
        """A cell that has `usual` entries from its first up to another id, and so on, and besides `dense` entries."""
        ms = max((next_id >> 64) - (self.first >> 64), 1)
        spans = ((self.upto >> 64) - (self.first >> 64) + 1) / ms
        return Cell(self.after, self.upto, max(max(spans, 1.0) * usual + dense, float(SAMPLE)), False)


def _looked_closer(client: Client, key: bytes, samples: list[Sample]) -> list[Cell]:
    """Cells whose samples end amid a millisecond with several entries: by how many these are, and what comes next."""
    looks: list[Request] = []
    for one in samples:
        ms_end = min(one.last_ms << 64 | ids.HALF, one.upto)
        looks.append(["XREVRANGE", key, ids.text(ms_end), ids.text(max(one.last_ms << 64, one.first)), "COUNT", 1])
        looks.append(["XRANGE", key, exclusive(ms_end), ids.text(one.upto), "COUNT", 1])
    replies = client.pipeline(looks)
    found: list[Cell] = []
    for one, lasts, following in zip(samples, replies[0::2], replies[1::2], strict=True):
        _refuse(lasts)
        _refuse(following)
        begin = max(one.last_ms << 64, one.first)
        last = ids.parse(lasts[0][0]) if lasts else begin  # it may have been trimmed meanwhile
        count = float(last - begin + 1)
        if not following:
            found.append(Cell(one.after, one.upto, max(one.before + count, float(SAMPLE)), False))
        elif one.before:
            found.append(one.weighed(one.before, count, one.last_ms << 64))
        else:
            found.append(one.weighed(count, 0, ids.parse(following[0][0])))
    return found


def _gather(cells: list[Cell], parts: int) -> list[StreamId]:
    """The ids that end each part but the last, when neighbouring cells are joined to parts of equal size."""
    share = sum(cell.weight for cell in cells) / parts
    cuts: list[StreamId] = []
    weight = 0.0
    for cell in cells[:-1]:
        weight += cell.weight
        if weight >= share * (len(cuts) + 1) and len(cuts) < parts - 1:
            cuts.append(cell.upto)
    return cuts


def _refuse(reply: Any) -> None:
    if isinstance(reply, ReplyError):
        raise reply


def exclusive(after: StreamId) -> bytes:
    """An exclusive lower bound, as XRANGE, XREVRANGE and XPENDING take it: `(id` (Redis 6.2 and later)."""
    return b"(" + ids.text(after)
