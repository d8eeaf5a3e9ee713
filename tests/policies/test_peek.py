"""PENSTOCK.PEEK shows what the next `>` delivers, and changes nothing."""

import hypothesis
import pytest
from hypothesis import strategies

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.history import History
from tests.policies.test_retention import refused
from tests.support.engines import value_of
from tests.support.keyspace_picture import keyspace
from tests.support.lines_run import lines_run
from tests.support.seeds import examples

numbers = strategies.integers(0, 10_000)
steps = strategies.lists(strategies.tuples(numbers, numbers, numbers), max_size=40)


@hypothesis.settings(max_examples=examples(150), deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(begins=strategies.tuples(numbers, numbers, numbers), steps=steps, count=strategies.integers(-1, 6))
def test_what_is_shown_is_what_the_next_read_delivers(
    begins: tuple[int, int, int], steps: list[tuple[int, int, int]], count: int
) -> None:
    history = History()
    history.begin(begins)
    for step in steps:
        history.take(step)
    client, engine = history.client, history.engine
    for group in ("g", "h"):
        before, units = keyspace(engine), len(history.log.units)
        shown = client(f"PENSTOCK.PEEK s {group} COUNT {count}")
        assert (keyspace(engine), len(history.log.units)) == (before, units)

        read = client(f"XREADGROUP GROUP {group} a COUNT {count} STREAMS s >")
        assert str(shown) == str(read) if isinstance(shown, str) else shown == (read[0][1] if read else [])


def test_a_held_entry_is_not_shown_before_its_time(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000")
    dialogue("XREADGROUP GROUP g a COUNT 1 STREAMS s >", "PENSTOCK.XNACK s g FAIL IDS 1 1-0 DELAY 500")

    assert [row[0] for row in dialogue("PENSTOCK.PEEK s g")] == [b"2-0"]
    dialogue("PENSTOCK.CLOCK ADVANCE 500")
    assert [row[0] for row in dialogue("PENSTOCK.PEEK s g")] == [b"1-0", b"2-0"]


def test_what_is_delivered_again_counts_for_its_value(dialogue: PolicyDialogue) -> None:
    dialogue(
        "XADD s 1-0 k x", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000 KEY k PARALLEL 2 FAIR YES"
    )
    dialogue("XREADGROUP GROUP g a STREAMS s >", "XNACK s g FAIL IDS 1 1-0", "XADD s 2-0 k x", "XADD s 3-0 k y")
    shown = dialogue("PENSTOCK.PEEK s g")

    assert [row[0] for row in shown] == [b"1-0", b"3-0", b"2-0"]
    assert dialogue("XREADGROUP GROUP g a STREAMS s >")[0][1] == shown


@pytest.mark.parametrize("order", ["PRIORITY p", "KEY k FAIR YES", "KEY k PRIORITY p"])
def test_a_peek_further_than_lookahead_changes_nothing(dialogue: PolicyDialogue, order: str) -> None:
    dialogue(*[f"XADD s {at}-0 k {at} p {at}" for at in range(1, 6)], "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 LOOKAHEAD 1 {order}")
    shown = dialogue("PENSTOCK.PEEK s g COUNT 4")
    group = value_of(dialogue.engine, b"s").groups[b"g"]
    group.policy.choice.check()

    assert dialogue("PENSTOCK.PEEK s g COUNT 4") == shown
    assert dialogue("XREADGROUP GROUP g a COUNT 4 STREAMS s >")[0][1] == shown
    assert len(dialogue("XREADGROUP GROUP g a STREAMS s >")[0][1]) == 1


@pytest.mark.parametrize(
    ("request_line", "error"),
    [
        ("PENSTOCK.PEEK none g", "NOGROUP No such key 'none' or consumer group 'g' in XREADGROUP with GROUP option"),
        ("PENSTOCK.PEEK s none", "NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option"),
        ("PENSTOCK.PEEK text g", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("PENSTOCK.PEEK s g COUNT", "ERR syntax error"),
        ("PENSTOCK.PEEK s g LIMIT 1", "ERR syntax error"),
        ("PENSTOCK.PEEK s g COUNT 1 COUNT 1", "ERR syntax error"),
        ("PENSTOCK.PEEK s g COUNT x", "ERR value is not an integer or out of range"),
    ],
)
def test_what_is_refused(dialogue: PolicyDialogue, request_line: str, error: str) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM", "SET text v")

    assert refused(dialogue(request_line)) == error


def lines_of_a_peek(policy: str, count: int) -> int:
    """How many lines are run to show one entry of so many that may be chosen."""
    dialogue = made()
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    dialogue(*[f"XADD s * k {number % 97} p 1" for number in range(count)])
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 LOOKAHEAD 10000 {policy}", "PENSTOCK.PEEK s g COUNT 1")
    return lines_run(lambda: dialogue("PENSTOCK.PEEK s g COUNT 1"))


@pytest.mark.parametrize("policy", ["PRIORITY p", "KEY k PRIORITY p", "KEY k FAIR YES"])
def test_what_a_peek_costs_does_not_depend_on_how_many_may_be_chosen(policy: str) -> None:
    assert lines_of_a_peek(policy, 4000) < 2 * lines_of_a_peek(policy, 100)
