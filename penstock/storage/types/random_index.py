"""Names by index, so that a random one is found in O(1)."""

from collections.abc import Iterable


class IndexedNames:
    """A set of names, each with an index from 0 to len - 1 that is valid until the next change.

    Invariant: `indexes[names[i]]` is i for every index. Adding, removing and reading by index cost O(1).
    """

    __slots__ = ("indexes", "names")

    def __init__(self, names: Iterable[bytes]) -> None:
        self.names = list(names)
        self.indexes: dict[bytes, int] = {name: index for index, name in enumerate(self.names)}

    def add(self, name: bytes) -> None:
        """Add a name, which must be new. O(1)."""
        self.indexes[name] = len(self.names)
        self.names.append(name)

    def remove(self, name: bytes) -> None:
        """Remove a name, which must be there; the last name gets its index. O(1)."""
        index = self.indexes.pop(name)
        last = self.names.pop()
        if last != name:
            self.names[index] = last
            self.indexes[last] = index

    def check(self, names: Iterable[bytes]) -> None:
        """Assert the invariant, and that exactly `names` are there."""
        assert {name: index for index, name in enumerate(self.names)} == self.indexes, "a name is not at its index"
        assert sorted(self.names) == sorted(names), "the names differ from those of the value"
