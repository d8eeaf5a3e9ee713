"""Names from which chance may draw: any of them at once, however many there are."""

from collections.abc import Iterable


class Draw:
    """A set of names, each with an index from 0 to len - 1 that lasts until the next change.

    Invariant: `places[names[i]]` is i for every index. Adding, removing and drawing cost O(1).
    """

    __slots__ = ("names", "places")

    def __init__(self, names: Iterable[bytes]) -> None:
        self.names = list(names)
        self.places: dict[bytes, int] = {name: place for place, name in enumerate(self.names)}

    def add(self, name: bytes) -> None:
        """Add a name that is not there."""
        self.places[name] = len(self.names)
        self.names.append(name)

    def remove(self, name: bytes) -> None:
        """Take a name out that is there; the last one takes its place."""
        place = self.places.pop(name)
        last = self.names.pop()
        if last != name:
            self.names[place] = last
            self.places[last] = place

    def check(self, names: Iterable[bytes]) -> None:
        """Assert the invariant, given the names that should be there."""
        assert {name: place for place, name in enumerate(self.names)} == self.places, "a name is not at its place"
        assert sorted(self.names) == sorted(names), "chance draws from other names than there are"
