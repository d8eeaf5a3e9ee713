"""Requests that wait for a list: which are served, in which order, with what."""

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.engines import make_engine
from tests.support.log import UnitLog


class WatchedClock(ManualClock):
    """Counts how often it is looked at: the engine does so for every request that it tries."""

    looks = 0

    def now_us(self) -> int:
        self.looks += 1
        return super().now_us()


def looks_at_a_push(workers: int) -> int:
    """How often the engine looks at its clock while one element comes to a queue of so many workers."""
    clock = WatchedClock(NOW_MS)
    dialogue = Dialogue(make_engine(clock))
    waiting(dialogue, *["BLPOP q 0"] * workers)
    before = clock.looks
    dialogue("RPUSH q a")
    return clock.looks - before


def waiting(dialogue: Dialogue, *lines: str) -> list[Dialogue]:
    """A client a line, all of them waiting."""
    clients = [dialogue.another() for _ in lines]
    assert [client(line) for client, line in zip(clients, lines, strict=True)] == [NO_REPLY] * len(lines)
    return clients


def test_the_first_that_waits_is_served_first(dialogue: Dialogue) -> None:
    first, second, third = waiting(dialogue, "BLPOP q 0", "BRPOP q 0", "BLPOP q 0")

    assert dialogue("RPUSH q a b") == 2

    assert first.arrived() == [[b"q", b"a"]]
    assert second.arrived() == [[b"q", b"b"]]
    assert third.arrived() == []
    assert dialogue("EXISTS q") == 0


def test_one_push_to_a_long_queue_of_workers_tries_one_of_them() -> None:
    assert looks_at_a_push(1000) == looks_at_a_push(1)


def test_a_push_is_answered_with_the_length_before_a_waiting_client_is_served(dialogue: Dialogue) -> None:
    waiting(dialogue, "BLPOP q 0")

    assert dialogue("RPUSH q a b c") == 3
    assert dialogue("LLEN q") == 2


def test_the_key_that_was_named_first_wins_if_several_have_something(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLPOP a b 0")

    dialogue("MULTI", "RPUSH b 1", "RPUSH a 2", "EXEC")

    assert client.arrived() == [[b"a", b"2"]]
    assert dialogue("LRANGE b 0 -1") == [b"1"]


def test_a_chain_of_moves_is_served_from_one_push(dialogue: Dialogue) -> None:
    mover, popper = waiting(dialogue, "BLMOVE a b LEFT RIGHT 0", "BLPOP b 0")

    dialogue("RPUSH a x")

    assert mover.arrived() == [b"x"]
    assert popper.arrived() == [[b"b", b"x"]]
    assert dialogue("DBSIZE") == 0


def test_a_value_of_another_type_wakes_no_client(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLPOP q 0")

    dialogue("SET q x", "DEL q", "XADD q 1-0 f v", "DEL q")
    assert client.arrived() == []

    dialogue("RPUSH q a")
    assert client.arrived() == [[b"q", b"a"]]


def test_a_woken_client_is_told_of_another_type_at_an_earlier_key(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLPOP a b 0")

    dialogue("SET a x", "RPUSH b 1")

    (refusal,) = client.arrived()
    assert str(refusal).startswith("WRONGTYPE")
    assert dialogue("LLEN b") == 1


def test_a_move_to_a_key_of_another_type_is_refused_when_it_is_its_turn(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLMOVE a b LEFT LEFT 0")

    dialogue("SET b x", "RPUSH a 1")

    (refusal,) = client.arrived()
    assert str(refusal).startswith("WRONGTYPE")
    assert dialogue("LLEN a") == 1


def test_a_list_that_a_transaction_leaves_empty_wakes_no_client(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLPOP q 0")

    dialogue("MULTI", "RPUSH q a", "LPOP q", "EXEC")

    assert client.arrived() == []


@pytest.mark.parametrize(
    "lines",
    [
        ["RPUSH other a", "RENAME other q"],
        ["RPUSH other a", "COPY other q"],
        ["SELECT 1", "RPUSH q a", "MOVE q 0"],
        ["SELECT 1", "RPUSH q a", "SWAPDB 0 1"],
        ["RPUSH other a", "RPOPLPUSH other q"],
    ],
    ids=["RENAME", "COPY", "MOVE", "SWAPDB", "RPOPLPUSH"],
)
def test_a_list_that_appears_in_any_way_is_popped(dialogue: Dialogue, lines: list[str]) -> None:
    (client,) = waiting(dialogue, "BLPOP q 0")

    dialogue(*lines)

    assert client.arrived() == [[b"q", b"a"]]


def test_a_restored_list_is_popped(dialogue: Dialogue) -> None:
    (client,) = waiting(dialogue, "BLPOP q 0")
    dialogue("RPUSH other a")
    payload = dialogue("DUMP other")

    dialogue.words(b"RESTORE", b"q", b"0", payload)

    assert client.arrived() == [[b"q", b"a"]]


def test_several_items_are_popped_by_one_waiting_client(dialogue: Dialogue) -> None:
    first, second = waiting(dialogue, "BLMPOP 0 2 p q LEFT COUNT 2", "BLMPOP 0 1 q RIGHT COUNT 9")

    dialogue("RPUSH q a b c d")

    assert first.arrived() == [[b"q", [b"a", b"b"]]]
    assert second.arrived() == [[b"q", [b"d", b"c"]]]


@pytest.mark.parametrize(
    ("line", "wait_ms"),
    [
        ("BLPOP q 1", 1000),
        ("BRPOP q 0.5", 500),
        ("BLMOVE q p LEFT LEFT 0.0001", 1),
        ("BRPOPLPUSH q p 1e-2", 10),
        ("BLMPOP 2.5 1 q LEFT", 2500),
    ],
)
def test_a_wait_ends_with_null_when_its_time_is_over(
    dialogue: Dialogue, clock: ManualClock, line: str, wait_ms: int
) -> None:
    (client,) = waiting(dialogue, line)

    clock.advance(wait_ms - 1)
    dialogue.engine.tick()
    assert client.arrived() == []

    clock.advance(1)
    dialogue.engine.tick()
    assert client.arrived() == [None]


def test_a_client_that_goes_is_passed_over(dialogue: Dialogue) -> None:
    first, second = waiting(dialogue, "BLPOP q 0", "BLPOP q 0")
    dialogue.engine.server.disconnect(first.session)

    dialogue("RPUSH q a")

    assert second.arrived() == [[b"q", b"a"]]


def test_what_a_client_was_served_is_logged_behind_the_push_as_a_plain_pop() -> None:
    log = UnitLog()
    dialogue = Dialogue(make_engine(log=log))
    waiting(dialogue, "BLPOP q 0")

    dialogue("RPUSH q a")

    assert log.text.endswith(b"*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$1\r\na\r\n*2\r\n$4\r\nLPOP\r\n$1\r\nq\r\n")
