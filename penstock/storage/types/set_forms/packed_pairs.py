"""The pairs of a small sorted set in one bytes object; its oracle is ordered_pairs.py.

The pairs lie one behind the other, in order. A pair is its score (a double of 8 bytes, little-endian), the length of
its member (a byte), and the member: it costs its member's bytes and nine, where objects of their own take 200 more.
Nothing is found but by a walk from the start, so there may be few pairs only.

>>> found = with_pair(with_pair(b"", 2.0, b"b"), 1.0, b"a")
>>> pairs_of(found), score_of(found, b"b")
([(1.0, b'a'), (2.0, b'b')], 2.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_f64_le, write_f64_le

from penstock.storage.pair_order import Pair
from penstock.storage.types.set_forms import packed_parts
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, MOST_PACKED, index_at, place_of

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

SCORE: Final = 8  # bytes of a score
HEAD: Final = SCORE + 1  # bytes of a pair before its member


def packed(pairs: list[Pair]) -> bytes | None:
    """Pairs that are in order; None where they are too many, or one is too long. O(bytes)."""
    if len(pairs) > MOST_PACKED or not are_short(pairs):
        return None
    return joined(pairs)


def are_short(pairs: list[Pair]) -> bool:
    """Whether all of them may be packed. O(pairs)."""
    return all(len(member) <= LONGEST_PACKED for _, member in pairs)


def joined(pairs: list[Pair]) -> bytes:
    """Pairs that are in order and short. O(bytes)."""
    writer = BytesWriter()
    for score, member in pairs:
        write_f64_le(writer, score)
        writer.append(len(member))
        writer.write(member)
    return writer.getvalue()


def pairs_of(pairs: bytes) -> list[Pair]:
    """All pairs, in order. O(bytes)."""
    found: list[Pair] = []
    at: i64 = 0
    end: i64 = len(pairs)
    while at < end:
        start: i64 = at + HEAD
        stop: i64 = start + pairs[at + SCORE]
        found.append((read_f64_le(pairs, at), pairs[start:stop]))
        at = stop
    return found


def place_for(pairs: bytes, score: float, member: bytes, at: i64) -> i64:
    """The first place from `at` on of a pair that is not below (score, member); the end if all are below. O(pairs)."""
    end: i64 = len(pairs)
    while at < end and read_f64_le(pairs, at) < score:
        at += HEAD + pairs[at + SCORE]
    while at < end and read_f64_le(pairs, at) == score:
        start: i64 = at + HEAD
        stop: i64 = start + pairs[at + SCORE]
        if pairs[start:stop] >= member:
            break
        at = stop
    return at


def members_of(pairs: bytes) -> list[bytes]:
    """The members alone, as `pairs_of`. O(bytes)."""
    return packed_parts.texts_of(pairs, HEAD)


# -- indexes ----------------------------------------------------------------------------------------------------------


def score_of(pairs: bytes, member: bytes) -> float | None:
    """The score of a member; None if it is not there. O(bytes)."""
    at: i64 = place_of(pairs, member, HEAD)
    return None if at < 0 else read_f64_le(pairs, at)


def index_of(pairs: bytes, member: bytes) -> int:
    """The index of a member, which must be there. O(bytes)."""
    return index_at(pairs, place_of(pairs, member, HEAD), HEAD)


def index_for(pairs: bytes, score: float, after: bool) -> int:
    """How many scores are below one; `after`: or equal to it. O(pairs)."""
    at: i64 = 0
    end: i64 = len(pairs)
    index = 0
    while at < end:
        other = read_f64_le(pairs, at)
        if other > score or (other == score and not after):
            break
        at += HEAD + pairs[at + SCORE]
        index += 1
    return index


# -- changed copies ---------------------------------------------------------------------------------------------------


def with_pair(pairs: bytes, score: float, member: bytes, start: i64 = 0) -> bytes:
    """With one more; its member must be new and short. All pairs before the place `start` are below it. O(bytes)."""
    at: i64 = place_for(pairs, score, member, start)
    writer = BytesWriter()
    writer.write(pairs[:at])
    write_f64_le(writer, score)
    writer.append(len(member))
    writer.write(member)
    writer.write(pairs[at:])
    return writer.getvalue()


def with_score(pairs: bytes, score: float, member: bytes) -> bytes:
    """With another score of a member, which must be there. O(bytes)."""
    at: i64 = place_of(pairs, member, HEAD)
    start: i64 = at if score > read_f64_le(pairs, at) else 0
    return with_pair(pairs[:at] + pairs[at + HEAD + len(member) :], score, member, start)


def without(pairs: bytes, member: bytes) -> bytes:
    """Without a member; as it was if that is not there. O(bytes)."""
    return packed_parts.without(pairs, member, HEAD)
