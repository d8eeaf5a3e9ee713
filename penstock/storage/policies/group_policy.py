"""The policy of a consumer group: what PENSTOCK.POLICY set, and the moments at which released entries are ready."""

from typing import Final

from sortedcontainers import SortedList

from penstock.storage.policies.choice import Choice
from penstock.storage.policies.entry_moments import EntryMoments
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.policies.rate_window import RateWindow
from penstock.storage.policies.stream_policies import AT_ONCE, NONE
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.pending_block import MAX_COUNT, RELEASED, PendingBlock

BEFORE_ALL: Final = -1  # before every delivery time
LAST_SERIAL: Final = 2**63  # above every serial
FOREVER: Final = 2**63 - 1  # the end of a pause that has none
EXPIRE: Final = b"EXPIRE"  # options, no commands
EXPIRE_AT: Final = b"EXPIREAT"


class GroupSettings:
    """The options of PENSTOCK.POLICY for a group. Numbers are NONE if they are not set; times are in ms.

    paused_until_ms: nothing is handed out before. rate: so many entries at most are handed out in any span of rate_ms.
    in_flight: so many pending entries at most have an owner. gives_back: what a consumer holds goes back when the
    connection ends on which it was read as last. expire_ms: entries are worthless so long after their ids, or, where
    they have expire_field, from the moment on that it says.

    parallel: so many entries of a value of key_field may be handed out at once. fair: of the values, the one with the
    fewest entries with workers comes next. priority_field: first deliveries go by its level; aging_ms: what a level is
    worth. look_ahead: so many entries may be passed over.
    """

    __slots__ = (
        "ack_wait_ms", "aging_ms", "backoff_max_ms", "backoff_min_ms", "dead_letter", "expire_field", "expire_ms",
        "fair", "gives_back", "in_flight", "jitter_percent", "key_field", "look_ahead", "max_deliver", "parallel",
        "paused_until_ms", "priority_field", "rate", "rate_ms", "reap_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ack_wait_ms = NONE
        self.backoff_min_ms = NONE
        self.backoff_max_ms = NONE
        self.jitter_percent = NONE
        self.reap_ms = NONE
        self.max_deliver = NONE
        self.dead_letter: bytes | None = None
        self.key_field: bytes | None = None
        self.paused_until_ms = NONE
        self.rate = NONE
        self.rate_ms = NONE
        self.in_flight = NONE
        self.gives_back = False
        self.expire_ms = NONE
        self.expire_field: bytes | None = None
        self.parallel = NONE
        self.fair = False
        self.priority_field: bytes | None = None
        self.aging_ms = NONE
        self.look_ahead = NONE

    def copy(self) -> "GroupSettings":
        copied = GroupSettings()
        copied.ack_wait_ms, copied.reap_ms = self.ack_wait_ms, self.reap_ms
        copied.backoff_min_ms, copied.backoff_max_ms = self.backoff_min_ms, self.backoff_max_ms
        copied.jitter_percent = self.jitter_percent
        copied.key_field = self.key_field
        copied.max_deliver, copied.dead_letter = self.max_deliver, self.dead_letter
        copied.paused_until_ms, copied.in_flight = self.paused_until_ms, self.in_flight
        copied.rate, copied.rate_ms = self.rate, self.rate_ms
        copied.gives_back = self.gives_back
        copied.expire_ms, copied.expire_field = self.expire_ms, self.expire_field
        copied.parallel, copied.fair, copied.look_ahead = self.parallel, self.fair, self.look_ahead
        copied.priority_field, copied.aging_ms = self.priority_field, self.aging_ms
        return copied

    @property
    def chooses(self) -> bool:
        """Whether first deliveries are chosen, not handed out in the order of their ids."""
        return self.fair or self.priority_field is not None

    def pause_end_ms(self, now_ms: int) -> int:
        """When the pause ends; NONE without one, or if it is over (on a replica an ended pause remains set)."""
        return self.paused_until_ms if self.paused_until_ms > now_ms else NONE

    def orders_as(self, other: "GroupSettings") -> bool:
        """Whether of the same entries the same ones are first deliveries, in the same order, as with other settings."""
        return self._order() == other._order()

    def _order(self) -> tuple[object, ...]:
        choice = self.fair, self.priority_field, self.aging_ms, self.look_ahead
        return (self.key_field, self.parallel, *choice, self.expire_ms, self.expire_field)

    @property
    def expires(self) -> bool:
        """Whether entries may expire."""
        return self.expire_ms != NONE or self.expire_field is not None

    @property
    def has_limits(self) -> bool:
        """Whether PAUSE, RATE or INFLIGHT is set."""
        return max(self.paused_until_ms, self.rate, self.in_flight) != NONE

    @property
    def shows_more(self) -> bool:
        """Whether an option is set that has fields of its own in XINFO."""
        if self.has_limits or self.gives_back or self.expires or self.chooses:
            return True
        return max(self.parallel, self.look_ahead) != NONE

    @property
    def is_set(self) -> bool:
        """Whether anything is set."""
        if self.dead_letter is not None or self.key_field is not None or self.shows_more:
            return True
        return max(self.ack_wait_ms, self.backoff_min_ms, self.jitter_percent, self.reap_ms) != NONE


class GroupPolicy:
    """A group has this while a policy is set for it, or while some of its released entries are held.

    Invariants: `ready` has the released entries with a known moment, and for each when it is ready and a serial in
    order of release; `order` has exactly the cells (ready_ms, serial, id). An entry with a moment to come is *held*.
    Owned entries delivered up to `examined_ms` were looked at after their leases ended; those in id order (see
    streams/delivery_order.py) have ids below `examined_id`. So were later ones up to `last_examined`, which was
    delivered at `last_examined_ms`, while it stands where it stood. Holds up to `examined_holds_ms` were, too.
    trimmed_below: deleted pending entries below this id were looked at. reap_due_ms: no
    consumer is to be removed before. is_behind: more leases have ended than a tick
    looked at.

    keys: with KEY, the pending entries by their values; its waiting entries are released, and not in `ready`. None
    until it is first needed. choice: with PRIORITY or FAIR, the entries to choose from; its waiting entries are not in
    `ready` either. None until it is first needed.

    window: the deliveries that RATE counts. is_short, is_stopped: since readers were last woken, a read lacked room
    under INFLIGHT, or was stopped by PAUSE or RATE.

    readers: with gives_back, the id of the session that read as each consumer last. released: entries that connections
    gave back when they ended.

    attempts: of released entries that the dead letters could not take: how often they were delivered, and the last
    consumer. They are kept until an entry is delivered again, or is not pending any more.

    expiring: with `expires`, when each known released entry is worthless. None until it is first needed. expired:
    entries that were worthless, and were dropped.

    n is the number of released entries. `redelivered`, `dead_lettered` and `reaped` count
    since the start. blocked: why dead letters cannot move, empty if they can.
    """

    __slots__ = (
        "attempts", "blocked", "choice", "dead_lettered", "examined_holds_ms", "examined_id", "examined_ms", "expired",
        "expiring", "is_behind", "is_short", "is_stopped", "keys", "last_examined", "last_examined_ms", "order",
        "readers", "ready", "reap_due_ms", "reaped", "redelivered", "released", "serial", "settings", "trimmed_below",
        "window",
    )  # fmt: skip

    def __init__(self) -> None:
        self.settings = GroupSettings()
        self.window = RateWindow()
        self.is_short = self.is_stopped = False
        self.ready: dict[StreamId, tuple[int, int]] = {}
        self.order: SortedList[tuple[int, int, StreamId]] = SortedList()
        self.serial = 0
        self.keys: KeyOrder | None = None
        self.choice: Choice | None = None
        self.examined_ms = BEFORE_ALL
        self.examined_id: StreamId = 0
        self.last_examined: StreamId = 0
        self.last_examined_ms = BEFORE_ALL
        self.examined_holds_ms = BEFORE_ALL
        self.is_behind = False
        self.trimmed_below: StreamId = 0
        self.redelivered = 0
        self.dead_lettered = 0
        self.attempts: dict[StreamId, tuple[int, bytes]] = {}
        self.blocked = b""
        self.reaped = 0
        self.reap_due_ms = AT_ONCE
        self.readers: dict[bytes, int] = {}
        self.released = 0
        self.expiring: EntryMoments | None = None
        self.expired = 0

    def release(self, entry_id: StreamId, ready_ms: int) -> None:
        """An entry was released, and is ready from a moment on. O(log n)."""
        self.drop_moment(entry_id)
        self.serial += 1
        self.ready[entry_id] = (ready_ms, self.serial)
        self.order.add((ready_ms, self.serial, entry_id))

    def leave(self, entry_id: StreamId) -> None:
        """An entry is not released any more. O(log n)."""
        if self.expiring is not None:
            self.expiring.drop(entry_id)
        if self.choice is not None:
            self.choice.drop_waiting(entry_id)
        self.drop_moment(entry_id)

    def drop_moment(self, entry_id: StreamId) -> None:
        """An entry is not ready, and does not wait."""
        if self.keys is not None:
            self.keys.waiting.discard(entry_id)
        moment = self.ready.pop(entry_id, None)
        if moment is not None:
            self.order.remove((*moment, entry_id))

    def forget_deleted(self, entry_id: StreamId) -> None:
        """An entry was deleted from the stream: no entry waits for it, and it neither waits nor is chosen. O(log n)."""
        waits = False
        if self.keys is not None:
            self.keys.forget_deleted(entry_id)
            waits = entry_id in self.keys.waiting
        if self.choice is not None:
            waits = waits or entry_id in self.choice.waiting
            self.choice.drop(entry_id)
        if waits:
            self.release(entry_id, 0)  # the next read drops it

    def expire_candidates(self, now_ms: int) -> None:
        """Entries that have expired may not be chosen; others may come into reach. O(log n) for each of them."""
        choice = self.choice
        while choice is not None and choice.expiring.first_ms() <= now_ms:
            entry_id = choice.expiring.first()
            if entry_id in choice.waiting:
                choice.drop(entry_id)
                self.release(entry_id, 0)  # it moves as soon as the dead letters can take it
            else:
                choice.expire(entry_id)

    def leave_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `leave` for the released ones of the slots [start, stop)."""
        if self.known_count or (self.expiring is not None and self.expiring.times):
            for slot in range(start, stop):
                if block.owners[slot] == RELEASED:
                    self.leave(block.id_at(slot))

    def give_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """The slots [start, stop), which still have their owners, get another one. Costs as `leave`."""
        self.leave_run(block, start, stop)
        if self.attempts:
            for slot in range(start, stop):
                if block.counts[slot] != MAX_COUNT:  # after FATAL only JUSTID claims it
                    self.attempts.pop(block.id_at(slot), None)
        if self.keys is not None and self.keys.counts:
            for slot in range(start, stop):
                self.keys.own(block.id_at(slot))

    def release_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """The slots [start, stop), which still have their owners, lose them. Costs as `leave`."""
        self.leave_run(block, start, stop)
        if self.keys is not None and self.keys.counts:
            for slot in range(start, stop):
                self.keys.lose(block.id_at(slot))

    def forget_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """The slots [start, stop), which still have their owners, will not be pending any more. Costs as `leave`."""
        self.leave_run(block, start, stop)
        if self.attempts:
            for slot in range(start, stop):
                self.attempts.pop(block.id_at(slot), None)
        if self.keys is not None:
            for slot in range(start, stop):
                self.keys.drop(block.id_at(slot))

    def is_known(self, entry_id: StreamId) -> bool:
        """Whether a released entry has a moment, waits for its value, or may be chosen. O(1)."""
        if entry_id in self.ready or (self.keys is not None and entry_id in self.keys.waiting):
            return True
        return self.choice is not None and entry_id in self.choice.waiting

    @property
    def known_count(self) -> int:
        """How many released entries are known. O(1)."""
        known = len(self.ready) + (0 if self.keys is None else len(self.keys.waiting))
        return known + (0 if self.choice is None else len(self.choice.waiting))

    def held(self, now_ms: int) -> list[tuple[int, int, StreamId]]:
        """The cells of held entries, by moment. O(log n + held)."""
        return list(self.order.irange((now_ms, LAST_SERIAL, 0)))

    def held_count(self, now_ms: int) -> int:
        """How many entries are held. O(log n)."""
        return len(self.order) - self.order.bisect_right((now_ms, LAST_SERIAL, 0))

    def next_hold_ms(self, now_ms: int) -> int:
        """When the first held entry is ready; NONE if none is held. O(log n)."""
        at = self.order.bisect_right((now_ms, LAST_SERIAL, 0))
        return self.order[at][0] if at < len(self.order) else NONE

    def go_back_to(self, last_id: StreamId) -> None:
        """XSETID has set the stream's last id back: ids above it, which were looked at, may be those of new entries."""
        if self.choice is not None:
            self.choice.go_back_to(last_id)
        if self.keys is not None:
            self.keys.deleted_below = min(self.keys.deleted_below, last_id + 1)
        self.trimmed_below = min(self.trimmed_below, last_id + 1)
        self.examine_anew()

    def revive(self, entry_id: StreamId) -> None:
        """An entry was added with the id of a pending one that was deleted: its fields are found when next needed."""
        self.expiring = None
        self.attempts.pop(entry_id, None)
        if self.keys is not None:
            self.keys.drop(entry_id)

    def forget_order(self) -> None:
        """Have what waits and what may be chosen found again: the order is another, or changes were not noted."""
        self.keys = self.choice = self.expiring = None

    def examine_anew(self) -> None:
        """Have all entries looked at again: the settings changed, or the group was loaded."""
        self.examined_ms = self.last_examined_ms = self.examined_holds_ms = BEFORE_ALL
        self.examined_id = 0
        self.reap_due_ms = AT_ONCE

    def copy(self) -> "GroupPolicy":
        """A copy that shares nothing. O(n log n)."""
        copied = GroupPolicy()
        copied.settings = self.settings.copy()
        copied.ready, copied.order, copied.serial = dict(self.ready), SortedList(self.order), self.serial
        copied.window, copied.attempts = self.window.copy(), dict(self.attempts)
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes. O(1)."""
        keys = 0 if self.keys is None else self.keys.memory_usage()
        keys += 0 if self.choice is None else self.choice.memory_usage()
        expiring = 0 if self.expiring is None else len(self.expiring.times)
        return (
            1000
            + 350 * len(self.ready)
            + 250 * len(self.attempts)
            + 100 * len(self.window.pairs)
            + 250 * expiring
            + keys
        )

    def check(self) -> None:
        """Assert the invariants."""
        assert list(self.order) == sorted((*moment, entry_id) for entry_id, moment in self.ready.items())
        self.window.check()
        if self.expiring is not None:
            self.expiring.check()
            assert all(self.is_known(entry_id) for entry_id in self.expiring.times)
        if self.keys is not None:
            self.keys.check()
            assert not self.keys.waiting & self.ready.keys()
        if self.choice is not None:
            self.choice.check()
            assert not self.choice.waiting & self.ready.keys()
