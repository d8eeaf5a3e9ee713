"""The pairs of a sorted set of some hundred short members, in few bytes; its oracle is ordered_pairs.py.

The scores are in a packed table, by member. The pairs are in order, in chunks, each of which is packed as a small set
is (packed_pairs.py). So a member costs its bytes twice and twenty more, where objects take 250.

>>> table = ScoreTable([(1.0, b"a"), (3.0, b"c")])
>>> table.put_over(b"b", 2.0, None), table.score(b"b"), table.below(3.0, b"c"), table.part(1, 3)
(None, 2.0, 2, [(2.0, b'b'), (3.0, b'c')])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from librt.strings import read_f64_le

from penstock.storage.pair_order import Pair, is_before
from penstock.storage.types.packed_table import MOST_ENTRIES, PackedTable
from penstock.storage.types.set_forms import packed_pairs
from penstock.storage.types.set_forms.many_pairs import ManyPairs
from penstock.storage.types.set_forms.packed_pairs import HEAD, SCORE
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, index_at, place_at

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

MOST: Final = 32  # pairs of a chunk; with more it is cut in two. Each change makes a chunk anew
MADE: Final = MOST * 3 // 4  # of a chunk that is made of pairs in order: there is room for more
OWN_BYTES: Final = 250  # of the object and its lists, about
CHUNK_BYTES: Final = 57  # beside the pairs: the header of a bytes object, its place and its count


class ScoreTable(ManyPairs):
    """At most MOST_ENTRIES members of at most LONGEST_PACKED bytes, and their scores.

    Invariants: `_chunks` have the pairs of `_scores` in order, `_counts` how many each has; a chunk is not empty unless
    it is the only one.
    """

    __slots__ = ("_chunks", "_counts", "_scores")

    def __init__(self, ordered: list[Pair]) -> None:
        """Takes pairs that are in order, and fit. O(n)."""
        self.scan_order = None
        self._scores = PackedTable(True)
        for pair in ordered:
            self._scores.put(pair[1], packed_pairs.joined([pair])[:SCORE])
        parts = [ordered[at : at + MADE] for at in range(0, len(ordered), MADE)] or [ordered]
        self._chunks = [packed_pairs.joined(part) for part in parts]
        self._counts = [len(part) for part in parts]

    def __len__(self) -> int:
        return len(self._scores)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.part(0, len(self)))

    def copy(self) -> ScoreTable:
        copied = ScoreTable([])
        copied._scores = self._scores.copy()
        copied._chunks, copied._counts = self._chunks.copy(), self._counts.copy()
        return copied

    def memory_usage(self) -> int:
        chunks = sum([len(chunk) + CHUNK_BYTES for chunk in self._chunks])
        return OWN_BYTES + self._scores.memory_usage() + chunks

    # -- changing ---------------------------------------------------------------------------------------------------

    def has_room_for(self, member: bytes) -> bool:
        return len(self._scores) < MOST_ENTRIES and len(member) <= LONGEST_PACKED

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        if old is not None:
            self._take(old, member)
        elif self.scan_order is not None:
            self.scan_order.add(member)
        at: i64 = self._chunk_for(score, member)
        chunk = self._chunks[at]
        place: i64 = packed_pairs.place_for(chunk, score, member, 0)
        chunk = packed_pairs.with_pair(chunk, score, member, place)
        self._scores.put(member, chunk[place : place + SCORE])
        self._chunks[at] = chunk
        count = self._counts[at] + 1
        self._counts[at] = count
        if count > MOST:
            self._cut(int(at))

    def _cut(self, at: int) -> None:
        """Cut a chunk in two. Where pairs are appended, the first part stays as full as it may be."""
        chunk, count = self._chunks[at], self._counts[at]
        middle = MOST if at == len(self._chunks) - 1 else MOST // 2
        place: i64 = place_at(chunk, middle, HEAD)
        self._chunks[at : at + 1] = [chunk[:place], chunk[place:]]
        self._counts[at : at + 1] = [middle, count - middle]

    def remove(self, member: bytes) -> bool:
        score = self._scores.take(member)
        if score is None:
            return False
        self._take(read_f64_le(score, 0), member)
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        taken = self.part(start, stop)
        for _, member in taken:
            self.remove(member)
        return taken

    def _take(self, score: float, member: bytes) -> None:
        """Take a pair out of its chunk, which may join a neighbour then."""
        chunks, counts = self._chunks, self._counts
        at = int(self._chunk_for(score, member))
        chunks[at] = packed_pairs.without(chunks[at], member)
        count = counts[at] - 1
        counts[at] = count
        if len(chunks) == 1 or count > MOST // 4:
            return
        at -= at + 1 == len(chunks)
        if not counts[at] or not counts[at + 1] or counts[at] + counts[at + 1] <= MOST // 2:
            chunks[at : at + 2] = [chunks[at] + chunks[at + 1]]
            counts[at : at + 2] = [counts[at] + counts[at + 1]]

    # -- reading ----------------------------------------------------------------------------------------------------

    def score(self, member: bytes) -> float | None:
        found = self._scores.get(member)
        return None if found is None else read_f64_le(found, 0)

    def by_member(self) -> dict[bytes, float]:
        return {member: read_f64_le(score, 0) for member, score in self._scores.pairs()}

    def backwards(self) -> Iterable[Pair]:
        return reversed(self.part(0, len(self)))

    def part(self, start: int, stop: int) -> list[Pair]:
        found: list[Pair] = []
        counts, size = self._counts, len(self)
        left: i64 = (stop if stop < size else size) - start
        if left <= 0:
            return found
        index: i64 = 0
        inside: i64 = start
        while inside >= counts[index]:
            inside -= counts[index]
            index += 1
        while left > 0:
            chunk, count = self._chunks[index], counts[index]
            if inside + left < count:
                chunk = chunk[: place_at(chunk, inside + left, HEAD)]
            found += packed_pairs.pairs_of(chunk[place_at(chunk, inside, HEAD) :] if inside else chunk)
            left -= count - inside
            inside = 0
            index += 1
        return found

    def at(self, indexes: Iterable[int]) -> list[Pair]:
        return [self.part(index, index + 1)[0] for index in indexes]

    def below(self, score: float, member: bytes) -> int:
        counts = self._counts
        at: i64 = self._chunk_for(score, member)
        chunk = self._chunks[at]
        index: i64 = index_at(chunk, packed_pairs.place_for(chunk, score, member, 0), HEAD)
        while at > 0:
            at -= 1
            index += counts[at]
        return int(index)

    def _chunk_for(self, score: float, member: bytes) -> i64:
        """The last chunk that begins with a pair or with one before it; the first where none does. O(log n)."""
        chunks = self._chunks
        low: i64 = 0
        high: i64 = len(chunks)
        while high - low > 1:
            middle: i64 = (low + high) >> 1
            chunk = chunks[middle]
            first = read_f64_le(chunk, 0)
            if first < score or (first == score and not is_before(member, chunk[HEAD : HEAD + chunk[SCORE]])):
                low = middle
            else:
                high = middle
        return low

    def check(self) -> None:
        self._scores.check()
        assert self._counts == [len(packed_pairs.pairs_of(chunk)) for chunk in self._chunks]
        assert all(0 < count <= MOST for count in self._counts) or (self._counts == [0]), "a chunk is empty or too long"
        super().check()
