"""The form in which Redis would keep a collection.

Here the types choose forms of their own. A value notes which one Redis would have given it by its history: one that was
large once keeps its large form there, except for lists.
"""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine import arguments
from penstock.storage.types.arrays import Array
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set, SetLimits
from penstock.storage.types.sorted_sets import SortedSet

SET_LIMITS: Final = ("set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value")
HASH_LIMITS: Final = ("hash-max-listpack-entries", "hash-max-listpack-value")
ZSET_LIMITS: Final = ("zset-max-listpack-entries", "zset-max-listpack-value")


def of_collection(value: List | Hash | Set | SortedSet | Array) -> bytes:
    """As OBJECT ENCODING answers."""
    if isinstance(value, List):
        return b"quicklist" if value.is_quicklist else b"listpack"
    if isinstance(value, Array):
        return b"sliced-array"
    if isinstance(value, Set):
        return value.form.value
    if isinstance(value, Hash):
        if value.is_large:
            return b"hashtable"
        return b"listpack" if value.due is None else b"listpackex"
    return b"skiplist" if value.is_large else b"listpack"


def set_limits(settings: Settings) -> SetLimits:
    """Up to which size a set is kept in a small form."""
    integers, members, length = map(settings.number, SET_LIMITS)
    return SetLimits(integers, members, length, arguments.is_integer)
