"""A random history of a stream with policies, and what must hold at any moment of it.

A history is a list of triples of numbers; each is read as a request that fits the state, so that hypothesis can shrink
it. The laws here are written from the text of docs/policies.md, not from the code.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.replay import Replay, Tail
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.engine import Engine
from penstock.protocol.log_reader import whole_requests
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import ACKNOWLEDGED
from tests.policies.conftest import PolicyDialogue
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine, make_engine
from tests.support.keyspace_picture import KEPT, SAVED, keyspace, stream_picture
from tests.support.log import UnitLog
from tests.support.memory_disk import MemoryDisk
from tests.support.same_result import told_on_failure

Step = tuple[int, int, int]

CONSUMERS = ("a", "b", "c")
STREAM_POLICIES = (
    "MAXLEN 0 ACKED", "MAXLEN 3 ACKED", "MAXAGE 5000 ACKED", "MAXLEN 4 KEEPREF", "MAXLEN 5 DELREF", "MAXAGE 8000",
    "MAXLEN NONE MAXAGE NONE KEEPREF", "RESET",
)  # fmt: skip
GROUP_POLICIES = (
    "ACKWAIT 1000", "ACKWAIT 3000 BACKOFF 500 2000", "ACKWAIT 1000 KEY k", "ACKWAIT 2000 MAXDELIVER 2 DEADLETTER dead",
    "ACKWAIT 500 REAP 4000", "MAXDELIVER 3 DEADLETTER dead", "JITTER 50 BACKOFF 100 1000 ACKWAIT 700", "RESET",
)  # fmt: skip
ADVANCES = (0, 1, 99, 500, 999, 1000, 1001, 3000, 10_000)


class History:
    """One history, told to an engine.

    done: entries that each group acknowledged, or need not read. skipped: those that its position passed over. kept:
    those up to one that no group needed then, which stay until a retention option is named. said: what the client
    was told, but for the answers to CLOCK. heard: what blocked readers were served. there: the stream's ids at the last
    check. removes: the present request may remove entries that a group needs. has_deleted: some request did, or set a
    position.
    """

    def __init__(self, pieces: int = 1) -> None:
        self.log = UnitLog()
        self.engine: Engine = make_engine(MovableClock(ManualClock(NOW_MS)), self.log)
        self.pieces = pieces  # of each advance of the clock
        self.done: dict[str, set[bytes]] = {"g": set(), "h": set()}
        self.skipped: dict[str, set[bytes]] = {"g": set(), "h": set()}
        self.kept: set[bytes] = set()
        self.said: list[object] = []
        self.heard: dict[str, list[str]] = {name: [] for name in CONSUMERS}
        self.there: set[bytes] = set()
        self.removes = self.has_deleted = self._trimmed_before = False
        self.client = PolicyDialogue(self.engine, self.log)
        self._connect()
        self.client(f"PENSTOCK.CLOCK SET {NOW_MS}", "XADD s * k x", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0")

    def _connect(self) -> None:
        asked = self.client.asked
        self.client = PolicyDialogue(self.engine, self.log)
        self.client.asked = asked
        self.readers = [self.client.another() for _ in CONSUMERS]

    def ask(self, line: str) -> Any:
        answer = self.client(line)
        if not line.startswith("PENSTOCK.CLOCK"):
            self.said.append((line, repr(answer)))
        if line.startswith("XREADGROUP"):
            self._note_hand_outs(line.split()[2], answer)
        self.check()
        return answer

    @property
    def stream(self) -> Stream | None:
        value = self.engine.keyspace.databases[0].values.get(b"s")
        return value if isinstance(value, Stream) else None

    def entry(self, number: int) -> str:
        """An id of the stream; of no entry if there is none."""
        listed = [entry[0].decode() for entry in self.client("XRANGE s - +")]
        return listed[number % len(listed)] if listed else "1-1"

    def pending(self, group: str, number: int) -> str:
        """An id that is pending in a group."""
        listed = self.client(f"XPENDING s {group} - + 100")
        return listed[number % len(listed)][0].decode() if listed else self.entry(number)

    def begin(self, step: Step) -> None:
        """Most histories have policies from their beginning on."""
        kind, one, two = step
        if kind:
            self._set_stream_policy(one, two)
            self.ask(f"PENSTOCK.POLICY s GROUP g {GROUP_POLICIES[two % 5]}")

    def take(self, step: Step) -> None:
        """Carry out one step."""
        kind, one, two = step
        steps: tuple[Callable[[int, int], None], ...] = (
            self._add, self._add, self._read, self._read, self._read, self._acknowledge, self._acknowledge, self._nack,
            self._advance, self._advance, self._block, self._set_stream_policy, self._set_group_policy, self._claim,
            self._delete, self._delete_consumer, self._schedule, self._restart, self._move,
            self._set_position, self._finish, self._pass_over,
        )  # fmt: skip
        steps[kind % len(steps)](one, two)

    def _add(self, one: int, two: int) -> None:
        self.ask(f"XADD s * {('k', 'n')[two % 5 == 0]} {'xyz'[one % 3]}")

    def _read(self, one: int, two: int) -> None:
        claim = ("", "", "", "CLAIM 700 ")[two % 4]
        group = "gh"[one % 4 == 0]
        line = f"XREADGROUP GROUP {group} {CONSUMERS[two % 3]} COUNT {1 + one % 3} {claim}STREAMS s >"
        answer = self.ask(line)
        if not claim and sum(len(entries) for _, entries in answer or []) < 1 + one % 3:
            self.check_a_read_leaves_no_deleted_entry_without_an_owner(group)

    def _acknowledge(self, one: int, two: int) -> None:
        group = "gh"[two % 3 == 0]
        entry_id = self.pending(group, one)
        answer = self.client(f"XACK s {group} {entry_id}")
        self.said.append(answer)
        if answer == 1:
            self.done[group].add(entry_id.encode())
        self.check()

    def _finish(self, one: int, two: int) -> None:
        """A group reads all and acknowledges all that it has: what is kept from now on, no group needs."""
        for group in ("g", "h") if one % 2 else ("gh"[two % 2],):
            self.ask(f"XREADGROUP GROUP {group} a COUNT 100 STREAMS s >")
            pending = [row[0] for row in self.client(f"XPENDING s {group} - + 100")]
            if pending:
                self.said.append(self.client.words(b"XACK", b"s", group.encode(), *pending))
                self.done[group].update(pending)
                self.check()

    def _nack(self, one: int, two: int) -> None:
        mode = ("FAIL", "FAIL", "SILENT", "FATAL")[two % 4]
        delay = (" DELAY 1500", "")[two % 3 > 0]
        self.ask(f"PENSTOCK.XNACK s g {mode} IDS 1 {self.pending('g', one)}{delay}")

    def _advance(self, one: int, two: int) -> None:
        whole = ADVANCES[one % len(ADVANCES)]
        for piece in range(self.pieces):
            self.ask(f"PENSTOCK.CLOCK ADVANCE {whole // self.pieces + (whole % self.pieces if not piece else 0)}")
        self.check_nothing_is_kept_in_vain()
        self.check_no_deleted_entry_stays_pending()

    def _block(self, one: int, two: int) -> None:
        reader = self.readers[two % 3]
        if reader.session.blocked is None:
            reader(f"XREADGROUP GROUP g {CONSUMERS[two % 3]} COUNT 2 BLOCK {500 + one % 3000} STREAMS s >")
            self.check()

    def _set_stream_policy(self, one: int, two: int) -> None:
        self.kept.clear()
        self.ask(f"PENSTOCK.POLICY s {STREAM_POLICIES[one % len(STREAM_POLICIES)]}")

    def _set_group_policy(self, one: int, two: int) -> None:
        answer = self.ask(f"PENSTOCK.POLICY s GROUP {'gh'[two % 4 == 0]} {GROUP_POLICIES[one % len(GROUP_POLICIES)]}")
        assert answer == b"OK" or str(answer) == "ERR KEY needs ACKWAIT"

    def _claim(self, one: int, two: int) -> None:
        if two % 3:
            self.ask(f"XAUTOCLAIM s g {CONSUMERS[two % 3]} {one % 1500} 0 COUNT 2")
        else:
            tail = ("", " JUSTID", " IDLE 1000")[one % 3]
            self.ask(f"XCLAIM s g a 0 {self.pending('g', one)}{tail}")

    def _delete(self, one: int, two: int) -> None:
        self.removes = self.has_deleted = True
        if two % 3 == 0:
            self.kept.clear()
        self.ask(f"XDEL s {self.entry(one)}" if two % 3 else f"XTRIM s MAXLEN {3 + one % 4}")
        self.check_no_deleted_entry_stays_pending()

    def _delete_consumer(self, one: int, two: int) -> None:
        consumer, group = CONSUMERS[two % 3], "gh"[one % 2]
        pending = [entry[0] for entry in self.client(f"XPENDING s {group} - + 100 {consumer}")]
        policy = self.stream.groups[group.encode()].policy if self.stream is not None else None
        if policy is None or policy.settings.ack_wait_ms < 0:
            self.done[group].update(pending)  # destroyed, as in Redis
        self.removes = True  # what the deleted consumer had may go
        self.ask(f"XGROUP DELCONSUMER s {group} {consumer}")

    def _schedule(self, one: int, two: int) -> None:
        if two % 4 == 0:
            self.ask("XADD later * n 0")
            self.ask("PENSTOCK.POLICY later FORWARD s AT at AFTER 300")
        else:
            self.ask(f"XADD later * k {'xyz'[one % 3]} at +{one % 2000}")

    def _set_position(self, one: int, two: int) -> None:
        """XGROUP SETID: back, which has entries delivered again, or forward, which skips some."""
        if two % 3 == 0:
            self._set_group_position("gh"[two % 2], self.entry(one).encode())

    def _pass_over(self, one: int, two: int) -> None:
        """A group passes over new entries, which the other one has finished or not: no group needs them, or it does."""
        for _ in range(1 + one % 2):
            self._add(one, two)
        if two % 4:
            self._finish(0, two)
        self._set_group_position("hg"[two % 2], self.entry(-1).encode())

    def _set_group_position(self, name: str, entry: bytes) -> None:
        stream = self.stream
        if stream is None:
            return
        group, position = stream.groups[name.encode()], ids.parse(entry)
        pending = [entry[0] for entry in self.client(f"XPENDING s {name} - + 1000")]
        if any(ids.parse(text) > position for text in [*pending, *self._dead_letters_of(group.name)]):
            return  # delivered again, an entry would be a dead letter and pending, or done and pending
        for done in (self.done[name], self.skipped[name]):
            done -= {text for text in done if ids.parse(text) > position}
        others = [other for other in stream.groups.values() if other is not group]
        below = {entry[0] for entry in self.client(f"XRANGE s - {entry.decode()}")}
        skipped = {
            text for text in below if ids.parse(text) > group.last_id and group.pel.by_id.find(ids.parse(text)) is None
        }
        self.skipped[name] |= skipped
        is_acked = stream.policies is not None and stream.policies.settings.references == ACKNOWLEDGED
        if is_acked and any(
            all(other.last_id >= ids.parse(text) and other.pel.by_id.find(ids.parse(text)) is None for other in others)
            for text in skipped
        ):
            self.kept |= below
        self.has_deleted = True
        self.ask(f"XGROUP SETID s {name} {entry.decode()}")

    def _restart(self, one: int, two: int) -> None:
        """Go on with a server that has loaded the log, or a new base file."""
        self.check_log()
        now_ms = self.engine.clock.now_us() // 1000
        if two % 2:
            self.log.units[:] = units_of(b"".join(base_lines(self.engine.keyspace, self.engine.settings, now_ms)))
        clock = MovableClock(ManualClock(now_ms))
        clock.stop_at(now_ms)
        self.engine = loaded_engine(self.log.units, now_ms, clock=clock)
        self.engine.effects.log = self.log
        self._connect()
        self.check()

    def _move(self, one: int, two: int) -> None:
        """A copy is like the original, and a stream that went elsewhere and came back is the same."""
        if self.stream is None:
            return
        self.client("COPY s copy")
        values = self.engine.keyspace.databases[0].values
        copy, original = values[b"copy"], values[b"s"]
        assert isinstance(copy, Stream)
        assert isinstance(original, Stream)
        now_ms = self.engine.clock.now_us() // 1000
        assert stream_picture(copy, SAVED, now_ms) == stream_picture(original, SAVED, now_ms)
        self.client("DEL copy")
        self.ask(("RENAME s t", "MOVE s 1", "SWAPDB 0 1")[one % 3])
        self.client(("PING", "SELECT 1", "PING")[one % 3])
        self.client(("RENAME t s", "MOVE s 0", "SWAPDB 0 1")[one % 3], "SELECT 0")
        self.check()

    # -- laws -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What holds after every request."""
        for name, reader in zip(CONSUMERS, self.readers, strict=True):
            for answer in reader.arrived():
                self.heard[name].append(repr(answer))
                self._note_hand_outs("g", answer)
        stream = self.stream
        if stream is None:
            return
        stream.check()
        removes = self._trims_the_oldest(stream) or self.removes
        self.removes = False
        self.engine.keyspace.databases[0].check()
        there = {entry[0] for entry in self.client("XRANGE s - +")}
        gone, self.there = self.there - there, there
        for group in stream.groups.values():
            skipped = self.skipped[group.name.decode()]
            done = self.done[group.name.decode()] | skipped
            dead = self._dead_letters_of(group.name)
            if not removes:
                assert gone <= done | dead, f"{gone - done - dead} went, {group.name!r} needed them"
                assert not gone & self.kept, f"{gone & self.kept} went, no group ever read them"
            for segment, start, stop in stream.runs(0, group.last_id, stream.length):
                for slot in range(start, stop):
                    text = ids.text(segment.id_at(slot))
                    states = [group.pel.by_id.find(segment.id_at(slot)) is not None, text in done, text in dead]
                    assert states.count(True) == 1, f"{text!r} in {group.name!r}: pending, done, dead are {states}"
            lag = stream.lag(group)
            unread = sum(stop - start for _, start, stop in stream.runs(group.last_id + 1, ids.MAX, stream.length))
            assert lag == unread or self.has_deleted, f"{group.name!r}: {unread} are unread, the lag is {lag}"

    def _trims_the_oldest(self, stream: Stream) -> bool:
        """Whether a policy removes what groups need, now or until the last request."""
        settings = None if stream.policies is None else stream.policies.settings
        trims = settings is not None and settings.trims and settings.references != ACKNOWLEDGED
        former, self._trimmed_before = self._trimmed_before, trims
        self.has_deleted = self.has_deleted or trims
        return trims or former

    def _dead_letters_of(self, group: bytes) -> set[bytes]:
        """The ids of a group's dead letters; each entry has one at most."""
        letters = [entry[1] for entry in self.client("XRANGE dead - +")]
        found = [fields[-7] for fields in letters if fields[-9] == group]
        assert len(found) == len(set(found)), "an entry has two dead letters"
        return set(found)

    def _note_hand_outs(self, group: str, answer: Any) -> None:
        """Nothing is handed out more often than MAXDELIVER says."""
        policy = None if self.stream is None else self.stream.groups[group.encode()].policy
        if not isinstance(answer, list) or policy is None or policy.settings.max_deliver < 0:
            return
        for _, entries in answer:
            for entry in entries:
                for row in self.client(f"XPENDING s {group} {entry[0].decode()} {entry[0].decode()} 1"):
                    assert row[3] <= policy.settings.max_deliver, f"{row} was handed out too often"

    def check_nothing_is_kept_in_vain(self) -> None:
        """With ACKED, no entry above the limits and the floor is one that no group needs. Looked for naively."""
        stream = self.stream
        policies = None if stream is None else stream.policies
        if stream is None or policies is None or policies.settings.references != ACKNOWLEDGED or not stream.groups:
            return
        now_ms = self.engine.clock.now_us() // 1000
        pending = {entry[0] for name in stream.groups for entry in self.client(f"XPENDING s {name.decode()} - + 1000")}
        all_read = min(group.last_id for group in stream.groups.values())
        texts = [entry[0] for entry in self.client("XRANGE s - +")]
        found = {text: ids.parse(text) for text in texts if text not in pending}
        unneeded = [entry_id for entry_id in found.values() if policies.floor < entry_id <= all_read]
        limit, age_ms = policies.settings.max_length, policies.settings.max_age_ms
        if limit >= 0:
            assert not unneeded or stream.length <= limit
        if age_ms >= 0:
            assert not [entry_id for entry_id in unneeded if now_ms - (entry_id >> 64) >= age_ms]

    def check_no_deleted_entry_stays_pending(self) -> None:
        """No deleted entry stays pending once its lease has ended, but within the time that a start gives."""
        stream = self.stream
        now_ms = self.engine.clock.now_us() // 1000
        if stream is None or now_ms < self.engine.conditions.loaded_ms + 5000:
            return
        there = {entry[0] for entry in self.client("XRANGE s - +")}
        for name, group in stream.groups.items():
            ack_wait_ms = -1 if group.policy is None else group.policy.settings.ack_wait_ms
            for entry_id, owner, idle_ms, _ in self.client(f"XPENDING s {name.decode()} - + 1000"):
                has_ended = owner and 0 <= ack_wait_ms <= idle_ms
                assert entry_id in there or not has_ended, f"{entry_id} is deleted, and pending in {name!r}"

    def check_a_read_leaves_no_deleted_entry_without_an_owner(self, name: str) -> None:
        """A plain read that could take more has dropped those that are not held, in a group with leases."""
        stream = self.stream
        policy = None if stream is None else stream.groups[name.encode()].policy
        if policy is None or policy.settings.ack_wait_ms < 0:
            return
        there = {entry[0] for entry in self.client("XRANGE s - +")}
        held = {entry_id for _, _, entry_id in policy.held(self.engine.clock.now_us() // 1000)}
        for entry_id, owner, _, _ in self.client(f"XPENDING s {name} - + 1000"):
            is_held = ids.parse(entry_id) in held
            assert owner or is_held or entry_id in there, f"{entry_id} is deleted, and still pending in {name!r}"

    def check_cuts(self, every: int) -> None:
        """A log that is cut, at every so many bytes, loads to what its last whole unit led to."""
        now_ms = self.engine.clock.now_us() // 1000
        text, whole = self.log.text, 0
        for unit in self.log.units:
            there = loaded_file(text[:whole], now_ms)
            for cut in range(whole + 1, whole + len(unit), every):
                assert loaded_file(text[:cut], now_ms) == there, f"the log is cut at byte {cut}"
            whole += len(unit)
        assert loaded_file(text, now_ms) == keyspace(loaded_engine([text], now_ms), KEPT)

    def check_log(self) -> None:
        """A restart finds the same, from the log as from a new base file."""
        with told_on_failure(self.client.asked):
            self.client.reloaded()
            self.client.rewritten()


def told(steps: list[Step], pieces: int = 1) -> History:
    history = History(pieces)
    with told_on_failure(history.client.asked):
        history.begin(steps[0])
        for step in steps[1:]:
            history.take(step)
    return history


def units_of(text: bytes) -> list[bytes]:
    """The units of a log: requests that stand alone, and transactions."""
    block = whole_requests(text)
    units: list[bytes] = []
    is_amid = False
    for (begin, end), request in zip(pairwise([*block.offsets(), block.taken]), block.requests, strict=True):
        if is_amid:
            units[-1] += text[begin:end]
        else:
            units.append(text[begin:end])
        is_amid = request[:1] == [b"MULTI"] or (is_amid and request[:1] != [b"EXEC"])
    assert b"".join(units) == text
    return units


def loaded_file(text: bytes, now_ms: int) -> dict[str, object]:
    """What a server that starts with this log holds."""
    disk = MemoryDisk()
    disk.create("log").write(text)
    engine = make_engine(ManualClock(now_ms))
    replay = Replay(engine.server, lambda line: None)
    replay.begin()
    for _ in replay.file(disk, "log", Tail(0, len(text))):
        pass
    replay.end()
    return keyspace(engine, KEPT)


def picture(history: History) -> list[object]:
    """What a history leads to, and what clients were told on the way."""
    return [keyspace(history.engine), history.said, history.heard]
