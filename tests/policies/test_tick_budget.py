"""One tick does a bounded part of what comes due at one moment; the next ones do the rest, in the same order."""

import hypothesis
import pytest

from penstock.clock import ManualClock
from penstock.commands.policies.leased_read import MOST_SKIPPED
from penstock.engine.engine import Engine
from penstock.engine.policies import expiry, leases, tick_budget
from penstock.engine.policies.tick_budget import MOST_LOOKS, MOST_MOVES
from penstock.engine.waiting.blocking import SERVED_AT_ONCE
from tests.policies.test_beside_naive_queue import histories, told
from tests.support.builds import replaces_functions
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

Step = tuple[int, int, int]


class TickingClock(ManualClock):
    """A clock that goes on by two milliseconds whenever it is read."""

    def monotonic_us(self) -> int:
        self.advance(2)
        return super().monotonic_us()


class Scene:
    """A group of which `count` entries were delivered within one millisecond."""

    def __init__(self, count: int, policy: str, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock(NOW_MS)
        self.engine: Engine = make_engine(self.clock)
        self.client = Dialogue(self.engine)
        for number in range(1, count + 1):
            self.client.words(b"XADD", b"s", b"%d-0" % number, b"f", b"v")
        self.client("XGROUP CREATE s g 0", f"PENSTOCK.POLICY s GROUP g {policy}")
        self.client(f"XREADGROUP GROUP g w COUNT {count} STREAMS s >")
        self.engine.tick()

    def tick(self) -> None:
        self.engine.tick()

    def is_due(self) -> bool:
        return 0 < self.engine.next_wakeup_ms() <= self.clock.now_us() // 1000

    def pending(self) -> int:
        return int(self.client("XPENDING s g")[0])


def test_dead_letters_of_one_moment_move_over_several_ticks_in_order() -> None:
    scene = Scene(MOST_MOVES * 2 + 500, "ACKWAIT 1000 MAXDELIVER 1 DEADLETTER dead")
    scene.clock.advance(1000)
    moved = []
    while scene.is_due():
        before = scene.client("XLEN dead")
        scene.tick()
        moved.append(scene.client("XLEN dead") - before)

    assert moved == [MOST_MOVES, MOST_MOVES, 500]
    assert scene.pending() == 0
    dead = [entry[1][7] for entry in scene.client("XRANGE dead - +")]
    assert dead == [b"%d-0" % number for number in range(1, MOST_MOVES * 2 + 501)]


def test_streams_share_the_moves_of_a_tick() -> None:
    scene = Scene(700, "ACKWAIT 1000 MAXDELIVER 1 DEADLETTER dead")
    scene.client("COPY s t", "COPY s u")
    scene.tick()
    scene.clock.advance(1000)
    scene.tick()

    moved = 3 * 700 - sum(scene.client(f"XPENDING {key} g")[0] for key in "stu")
    assert 700 < moved <= MOST_MOVES
    while scene.is_due():
        scene.tick()
    assert scene.client("XLEN dead") == 3 * 700


def test_databases_share_ticks() -> None:
    scene = Scene(MOST_MOVES * 3, "ACKWAIT 1000 MAXDELIVER 1 DEADLETTER dead")
    scene.client("SELECT 1", "XADD later * f v", "PENSTOCK.POLICY later FORWARD target AFTER 1000", "SELECT 0")
    scene.tick()
    scene.clock.advance(1000)
    scene.tick()
    scene.tick()
    assert scene.client("XLEN dead") < MOST_MOVES * 3

    assert scene.client("SELECT 1", "XLEN target") == 1


def test_the_leases_of_one_moment_are_looked_at_over_several_ticks() -> None:
    count = MOST_LOOKS + 1000
    scene = Scene(count, "ACKWAIT 1000")
    scene.client(f"XDEL s 1-0 {MOST_LOOKS}-0 {MOST_LOOKS + 1}-0 {count}-0")
    scene.clock.advance(1000)
    scene.tick()
    assert scene.is_due()
    assert scene.pending() == count - 2

    scene.tick()
    assert not scene.is_due()
    assert scene.pending() == count - 4


def test_claimed_entries_of_one_moment_are_parted_too() -> None:
    """They are not in the order of their ids, but in that of their arrival."""
    count = MOST_LOOKS + 1000
    scene = Scene(count, "ACKWAIT 1000")
    scene.clock.advance(10)
    claimed = [b"%d-0" % number for number in range(count, 0, -1)]
    scene.client.words(b"XCLAIM", b"s", b"g", b"other", b"0", *claimed, b"JUSTID")
    scene.client(f"XDEL s {count}-0 500-0")
    scene.clock.advance(1000)
    scene.tick()
    assert scene.is_due()
    assert scene.pending() == count - 1

    scene.tick()
    assert not scene.is_due()
    assert scene.pending() == count - 2


def test_a_tick_ends_when_its_time_is_over() -> None:
    scene = Scene(3000, "ACKWAIT 60000 MAXDELIVER 1 DEADLETTER dead", TickingClock(NOW_MS))
    scene.clock.advance(60_000)
    scene.tick()
    moved = scene.client("XLEN dead")
    assert 0 < moved < MOST_MOVES

    for _ in range(3000 // moved + 1):
        scene.tick()
    assert scene.client("XLEN dead") == 3000


def test_scheduled_entries_of_one_moment_move_over_several_ticks() -> None:
    scene = Scene(1, "ACKWAIT 1000")
    for _ in range(MOST_MOVES + 200):
        scene.client("XADD later * n 1")
    scene.client("PENSTOCK.POLICY later FORWARD target AFTER 1000")
    scene.tick()
    scene.clock.advance(1000)
    scene.tick()
    assert scene.client("XLEN target") == MOST_MOVES

    scene.tick()
    assert scene.client("XLEN target") == MOST_MOVES + 200


def test_what_comes_of_age_at_one_moment_goes_over_several_ticks() -> None:
    scene = Scene(1, "ACKWAIT 1000")
    for _ in range(3500):
        scene.client("XADD aged * n 1")
    scene.client("XGROUP CREATE aged g 0", "PENSTOCK.POLICY aged MAXAGE 1000 ACKED")
    ids = [entry[0].decode() for entry in scene.client("XREADGROUP GROUP g w COUNT 3500 STREAMS aged >")[0][1]]
    scene.client("XACK aged g " + " ".join(ids))
    while scene.is_due():
        scene.tick()
    scene.clock.advance(1000)
    lengths = []
    while scene.is_due():
        scene.tick()
        lengths.append(scene.client("XLEN aged"))

    assert lengths[0] > 0
    assert max(map(int.__sub__, [3500, *lengths], [*lengths, 0])) <= 2000
    assert lengths[-1] == 0


# -- blocked readers --------------------------------------------------------------------------------------------------


def blocked_readers(scene: Scene, count: int) -> list[Dialogue]:
    readers = [scene.client.another() for _ in range(count)]
    for number, reader in enumerate(readers):
        reader(f"XREADGROUP GROUP g r{number} COUNT 1 BLOCK 0 STREAMS s >")
    return readers


@pytest.mark.parametrize("claim", ["", "CLAIM 100 "])
@pytest.mark.parametrize("line", ["XTRIM s MINID {}-0", "PENSTOCK.POLICY s GROUP g MAXDELIVER 1 DEADLETTER dead"])
def test_a_reader_gets_what_stands_behind_more_than_a_read_sets_aside(line: str, claim: str) -> None:
    most = 2 * MOST_SKIPPED + 5
    scene = Scene(most, "ACKWAIT 1000")
    bob = scene.client.another()
    scene.client(f"XADD s {most + 1}-0 f v", "XREADGROUP GROUP g w STREAMS s >")
    scene.client(f"XNACK s g FAIL IDS {most} " + " ".join(f"{number}-0" for number in range(1, most + 1)))
    scene.client(line.format(most + 1), f"XNACK s g FAIL IDS 1 {most + 1}-0 RETRYCOUNT 0")
    bob(f"XREADGROUP GROUP g bob BLOCK 0 {claim}STREAMS s >")
    for _ in range(3):
        scene.tick()

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"%d-0" % (most + 1)]


@pytest.mark.parametrize("claim", ["", "CLAIM 100 "])
def test_more_than_a_read_sets_aside_that_cannot_move_keep_no_tick_busy_and_hide_nothing_for_ever(claim: str) -> None:
    most = MOST_SKIPPED + 5
    scene = Scene(most + 1, "ACKWAIT 60000 MAXDELIVER 1 DEADLETTER dead")
    bob = scene.client.another()
    scene.client("RPUSH dead x", f"XNACK s g FAIL IDS {most} " + " ".join(f"{at}-0" for at in range(1, most + 1)))
    scene.client(f"XNACK s g SILENT IDS 1 {most + 1}-0")
    bob(f"XREADGROUP GROUP g bob BLOCK 0 {claim}STREAMS s >")
    for _ in range(3):
        scene.tick()
    assert not scene.is_due()
    scene.client("DEL dead")
    scene.clock.advance(leases.RETRY_MS)
    for _ in range(3):
        scene.tick()

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"%d-0" % (most + 1)]


ORDERS = ("", "KEY k", "KEY k PARALLEL 2", "PRIORITY p", "KEY k FAIR YES", "KEY k PRIORITY p LOOKAHEAD 2")


def behind_expired(count: int, order: str) -> Scene:
    """A new entry behind so many that have expired; with KEY, one in front of these has a value that is taken."""
    scene = Scene(1, "RESET")
    scene.client("XADD s 1-1 k x", "XADD s 1-2 k x", "XREADGROUP GROUP g w STREAMS s >")
    scene.client(f"PENSTOCK.POLICY s GROUP g ACKWAIT 60000 {order}", "XADD s 1-3 k x")
    scene.client(*[f"XADD s 2-{number} k x at 5" for number in range(count)], "XADD s 3-0 k y p 9")
    scene.client("PENSTOCK.POLICY s GROUP g EXPIREAT at DEADLETTER dead")
    return scene


@pytest.mark.parametrize("order", ORDERS)
def test_a_read_moves_a_bounded_number_of_expired_entries(order: str) -> None:
    scene = behind_expired(3 * expiry.MOST + 5, order)
    for moved in (2 * expiry.MOST, 3 * expiry.MOST + 5):  # the read, and what has expired behind it at once
        shown = scene.client("PENSTOCK.PEEK s g COUNT 9")
        read = scene.client("XREADGROUP GROUP g a COUNT 9 STREAMS s >")
        assert (read[0][1] if read else []) == shown
        assert scene.client("XLEN dead") <= moved

    assert scene.client("XLEN dead") == 3 * expiry.MOST + 5


@pytest.mark.parametrize("order", ORDERS)
def test_a_blocked_reader_gets_what_stands_behind_more_expired_entries_than_a_read_moves(order: str) -> None:
    scene = behind_expired(3 * expiry.MOST + 5, order)
    if "KEY" not in order:
        scene.client("XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    bob = scene.client.another()
    bob("XREADGROUP GROUP g bob COUNT 1 BLOCK 0 STREAMS s >")
    while scene.is_due():
        scene.tick()

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"3-0"]


@pytest.mark.parametrize("order", ORDERS[:3])
def test_a_blocked_reader_gets_what_stands_behind_an_expired_entry_that_could_not_move(order: str) -> None:
    scene = behind_expired(1, order)
    scene.client("RPUSH dead x", "XACK s g 1-1 1-2", "XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    bob = scene.client.another()
    bob("XREADGROUP GROUP g bob COUNT 1 BLOCK 0 STREAMS s >")
    scene.client("DEL dead")
    scene.clock.advance(expiry.RETRY_MS)
    while scene.is_due():
        scene.tick()

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"3-0"]


def test_a_reader_that_lacks_room_gets_it_where_time_lifted_another_limit_before_the_tick() -> None:
    scene = Scene(2, f"ACKWAIT 60000 INFLIGHT 1 RATE 1 1000 EXPIRE {2 * NOW_MS}")
    scene.client("XREADGROUP GROUP g a STREAMS s >")
    scene.clock.advance(1000)
    bob = scene.client.another()
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    scene.client("XACK s g 1-0")

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"2-0"]


def test_readers_are_served_over_several_ticks_first_come_first_served() -> None:
    count = 2 * SERVED_AT_ONCE + 20
    scene = Scene(count, "ACKWAIT 1000")
    readers = blocked_readers(scene, count + 5)
    scene.clock.advance(1000)
    served = []
    while scene.is_due():
        scene.tick()
        served.append([number for number, reader in enumerate(readers) if reader.arrived()])

    everybody = list(range(count))
    assert [len(of_tick) for of_tick in served] == [SERVED_AT_ONCE, SERVED_AT_ONCE, 20]
    assert [number for of_tick in served for number in of_tick] == everybody
    assert len(scene.engine.blocking.blocked) == 5


def test_a_new_entry_waits_for_the_readers_that_are_served_later() -> None:
    count = SERVED_AT_ONCE + 20
    scene = Scene(count, "ACKWAIT 1000")
    readers = blocked_readers(scene, count + 1)
    scene.clock.advance(1000)
    scene.tick()
    scene.client("XADD s 9999999-0 f v")
    assert sum(1 for reader in readers if reader.arrived()) == SERVED_AT_ONCE

    scene.tick()
    assert sum(1 for reader in readers if reader.arrived()) == 21
    assert scene.client("XINFO GROUPS s")[0][11] == 0


def test_a_command_that_ends_many_leases_serves_some_readers_at_once() -> None:
    count = SERVED_AT_ONCE + 20
    scene = Scene(count, "ACKWAIT 60000")
    readers = blocked_readers(scene, count)
    scene.clock.advance(1000)
    scene.client("PENSTOCK.POLICY s GROUP g ACKWAIT 1000")
    served = sum(1 for reader in readers if reader.arrived())
    assert served == SERVED_AT_ONCE

    scene.tick()
    assert sum(1 for reader in readers if reader.arrived()) == 20


def test_readers_of_a_stream_without_policies_are_served_at_once() -> None:
    scene = Scene(1, "RESET")
    readers = blocked_readers(scene, SERVED_AT_ONCE + 20)
    scene.client("MULTI", *["XADD s * f v"] * (SERVED_AT_ONCE + 20), "EXEC")

    assert sum(1 for reader in readers if reader.arrived()) == SERVED_AT_ONCE + 20


# -- whatever the size ------------------------------------------------------------------------------------------------


@replaces_functions
@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "keys"])
@pytest.mark.parametrize(("looks", "moves", "most"), [(1, 1, 1), (2, 1, 3), (5, 2, 4)])
def test_nothing_depends_on_how_much_a_tick_does(
    monkeypatch: pytest.MonkeyPatch, looks: int, moves: int, most: int, keyed: bool
) -> None:
    monkeypatch.setattr(leases, "LOOKS_AT_ONCE", looks)
    monkeypatch.setattr(leases, "MOVES_AT_ONCE", moves)
    monkeypatch.setattr(tick_budget, "MOST_LOOKS", most)
    monkeypatch.setattr(tick_budget, "MOST_MOVES", most)

    @hypothesis.given(histories)
    @hypothesis.settings(max_examples=5, derandomize=True, deadline=None)
    def law(steps: list[Step]) -> None:
        told(steps, keyed)

    law()
