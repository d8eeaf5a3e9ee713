"""Hashes: fields and their values; a field may have a time of expiry."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.deadlines import NEVER, Deadlines
from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.random_index import Draw
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # fields that are measured for an estimate


class Hash(Collection):
    """Fields and values, in the order in which the fields came.

    Invariants: every name in `due` is a field of `fields`; where there is a `walked` (made by the first HSCAN of a
    large hash, dropped when a walk is through) or a `drawn` (made when chance first draws a field), it holds every
    field. `due` is made with the first time of expiry.
    """

    __slots__ = ("drawn", "due", "fields", "walked")

    def __init__(self) -> None:
        self.fields: dict[bytes, bytes] = {}
        self.due: Deadlines | None = None
        self.walked: HashOrder | None = None
        self.drawn: Draw | None = None

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def expires(self) -> dict[bytes, int]:
        """The times of expiry by field, in unix ms."""
        return {} if self.due is None else self.due.times

    def copy(self) -> "Hash":
        copied = Hash()
        copied.fields = dict(self.fields)
        if self.due is not None:
            copied.due = self.due.copy()
        return copied

    def memory_usage(self) -> int:
        count = len(self.fields)
        sampled = [len(field) + len(value) for field, value in islice(self.fields.items(), SAMPLED)]
        beside = 60 if self.walked is not None else 0
        beside += 100 if self.drawn is not None else 0
        size = 250 + count * (2 * PART_OVERHEAD + 92 + beside) + sum(sampled) * count // max(len(sampled), 1)
        return size + len(self.expires) * 200

    def parts(self) -> Iterator[bytes]:
        for field in sorted(self.fields):
            yield field
            yield self.fields[field]
            yield b"%d" % self.expires.get(field, 0)

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, field: bytes, value: bytes) -> bool:
        """Set a field, whose time of expiry stays; whether it is new."""
        new = field not in self.fields
        self.fields[field] = value
        if new:
            if self.walked is not None:
                self.walked.add(field)
            if self.drawn is not None:
                self.drawn.add(field)
        return new

    def remove(self, fields: Iterable[bytes]) -> list[bytes]:
        """Take fields out, with their times of expiry; those that were there, in order."""
        removed: list[bytes] = []
        for field in fields:
            if self.fields.pop(field, None) is None:
                continue
            removed.append(field)
            if self.due is not None:
                self.due.drop(field)
            if self.walked is not None:
                self.walked.remove(field)
            if self.drawn is not None:
                self.drawn.remove(field)
        return removed

    def expire_at(self, field: bytes, when_ms: int) -> None:
        """Give a field that is there a time of expiry."""
        if self.due is None:
            self.due = Deadlines()
        self.due.set(field, when_ms)

    def persist(self, field: bytes) -> bool:
        """Forget a field's time of expiry; whether it had one."""
        return self.due is not None and self.due.drop(field)

    # -- asking -----------------------------------------------------------------------------------------------------

    def first_due_ms(self) -> int:
        """When the first field is due; NEVER where none is."""
        return NEVER if self.due is None else self.due.first_ms()

    def overdue(self, now_ms: int, most: int) -> list[bytes]:
        """At most `most` fields whose time has passed, the longest overdue first."""
        return [] if self.due is None else self.due.overdue(now_ms, most)

    def draw(self) -> Draw:
        """The fields, for chance to draw from; O(n) once, then kept up to date."""
        if self.drawn is None:
            self.drawn = Draw(self.fields)
        return self.drawn

    def check(self) -> None:
        """Assert the invariants."""
        assert self.fields, "an empty hash is no value"
        if self.due is not None:
            self.due.check()
            assert self.due.times.keys() <= self.fields.keys(), "an expiry without a field"
        if self.walked is not None:
            self.walked.check(self.fields)
        if self.drawn is not None:
            self.drawn.check(self.fields)
