"""The keyspace: numbered databases of keys, their values and their times of expiry.

The Python type of a value is its Redis type: `bytes`, its subclasses and `LargeString` are strings, a `Stream` is a
stream, and so on.
This module does not read a clock and sends no notifications; `engine/context.py` does both.
"""

from typing import Final, TypeAlias

from penstock.storage.blessings import Blessings
from penstock.storage.deadlines import NEVER, Deadlines
from penstock.storage.key_table import KeyTable
from penstock.storage.streams.stream import Stream
from penstock.storage.types.arrays import Array
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.collection import Timed
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet
from penstock.storage.types.string_marks import RawString, UnconvertedString

Value: TypeAlias = bytes | LargeString | Stream | List | Hash | Set | SortedSet | Array | Bitmap

ORDER_KEPT_MS: Final = 60_000  # how long a scan order is kept up to date without being used

TYPE_NAMES: Final[dict[type, bytes]] = {
    bytes: b"string",
    RawString: b"string",
    UnconvertedString: b"string",
    LargeString: b"string",
    Stream: b"stream",
    List: b"list",
    Hash: b"hash",
    Set: b"set",
    SortedSet: b"zset",
    Array: b"array",
    Bitmap: b"bitmap",
}


def type_name(value: Value) -> bytes:
    """The type as TYPE replies it: b"string", b"stream"."""
    return TYPE_NAMES[type(value)]


def text_of(value: Value | None) -> bytes | None:
    """The bytes of a string; None if the value is not a string. A LargeString is copied, O(length)."""
    if isinstance(value, LargeString):
        return value.text()
    return value if isinstance(value, bytes) else None


class Database:
    """One numbered set of keys.

    Invariants: every key of `expires` and of `blessed` is a key of `values`; `expires` are the times of `expiries`;
    `parts_due` has the hashes and sets with parts that have a time of expiry, and the earliest of these times for each;
    `policies_due` has the streams with policies, and when a tick must look at each (NEVER, too); `streams` has the keys
    of `values` that are streams; `order`, if there is one, has every key of `values`.

    In the costs, n is the number of keys.
    """

    __slots__ = ("blessed", "expires", "expiries", "order", "parts_due", "policies_due", "streams", "values")

    def __init__(self) -> None:
        self.values = KeyTable()
        self.blessed = Blessings()
        self.expiries = Deadlines()
        self.expires = self.expiries.times  # unix time in ms
        self.parts_due = Deadlines()
        self.policies_due = Deadlines()
        self.streams: dict[bytes, Stream] = {}  # so that metrics find them among many other keys
        self.order: HashOrder | None = None  # created by the first SCAN or RANDOMKEY, dropped when unused for long

    def __len__(self) -> int:
        return len(self.values)

    def put(self, key: bytes, value: Value) -> None:
        """Set or replace a value; its time of expiry stays (see `persist`).

        O(1); O(log n) for a value with parts that expire.
        """
        if self.order is not None and key not in self.values:
            self.order.add(key)
        self.values[key] = value
        if self.streams and key in self.streams:
            self._forget_stream(key)
        if isinstance(value, Stream):
            self.streams[key] = value
            if value.segments:
                value.limits.packing.note(value)
        if (isinstance(value, Timed) and value.due is not None) or self.parts_due.times:
            self.note_parts(key, value)
        if isinstance(value, Stream) or self.policies_due.times:
            self.note_policies(key, value)

    def note_policies(self, key: bytes, value: Value) -> None:
        """Update when a tick must look at the stream at a key: to be called when `due_ms` of its policies changed.

        O(1) if nothing changed, else O(log n).
        """
        policies = value.policies if isinstance(value, Stream) else None
        if policies is None:
            self.policies_due.drop(key)
        elif self.policies_due.times.get(key) != policies.due_ms:
            self.policies_due.set(key, policies.due_ms)

    def note_parts(self, key: bytes, value: Value | Timed) -> None:
        """Update when the first part at a key is due: to be called when a part's time of expiry changed. O(log n)."""
        when_ms = value.first_due_ms() if isinstance(value, Timed) else NEVER
        if when_ms == NEVER:
            self.parts_due.drop(key)
        elif self.parts_due.times.get(key) != when_ms:
            self.parts_due.set(key, when_ms)

    def remove(self, key: bytes) -> Value | None:
        """Remove a key with its time of expiry; returns its value, or None. O(1); O(log n) with an expiry."""
        if self.expires:
            self.persist(key)
        value = self.values.pop(key)
        if value is not None:
            self._forget(key, value)
        return value

    def take_overdue(self, keys: list[bytes]) -> list[tuple[bytes, Value]]:
        """Remove the keys that `overdue` has just returned; each with its value. O(len(keys))."""
        self.expiries.take(keys)
        taken: list[tuple[bytes, Value]] = []
        for key in keys:
            value = self.values.pop(key)
            assert value is not None, "an expiry without a key"
            self._forget(key, value)
            taken.append((key, value))
        return taken

    def _forget(self, key: bytes, value: Value) -> None:
        """A value was taken out: nothing else is to know its key."""
        if not isinstance(value, bytes):
            if self.parts_due.times:
                self.parts_due.drop(key)
            if self.policies_due.times:
                self.policies_due.drop(key)
            if key in self.streams:
                self._forget_stream(key)
        if self.blessed.keys:
            self.blessed.drop(key)
        if self.order is not None:
            self.order.remove(key)

    def _forget_stream(self, key: bytes) -> None:
        """The stream at a key was taken out: nothing is to keep it alive.

        After RENAME and MOVE it is noted again when it has grown.
        """
        stream = self.streams.pop(key)
        stream.limits.packing.forget(stream)

    def expire_at(self, key: bytes, when_ms: int) -> None:
        """Set or replace the time of expiry of a key. O(log n); O(1) where the new one is later."""
        if not self.expiries.renew(key, when_ms):
            self.expiries.set(key, when_ms)

    def persist(self, key: bytes) -> bool:
        """Remove the time of expiry of a key; returns whether it had one. O(log n)."""
        return self.expiries.drop(key)

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` keys past their time of expiry, the earliest first.

        As Deadlines.overdue: there may be more.
        """
        return self.expiries.overdue(now_ms, max_count)

    def in_order(self, now_ms: int) -> HashOrder:
        """The keys in the order of their hashes. O(n), at most 10 ns each, when first used; then it is kept a while."""
        if self.order is None:
            self.order = HashOrder(self.values.snapshot(), now_ms)
        self.order.used_ms = now_ms
        return self.order

    def clear(self) -> None:
        """Remove all keys. O(1): freeing the old table is the work of its last owner."""
        self.values = KeyTable()  # a new one: the caller frees the old one, which may be large, lazily
        self.blessed = Blessings()
        self.expiries = Deadlines()
        self.expires = self.expiries.times
        self.parts_due = Deadlines()
        self.policies_due = Deadlines()
        if self.streams:  # all databases have one Packing: their streams are noted again as they grow
            next(iter(self.streams.values())).limits.packing.forget_all()
        self.streams = {}
        self.order = None

    def check(self) -> None:
        """Assert the invariants."""
        self.values.check()
        assert self.expires.keys() <= set(self.values), "an expiry without a key"
        assert self.expires is self.expiries.times
        self.expiries.check()
        self.blessed.check()
        assert self.blessed.keys.keys() <= set(self.values), "a blessing without a key"
        due = {key: value.first_due_ms() for key, value in self.values.items() if isinstance(value, Timed)}
        assert self.parts_due.times == {key: when_ms for key, when_ms in due.items() if when_ms != NEVER}
        self.parts_due.check()
        streams = {key: value.policies for key, value in self.values.items() if isinstance(value, Stream)}
        looked_at = {key: policies.due_ms for key, policies in streams.items() if policies is not None}
        assert self.policies_due.times == looked_at
        self.policies_due.check()
        assert self.streams == {key: value for key, value in self.values.items() if isinstance(value, Stream)}
        if self.order is not None:
            self.order.check(self.values)


class Keyspace:
    """All databases, by number; and the source code of function libraries, by name."""

    __slots__ = ("databases", "libraries")

    def __init__(self, count: int = 16) -> None:
        self.databases = [Database() for _ in range(count)]
        self.libraries: dict[bytes, bytes] = {}

    def swap(self, one: int, other: int) -> None:
        """SWAPDB: exchange two databases. O(1)."""
        self.databases[one], self.databases[other] = self.databases[other], self.databases[one]

    def drop_idle_orders(self, now_ms: int) -> None:
        """Drop the scan orders that no SCAN or RANDOMKEY has used for ORDER_KEPT_MS. O(databases)."""
        for database in self.databases:
            if database.order is not None and now_ms - database.order.used_ms > ORDER_KEPT_MS:
                database.order = None
