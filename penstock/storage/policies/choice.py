"""Which entry of a group is handed out next as a first delivery (PRIORITY, FAIR): an index of the candidates."""

from typing import Final, TypeAlias

from sortedcontainers import SortedList

from penstock.storage.deadlines import NEVER
from penstock.storage.policies.entry_moments import EntryMoments
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.streams.ids import StreamId

Cell: TypeAlias = tuple[int, int]  # a sort key: rank and id, or the number of entries with workers and the turn
NOT_KNOWN: Final = -1  # in place of an id


class Choice:
    """Entries that were never delivered and may be chosen, by the value of KEY; all have the value None without it.

    Invariants: `ranks` has a rank and the value of the entries of `waiting` (pending, no owner, count 0, not held) and
    of `seen` (new ones that were looked at, ascending); of two ranks the lower one is first. `queues` has them by
    value: those of a value by id, those without one by rank and id. A value competes with its first entry, and if not
    too many of it are pending below that. The values that compete have a cell in `order`, except `newcomers`, which
    have no turn yet; `touched` are to be looked at again.

    seen_to: new entries up to here were looked at. expired: those of them that have expired; they move when the group's
    position passes them, so a read must not pass over too many at once. position: the group's last-delivered id then.
    drained_ms: what was held up to then is here. deleted_below: trimmed waiting entries below this id were looked at.
    expiring: when entries expire. has_shrunk: an entry left without being handed out, so others may be candidates.

    turns (FAIR): the lower one was longer ago. checks: values that may have lost the right to a turn. picked,
    picked_new: how many of a value get an owner by this read, and of those how many were not pending, which the group
    does not know yet. `_picks`, `_former_turns`: what a read that only shows the choice takes back: the chosen entries
    (by id: rank, value, moment, whether it waited), and the turns before (NOT_KNOWN: none).

    A change costs O(log n).
    """

    __slots__ = (
        "_cells", "_former_turns", "_is_fair", "_order", "_picks", "_turn", "_values", "checks",
        "deleted_below", "drained_ms", "expired", "expiring", "has_shrunk", "newcomers", "picked", "picked_new",
        "position", "queues", "ranks", "seen", "seen_to", "touched", "turns", "waiting",
    )  # fmt: skip

    def __init__(self, is_fair: bool) -> None:
        self._is_fair = is_fair
        self.ranks: dict[StreamId, tuple[int, bytes | None]] = {}
        self.waiting: set[StreamId] = set()
        self.seen: SortedList[StreamId] = SortedList()
        self.seen_to: StreamId = 0
        self.expired: SortedList[StreamId] = SortedList()
        self.position: StreamId = 0
        self.drained_ms = NOT_KNOWN
        self.deleted_below: StreamId = 0
        self.expiring = EntryMoments()
        self.has_shrunk = False
        self.queues: dict[bytes | None, SortedList[Cell]] = {}
        self._order: SortedList[Cell] = SortedList()
        self._cells: dict[bytes | None, Cell] = {}
        self._values: dict[Cell, bytes | None] = {}
        self.touched: dict[bytes | None, None] = {}
        self.turns: dict[bytes | None, int] = {}
        self._turn = 0
        self.newcomers: dict[bytes | None, StreamId] = {}
        self.checks: dict[bytes | None, None] = {}
        self.picked: dict[bytes | None, int] = {}
        self.picked_new: dict[bytes | None, int] = {}
        self._picks: dict[StreamId, tuple[int, bytes | None, int, bool]] = {}
        self._former_turns: dict[bytes | None, int] = {}

    # -- entries come and go ----------------------------------------------------------------------------------------

    def add_waiting(self, entry_id: StreamId, rank: int, value: bytes | None, expires_ms: int) -> None:
        """An entry is pending without an owner, and was never delivered."""
        self._remove(entry_id)
        self.waiting.add(entry_id)
        self.expiring.set(entry_id, expires_ms)
        self._add(entry_id, rank, value)

    def pass_over(self, entry_id: StreamId) -> None:
        """A new entry, which was seen, is pending from now on, and waits: it competes as before."""
        self.seen.remove(entry_id)
        self.waiting.add(entry_id)

    def add_seen(self, entry_id: StreamId, rank: int, value: bytes | None, expires_ms: int) -> None:
        """A new entry is within reach; it is not among the waiting ones."""
        self.seen.add(entry_id)
        self.expiring.set(entry_id, expires_ms)
        self._add(entry_id, rank, value)

    def drop(self, entry_id: StreamId) -> None:
        """An entry may not be chosen any more: it was deleted, has a consumer, or is beyond LOOKAHEAD."""
        self.expired.discard(entry_id)
        if self._remove(entry_id):
            self.has_shrunk = True

    def expire(self, entry_id: StreamId) -> None:
        """A new entry has expired."""
        self.drop(entry_id)
        self.expired.add(entry_id)

    def advance_to(self, position: StreamId) -> None:
        """The group's position passes new entries, which are pending now, or went aside."""
        self.position = position
        self.seen_to = max(self.seen_to, position)
        del self.expired[: self.expired.bisect_right(position)]

    def look_again_behind(self, entry_id: StreamId) -> None:
        """New entries behind this one are looked at anew; the caller drops those that may be chosen."""
        self.seen_to = entry_id
        del self.expired[self.expired.bisect_right(entry_id) :]

    def go_back_to(self, last_id: StreamId) -> None:
        """Ids above this one, which were looked at, may be those of new entries. None of them is live."""
        for entry_id in list(self.seen.irange(last_id + 1)):
            self.drop(entry_id)
        self.look_again_behind(max(min(self.seen_to, last_id), self.position))
        self.deleted_below = min(self.deleted_below, last_id + 1)

    def drop_waiting(self, entry_id: StreamId) -> None:
        """As `drop`, if it waits: it is pending no more, or has an owner. A new one (FORCE) is looked at again."""
        if entry_id not in self.waiting:
            return
        self.drop(entry_id)
        if self.position < entry_id <= self.seen_to:
            for later_id in list(self.seen.irange(entry_id)):
                self.drop(later_id)
            self.look_again_behind(entry_id - 1)

    def _add(self, entry_id: StreamId, rank: int, value: bytes | None) -> None:
        self.ranks[entry_id] = (rank, value)
        queue = self.queues.get(value)
        if queue is None:
            queue = self.queues[value] = SortedList()
        queue.add((rank if value is None else 0, entry_id))
        self.touched[value] = None

    def _remove(self, entry_id: StreamId) -> bool:
        found = self.ranks.pop(entry_id, None)
        if found is None:
            return False
        rank, value = found
        if entry_id in self.waiting:
            self.waiting.discard(entry_id)
        else:
            self.seen.remove(entry_id)
        self.expiring.drop(entry_id)
        queue = self.queues[value]
        queue.remove((rank if value is None else 0, entry_id))
        if not queue:
            del self.queues[value]
        self.touched[value] = None
        return True

    # -- choosing ---------------------------------------------------------------------------------------------------

    def best(self, order: KeyOrder | None) -> StreamId | None:
        """The entry to hand out next; None if there is no candidate. It is to be handed out then: turns are given."""
        self.note_changes(order)
        for value in self.touched:
            self._place(value, order)
        self.touched.clear()
        if not self._order and not self.newcomers:
            return None
        if self._is_fair:
            self._give_turns(order)
        queue = self.queues[self._values[self._order[0]]]
        return queue[0][1]

    def note_changes(self, order: KeyOrder | None) -> None:
        """Note the values with changed pending entries: their places must be computed anew. O(values)."""
        if order is not None:
            self.touched.update(order.touched)
            order.touched.clear()

    def pick(self, entry_id: StreamId, is_pending: bool) -> None:
        """The best entry is handed out."""
        rank, value = self.ranks[entry_id]
        self._picks[entry_id] = (rank, value, self.expiring.times.get(entry_id, NEVER), entry_id in self.waiting)
        self._remove(entry_id)
        self.count_owned(value)
        if not is_pending:
            self.picked_new[value] = self.picked_new.get(value, 0) + 1
        if value in self.turns:
            self._give_turn(value)

    def has_picked(self, entry_id: StreamId) -> bool:
        """Whether an entry is handed out by this read."""
        return entry_id in self._picks

    def count_owned(self, value: bytes | None) -> None:
        """An entry of a value gets an owner by this read; the group does not know it yet."""
        self.picked[value] = self.picked.get(value, 0) + 1
        self.touched[value] = None

    def end_read(self) -> None:
        """The end of a read: the picked entries are pending and have owners in the group."""
        self.touched.update(dict.fromkeys(self.picked))
        self.picked, self.picked_new = {}, {}
        self._picks, self._former_turns = {}, {}

    def take_back(self, seen_to: StreamId) -> None:
        """In place of `end_read`: nothing was handed out. seen_to: as before the read. O(log n) for each picked one."""
        seen_to = min(seen_to, self.seen_to)  # a lower one: what was dropped behind it is looked at again
        for entry_id in list(self.seen.irange(seen_to + 1)):
            self._remove(entry_id)
        self.look_again_behind(seen_to)
        for entry_id, (rank, value, expires_ms, waited) in self._picks.items():
            if waited:
                self.add_waiting(entry_id, rank, value, expires_ms)
            elif entry_id <= seen_to:
                self.add_seen(entry_id, rank, value, expires_ms)
        for value, turn in self._former_turns.items():
            self.touched[value] = None
            if turn == NOT_KNOWN:
                self.turns.pop(value, None)
            else:
                self.turns[value] = turn
        self.end_read()

    def _give_turn(self, value: bytes | None) -> None:
        self._former_turns.setdefault(value, self.turns.get(value, NOT_KNOWN))
        self._turn += 1
        self.turns[value] = self._turn

    def _place(self, value: bytes | None, order: KeyOrder | None) -> None:
        """Let a value compete, if it may, with the right cell."""
        former = self._cells.pop(value, None)
        if former is not None:
            self._order.remove(former)
            del self._values[former]
        self.newcomers.pop(value, None)
        if self._is_fair:
            self.checks[value] = None
        queue = self.queues.get(value)
        if queue is None:
            return
        first = queue[0][1]
        if value is not None and order is not None:
            below = order.below(value, first) + self.picked_new.get(value, 0)
            if below >= order.parallel:
                return
        if not self._is_fair:
            self._compete(value, (self.ranks[first][0], first))
        elif value in self.turns:
            self._compete(value, (self._owned(value, order), self.turns[value]))
        else:
            # The queue of what has no value is in order of ranks. It is looked through when a turn is given: seldom.
            self.newcomers[value] = first if value is not None else min([entry_id for _, entry_id in queue])

    def _compete(self, value: bytes | None, cell: Cell) -> None:
        self._cells[value] = cell
        self._values[cell] = value
        self._order.add(cell)

    def _owned(self, value: bytes | None, order: KeyOrder | None) -> int:
        """How many entries of a value are with workers, those of this read included."""
        return (0 if order is None else order.owned.get(value, 0)) + self.picked.get(value, 0)

    def _give_turns(self, order: KeyOrder | None) -> None:
        """Values with nothing pending and no candidate lose their turns; values with a candidate get one, the last."""
        for value in self.checks:
            has_some = value in self._cells or value in self.picked or (order is not None and order.has_live(value))
            if not has_some and value in self.turns:
                self._former_turns.setdefault(value, self.turns.pop(value))
        self.checks.clear()
        for _, value in sorted([(first, value) for value, first in self.newcomers.items()]):
            self._give_turn(value)
            self._compete(value, (self._owned(value, order), self._turn))
        self.newcomers.clear()

    # -- the whole --------------------------------------------------------------------------------------------------

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        values = 400 * len(self._cells) + 150 * len(self.turns)
        return 1000 + 400 * len(self.ranks) + 50 * len(self.expired) + values

    def check(self) -> None:
        """Assert the invariants."""
        assert self.ranks.keys() == self.waiting | set(self.seen)
        assert not self.waiting & set(self.seen)
        assert not self.ranks.keys() & set(self.expired)
        assert all(self.position < entry_id <= self.seen_to for entry_id in self.expired)
        cells = {(value, rank if value is None else 0, entry_id) for entry_id, (rank, value) in self.ranks.items()}
        assert cells == {(value, *cell) for value, queue in self.queues.items() for cell in queue}
        assert len(cells) == sum(len(queue) for queue in self.queues.values()), "an entry is in a queue twice"
        assert all(self.position < entry_id <= self.seen_to for entry_id in self.seen)
        assert all(self.queues.values())
        assert sorted(self._cells.values()) == list(self._order)
        assert {cell: value for value, cell in self._cells.items()} == self._values
        assert self.expiring.times.keys() <= self.ranks.keys()
        self.expiring.check()
        assert not self.picked
