"""MONITOR."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.telemetry.monitor_line import quoted
from tests.support.dialogue import NO_REPLY, Dialogue


@pytest.fixture
def monitor(dialogue: Dialogue) -> Dialogue:
    watcher = dialogue.another()
    watcher("MONITOR")
    return watcher


def shown(monitor: Dialogue) -> list[str]:
    """What the monitor was told, without the times."""
    return [line.decode().partition(" ")[2] for line in monitor.arrived() if isinstance(line, bytes)]


def test_a_monitor_is_shown_time_database_client_and_words(
    dialogue: Dialogue, monitor: Dialogue, clock: ManualClock
) -> None:
    clock.set_ms(1_795_300_000_123)
    dialogue("SET a 'x y'")

    assert monitor.arrived() == [b'1795300000.123000 [0 127.0.0.1:50000] "SET" "a" "x y"']


def test_the_database_is_the_one_that_a_select_chose(dialogue: Dialogue, monitor: Dialogue) -> None:
    dialogue("SELECT 3")

    assert shown(monitor) == ['[3 127.0.0.1:50000] "SELECT" "3"']


def test_a_transaction_is_shown_when_it_runs_and_exec_after_it(dialogue: Dialogue, monitor: Dialogue) -> None:
    dialogue("MULTI", "SET a 1", "PING")
    before = shown(monitor)
    dialogue("EXEC")

    assert before == ['[0 127.0.0.1:50000] "MULTI"']
    assert [line.split('"')[1] for line in shown(monitor)] == ["SET", "PING", "EXEC"]


@pytest.mark.parametrize("line", ["CONFIG GET x", "CLIENT LIST", "ACL LIST", "NOSUCH", "GET", "CLIENT PAUSE 0 WRITE"])
def test_commands_for_administrators_and_refused_ones_are_not_shown(
    dialogue: Dialogue, monitor: Dialogue, line: str
) -> None:
    dialogue(line)

    assert shown(monitor) == []


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("AUTH default x", '"AUTH" "(redacted)" "(redacted)"'),
        ("AUTH x", '"AUTH" "(redacted)"'),
        ("HELLO 3 SETNAME me AUTH default x", '"HELLO" "3" "SETNAME" "me" "AUTH" "(redacted)" "(redacted)"'),
    ],
)
def test_passwords_are_not_shown(dialogue: Dialogue, monitor: Dialogue, line: str, seen: str) -> None:
    dialogue(line)

    assert shown(monitor) == [f"[0 127.0.0.1:50000] {seen}"]


def test_a_blocked_request_is_shown_once(dialogue: Dialogue, monitor: Dialogue) -> None:
    dialogue("XREAD BLOCK 0 STREAMS s $")
    dialogue.another()("XADD s 1-0 f v")

    assert [line.split('"')[1] for line in shown(monitor)] == ["XREAD", "XADD"]


def test_a_monitor_may_not_touch_keys(monitor: Dialogue) -> None:
    assert str(monitor("GET k")) == "ERR Replica can't interact with the keyspace"
    assert monitor("PING") == b"PONG"


def test_a_second_monitor_says_nothing(monitor: Dialogue) -> None:
    assert monitor("MONITOR") == NO_REPLY


def test_reset_ends_it(dialogue: Dialogue, monitor: Dialogue) -> None:
    monitor("RESET")
    monitor.arrived()
    dialogue("PING")

    assert monitor.arrived() == []


def test_a_transaction_cannot_begin_it(dialogue: Dialogue) -> None:
    (refusal,) = dialogue("MULTI", "MONITOR", "EXEC")

    assert str(refusal) == "ERR MONITOR isn't allowed for DENY BLOCKING client"


def test_what_cannot_be_printed_is_escaped() -> None:
    assert quoted(b'x"\\\n\r\t\a\b\x01\xff') == r'"x\"\\\n\r\t\a\b\x01\xff"'
