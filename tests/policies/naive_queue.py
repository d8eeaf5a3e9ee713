"""A naive model of one group with its leases, holds, dead letters, keys and retention, written from the text.

Everything is a list that is looked through from the beginning. It predicts what `XREADGROUP GROUP g <consumer> COUNT n
STREAMS s >` replies, with BLOCK 0 and with CLAIM too, the pending list, the dead letters and what is left in the
stream. Times are in ms.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Entry:
    """An entry of the stream, and what the group has of it."""

    number: int
    value: str
    state: str = "new"  # or "owned", "released", "waiting", "done", "dead"
    owner: str = ""
    delivered_ms: int = 0
    count: int = 0
    ready_ms: int = 0
    rank: int = 0  # among entries that were handed out, or released, at one moment


class NaiveQueue:
    """ACKWAIT 1000 BACKOFF 300 900 MAXDELIVER 3 DEADLETTER dead KEY k, and MAXLEN 0 ACKED."""

    ACK_WAIT_MS, SHORTEST_MS, LONGEST_MS, MOST = 1000, 300, 900, 3

    def __init__(self, keyed: bool) -> None:
        self.keyed = keyed
        self.entries: list[Entry] = []
        self.dead: list[tuple[int, str]] = []
        self.now_ms = 0
        self._rank = 0
        self.waiting: list[tuple[str, int]] = []
        self._served: dict[str, list[int]] = {}

    def add(self, number: int, value: str) -> None:
        self.entries.append(Entry(number, value))

    def _is_pending(self, entry: Entry) -> bool:
        return entry.state in ("owned", "released", "waiting")

    def _is_free(self, entry: Entry) -> bool:
        """Whether no older pending entry has the same value."""
        older = self.entries[: self.entries.index(entry)]
        return not self.keyed or not any(self._is_pending(other) and other.value == entry.value for other in older)

    def read(self, consumer: str, count: int, claim_ms: int = ACK_WAIT_MS) -> list[int]:
        """Released ones by the moment they were ready, then ended leases by delivery time, then new ones.

        What may not be delivered again becomes a dead letter instead.
        """
        ready = [entry for entry in self.entries if entry.state == "released" and entry.ready_ms <= self.now_ms]
        ready.sort(key=lambda entry: (entry.ready_ms, entry.rank))
        ended = [
            entry for entry in self.entries if entry.state == "owned" and self.now_ms - entry.delivered_ms >= claim_ms
        ]
        ended.sort(key=lambda entry: (entry.delivered_ms, entry.rank))
        again: list[Entry] = []
        exhausted: list[Entry] = []
        for entry in [entry for entry in ready + ended if self._is_free(entry)]:
            if len(again) < count:
                (exhausted if entry.count >= self.MOST else again).append(entry)
        for entry in exhausted:
            self._bury(entry)
        got = [self._hand_out(entry, consumer) for entry in again]
        self._settle()
        for entry in self.entries:
            if entry.state == "new" and len(got) < count:
                if self._is_free(entry):
                    got.append(self._hand_out(entry, consumer))
                else:
                    entry.state = "waiting"
        return got

    # -- blocked readers --------------------------------------------------------------------------------------------

    def block(self, consumer: str, count: int) -> None:
        """A read that waits until there is something."""
        self.waiting.append((consumer, count))

    def serve(self) -> dict[str, list[int]]:
        """After every command, and whenever a lease or a hold ends: first come, first served. What each gets."""
        while self.waiting and (got := self.read(*self.waiting[0])):
            self._served[self.waiting.pop(0)[0]] = got
        return self._served

    def taken(self) -> dict[str, list[int]]:
        """What readers were served since this was last asked."""
        served, self._served = self.serve(), {}
        return served

    # -- changes ----------------------------------------------------------------------------------------------------

    def _hand_out(self, entry: Entry, consumer: str) -> int:
        entry.state, entry.owner, entry.delivered_ms = "owned", consumer, self.now_ms
        entry.count += 1
        self._rank += 1
        entry.rank = self._rank
        return entry.number

    def acknowledge(self, number: int) -> None:
        for entry in self.entries:
            if entry.number == number and self._is_pending(entry):
                entry.state = "done"
        self._settle()

    def fail(self, number: int, delay_ms: int) -> None:
        """XNACK FAIL, or with a delay PENSTOCK.XNACK FAIL DELAY."""
        for entry in self.entries:
            if entry.number == number and self._is_pending(entry):
                self._fail(entry, delay_ms)
        self._settle()

    def _fail(self, entry: Entry, delay_ms: int) -> None:
        if entry.count >= self.MOST:
            self._bury(entry)
        else:
            backoff_ms = min(self.LONGEST_MS, self.SHORTEST_MS * 2 ** max(entry.count - 1, 0))
            self._release(entry, self.now_ms + (delay_ms or backoff_ms))

    def delete_consumer(self, consumer: str) -> None:
        """XGROUP DELCONSUMER: what it had is given back, as by XNACK FAIL."""
        for entry in self.entries:
            if entry.state == "owned" and entry.owner == consumer:
                self._fail(entry, 0)
        self._settle()

    def claim(self, number: int, consumer: str) -> None:
        """XCLAIM with a min-idle-time of 0: whatever holds the entry back."""
        for entry in self.entries:
            if entry.number == number and self._is_pending(entry):
                if entry.count >= self.MOST:
                    self._bury(entry)
                else:
                    self._hand_out(entry, consumer)
        self._settle()

    def renew(self, number: int) -> None:
        """XCLAIM JUSTID by the owner: the lease begins anew."""
        for entry in self.entries:
            if entry.number == number and entry.state == "owned":
                self._hand_out(entry, entry.owner)
                entry.count -= 1

    def silence(self, number: int) -> None:
        """XNACK SILENT."""
        for entry in self.entries:
            if entry.number == number and self._is_pending(entry):
                entry.count = max(entry.count - 1, 0)
                self._release(entry, self.now_ms)
        self._settle()

    def _release(self, entry: Entry, ready_ms: int) -> None:
        self._rank += 1
        entry.state, entry.owner, entry.delivered_ms = "released", "", 0
        entry.ready_ms, entry.rank = ready_ms, self._rank

    def _bury(self, entry: Entry) -> None:
        self.dead.append((entry.number, f"delivered {entry.count} times"))
        entry.state = "dead"

    def advance(self, ms: int) -> None:
        """Moment by moment: an exhausted entry moves at the end of its lease, readers get what is ready."""
        end_ms = self.now_ms + ms
        while True:
            ends = [entry.delivered_ms + self.ACK_WAIT_MS for entry in self.entries if entry.state == "owned"]
            holds = [entry.ready_ms for entry in self.entries if entry.state == "released"]
            moments = [moment for moment in ends + holds if self.now_ms < moment <= end_ms]
            if not moments:
                break
            self.now_ms = min(moments)
            ended = [
                entry
                for entry in self.entries
                if entry.state == "owned" and self.now_ms - entry.delivered_ms >= self.ACK_WAIT_MS
            ]
            for entry in sorted(ended, key=lambda entry: (entry.delivered_ms, entry.rank)):
                if entry.count >= self.MOST:
                    self._bury(entry)
            self._settle()
            self.serve()
        self.now_ms = end_ms

    def _settle(self) -> None:
        """An entry that waited for its key is ready when it is free."""
        freed = [entry for entry in self.entries if entry.state == "waiting" and self._is_free(entry)]
        for entry in sorted(freed, key=lambda entry: entry.value):
            self._release(entry, self.now_ms)

    # -- what is seen -----------------------------------------------------------------------------------------------

    def pending(self) -> list[tuple[int, str, int, int]]:
        """The rows of XPENDING."""
        return [
            (entry.number, entry.owner, self.now_ms - entry.delivered_ms if entry.owner else -1, entry.count)
            for entry in self.entries
            if self._is_pending(entry)
        ]

    def left(self) -> list[int]:
        """What MAXLEN 0 ACKED leaves."""
        return [entry.number for entry in self.entries if entry.state not in ("done", "dead")]
