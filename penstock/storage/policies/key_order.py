"""Which pending entries of a group have the same value of a field: of each value, few are handed out at once (KEY)."""

from bisect import bisect_left, insort

from penstock.storage.streams.ids import StreamId


class KeyOrder:
    """The pending entries of a group by the value of a field.

    Invariants: `values` has every pending entry that was noted, None for one without the field; `by_value` has the
    others, ascending, some of which may be deleted from the stream. parallel: so many of a value may be handed out at
    once. waiting: entries that `>` passed over because their value was taken, and that wait for it. full_at: the new
    entry at which a read stopped, as too many wait, and readers were not told to try again since; 0 if there is none.
    freed: values without so many of their first `parallel` entries, to be looked at after the command, in the order in
    which they last lost one. deleted_below: deleted pending entries below this id were looked at.

    counts: for the choice of the best value (choice.py), `owned` has how many live entries of each value have an owner,
    which are those of `owned_ids`; `without` has the live ones without a value; `touched` the values that changed.

    A change costs O(log k), and a shift of k pointers, with k entries of one value.
    """

    __slots__ = (
        "by_value", "counts", "deleted_below", "freed", "full_at", "owned", "owned_ids", "parallel", "touched",
        "values", "waiting", "without",
    )  # fmt: skip

    def __init__(self, parallel: int, counts: bool) -> None:
        self.parallel = parallel
        self.counts = counts
        self.owned: dict[bytes | None, int] = {}
        self.owned_ids: set[StreamId] = set()
        self.without: set[StreamId] = set()
        self.touched: dict[bytes | None, None] = {}
        self.values: dict[StreamId, bytes | None] = {}
        self.by_value: dict[bytes, list[StreamId]] = {}
        self.waiting: set[StreamId] = set()
        self.freed: dict[bytes, int] = {}
        self.full_at: StreamId = 0
        self.deleted_below: StreamId = 0

    def add(self, entry_id: StreamId, value: bytes | None) -> None:
        """A live entry became pending; nothing is known of its owner yet."""
        self.values[entry_id] = value
        if self.counts:
            self.touched[value] = None
            if value is None:
                self.without.add(entry_id)
        if value is not None:
            insort(self.by_value.setdefault(value, []), entry_id)

    def drop(self, entry_id: StreamId) -> None:
        """An entry is pending no more, or it was deleted from the stream."""
        if self.counts:
            self.lose(entry_id)
            self._forget_without(entry_id)
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
        if self.counts:
            self.touched[value] = None
        if at < self.parallel:
            self.freed[value] = self.freed.pop(value, 0) + 1

    def forget_deleted(self, entry_id: StreamId) -> None:
        """A pending entry was deleted from the stream: no later entry waits for it any more."""
        if self.counts:
            self.lose(entry_id)
            self._forget_without(entry_id)
        value = self.values.get(entry_id)
        if value is not None:
            self.values[entry_id] = None
            self.take_out(entry_id, value)

    def _forget_without(self, entry_id: StreamId) -> None:
        if entry_id in self.without:
            self.without.discard(entry_id)
            self.touched[None] = None

    def own(self, entry_id: StreamId) -> None:
        """A live entry that was noted has an owner. O(1)."""
        value = self.values.get(entry_id)
        if entry_id not in self.owned_ids and (value is not None or entry_id in self.without):
            self.owned_ids.add(entry_id)
            self.owned[value] = self.owned.get(value, 0) + 1
            self.touched[value] = None

    def lose(self, entry_id: StreamId) -> None:
        """An entry that was noted has no owner any more. O(1)."""
        if entry_id in self.owned_ids:
            self.owned_ids.discard(entry_id)
            value = self.values[entry_id]
            self.owned[value] -= 1
            if not self.owned[value]:
                del self.owned[value]
            self.touched[value] = None

    def below(self, value: bytes, entry_id: StreamId) -> int:
        """How many pending entries of a value have lower ids. O(log k)."""
        of_value = self.by_value.get(value)
        return 0 if of_value is None else bisect_left(of_value, entry_id)

    def has_live(self, value: bytes | None) -> bool:
        """Whether a live entry of a value is pending. O(1)."""
        return bool(self.without) if value is None else value in self.by_value

    def first(self, value: bytes) -> StreamId | None:
        """The lowest pending id with a value; None if there is none."""
        of_value = self.by_value.get(value)
        return None if of_value is None else of_value[0]

    def may_be_delivered(self, entry_id: StreamId) -> bool:
        """Whether fewer than `parallel` lower pending ids have the same value."""
        value = self.values.get(entry_id)
        return value is None or self.below(value, entry_id) < self.parallel

    def last_free(self, value: bytes, count: int) -> list[StreamId]:
        """Of the pending entries of a value that may be handed out, those behind which `count` went. O(count)."""
        return self.by_value.get(value, [])[max(self.parallel - count, 0) : self.parallel]

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        return 150 * len(self.values) + 100 * (len(self.by_value) + len(self.owned_ids))

    def check(self) -> None:
        """Assert the invariants."""
        pairs = sorted((value, entry_id) for entry_id, value in self.values.items() if value is not None)
        assert pairs == sorted((value, entry_id) for value, of_value in self.by_value.items() for entry_id in of_value)
        assert all(of_value == sorted(of_value) and of_value for of_value in self.by_value.values())
        assert self.waiting <= self.values.keys()
        assert sum(self.owned.values()) == len(self.owned_ids)
        assert self.owned_ids | self.without <= self.values.keys()
