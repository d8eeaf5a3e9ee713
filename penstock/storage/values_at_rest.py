"""Small lists, sets and sorted sets as texts: a key table keeps those so that were not asked for lately.

Four members take 270 bytes as objects, of which an object, its bytes object, the key and a slot of a dict are 220. As a
text in a bucket (string_buckets.py) they take 27 and their own. The first byte of a text says what it is.
"""

from typing import Final, TypeAlias

from penstock.storage.types.collection import LIST_MARK, SORTED_SET_MARK
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

Resting: TypeAlias = List | Set | SortedSet
RESTING: Final = (List, Set, SortedSet)

LONGEST_AT_REST: Final = 400  # bytes of a text: a longer one gains less than a fifth


def text_at_rest(value: object) -> bytes:
    """The text of a value; empty if it is none that may be at rest. O(bytes)."""
    if isinstance(value, (List, Set, SortedSet)):
        return value.at_rest(LONGEST_AT_REST)
    return b""


def woken(text: bytes) -> Resting:
    """The value of a text. O(bytes)."""
    mark = text[0]
    if mark == LIST_MARK:
        return List.woken(text)
    return Set.woken(text) if mark < SORTED_SET_MARK else SortedSet.woken(text)
