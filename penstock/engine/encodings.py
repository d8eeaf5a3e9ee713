"""The form in which Redis would keep a collection.

Here the types choose forms of their own. A value notes which one Redis would have given it by its history: one that was
large once keeps its large form there, except for lists.
"""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine import arguments
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.listpack_nodes import StreamLimits
from penstock.storage.streams.stream import Stream
from penstock.storage.types.arrays import Array
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Form, Set, SetLimits
from penstock.storage.types.sorted_sets import SortedSet

SET_LIMITS: Final = ("set-max-intset-entries", "set-max-listpack-entries", "set-max-listpack-value")
HASH_LIMITS: Final = ("hash-max-listpack-entries", "hash-max-listpack-value")
ZSET_LIMITS: Final = ("zset-max-listpack-entries", "zset-max-listpack-value")
STREAM_LIMITS: Final = ("stream-node-max-bytes", "stream-node-max-entries", "stream-compress-after")


def of_collection(value: List | Hash | Set | SortedSet | Array | Bitmap) -> bytes:
    """As OBJECT ENCODING answers."""
    if isinstance(value, List):
        return b"quicklist" if value.is_quicklist else b"listpack"
    if isinstance(value, Array):
        return b"sliced-array"
    if isinstance(value, Bitmap):
        return b"bitmap-roaring"
    if isinstance(value, Set):
        is_extended = value.form is Form.LISTPACK and value.due is not None
        return b"listpackex" if is_extended else value.form.value
    if isinstance(value, Hash):
        if value.is_large:
            return b"hashtable"
        return b"listpack" if value.due is None else b"listpackex"
    return b"skiplist" if value.is_large else b"listpack"


class FormLimits:
    """Up to which sizes values are kept in small forms, and streams in nodes: the settings of this moment."""

    __slots__ = ("_settings", "hash_bytes", "hash_fields", "sets", "streams", "zset_bytes", "zset_members")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.streams = StreamLimits(0, 0)
        for names, follow in (
            (SET_LIMITS, self._follow_sets),
            (HASH_LIMITS, self._follow_hashes),
            (ZSET_LIMITS, self._follow_sorted_sets),
            (STREAM_LIMITS, self._follow_streams),
        ):
            follow()
            for name in names:
                settings.watch(name, follow)

    def _follow_sets(self) -> None:
        self.sets = set_limits(self._settings)

    def _follow_hashes(self) -> None:
        self.hash_fields, self.hash_bytes = map(self._settings.number, HASH_LIMITS)

    def _follow_sorted_sets(self) -> None:
        self.zset_members, self.zset_bytes = map(self._settings.number, ZSET_LIMITS)

    def _follow_streams(self) -> None:
        self.streams.set(*map(self._settings.number, STREAM_LIMITS))

    def new_stream(self) -> Stream:
        """An empty stream, with the settings of this moment for its idempotent producers."""
        settings = self._settings
        producers = Producers(settings.number("stream-idmp-duration"), settings.number("stream-idmp-maxsize"))
        return Stream(self.streams, producers)


def set_limits(settings: Settings) -> SetLimits:
    """Up to which size a set is kept in a small form."""
    integers, members, length = map(settings.number, SET_LIMITS)
    return SetLimits(integers, members, length, arguments.is_integer)
