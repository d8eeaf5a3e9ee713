"""Where to cut a long range so that its parts hold about as many entries, without reading it.

Ids are times, and times come in bursts: even spans of ids may hold nearly nothing, or nearly all. So the range is
looked at in places: each cell is narrowed to the entries really in it and cut evenly, a few entries from each part
tell how dense it is there, and parts that are still too heavy are cut again; all parts are, while many of the entries
are nowhere to be seen. A million entries within one millisecond are no trouble: narrowed to that millisecond, a cell is
cut by sequence number.
"""

import itertools
from dataclasses import dataclass
from typing import Any, Final

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Request
from penstock.pipeline.connector.source.id_ranges import even_cuts
from penstock.storage import ids
from penstock.storage.ids import StreamId

PROBES: Final = 16  # parts a cell is cut into
SAMPLE: Final = 16  # entries read from each part
ROUNDS: Final = 12
MOST_CELLS: Final = 64  # cut in one round


@dataclass(frozen=True, slots=True)
class Cell:
    """A range, and a guess at how many entries it holds; `exact` says that they were counted."""

    after: StreamId
    upto: StreamId
    weight: float
    exact: bool


def find_cuts(client: Client, key: bytes, after: StreamId, upto: StreamId, entries: int, parts: int) -> list[StreamId]:
    """Ids that cut `(after, upto]`, which holds about `entries`, into about `parts` parts of about equal weight."""
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
    """The cells to look at more closely: those that are too heavy; if entries are missing, all that may hide them."""
    guessed = [cell for cell in cells if not cell.exact]
    missing = entries - sum(cell.weight for cell in cells)
    if missing <= target:
        guessed = [cell for cell in guessed if cell.weight > target]
    return set(sorted(guessed, key=lambda cell: (-cell.weight, cell.after))[:MOST_CELLS])


def _divide(client: Client, key: bytes, cells: set[Cell]) -> list[Cell]:
    """Every cell in PROBES parts between its first and its last entry, weighed by what stands at each part's head."""
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
    """A range, weighed by its first few entries."""
    _refuse(sample)
    if len(sample) < SAMPLE:
        return Cell(after, upto, float(len(sample)), True)
    first, last = ids.parse(sample[0][0]), ids.parse(sample[-1][0])
    return Cell(after, upto, max((upto - first) / (last - first) * (SAMPLE - 1), float(SAMPLE)), False)


def _gather(cells: list[Cell], parts: int) -> list[StreamId]:
    """The ends of neighbouring cells that weigh a part together, but for the last one's."""
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
    """The word for "after this id" in XRANGE and its kin (Redis 6.2 and later)."""
    return b"(" + ids.text(after)
