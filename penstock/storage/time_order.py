"""Names in the order of their times, where most that comes is later than all that is there."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, islice
from random import Random
from typing import Final

from penstock.storage.streams.columns import IS_COMPILED

Timed = tuple[int, bytes]

MOST: Final = 1024  # pairs of a chunk; with more it is cut in two
FEW: Final = MOST // 4  # with fewer it joins a neighbour


class TimeOrder:
    """Pairs of a time and a name, in order, in chunks: lists of at most MOST pairs. Each pair is there once.

    What is later than all others, as most times of expiry are when they are set, is appended in O(1); any other change
    costs O(log n). (A SortedList took 2,300 instructions to take a pair in and 6,800 to take one out, in Python.)
    In the costs, n is the number of pairs.

    Invariants: no chunk is empty; `lasts` has the last pair of each.
    """

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self) -> None:
        self._chunks: list[list[Timed]] = []
        self._lasts: list[Timed] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Timed]:
        return chain.from_iterable(self._chunks)

    def first(self) -> Timed:
        """The first pair; there must be one. O(1)."""
        return self._chunks[0][0]

    def add(self, pair: Timed) -> None:
        """Add a pair that is not there."""
        self._size += 1
        lasts = self._lasts
        if not lasts:
            self._chunks.append([pair])
            lasts.append(pair)
            return
        at = len(lasts) - 1
        last_ms, last = lasts[at]
        if pair[0] > last_ms or (pair[0] == last_ms and pair[1] > last):
            chunk = self._chunks[at]
            chunk.append(pair)
            lasts[at] = pair
        else:
            at = _place(lasts, pair)
            chunk = self._chunks[at]
            chunk.insert(_place(chunk, pair), pair)
        if len(chunk) > MOST:
            self._cut(at)

    def remove(self, pair: Timed) -> None:
        """Remove a pair that is there."""
        self._size -= 1
        at = _place(self._lasts, pair)
        chunk = self._chunks[at]
        del chunk[_place(chunk, pair)]
        self._settle(at)

    def take_first(self, count: int) -> list[Timed]:
        """Remove and return the first pairs, at most so many. O(count)."""
        taken: list[Timed] = []
        while len(taken) < count and self._chunks:
            chunk = self._chunks[0]
            stop = min(count - len(taken), len(chunk))
            taken += chunk[:stop]
            del chunk[:stop]
            self._settle(0)
        self._size -= len(taken)
        return taken

    def up_to(self, count: int) -> list[Timed]:
        """The first pairs, at most so many. O(count)."""
        return list(islice(self, count))

    def count_before(self, pair: Timed) -> int:
        """How many pairs are before one, there or not. O(log n), and a look at each chunk before it."""
        at = _place(self._lasts, pair)
        if at == len(self._lasts):
            return self._size
        return sum([len(chunk) for chunk in self._chunks[:at]]) + _place(self._chunks[at], pair)

    def any_of(self, chance: Random) -> Timed:
        """A pair by chance, each as likely as another; there must be one. O(1), as a rule."""
        while True:
            chunk = self._chunks[chance.randrange(len(self._chunks))]
            place = chance.randrange(MOST)
            if place < len(chunk):
                return chunk[place]

    def each(self, step: int) -> list[Timed]:
        """Each step-th pair, from the first on. O(n)."""
        return list(islice(self, 0, None, step))

    def copy(self) -> "TimeOrder":
        """A copy that shares nothing. O(n)."""
        copied = TimeOrder()
        copied._chunks = [[*chunk] for chunk in self._chunks]
        copied._lasts = [*self._lasts]
        copied._size = self._size
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        assert all(0 < len(chunk) <= MOST for chunk in self._chunks)
        assert self._lasts == [chunk[-1] for chunk in self._chunks]
        assert self._size == sum([len(chunk) for chunk in self._chunks])

    def _cut(self, at: int) -> None:
        """Cut a chunk in two. Where pairs are appended, the first part stays as full as it may be."""
        chunks, lasts = self._chunks, self._lasts
        chunk = chunks[at]
        middle = MOST if at == len(chunks) - 1 else MOST // 2
        chunks.insert(at + 1, chunk[middle:])
        lasts.insert(at + 1, chunk[-1])
        del chunk[middle:]
        lasts[at] = chunk[-1]

    def _settle(self, at: int) -> None:
        """Some of a chunk's pairs were removed: it has few now, or none, or another last one."""
        chunks, lasts = self._chunks, self._lasts
        chunk = chunks[at]
        if not chunk:
            del chunks[at], lasts[at]
            return
        lasts[at] = chunk[-1]
        if len(chunk) >= FEW or len(chunks) == 1:
            return
        at -= at + 1 == len(chunks)
        if len(chunks[at]) + len(chunks[at + 1]) <= MOST // 2:
            chunks[at] += chunks[at + 1]
            lasts[at] = lasts[at + 1]
            del chunks[at + 1], lasts[at + 1]


def _place(pairs: list[Timed], pair: Timed) -> int:
    """The index of the first of some pairs in order that is not before one. O(log n).

    Compiled, it compares times, and names only where those are equal.
    """
    if not IS_COMPILED:
        return bisect_left(pairs, pair)
    when_ms, name = pair
    low, high = 0, len(pairs)
    while low < high:
        middle = (low + high) >> 1
        other_ms, other = pairs[middle]
        if other_ms < when_ms or (other_ms == when_ms and other < name):
            low = middle + 1
        else:
            high = middle
    return low
