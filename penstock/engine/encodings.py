"""The form in which Redis would keep a collection, by the settings that decide it there.

Here each type has one form. What is answered of a hash is what Redis chooses for the value as it stands; there one that
was large once keeps its large form. Sets and sorted sets know that they were.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from penstock.config.settings import Settings
from penstock.engine import arguments
from penstock.storage.types.arrays import Array
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set, SetLimits
from penstock.storage.types.sorted_sets import SortedSet

NODE_BYTES: Final = {-1: 4096, -2: 8192, -3: 16384, -4: 32768, -5: 65536}  # list-max-listpack-size below 0


def of_collection(value: List | Hash | Set | SortedSet | Array, settings: Settings) -> bytes:
    """As OBJECT ENCODING answers."""
    if isinstance(value, List):
        return b"listpack" if _fits_node(value, settings.number("list-max-listpack-size")) else b"quicklist"
    if isinstance(value, Array):
        return b"sliced-array"
    if isinstance(value, Set):
        return value.form.value
    if isinstance(value, Hash):
        if not _is_compact(len(value), chain(value.fields, value.fields.values()), "hash", settings):
            return b"hashtable"
        return b"listpackex" if value.expires else b"listpack"
    return b"skiplist" if value.is_large else b"listpack"


def set_limits(settings: Settings) -> SetLimits:
    """Up to which size a set is kept in a small form."""
    return SetLimits(
        settings.number("set-max-intset-entries"),
        settings.number("set-max-listpack-entries"),
        settings.number("set-max-listpack-value"),
        arguments.is_integer,
    )


def _fits_node(value: List, limit: int) -> bool:
    if limit >= 0:
        return len(value) <= limit
    most = NODE_BYTES[max(limit, -5)]
    return len(value) * 2 <= most and sum(len(item) + 3 for item in value.items) <= most


def _is_compact(count: int, parts: Iterable[bytes], kind: str, settings: Settings) -> bool:
    if count > settings.number(f"{kind}-max-listpack-entries"):
        return False
    longest = settings.number(f"{kind}-max-listpack-value")
    return all(len(part) <= longest for part in parts)
