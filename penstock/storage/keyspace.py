"""The keyspace: numbered databases of keys, their values and their times of expiry.

A value is its own type: `bytes` or a `LargeString` is a string, a `Stream` a stream, and so on. Nothing here looks at a
clock or tells anybody; `engine/context.py` does both.
"""

from typing import Final, TypeAlias

from sortedcontainers import SortedList

from penstock.storage.deadlines import NEVER, Deadlines
from penstock.storage.streams.stream import Stream
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

Value: TypeAlias = bytes | LargeString | Stream | List | Hash | Set | SortedSet

ORDER_KEPT_MS: Final = 60_000  # how long an order that nobody uses is kept up to date

TYPE_NAMES: Final[dict[type, bytes]] = {
    bytes: b"string",
    LargeString: b"string",
    Stream: b"stream",
    List: b"list",
    Hash: b"hash",
    Set: b"set",
    SortedSet: b"zset",
}


def type_name(value: Value) -> bytes:
    """As TYPE answers: b"string", b"stream"."""
    return TYPE_NAMES[type(value)]


def text_of(value: Value | None) -> bytes | None:
    """A string's bytes; None for whatever is no string. Of a LargeString a copy."""
    if isinstance(value, LargeString):
        return value.text()
    return value if isinstance(value, bytes) else None


class Database:
    """One numbered set of keys.

    Invariants: every key of `expires` is a key of `values`; `deadlines` holds exactly the pairs
    (expires[key], key), in order; `fields_due` holds the hashes that have fields with a time of expiry, and of each
    the earliest; where there is an `order`, it holds every key of `values`.
    """

    __slots__ = ("deadlines", "expires", "fields_due", "order", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, Value] = {}
        self.expires: dict[bytes, int] = {}  # unix time in ms
        self.deadlines: SortedList[tuple[int, bytes]] = SortedList()
        self.fields_due = Deadlines()
        self.order: HashOrder | None = None  # made by the first SCAN or RANDOMKEY, dropped when they cease

    def __len__(self) -> int:
        return len(self.values)

    def put(self, key: bytes, value: Value) -> None:
        """Set or replace a value; its time of expiry stays (`persist` takes that away)."""
        if self.order is not None and key not in self.values:
            self.order.add(key)
        self.values[key] = value
        if isinstance(value, Hash) or self.fields_due.times:
            self.note_fields(key, value)

    def note_fields(self, key: bytes, value: Value) -> None:
        """Know when the first field at a key is due: after every change of the fields' times of expiry."""
        when_ms = value.first_due_ms() if isinstance(value, Hash) else NEVER
        if when_ms == NEVER:
            self.fields_due.drop(key)
        elif self.fields_due.times.get(key) != when_ms:
            self.fields_due.set(key, when_ms)

    def remove(self, key: bytes) -> Value | None:
        """Take a key out, with its time of expiry."""
        if self.expires:
            self.persist(key)
        if self.fields_due.times:
            self.fields_due.drop(key)
        value = self.values.pop(key, None)
        if value is not None and self.order is not None:
            self.order.remove(key)
        return value

    def expire_at(self, key: bytes, when_ms: int) -> None:
        self.persist(key)
        self.expires[key] = when_ms
        self.deadlines.add((when_ms, key))

    def persist(self, key: bytes) -> bool:
        """Forget a key's time of expiry; whether it had one."""
        when_ms = self.expires.pop(key, None)
        if when_ms is None:
            return False
        self.deadlines.remove((when_ms, key))
        return True

    def overdue(self, now_ms: int, most: int) -> list[bytes]:
        """At most `most` keys whose time has passed, the longest overdue first."""
        return [key for when_ms, key in self.deadlines.islice(0, most) if when_ms < now_ms]

    def in_order(self, now_ms: int) -> HashOrder:
        """The keys in the order of their hashes; O(n log n) in the keys once, then kept up to date for a while."""
        if self.order is None:
            self.order = HashOrder(self.values, now_ms)
        self.order.used_ms = now_ms
        return self.order

    def clear(self) -> None:
        self.values = {}  # a new dict: the old one, of any size, is freed by whoever still holds it
        self.expires = {}
        self.deadlines = SortedList()
        self.fields_due = Deadlines()
        self.order = None

    def check(self) -> None:
        """Assert the invariants."""
        assert self.expires.keys() <= self.values.keys(), "an expiry without a key"
        assert list(self.deadlines) == sorted((when, key) for key, when in self.expires.items())
        due = {key: value.first_due_ms() for key, value in self.values.items() if isinstance(value, Hash)}
        assert self.fields_due.times == {key: when_ms for key, when_ms in due.items() if when_ms != NEVER}
        self.fields_due.check()
        if self.order is not None:
            self.order.check(self.values)


class Keyspace:
    """The databases, by number; and the code of the libraries of functions, by name."""

    __slots__ = ("databases", "libraries")

    def __init__(self, count: int = 16) -> None:
        self.databases = [Database() for _ in range(count)]
        self.libraries: dict[bytes, bytes] = {}

    def swap(self, one: int, other: int) -> None:
        self.databases[one], self.databases[other] = self.databases[other], self.databases[one]

    def drop_idle_orders(self, now_ms: int) -> None:
        """Let go of the orders that no SCAN and no RANDOMKEY has used for a minute."""
        for database in self.databases:
            if database.order is not None and now_ms - database.order.used_ms > ORDER_KEPT_MS:
                database.order = None
