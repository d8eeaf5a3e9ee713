"""Ranges of ids, split into smaller ones and packed into tasks. Pure functions: no server is asked.

A range is `(after, upto]`: ids after the one, up to and including the other. Ranges of successive batches touch and do
not overlap.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.storage.streams.ids import StreamId


@dataclass(frozen=True, slots=True)
class IdRange:
    """A part of one stream for a task to read: ids in `(after, upto]`, or only those in `ids` if it is not empty.

    `weight` estimates the number of entries. `count` is how many there were when the range was planned, None if they
    were not counted; then `planned` is the stream's state at that time, if it is known, `spare` the number of entries
    before the batch, which may be trimmed, and `first` the id of the first entry, if it was looked up. The
    count may include entries that were deleted after `since`, if that is not None.
    """

    endpoint: str
    key: bytes
    after: StreamId
    upto: StreamId
    weight: int
    count: int | None = None
    first: StreamId | None = None
    planned: StreamState | None = None
    spare: int = 0
    since: StreamId | None = None
    ids: tuple[StreamId, ...] = ()


def cut(after: StreamId, upto: StreamId, cuts: Sequence[StreamId]) -> list[tuple[StreamId, StreamId]]:
    """The range split at `cuts`; those outside it are ignored.

    >>> cut(0, 9, [3, 6])
    [(0, 3), (3, 6), (6, 9)]
    """
    inside = sorted({one for one in cuts if after < one < upto})
    return list(zip([after, *inside], [*inside, upto], strict=True)) if after < upto else []


def even_cuts(after: StreamId, upto: StreamId, parts: int) -> list[StreamId]:
    """Ids that split a range into parts of equal span (most of these ids do not exist).

    >>> even_cuts(0, 100, 4)
    [25, 50, 75]
    """
    span = upto - after
    parts = max(min(parts, span), 1)
    return [after + span * part // parts for part in range(1, parts)]


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` divided in proportion to `weights`, in whole numbers: at least 1 and at most its weight for each.

    With more weights than `total` the sum exceeds `total`, so that no stream starves.

    >>> shares(10, [100, 50, 1, 0])
    [6, 3, 1, 0]
    """
    everything = sum(weights)
    if everything <= total:
        return list(weights)
    parts = [max(total * weight // everything, 1) if weight else 0 for weight in weights]
    rest = total - sum(parts)
    # What rounding leaves goes to the largest backlogs; what the minimum of 1 exceeds comes from the largest shares.
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
    """The number of tasks for `weight` entries, about `per_task` in each, within the bounds."""
    return min(max(-(-weight // per_task), at_least, 1), at_most)


def pack(ranges: Sequence[IdRange], tasks: int) -> list[tuple[IdRange, ...]]:
    """Ranges packed into at most `tasks` tasks of about equal weight: the largest range first, into the lightest task.

    The result does not depend on the order of the ranges. Inside a task they are sorted by endpoint, key and id, so
    that each stream is read in order. O(n log n).
    """
    # + 1: an empty range costs a request too, so a thousand of them are spread over the tasks.
    ordered = sorted(
        ranges, key=lambda id_range: (-id_range.weight, id_range.endpoint, id_range.key, id_range.after, id_range.ids)
    )
    loads: list[tuple[int, int]] = [(0, number) for number in range(tasks)]
    packed: list[list[IdRange]] = [[] for _ in range(tasks)]
    for id_range in ordered:
        load, number = heapq.heappop(loads)
        packed[number].append(id_range)
        heapq.heappush(loads, (load + id_range.weight + 1, number))
    return [
        tuple(sorted(some, key=lambda id_range: (id_range.endpoint, id_range.key, id_range.after, id_range.ids)))
        for some in packed
        if some
    ]
