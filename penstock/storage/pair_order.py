"""Pairs of a number and a name, in order: members of sorted sets by their scores, names by their deadlines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias

from librt.strings import read_i64_be

from penstock.native.build import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

Pair: TypeAlias = tuple[float, bytes]  # a score or a time in unix ms, and what has it: the sort key

MOST: Final = 1024  # pairs of a chunk; with more it is cut in two
FEW: Final = MOST // 4  # with fewer it joins a neighbour
MADE: Final = MOST * 3 // 4  # of a chunk that is made of pairs in order: there is room for more
_WORD: Final = 8  # bytes of names that are compared at once


class PairOrder:
    """Different pairs, in order, in chunks: lists of at most MOST pairs. Numbers are no NaN.

    A pair behind all others is appended in O(1), as most times of expiry are; another change costs O(log n), and what
    has to do with indexes a look at each chunk besides. In the costs, n is the number of pairs.

    Invariants: no chunk is empty; `_lasts` has the last pair of each.
    """

    __slots__ = ("_chunks", "_lasts", "_size")

    def __init__(self, ordered: list[Pair] | None = None) -> None:
        """Takes pairs that are in order. O(n)."""
        self._chunks: list[list[Pair]] = []
        self._lasts: list[Pair] = []
        self._size = 0
        if ordered:
            self._size = len(ordered)
            self._chunks = [ordered[at : at + MADE] for at in range(0, len(ordered), MADE)]
            self._lasts = [chunk[-1] for chunk in self._chunks]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Pair]:
        return chain.from_iterable(self._chunks)

    def backwards(self) -> Iterator[Pair]:
        """The pairs from the last to the first."""
        return chain.from_iterable(map(reversed, reversed(self._chunks)))

    def first(self) -> Pair:
        """The first pair; there must be one. O(1)."""
        return self._chunks[0][0]

    def last(self) -> Pair:
        """The last pair; there must be one. O(1)."""
        return self._lasts[-1]

    # -- changing ---------------------------------------------------------------------------------------------------

    def add(self, pair: Pair) -> None:
        """Add a pair that is not there. O(log n), O(1) behind all others."""
        self._size += 1
        lasts = self._lasts
        if not lasts:
            self._chunks.append([pair])
            lasts.append(pair)
            return
        at = len(lasts) - 1
        number, name = pair
        last_number, last = lasts[at]
        if number > last_number or (number == last_number and is_before(last, name)):
            chunk = self._chunks[at]
            chunk.append(pair)
            lasts[at] = pair
        else:
            if at:
                at = _place(lasts, number, name)
            chunk = self._chunks[at]
            chunk.insert(_place(chunk, number, name), pair)
        if len(chunk) > MOST:
            self._cut(at)

    def remove(self, number: float, name: bytes) -> None:
        """Remove a pair that is there. O(log n)."""
        self._size -= 1
        at = _place(self._lasts, number, name) if len(self._lasts) > 1 else 0
        chunk = self._chunks[at]
        place = _place(chunk, number, name)
        del chunk[place]
        if place == len(chunk) or len(chunk) < FEW:
            self._after_removal(at)

    def take(self, start: int, stop: int) -> list[Pair]:
        """Remove and return the pairs at the indexes [start, stop). O(pairs)."""
        taken = self.part(start, stop)
        left = len(taken)
        if not left:
            return taken
        chunks, lasts = self._chunks, self._lasts
        at, start = self._chunk_of(start)
        self._size -= left
        while left:
            chunk = chunks[at]
            count = min(left, len(chunk) - start)
            del chunk[start : start + count]
            left -= count
            start = 0
            if chunk:
                lasts[at] = chunk[-1]
                at += 1
            else:
                del chunks[at], lasts[at]
        if chunks:
            self._after_removal(min(max(at - 1, 0), len(chunks) - 1))
        return taken

    # -- reading ----------------------------------------------------------------------------------------------------

    def part(self, start: int, stop: int) -> list[Pair]:
        """The pairs at the indexes [start, stop), in a list of the caller's own; fewer at the end. O(pairs)."""
        found: list[Pair] = []
        left = min(stop, self._size) - start
        if left <= 0:
            return found
        at, start = self._chunk_of(start)
        while left > 0:
            some = self._chunks[at][start : start + left]
            left -= len(some)
            if not found and not left:
                return some
            found += some
            at, start = at + 1, 0
        return found

    def at(self, indexes: Iterable[int]) -> list[Pair]:
        """The pairs at some indexes, in any order. O(log n) each."""
        chunks = self._chunks
        ends = list(accumulate([len(chunk) for chunk in chunks]))
        found: list[Pair] = []
        for index in indexes:
            at = bisect_right(ends, index)
            found.append(chunks[at][index - ends[at]])  # counted from the chunk's end
        return found

    def below(self, number: float, name: bytes) -> int:
        """How many pairs are before one, there or not: its index. O(log n)."""
        if len(self._lasts) < 2:
            return _place(self._chunks[0], number, name) if self._chunks else 0
        at = _place(self._lasts, number, name)
        if at == len(self._lasts):
            return self._size
        return self._count_before(at) + _place(self._chunks[at], number, name)

    def any_of(self, chance: Random) -> Pair:
        """A pair by chance, each as likely as another; there must be one. O(1), as a rule."""
        while True:
            chunk = self._chunks[chance.randrange(len(self._chunks))]
            place = chance.randrange(MOST)
            if place < len(chunk):
                return chunk[place]

    def sample(self, most: int) -> list[Pair]:
        """At most so many pairs, from everywhere; all if there are no more. O(most)."""
        if self._size <= most:
            return list(self)
        chunks = self._chunks[:: (len(self._chunks) - 1) // most + 1]
        each = most // len(chunks)
        return [pair for chunk in chunks for pair in chunk[:: (len(chunk) - 1) // each + 1]]

    def copy(self) -> PairOrder:
        """A copy that shares nothing. O(n)."""
        copied = PairOrder()
        copied._chunks = [[*chunk] for chunk in self._chunks]
        copied._lasts = [*self._lasts]
        copied._size = self._size
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        assert all(0 < len(chunk) <= MOST for chunk in self._chunks)
        assert self._lasts == [chunk[-1] for chunk in self._chunks]
        assert self._size == sum([len(chunk) for chunk in self._chunks])

    # -- chunks -----------------------------------------------------------------------------------------------------

    def _count_before(self, at: i64) -> i64:
        """How many pairs the chunks before one have: those on its nearer side are counted."""
        chunks = self._chunks
        count: i64 = 0
        end: i64 = len(chunks)
        place: i64 = 0
        if at < end - at:
            while place < at:
                count += len(chunks[place])
                place += 1
            return count
        place = at
        while place < end:
            count += len(chunks[place])
            place += 1
        return self._size - count

    def _chunk_of(self, index: i64) -> tuple[i64, i64]:
        """The chunk that has the pair at an index, which there must be, and the place in it."""
        chunks = self._chunks
        at: i64 = len(chunks) - 1
        behind: i64 = index - (self._size - len(chunks[at]))
        if behind >= 0:  # the highest scores are asked for often
            return at, behind
        at = 0
        count: i64 = len(chunks[0])
        while index >= count:
            index -= count
            at += 1
            count = len(chunks[at])
        return at, index

    def _cut(self, at: int) -> None:
        """Cut a chunk in two. Where pairs are appended, the first part stays as full as it may be."""
        chunks, lasts = self._chunks, self._lasts
        chunk = chunks[at]
        middle = MOST if at == len(chunks) - 1 else MOST // 2
        chunks.insert(at + 1, chunk[middle:])
        lasts.insert(at + 1, chunk[-1])
        del chunk[middle:]
        lasts[at] = chunk[-1]

    def _after_removal(self, at: int) -> None:
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


def _place(pairs: list[Pair], number: float, name: bytes) -> int:
    """The index of the first of some pairs in order that is not before one. O(log n).

    Compiled, it compares doubles, and names only where those are equal: a third of the instructions that bisect needs
    to compare tuples.
    """
    if not IS_COMPILED:
        return bisect_left(pairs, (number, name))
    low: i64 = 0
    high: i64 = len(pairs)
    while low < high:
        middle: i64 = (low + high) >> 1
        other, other_name = pairs[middle]
        if other < number or (other == number and is_before(other_name, name)):
            low = middle + 1
        else:
            high = middle
    return low


def is_before(name: bytes, other: bytes) -> bool:
    """Whether a name is before another one in the order of bytes objects. O(bytes).

    Compiled, it takes a third of the instructions of `name < other`, which compares them by a call into CPython.
    """
    if not IS_COMPILED:
        return name < other
    size: i64 = len(name)
    other_size: i64 = len(other)
    shared: i64 = size
    if other_size < size:
        shared = other_size
    at: i64 = 0
    if shared < _WORD:
        while at < shared:
            byte: i64 = name[at]
            other_byte: i64 = other[at]
            if byte != other_byte:
                return byte < other_byte
            at += 1
        return size < other_size
    last: i64 = shared - _WORD
    while True:
        if at > last:
            at = last  # some bytes are compared again
        word: i64 = read_i64_be(name, at)
        other_word: i64 = read_i64_be(other, at)
        if word != other_word:
            return (word < other_word) == ((word < 0) == (other_word < 0))  # the highest bit is not a sign
        if at == last:
            return size < other_size
        at += _WORD
