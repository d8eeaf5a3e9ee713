"""PENSTOCK.CLOCK: a test stops the server's clock and moves it."""

import pytest

from penstock.clock import ManualClock, MovableClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with


@pytest.fixture
def dialogue() -> Dialogue:
    return Dialogue(make_engine(MovableClock(ManualClock(NOW_MS))))


def test_without_the_directive_the_clock_is_the_systems() -> None:
    refused = Dialogue(make_engine())("PENSTOCK.CLOCK RUN")

    assert str(refused) == "ERR the clock is the system's: start the server with penstock-test-clock yes"


def test_a_clock_that_was_set_stands_still(dialogue: Dialogue) -> None:
    dialogue(f"PENSTOCK.CLOCK SET {NOW_MS + 5}")

    assert dialogue("TIME", "TIME") == [b"1795300000", b"5000"]
    assert dialogue("XADD s * f v") == b"1795300000005-0"


def test_a_running_clock_can_be_moved_on_too(dialogue: Dialogue) -> None:
    dialogue("PENSTOCK.CLOCK ADVANCE 1000")

    assert dialogue("TIME") == [b"1795300001", b"0"]


def test_a_clock_goes_on_from_where_it_stands() -> None:
    base = ManualClock(NOW_MS)
    dialogue = Dialogue(make_engine(MovableClock(base)))
    dialogue(f"PENSTOCK.CLOCK SET {NOW_MS + 60_000}", "PENSTOCK.CLOCK RUN")
    base.advance(1000)

    assert dialogue("TIME") == [b"1795300061", b"0"]


@pytest.mark.parametrize(
    ("request_line", "text"),
    [
        (f"PENSTOCK.CLOCK SET {NOW_MS - 1}", "ERR the clock cannot go back"),
        ("PENSTOCK.CLOCK ADVANCE -1", "ERR the clock cannot go back"),
        ("PENSTOCK.CLOCK SET -1", "ERR value is not an integer or out of range"),
        ("PENSTOCK.CLOCK ADVANCE 9007199254740993", "ERR value is not an integer or out of range"),
        ("PENSTOCK.CLOCK ADVANCE soon", "ERR value is not an integer or out of range"),
        ("PENSTOCK.CLOCK RUN 1", "ERR syntax error"),
        ("PENSTOCK.CLOCK SET", "ERR syntax error"),
        ("PENSTOCK.CLOCK STOP", "ERR syntax error"),
    ],
)
def test_a_clock_refuses(dialogue: Dialogue, request_line: str, text: str) -> None:
    dialogue(f"PENSTOCK.CLOCK SET {NOW_MS}")

    assert str(dialogue(request_line)) == text
    assert dialogue("TIME") == [b"1795300000", b"0"]


def test_what_comes_due_on_the_way_is_done_before_the_reply(dialogue: Dialogue) -> None:
    first, second = dialogue.another(), dialogue.another()
    dialogue(f"PENSTOCK.CLOCK SET {NOW_MS}", "SET k v PX 2000", "CONFIG SET notify-keyspace-events KEx")
    first("BLPOP l 3")
    second("SUBSCRIBE __keyevent@0__:expired")

    assert dialogue("PENSTOCK.CLOCK ADVANCE 2500") == b"OK"
    assert second.arrived() == [[b"message", b"__keyevent@0__:expired", b"k"]]
    assert first.arrived() == []
    dialogue("PENSTOCK.CLOCK ADVANCE 500")
    assert first.arrived() == [None]


def test_an_idle_claim_is_served_at_its_moment(dialogue: Dialogue) -> None:
    bob = dialogue.another()
    dialogue(f"PENSTOCK.CLOCK SET {NOW_MS}", "XADD s 1-0 f v", "XGROUP CREATE s g 0")
    dialogue("XREADGROUP GROUP g alice STREAMS s >")
    bob("XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >")
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    assert bob.arrived() == [[[b"s", [[b"1-0", [b"f", b"v"], 1001, 1]]]]]


def test_a_named_compat_version_does_not_know_the_clock() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="8.10")))

    assert str(dialogue("PENSTOCK.CLOCK RUN")) == (
        "ERR unknown command 'PENSTOCK.CLOCK', with args beginning with: 'RUN' "
    )
