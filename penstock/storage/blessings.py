"""Keys that eviction never chooses (BLESS)."""

from collections.abc import Iterator

from penstock.storage.types.scan_order import HashOrder


class Blessings:
    """The blessed keys of a database, in the order in which they were blessed.

    Invariant: `_order`, which the first `walk` creates, has every key of `keys`.
    """

    __slots__ = ("_order", "keys")

    def __init__(self) -> None:
        self.keys: dict[bytes, None] = {}
        self._order: HashOrder | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, key: object) -> bool:
        return key in self.keys

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.keys)

    def add(self, key: bytes) -> bool:
        """Whether it is new. O(1); O(log n) once there was a walk."""
        if key in self.keys:
            return False
        self.keys[key] = None
        if self._order is not None:
            self._order.add(key)
        return True

    def drop(self, key: bytes) -> bool:
        """Whether it was there. O(1); O(log n) once there was a walk."""
        if key not in self.keys:
            return False
        del self.keys[key]
        if self._order is not None:
            self._order.remove(key)
        return True

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """As HashOrder.walk. The first one is O(n)."""
        if self._order is None:
            self._order = HashOrder(self.keys, 0)
        return self._order.walk(cursor, count)

    def check(self) -> None:
        """Assert the invariant."""
        if self._order is not None:
            self._order.check(self.keys)
