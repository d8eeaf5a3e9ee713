"""Lists: items in order, pushed and popped at both ends."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.storage.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # items that are measured for an estimate


class List(Collection):
    """Items, the leftmost first."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[bytes] = ()) -> None:
        self.items: deque[bytes] = deque(items)

    def __len__(self) -> int:
        return len(self.items)

    def copy(self) -> "List":
        return List(self.items)

    def memory_usage(self) -> int:
        count = len(self.items)
        sampled = [len(self.items[at]) for at in range(min(count, SAMPLED))]
        return 700 + count * PART_OVERHEAD + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from self.items
