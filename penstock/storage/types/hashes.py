"""Hashes: fields and their values. A field may have a time of expiry.

A small hash is packed: it has the table of its names from field_names.py, which other hashes share, and its values in
one bytes object (list_nodes.py). That takes a third of a dict's memory. What changes it makes a new bytes object, and
finds the table of its new names. Where there is none, names and values are together in a table of its own
(packed_table.py); where there are too many, or one is long, in a dict.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from penstock.native.class_marks import mypyc_attr
from penstock.storage.types.collection import PART_OVERHEAD, Timed
from penstock.storage.types.field_names import FieldNames, shared_name, shared_names
from penstock.storage.types.list_nodes import (
    LONGEST_PACKED,
    item_at,
    items_of,
    node_of,
    with_item,
    with_other,
    without_place,
)  # fmt: skip
from penstock.storage.types.packed_table import MOST_ENTRIES, MOST_ORDERED, PackedTable, fits
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # fields measured for the estimate of memory_usage
SHARED_FIELDS: Final = 64  # of a hash: the first ones
OWN_BYTES: Final = 250  # of the object and its containers, about


@mypyc_attr(acyclic=True)
class Hash(Timed):
    """Fields and values, in the order in which the fields were added while the hash is not large.

    is_large: Redis would use its encoding for large hashes, which it keeps for good once a hash was large. Their order
    means nothing.
    `scan_order` is created by the first HSCAN of a large
    hash, and dropped at the end of the scan if only that needed it, or by the first HRANDFIELD of many fields.

    Invariants: `_fields` is a dict or a table of the fields where `_names` is None; else it has the values packed, in
    the order of `_names`. `scan_order`, if it is there, has every field. In the costs, n is the number of fields.
    """

    __slots__ = ("_fields", "_names", "is_large", "scan_order")

    def __init__(self) -> None:
        self.counts = None
        self._names: FieldNames | None = None
        self._fields: dict[bytes, bytes] | PackedTable | bytes = {}
        self.due = None
        self.is_large = False
        self.scan_order: HashOrder | None = None

    def __len__(self) -> int:
        return len(self._fields) if self._names is None else len(self._names.names)

    def copy(self) -> "Hash":
        copied = Hash()
        copied._names = self._names
        fields = self._fields
        copied._fields = fields if isinstance(fields, bytes) else fields.copy()
        copied.is_large = self.is_large
        if self.due is not None:
            copied.due = self.due.copy()
        return copied

    def memory_usage(self) -> int:
        count = len(self)
        beside = 15 if self.scan_order is not None else 0
        size = OWN_BYTES + count * beside + len(self.expires) * 200
        if isinstance(self._fields, bytes):
            return size + len(self._fields)
        if isinstance(self._fields, PackedTable):
            return size + self._fields.memory_usage()
        sampled = [len(field) + len(value) for field, value in islice(self._fields.items(), SAMPLED)]
        return size + count * (2 * PART_OVERHEAD + 92) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        for field, value in sorted(self.pairs()):
            yield field
            yield value
            yield b"%d" % self.expires.get(field, 0)

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, field: bytes, value: bytes) -> bool:
        """Set a field, and leave its time of expiry; returns whether it is new.

        O(1); O(log n) for a new one during a scan, O(n) for a packed hash.
        """
        if self._names is not None or not self._fields:
            new = self._put_packed(field, value)
            if new is not None:
                return new
        if MOST_ENTRIES and self._is_for_table(field, value):
            new = self._table().put(field, value)
        else:
            fields = self._unpacked()
            new = field not in fields
            if new and len(fields) < SHARED_FIELDS:
                field = shared_name(field)
            fields[field] = value
        if new:
            count = len(self)
            if not count & count - 1:
                self.recount(count - 1, count)
            if self.scan_order is not None:
                self.scan_order.add(field)
        return new

    def put_all(self, words: list[bytes]) -> int:
        """As `put`, for fields and values in turn; returns how many fields are new. O(words)."""
        if not self._fields and self._pack(words[::2], words[1::2]):
            return len(words) // 2
        new = 0
        for at in range(0, len(words), 2):
            new += self.put(words[at], words[at + 1])
        return new

    def take_out(self, fields: Iterable[bytes]) -> list[bytes]:
        """Remove fields with their times of expiry; returns those that existed, in order.

        For each field O(1), or O(log n) if it has a time of expiry or during a scan; O(n) for a packed hash.
        """
        removed: list[bytes] = []
        for field in fields:
            if not self._remove_one(field):
                continue
            removed.append(field)
            if self.due is not None:
                self.due.drop(field)
            if self.scan_order is not None:
                self.scan_order.remove(field)
        self.recount(len(self) + len(removed), len(self))
        return removed

    def _remove_one(self, field: bytes) -> bool:
        """Remove a field from the fields alone; whether it was there."""
        names, values = self._names, self._fields
        if names is not None and isinstance(values, bytes):
            place = names.places.get(field, -1)
            if place < 0:
                return False
            rest = shared_names(names.names[:place] + names.names[place + 1 :])
            if rest is not None:
                self._names = rest
                self._fields = without_place(values, place)
                return True
        if MOST_ENTRIES and not isinstance(values, dict):
            return self._table().remove(field)
        return self._unpacked().pop(field, None) is not None

    def _is_for_table(self, field: bytes, value: bytes) -> bool:
        """Whether a field may be set in a table."""
        fields = self._fields
        if isinstance(fields, dict):
            if fields:
                return False
        elif len(self) >= (MOST_ENTRIES if self.is_large else MOST_ORDERED) and not self.has(field):
            return False
        return fits(field, value)

    def _table(self) -> PackedTable:
        """The fields in a table, where they are from now on; they must fit into one."""
        fields = self._fields
        if isinstance(fields, PackedTable):
            fields.is_scattered = self.is_large
            return fields
        table = PackedTable(self.is_large)
        for name, value in self.pairs():
            table.put(name, value)
        self._names = None
        self._fields = table
        return table

    def _become_large(self) -> None:
        """Redis would use its other encoding from now on. The order means nothing then: more fit into a table. O(n)."""
        if self.is_large:
            return
        self.is_large = True
        fields = self._fields
        is_short = isinstance(fields, dict) and len(fields) <= MOST_ENTRIES
        if is_short and all(fits(field, value) for field, value in self.pairs()):
            self._table()

    def _put_packed(self, field: bytes, value: bytes) -> bool | None:
        """`put` in the packed form, of a packed or an empty hash; None where it does not fit."""
        names, values = self._names, self._fields
        if names is None or not isinstance(values, bytes):
            return True if self._pack([field], [value]) else None
        if len(value) > LONGEST_PACKED:
            return None
        place = names.places.get(field, -1)
        if place >= 0:
            changed = with_other(values, place, value)
            assert isinstance(changed, bytes), "the value is short"
            self._fields = changed
            return False
        count = len(names.names)
        more = shared_names([*names.names, field])
        if more is None:
            return None
        self._names = more
        self._fields = with_item(values, False, value)
        self.recount(count, count + 1)
        if self.scan_order is not None:
            self.scan_order.add(field)
        return True

    def _pack(self, names: list[bytes], values: list[bytes]) -> bool:
        """Take these as the fields of an empty hash, packed; whether that can be. O(n)."""
        if self.scan_order is not None:
            return False
        shared = shared_names(names)
        if shared is None:
            return False
        packed = node_of(values)
        if not isinstance(packed, bytes):
            return False  # a value is long
        self._names = shared
        self._fields = packed
        self.recount(0, len(values))
        return True

    def _unpacked(self) -> dict[bytes, bytes]:
        """The fields as a dict, which they are from now on."""
        fields = self._fields
        if isinstance(fields, dict):
            return fields
        unpacked = dict(self.pairs())
        self._names = None
        self._fields = unpacked
        return unpacked

    def outgrow(self, words: list[bytes], max_fields: int, max_bytes: int) -> None:
        """Take note that fields and values in turn were set: the hash may be large by this. O(words)."""
        if len(self) > max_fields or len(words) > 2 * max_fields:
            self._become_large()
            return
        for word in words:
            if len(word) > max_bytes:
                self._become_large()
                return

    def outgrow_by(self, field: bytes, value: bytes, max_fields: int, max_bytes: int) -> None:
        """As `outgrow`, for one field. O(1)."""
        if len(self) > max_fields or len(field) > max_bytes or len(value) > max_bytes:
            self._become_large()

    def choose_form(self, max_fields: int, max_bytes: int) -> None:
        """Choose the encoding by the fields, where their history is not known: read from a file. O(n)."""
        words = chain(self.names(), self.values())
        if len(self) > max_fields or any(len(word) > max_bytes for word in words):
            self._become_large()

    # -- reading ----------------------------------------------------------------------------------------------------

    def get(self, field: bytes) -> bytes | None:
        """The value of a field; None if there is no such field. O(1), O(n) where packed."""
        fields, names = self._fields, self._names
        if not isinstance(fields, bytes):
            return fields.get(field)
        assert names is not None, "a packed hash has names"
        place = names.places.get(field, -1)
        return item_at(fields, place) if place >= 0 else None

    def value(self, field: bytes) -> bytes:
        """The value of an existing field. O(1), O(n) where packed."""
        found = self.get(field)
        assert found is not None, "the field exists"
        return found

    def values_of(self, fields: list[bytes]) -> list[bytes]:
        """The values of existing fields. O(fields), for each O(n) where packed."""
        held = self._fields
        return [held[field] for field in fields] if isinstance(held, dict) else [self.value(field) for field in fields]

    def has(self, field: bytes) -> bool:
        """Whether there is such a field. O(1)."""
        fields, names = self._fields, self._names
        if isinstance(fields, dict):
            return field in fields
        if isinstance(fields, PackedTable):
            return fields.has(field)
        assert names is not None, "a packed hash has names"
        return field in names.places

    def names(self) -> Collection[bytes]:
        """The fields, in order: valid until the next change. O(1)."""
        fields, names = self._fields, self._names
        if isinstance(fields, dict):
            return fields.keys()
        if isinstance(fields, PackedTable):
            return fields.texts()
        assert names is not None, "a packed hash has names"
        return names.places.keys()

    def values(self) -> Iterable[bytes]:
        """The values, in the order of the fields: valid until the next change. O(1), O(n) where packed."""
        fields = self._fields
        if isinstance(fields, PackedTable):
            return [value for _, value in fields.pairs()]
        return fields.values() if isinstance(fields, dict) else items_of(fields)

    def words(self) -> list[bytes]:
        """The fields and their values in turn, in a list of the caller's own. O(n)."""
        fields = self._fields
        return fields.words() if isinstance(fields, PackedTable) else list(chain.from_iterable(self.pairs()))

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        """The fields with their values, in order: valid until the next change. O(1), O(n) where packed."""
        fields = self._fields
        if isinstance(fields, PackedTable):
            return fields.pairs()
        return fields.items() if isinstance(fields, dict) else zip(self.names(), items_of(fields), strict=True)

    def in_order(self) -> HashOrder:
        """The fields in the order of their hashes. O(n), 10 ns each, when first called; then it is kept up to date."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.names(), 0)
        return self.scan_order

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self), "an empty hash is no value"
        assert isinstance(self._fields, bytes) is (self._names is not None), "names belong to packed values"
        if isinstance(self._fields, PackedTable):
            self._fields.check()
        assert len(list(self.pairs())) == len(self), "a packed hash has a value for each name"
        if self.due is not None:
            self.due.check()
            assert self.due.times.keys() <= set(self.names()), "an expiry without a field"
        if self.scan_order is not None:
            self.scan_order.check(self.names())
