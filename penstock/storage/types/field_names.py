"""The names of fields, which hashes of one kind share: one object for each name, one table for all names in order.

What is known here can be forgotten at any time: hashes keep the objects that they use.
"""

from typing import Final

from penstock.native.build import IS_COMPILED

LONGEST_SHARED: Final = 64  # bytes of a name
MOST_SHARED: Final = 4096  # names
MOST_NAMES: Final = 128 if IS_COMPILED else 64  # of a table: what finds a value steps over half of them
MOST_TABLES: Final = 1024


class FieldNames:
    """The names of all fields of a hash, in order; `places` has the place of each. Never changed."""

    __slots__ = ("names", "places")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.places: dict[bytes, int] = {name: place for place, name in enumerate(names)}


_names: Final[dict[bytes, bytes]] = {}  # the names of fields that were put last
_tables: Final[dict[tuple[bytes, ...], FieldNames | None]] = {}  # by their names; None: seen once


def shared_name(name: bytes) -> bytes:
    """An equal object that other hashes may have, too: hashes of one kind have the same fields. O(1)."""
    known = _names.get(name)
    if known is not None:
        return known
    if len(name) <= LONGEST_SHARED:
        if len(_names) >= MOST_SHARED:
            _names.clear()
        _names[name] = name
    return name


def shared_names(names: list[bytes]) -> FieldNames | None:
    """The table of these names; None for the first hash of a kind, and for what needs no table. O(names).

    A table takes more memory than it saves one hash, so that it is made for the second. No table has a name twice,
    a long name, or more than MOST_NAMES.
    """
    if not 0 < len(names) <= MOST_NAMES:
        return None
    key = tuple(names)
    known = _tables.get(key)
    if known is not None:
        return known
    if key not in _tables:
        if len(_tables) >= MOST_TABLES:
            _tables.clear()
        if max(map(len, names)) <= LONGEST_SHARED:
            _tables[key] = None
        return None
    made = FieldNames([shared_name(name) for name in names])
    if len(made.places) < len(names):
        return None
    _tables[key] = made
    return made
