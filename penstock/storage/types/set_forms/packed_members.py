"""The members of a small set in one bytes object; its oracle is member_table.py.

They lie one behind the other, in the order in which they came, each behind a byte that has its length (see
packed_parts.py).

>>> found = with_member(with_member(b"", b"bb"), b"a")
>>> members_of(found), has(found, b"bb"), has(found, b"b")
([b'bb', b'a'], True, False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from penstock.storage.types.set_forms import packed_parts
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, MOST_PACKED, place_at, place_of

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

HEAD: Final = 1  # bytes of a member's length
LENGTHS: Final = tuple(bytes([length]) for length in range(LONGEST_PACKED + 1))


def packed(members: list[bytes]) -> bytes | None:
    """Different members; None where they are too many, or one is too long. O(bytes)."""
    if len(members) > MOST_PACKED:
        return None
    writer = BytesWriter()
    for member in members:
        if len(member) > LONGEST_PACKED:
            return None
        writer.append(len(member))
        writer.write(member)
    return writer.getvalue()


def members_of(members: bytes) -> list[bytes]:
    """All members, in order. O(bytes)."""
    return packed_parts.texts_of(members, HEAD)


def has(members: bytes, member: bytes) -> bool:
    """Whether it is one of the members. O(bytes)."""
    return place_of(members, member, HEAD) >= 0


def member_at(members: bytes, index: int) -> bytes:
    """The member with an index from 0 to their number - 1. O(index)."""
    start: i64 = place_at(members, index, HEAD) + HEAD
    return members[start : start + members[start - HEAD]]


def with_member(members: bytes, member: bytes) -> bytes:
    """With one more, which must be new and short. O(bytes)."""
    return members + LENGTHS[len(member)] + member


def without(members: bytes, member: bytes) -> bytes:
    """Without a member; as it was if that is not there. O(bytes)."""
    return packed_parts.without(members, member, HEAD)
