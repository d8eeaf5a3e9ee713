"""A naive model of how a group chooses what it hands out, written from the text: everything is a list.

It knows leases, holds, dead letters, PAUSE, RATE, INFLIGHT, KEY, PARALLEL, FAIR, PRIORITY, AGING, LOOKAHEAD and EXPIRE.
Entries are numbers that ascend. Times are in ms.
"""

from dataclasses import dataclass, field

NEVER = 2**62
MOST_WAITING = 10_000


@dataclass(slots=True)
class Plan:
    """A group's policy. 0: not set."""

    ack_wait_ms: int = 0
    backoff_ms: tuple[int, int] = (0, 0)
    most: int = 0
    has_dead_letters: bool = False
    in_flight: int = 0
    rate: tuple[int, int] = (0, 0)
    keyed: bool = False
    expire_ms: int = 0
    expires_at: bool = False
    parallel: int = 0
    fair: bool = False
    by_priority: bool = False
    aging_ms: int = 0
    look_ahead: int | None = None

    @property
    def chooses(self) -> bool:
        return self.fair or self.by_priority

    def words(self) -> str:
        """As PENSTOCK.POLICY has it."""
        backoff = " ".join(map(str, self.backoff_ms)) if any(self.backoff_ms) else 0
        options = [
            ("ACKWAIT", self.ack_wait_ms), ("BACKOFF", backoff),
            ("MAXDELIVER", self.most), ("DEADLETTER", "dead" if self.has_dead_letters else 0),
            ("INFLIGHT", self.in_flight), ("RATE", " ".join(map(str, self.rate)) if any(self.rate) else 0),
            ("PARALLEL", self.parallel), ("FAIR", "YES" if self.fair else 0),
            ("PRIORITY", "p" if self.by_priority else 0), ("AGING", self.aging_ms),
            ("LOOKAHEAD", 0 if self.look_ahead is None else str(self.look_ahead)),
            ("KEY", "k" if self.keyed else 0), ("EXPIRE", self.expire_ms), ("EXPIREAT", "at" if self.expires_at else 0),
        ]  # fmt: skip
        return " ".join(f"{name} {value}" for name, value in options if value)


@dataclass(slots=True)
class Entry:
    """An entry, and what the group has of it. state: new, owned, released, waiting, done, dead, expired or deleted."""

    number: int
    value: str
    expires_ms: int
    added_ms: int = 0
    level: int = 4
    state: str = "new"
    owner: str = ""
    delivered_ms: int = 0
    count: int = 0
    ready_ms: int = 0
    rank: int = 0  # among entries that were handed out, or released, at one moment


@dataclass(slots=True)
class NaiveScheduler:
    """One group, and the readers that wait for it."""

    plan: Plan
    now_ms: int
    entries: list[Entry] = field(default_factory=list)
    dead: list[tuple[int, str]] = field(default_factory=list)
    deliveries: list[tuple[int, int]] = field(default_factory=list)  # for RATE: moment and number
    blocked: list[tuple[str, int]] = field(default_factory=list)
    paused: bool = False
    expired: int = 0  # that were dropped
    turns: dict[str, int] = field(default_factory=dict)
    turn: int = 0
    rank: int = 0
    served: dict[str, list[int]] = field(default_factory=dict)

    # -- what holds -------------------------------------------------------------------------------------------------

    def pending(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state in ("owned", "released", "waiting")]

    def new(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state == "new"]

    def waiting(self) -> list[Entry]:
        """What was passed over."""
        if self.plan.chooses:
            return [entry for entry in self.ready() if not entry.count]
        return [entry for entry in self.pending() if entry.state == "waiting"]

    def ready(self) -> list[Entry]:
        return [entry for entry in self.pending() if entry.state == "released" and entry.ready_ms <= self.now_ms]

    def owned(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state == "owned"]

    def is_free(self, entry: Entry) -> bool:
        """Whether few older pending entries have the same value."""
        older = [other for other in self.pending() if other.value == entry.value and other.number < entry.number]
        return not self.plan.keyed or not entry.value or len(older) < (self.plan.parallel or 1)

    def is_expired(self, entry: Entry) -> bool:
        return entry.expires_ms <= self.now_ms

    def is_exhausted(self, entry: Entry) -> bool:
        return bool(self.plan.most) and entry.count >= self.plan.most

    def has_room(self) -> bool:
        return not self.plan.in_flight or len(self.owned()) < self.plan.in_flight

    def left_of_rate(self) -> int:
        most, span_ms = self.plan.rate
        within = [moment for moment, _ in self.deliveries if moment > self.now_ms - span_ms]
        return most - len(within) if most else NEVER

    def moved(self) -> int:
        """How many entries went to the dead letters, or expired."""
        return len(self.dead) + self.expired

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, consumer: str, count: int, no_ack: bool = False) -> list[int]:
        most = 0 if self.paused else min(count, self.left_of_rate())
        if most <= 0:
            return []
        got = self._again(consumer, most) if self.plan.ack_wait_ms and not no_ack else []
        got += self._first(consumer, most - len(got), no_ack)
        self.deliveries += [(self.now_ms, number) for number in got]
        self.settle()
        return got

    def retries(self) -> list[Entry]:
        """What was given back and is ready."""
        return [entry for entry in self.ready() if entry.count or not self.plan.chooses]

    def _again(self, consumer: str, most: int) -> list[int]:
        """Released ones by the moment they were ready, then ended leases by delivery time."""
        ready = self.retries()
        ended = [entry for entry in self.owned() if self.now_ms - entry.delivered_ms >= self.plan.ack_wait_ms]
        taken: list[Entry] = []
        aside: list[Entry] = []
        room = self.plan.in_flight - len(self.owned()) if self.plan.in_flight else NEVER
        ready.sort(key=lambda entry: (entry.ready_ms, entry.rank))
        ended.sort(key=lambda entry: (entry.delivered_ms, entry.rank))
        for entry in [entry for entry in ready + ended if self.is_free(entry)]:
            if len(taken) == most:
                break
            if self.is_exhausted(entry) or self.is_expired(entry):
                aside.append(entry)
            elif entry.state == "owned" or room > 0:
                room -= entry.state == "released"
                taken.append(entry)
        for entry in aside:
            self._set_aside(entry)
        got = [self._hand_out(entry, consumer) for entry in taken]
        self._free_values()
        return got

    def _first(self, consumer: str, most: int, no_ack: bool) -> list[int]:
        """New ones in the order of their ids; or the best, one after the other."""
        got: list[int] = []
        while self.plan.chooses and not no_ack and len(got) < most and self.has_room() and (best := self._best()):
            for entry in self.new() if best.state == "new" else []:
                if entry.number < best.number:
                    self._set_aside(entry) if self.is_expired(entry) else self._release(entry, self.now_ms)
            got.append(self._hand_out(best, consumer))
        for entry in self.new() if no_ack or not self.plan.chooses else []:
            if len(got) >= most or not (no_ack or self.has_room()):
                break
            if self.is_expired(entry):
                self._set_aside(entry)
            elif not self.is_free(entry):
                if len(self.waiting()) >= self._look_ahead():
                    break
                self._release(entry, self.now_ms)
                entry.state = "released" if self.plan.chooses else "waiting"
            else:
                got.append(self._hand_out(entry, consumer))
                if no_ack:
                    entry.state = "done"
        return got

    def _look_ahead(self) -> int:
        return MOST_WAITING if self.plan.look_ahead is None else self.plan.look_ahead

    def _candidates(self) -> list[Entry]:
        """Of each value the first that is in reach, if few of it are pending below; all of those without a value."""
        new = [entry for entry in self.new() if not self.is_expired(entry)]
        waiting = self.waiting()
        in_reach = [entry for front, entry in enumerate(new) if not front or len(waiting) + front <= self._look_ahead()]
        found = [entry for entry in waiting + in_reach if not self.is_expired(entry)]
        if not self.plan.keyed:
            return found
        firsts = {entry.value: entry.number for entry in sorted(found, key=lambda entry: -entry.number)}
        return [
            entry for entry in found if not entry.value or (firsts[entry.value] == entry.number and self.is_free(entry))
        ]

    def _best(self) -> Entry | None:
        candidates = self._candidates()
        if not candidates:
            return None
        if self.plan.fair:
            there = {entry.value for entry in self.pending() + candidates}
            self.turns = {value: turn for value, turn in self.turns.items() if value in there}
            for entry in sorted(candidates, key=lambda entry: entry.number):
                if entry.value not in self.turns:
                    self._move_turn(entry.value)
        best = min(candidates, key=self._place)
        self._move_turn(best.value)
        return best

    def _move_turn(self, value: str) -> None:
        self.turn += 1
        self.turns[value] = self.turn

    def _place(self, entry: Entry) -> tuple[int, ...]:
        busy = sum(other.value == entry.value for other in self.owned())
        fair = (busy, self.turns[entry.value]) if self.plan.fair else (0, 0)
        aged_ms = entry.added_ms - entry.level * self.plan.aging_ms if self.plan.aging_ms else -entry.level
        return (*fair, aged_ms if self.plan.by_priority else 0, entry.number)

    # -- blocked readers --------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """First come, first served, as long as there is something; also what a read that got nothing has freed."""
        moved = -1
        while self.blocked and moved != self.moved():
            moved = self.moved()
            while self.blocked and (got := self.read(*self.blocked[0])):
                self.served[self.blocked.pop(0)[0]] = got

    def taken(self) -> dict[str, list[int]]:
        self.serve()
        served, self.served = self.served, {}
        return served

    # -- changes ----------------------------------------------------------------------------------------------------

    def _hand_out(self, entry: Entry, consumer: str) -> int:
        entry.state, entry.owner, entry.delivered_ms = "owned", consumer, self.now_ms
        entry.count += 1
        self.rank += 1
        entry.rank = self.rank
        return entry.number

    def _release(self, entry: Entry, ready_ms: int) -> None:
        self.rank += 1
        entry.state, entry.owner, entry.delivered_ms = "released", "", 0
        entry.ready_ms, entry.rank = ready_ms, self.rank

    def _set_aside(self, entry: Entry, is_failure: bool = True) -> None:
        """To the dead letters, or what has expired without them: nowhere."""
        reason = f"delivered {entry.count} times" if self.is_exhausted(entry) and is_failure else "expired"
        entry.state = "dead"
        if self.plan.has_dead_letters:
            self.dead.append((entry.number, reason))
        else:
            entry.state = "expired"
            self.expired += 1

    def settle(self) -> None:
        """At the end of each command, and at each moment: what has expired moves, what waited is ready when it may."""
        unowned = [entry for entry in self.pending() if entry.state != "owned" and self.is_expired(entry)]
        for entry in sorted(unowned, key=lambda entry: (entry.expires_ms, entry.number)):
            self._set_aside(entry)
        for entry in self.new():
            if not self.is_expired(entry):
                break
            self._set_aside(entry)
        self._free_values()

    def _free_values(self) -> None:
        waiting = [] if self.plan.chooses else self.waiting()
        for entry in sorted(waiting, key=lambda entry: entry.value):
            if self.is_free(entry):
                self._release(entry, self.now_ms)

    def add(self, number: int, value: str, expires_ms: int, level: int) -> None:
        self.entries.append(Entry(number, value, expires_ms, self.now_ms, level))
        self.settle()

    def _of(self, number: int) -> Entry | None:
        return next((entry for entry in self.pending() if entry.number == number), None)

    def acknowledge(self, number: int) -> None:
        entry = self._of(number)
        if entry is not None:
            entry.state = "done"
        self.settle()

    def fail(self, number: int, delay_ms: int, is_silent: bool = False) -> None:
        """XNACK FAIL or SILENT, or with a delay PENSTOCK.XNACK."""
        entry = self._of(number)
        if entry is not None:
            entry.count -= is_silent and entry.count > 0
            if (not is_silent and self.is_exhausted(entry)) or self.is_expired(entry):
                self._set_aside(entry, not is_silent)
            else:
                shortest_ms, longest_ms = self.plan.backoff_ms
                backoff_ms = 0 if is_silent else min(longest_ms, shortest_ms * 2 ** max(entry.count - 1, 0))
                self._release(entry, self.now_ms + (delay_ms or backoff_ms))
        self.settle()

    def delete_consumer(self, consumer: str) -> None:
        for entry in [entry for entry in self.owned() if entry.owner == consumer]:
            self.fail(entry.number, 0)

    def claim(self, number: int, consumer: str, is_heartbeat: bool) -> None:
        """XCLAIM with a min-idle-time of 0, and JUSTID where it is a heartbeat."""
        entry = self._of(number)
        if entry is None:
            return
        if not is_heartbeat and (self.is_exhausted(entry) or self.is_expired(entry)):
            self._set_aside(entry)
        else:
            self._hand_out(entry, consumer)
            entry.count -= is_heartbeat
        self.settle()

    def delete_new(self, number: int) -> None:
        """XDEL of an entry that the group has not read."""
        for entry in self.new():
            if entry.number == number:
                entry.state = "deleted"
        self.settle()

    def advance(self, ms: int) -> None:
        """Moment by moment: what comes due is done, and readers get what is ready."""
        end_ms = self.now_ms + ms
        while moments := [moment for moment in self._moments() if self.now_ms < moment <= end_ms]:
            self.now_ms = min(moments)
            self.settle()  # of what is due at one moment, what has no owner goes first
            self._look_at_leases(self.now_ms)
            self.settle()
            self.serve()
        self.now_ms = end_ms

    def restart(self) -> None:
        """FAIR's turns begin anew."""
        self.turns = {}
        for entry in self.ready():
            entry.ready_ms = 0
        self.look_anew()

    def look_anew(self) -> None:
        """After a start, and when the policy is set: at all leases that are over."""
        self._look_at_leases(0)
        self.settle()

    def _look_at_leases(self, since_ms: int) -> None:
        """Those that ended since a moment."""
        for entry in sorted(self.owned(), key=lambda entry: (entry.delivered_ms, entry.rank)):
            is_over = self.plan.ack_wait_ms and since_ms <= entry.delivered_ms + self.plan.ack_wait_ms <= self.now_ms
            if is_over and (self.is_exhausted(entry) or self.is_expired(entry)):
                self._set_aside(entry)

    def _moments(self) -> list[int]:
        ends = [entry.delivered_ms + self.plan.ack_wait_ms for entry in self.owned() if self.plan.ack_wait_ms]
        holds = [entry.ready_ms for entry in self.pending() if entry.state == "released"]
        expiries = [entry.expires_ms for entry in self.entries]
        windows = [moment + self.plan.rate[1] for moment, _ in self.deliveries]
        return ends + holds + expiries + windows

    # -- what is seen -----------------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[int, str, int, int]]:
        """Those of XPENDING."""
        return [
            (entry.number, entry.owner, self.now_ms - entry.delivered_ms if entry.owner else -1, entry.count)
            for entry in self.pending()
        ]
