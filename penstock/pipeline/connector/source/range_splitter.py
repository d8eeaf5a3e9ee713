"""Splits a long range of ids into parts with about the same number of entries, without reading it.

Ids are times, and entries come in bursts: equal spans of ids may hold nearly no entries, or nearly all. So the range
is sampled, in rounds. Each cell is narrowed to its first and last entry and split into equal spans; the first entries
of each span give its density; spans that are still too large become cells of the next round. While the estimates sum
up to far fewer entries than there are, all estimated spans are sampled again. A million entries within one millisecond
are split by sequence number, because the cell is first narrowed to that millisecond.

Each round costs two round trips to the server.
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
    return [_weighed(begin, end, sample) for (begin, end), sample in zip(parts, samples, strict=True)]


def _weighed(after: StreamId, upto: StreamId, sample: Any) -> Cell:
    """A cell whose size is estimated from the density of its first SAMPLE entries."""
    _refuse(sample)
    if len(sample) < SAMPLE:
        return Cell(after, upto, float(len(sample)), True)
    first, last = ids.parse(sample[0][0]), ids.parse(sample[-1][0])
    return Cell(after, upto, max((upto - first) / (last - first) * (SAMPLE - 1), float(SAMPLE)), False)


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
