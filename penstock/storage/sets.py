"""Sets: members without order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # members that are measured for an estimate


class Set(Collection):
    """Members."""

    __slots__ = ("members",)

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        self.members: set[bytes] = set(members)

    def __len__(self) -> int:
        return len(self.members)

    def copy(self) -> "Set":
        return Set(self.members)

    def memory_usage(self) -> int:
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        return 250 + count * (PART_OVERHEAD + 50) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from sorted(self.members)
