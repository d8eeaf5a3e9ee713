"""Sets: members without order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.random_index import Draw
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members that are measured for an estimate


class Set(Collection):
    """Members.

    Invariants: where there is a `walked` (made by the first SSCAN of a large set, dropped when a walk is through) or a
    `drawn` (made when chance first draws a member), it holds every member.
    """

    __slots__ = ("drawn", "members", "walked")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        self.members: set[bytes] = set(members)
        self.walked: HashOrder | None = None
        self.drawn: Draw | None = None

    def __len__(self) -> int:
        return len(self.members)

    def copy(self) -> "Set":
        return Set(self.members)

    def memory_usage(self) -> int:
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        beside = 60 if self.walked is not None else 0
        beside += 100 if self.drawn is not None else 0
        return 250 + count * (PART_OVERHEAD + 50 + beside) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from sorted(self.members)

    def add(self, members: Iterable[bytes]) -> int:
        """Add members; how many are new."""
        before = len(self.members)
        if self.walked is None and self.drawn is None:
            self.members.update(members)
            return len(self.members) - before
        for member in members:
            if member in self.members:
                continue
            self.members.add(member)
            if self.walked is not None:
                self.walked.add(member)
            if self.drawn is not None:
                self.drawn.add(member)
        return len(self.members) - before

    def remove(self, members: Iterable[bytes]) -> int:
        """Take members out; how many were there."""
        before = len(self.members)
        if self.walked is None and self.drawn is None:
            self.members.difference_update(members)
            return before - len(self.members)
        for member in members:
            if member not in self.members:
                continue
            self.members.remove(member)
            if self.walked is not None:
                self.walked.remove(member)
            if self.drawn is not None:
                self.drawn.remove(member)
        return before - len(self.members)

    def draw(self) -> Draw:
        """The members, for chance to draw from; O(n) once, then kept up to date."""
        if self.drawn is None:
            self.drawn = Draw(self.members)
        return self.drawn

    def check(self) -> None:
        """Assert the invariants."""
        assert self.members, "an empty set is no value"
        if self.walked is not None:
            self.walked.check(self.members)
        if self.drawn is not None:
            self.drawn.check(self.members)
