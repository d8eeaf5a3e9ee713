"""Hashes: fields and their values. A field may have a time of expiry."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from penstock.storage.deadlines import NEVER, Deadlines
from penstock.storage.types import collection
from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.random_index import IndexedNames
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # fields measured for the estimate of memory_usage
SHARED_FIELDS: Final = 64  # of a hash: the first ones
LONGEST_SHARED: Final = 64  # bytes of a name
MOST_SHARED: Final = 4096  # names
_names: Final[dict[bytes, bytes]] = {}  # the names of fields that were put last


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


class Hash(collection.Collection):
    """Fields and values, in the order in which the fields were added.

    `due` has the fields with a time of expiry, once a request gave one. is_large: Redis would use its encoding for
    large hashes, which it keeps for good once a hash was large. `scan_order` is created by the first HSCAN of a large
    hash and dropped at the end of the scan; `indexed` is created by the first HRANDFIELD.

    Invariants: every name in `due` is a field; `scan_order` and `indexed`, if they are there, have every
    field. In the costs, n is the number of fields.
    """

    __slots__ = ("_fields", "due", "indexed", "is_large", "scan_order")

    def __init__(self) -> None:
        self._fields: dict[bytes, bytes] = {}
        self.due: Deadlines | None = None
        self.is_large = False
        self.scan_order: HashOrder | None = None
        self.indexed: IndexedNames | None = None

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def expires(self) -> dict[bytes, int]:
        """The times of expiry by field, in unix ms. O(1)."""
        return {} if self.due is None else self.due.times

    def copy(self) -> "Hash":
        copied = Hash()
        copied._fields = dict(self._fields)
        copied.is_large = self.is_large
        if self.due is not None:
            copied.due = self.due.copy()
        return copied

    def memory_usage(self) -> int:
        count = len(self._fields)
        sampled = [len(field) + len(value) for field, value in islice(self._fields.items(), SAMPLED)]
        beside = 60 if self.scan_order is not None else 0
        beside += 100 if self.indexed is not None else 0
        size = 250 + count * (2 * PART_OVERHEAD + 92 + beside) + sum(sampled) * count // max(len(sampled), 1)
        return size + len(self.expires) * 200

    def parts(self) -> Iterator[bytes]:
        for field in sorted(self._fields):
            yield field
            yield self._fields[field]
            yield b"%d" % self.expires.get(field, 0)

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, field: bytes, value: bytes) -> bool:
        """Set a field, whose time of expiry stays; returns whether it is new.

        O(1); O(log n) for a new one during a scan.
        """
        new = field not in self._fields
        if new and len(self._fields) < SHARED_FIELDS:
            field = shared_name(field)
        self._fields[field] = value
        if new:
            if self.scan_order is not None:
                self.scan_order.add(field)
            if self.indexed is not None:
                self.indexed.add(field)
        return new

    def put_all(self, words: list[bytes]) -> int:
        """As `put`, for fields and values in turn; returns how many fields are new. O(words)."""
        new = 0
        for at in range(0, len(words), 2):
            new += self.put(words[at], words[at + 1])
        return new

    def remove(self, fields: Iterable[bytes]) -> list[bytes]:
        """Remove fields with their times of expiry; returns those that existed, in order.

        For each field O(1), or O(log n) if it has a time of expiry or during a scan.
        """
        removed: list[bytes] = []
        for field in fields:
            if self._fields.pop(field, None) is None:
                continue
            removed.append(field)
            if self.due is not None:
                self.due.drop(field)
            if self.scan_order is not None:
                self.scan_order.remove(field)
            if self.indexed is not None:
                self.indexed.remove(field)
        return removed

    def outgrow(self, words: list[bytes], max_fields: int, max_bytes: int) -> None:
        """Take note that fields and values in turn were set: the hash may be large by this. O(words)."""
        if len(self._fields) > max_fields or len(words) > 2 * max_fields:
            self.is_large = True
            return
        for word in words:
            if len(word) > max_bytes:
                self.is_large = True
                return

    def settle(self, max_fields: int, max_bytes: int) -> None:
        """Choose the encoding by the fields, where their history is not known: read from a file. O(n)."""
        words = chain(self._fields, self._fields.values())
        self.is_large = len(self._fields) > max_fields or any(len(word) > max_bytes for word in words)

    def keep_times(self) -> Deadlines:
        """The times of expiry, for which there is room from now on (Redis converts a small hash for it). O(1)."""
        if self.due is None:
            self.due = Deadlines()
        return self.due

    def expire_at(self, field: bytes, when_ms: int) -> None:
        """Set the time of expiry of an existing field. O(log n)."""
        self.keep_times().set(field, when_ms)

    def persist(self, field: bytes) -> bool:
        """Remove a field's time of expiry; returns whether it had one. O(log n)."""
        return self.due is not None and self.due.drop(field)

    # -- reading ----------------------------------------------------------------------------------------------------

    def get(self, field: bytes) -> bytes | None:
        """The value of a field; None if there is no such field. O(1)."""
        return self._fields.get(field)

    def value(self, field: bytes) -> bytes:
        """The value of an existing field. O(1)."""
        return self._fields[field]

    def has(self, field: bytes) -> bool:
        """Whether there is such a field. O(1)."""
        return field in self._fields

    def names(self) -> Collection[bytes]:
        """The fields, in order: valid until the next change. O(1)."""
        return self._fields.keys()

    def values(self) -> Iterable[bytes]:
        """The values, in the order of the fields: valid until the next change. O(1)."""
        return self._fields.values()

    def pairs(self) -> Iterable[tuple[bytes, bytes]]:
        """The fields with their values, in order: valid until the next change. O(1)."""
        return self._fields.items()

    def first_due_ms(self) -> int:
        """When the first field is due; NEVER if none is. O(1)."""
        return NEVER if self.due is None else self.due.first_ms()

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` fields whose time of expiry has passed, the earliest first. O(max_count)."""
        return [] if self.due is None else self.due.overdue(now_ms, max_count)

    def by_index(self) -> IndexedNames:
        """The fields by index, to choose random ones. O(n) when first called; then it is kept up to date."""
        if self.indexed is None:
            self.indexed = IndexedNames(self._fields)
        return self.indexed

    def check(self) -> None:
        """Assert the invariants."""
        assert self._fields, "an empty hash is no value"
        if self.due is not None:
            self.due.check()
            assert self.due.times.keys() <= self._fields.keys(), "an expiry without a field"
        if self.scan_order is not None:
            self.scan_order.check(self._fields)
        if self.indexed is not None:
            self.indexed.check(self._fields)
