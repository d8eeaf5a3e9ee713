"""Which pending entries of a group have the same value of a field: of each value, one at a time is handed out (KEY)."""

from bisect import bisect_left, insort

from penstock.storage.streams.ids import StreamId


class KeyOrder:
    """The pending entries of a group by the value of a field.

    Invariants: `values` has every pending entry that was noted, None for one without the field; `by_value` has the
    others, ascending, some of which may be deleted from the stream. waiting: entries that `>` passed over because their
    value was taken, and that wait for it. freed: values without their first entry, to be looked at after the
    command, in the order in which they last lost one. deleted_below: deleted pending entries below this id were looked
    at.

    A change costs O(log k), and a shift of k pointers, with k entries of one value.
    """

    __slots__ = ("by_value", "deleted_below", "freed", "values", "waiting")

    def __init__(self) -> None:
        self.values: dict[StreamId, bytes | None] = {}
        self.by_value: dict[bytes, list[StreamId]] = {}
        self.waiting: set[StreamId] = set()
        self.freed: dict[bytes, None] = {}
        self.deleted_below: StreamId = 0

    def add(self, entry_id: StreamId, value: bytes | None) -> None:
        """An entry became pending."""
        self.values[entry_id] = value
        if value is not None:
            insort(self.by_value.setdefault(value, []), entry_id)

    def drop(self, entry_id: StreamId) -> None:
        """An entry is pending no more, or it was deleted from the stream."""
        value = self.values.pop(entry_id, None)
        if value is not None:
            self.take_out(entry_id, value)

    def take_out(self, entry_id: StreamId, value: bytes) -> None:
        """An entry does not have its value any more."""
        of_value = self.by_value[value]
        at = bisect_left(of_value, entry_id)
        del of_value[at]
        if not of_value:
            del self.by_value[value]
        if not at:
            self.freed.pop(value, None)
            self.freed[value] = None

    def forget_deleted(self, entry_id: StreamId) -> None:
        """A pending entry was deleted from the stream: no later entry waits for it any more."""
        value = self.values.get(entry_id)
        if value is not None:
            self.values[entry_id] = None
            self.take_out(entry_id, value)

    def first(self, value: bytes) -> StreamId | None:
        """The lowest pending id with a value; None if there is none."""
        of_value = self.by_value.get(value)
        return None if of_value is None else of_value[0]

    def may_be_handed_out(self, entry_id: StreamId) -> bool:
        """Whether no lower pending id has the same value."""
        value = self.values.get(entry_id)
        return value is None or self.first(value) == entry_id

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        return 150 * len(self.values) + 100 * len(self.by_value)

    def check(self) -> None:
        """Assert the invariants."""
        pairs = sorted((value, entry_id) for entry_id, value in self.values.items() if value is not None)
        assert pairs == sorted((value, entry_id) for value, of_value in self.by_value.items() for entry_id in of_value)
        assert all(of_value == sorted(of_value) and of_value for of_value in self.by_value.values())
        assert self.waiting <= self.values.keys()
