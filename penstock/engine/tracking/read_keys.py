"""Which connections have read which keys, for CLIENT TRACKING without BCAST."""

import random
from typing import Final

from penstock.storage.types.scan_order import HashOrder

NO_READERS: Final[frozenset[int]] = frozenset()


class ReadKeys:
    """The ids of the connections that have read a key since it last changed.

    Ids of connections that are gone stay until the key changes or is dropped: ids are never used again.

    Invariants: `names` has the keys of `readers`; `pairs` is how many ids there are, over all keys. Every operation is
    O(1), `take` O(readers of the key).
    """

    __slots__ = ("_chance", "names", "pairs", "readers")

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.readers: dict[bytes, int | set[int]] = {}  # mostly one: its id needs no set
        self.names = HashOrder((), 0)
        self.pairs = 0

    def __len__(self) -> int:
        return len(self.readers)

    def add(self, key: bytes, reader: int) -> None:
        """A connection has read a key."""
        known = self.readers.get(key)
        if known is None:
            self.readers[key] = reader
            self.names.add(key)
            self.pairs += 1
        elif isinstance(known, set):
            if reader not in known:
                known.add(reader)
                self.pairs += 1
        elif known != reader:
            self.readers[key] = {known, reader}
            self.pairs += 1

    def take(self, key: bytes) -> frozenset[int]:
        """Forget a key; the ids of the sessions that had read it."""
        known = self.readers.pop(key, None)
        if known is None:
            return NO_READERS
        self.names.remove(key)
        found = frozenset(known) if isinstance(known, set) else frozenset((known,))
        self.pairs -= len(found)
        return found

    def any_key(self) -> bytes:
        """A key at random; there must be one."""
        return self.names.any_of(self._chance)

    def clear(self) -> None:
        self.readers = {}
        self.names = HashOrder((), 0)
        self.pairs = 0

    def check(self) -> None:
        """Assert the invariants."""
        self.names.check(self.readers)
        counts = [len(known) if isinstance(known, set) else 1 for known in self.readers.values()]
        assert self.pairs == sum(counts), "the number of pairs"
        assert all(counts), "no key without a reader"
