"""Ranges of ids: cut into pieces, and pieces packed into tasks. Numbers in, numbers out; nothing asks a server.

A range holds the ids *after* one id and *up to* another, `(after, upto]`: ranges of successive batches touch, and
nothing is in two of them.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.storage.ids import StreamId


@dataclass(frozen=True, slots=True)
class Piece:
    """What one request after another reads: ids after `after` up to `upto` of one stream, or `ids` only.

    `weight` is about how many entries that is; `exact` says that it is exactly so many, unless some were deleted.
    `first` is the first id that was there when the piece was planned, where somebody looked.
    """

    endpoint: str
    key: bytes
    after: StreamId
    upto: StreamId
    weight: int
    exact: bool = False
    first: StreamId | None = None
    ids: tuple[StreamId, ...] = ()


def cut(after: StreamId, upto: StreamId, cuts: Sequence[StreamId]) -> list[tuple[StreamId, StreamId]]:
    """The range in parts that end at `cuts`; a cut outside of it is none.

    >>> cut(0, 9, [3, 6])
    [(0, 3), (3, 6), (6, 9)]
    """
    inside = sorted({one for one in cuts if after < one < upto})
    return list(zip([after, *inside], [*inside, upto], strict=True)) if after < upto else []


def even_cuts(after: StreamId, upto: StreamId, parts: int) -> list[StreamId]:
    """Where to cut so that every part spans as many ids, of which most do not exist.

    >>> even_cuts(0, 100, 4)
    [25, 50, 75]
    """
    span = upto - after
    parts = max(min(parts, span), 1)
    return [after + span * part // parts for part in range(1, parts)]


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole numbers, in proportion to `weights`: nobody gets more than its weight, and at least 1 of it.

    (So a total below the number of weights is exceeded: no key is left out for ever.)

    >>> shares(10, [100, 50, 1, 0])
    [6, 3, 1, 0]
    """
    everything = sum(weights)
    if everything <= total:
        return list(weights)
    parts = [max(total * weight // everything, 1) if weight else 0 for weight in weights]
    rest = total - sum(parts)
    # What rounding left goes to the largest backlogs; what the ones took too much comes from the largest shares.
    for at in sorted(range(len(weights)), key=lambda at: (-weights[at], at)):
        if rest <= 0:
            break
        more = min(rest, weights[at] - parts[at])
        parts[at] += more
        rest -= more
    while rest < 0:
        at = max(range(len(parts)), key=lambda at: (parts[at], -at))
        if parts[at] <= 1:
            break
        less = min(-rest, parts[at] - 1, max(parts[at] // 2, 1))
        parts[at] -= less
        rest += less
    return parts


def how_many(weight: int, per_task: int, at_least: int, at_most: int) -> int:
    """How many tasks so many entries are: about `per_task` in each, within the bounds."""
    return min(max(-(-weight // per_task), at_least, 1), at_most)


def pack(pieces: Sequence[Piece], tasks: int) -> list[tuple[Piece, ...]]:
    """Pieces in at most so many tasks of about equal weight, the heaviest piece first into the lightest task.

    The same pieces give the same tasks, whatever their order. Inside a task they stand by endpoint, key and id, so
    that each stream is read in its own order.
    """
    # A piece costs a request even if it is empty: a thousand empty ones do not belong into one task.
    ordered = sorted(pieces, key=lambda piece: (-piece.weight, piece.endpoint, piece.key, piece.after, piece.ids))
    loads: list[tuple[int, int]] = [(0, number) for number in range(tasks)]
    packed: list[list[Piece]] = [[] for _ in range(tasks)]
    for piece in ordered:
        load, number = heapq.heappop(loads)
        packed[number].append(piece)
        heapq.heappush(loads, (load + piece.weight + 1, number))
    return [
        tuple(sorted(some, key=lambda piece: (piece.endpoint, piece.key, piece.after, piece.ids)))
        for some in packed
        if some
    ]
