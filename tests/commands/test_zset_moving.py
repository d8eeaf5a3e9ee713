"""ZMOVE, BZMOVE and ZMOVEMEMBER (Redis 8.12), after the documentation: no Redis at hand knows them."""

from typing import Any

import pytest

from tests.commands.test_hash_expiry import turn_to
from tests.support.clock import NOW_MS
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.effects_beside_redis import steps_of_engine

SCORES = "ZRANGE {} 0 -1 WITHSCORES"

MOVES: list[tuple[str, Any, list[bytes], list[bytes]]] = [
    ("ZMOVE s d MIN", [b"a"], [b"b", b"2", b"c", b"3"], [b"a", b"1", b"b", b"9", b"z", b"26"]),
    ("ZMOVE s d MAX COUNT 2", [b"c", b"b"], [b"a", b"1"], [b"b", b"2", b"c", b"3", b"z", b"26"]),
    ("ZMOVE s d BYSCORE 2 +inf", [b"b", b"c"], [b"a", b"1"], [b"b", b"2", b"c", b"3", b"z", b"26"]),
    ("ZMOVE s d BYSCORE (1 (3", [b"b"], [b"a", b"1", b"c", b"3"], [b"b", b"2", b"z", b"26"]),
    ("ZMOVE s d BYSCORE -inf inf COUNT 1", [b"a"], [b"b", b"2", b"c", b"3"], [b"a", b"1", b"b", b"9", b"z", b"26"]),
    ("ZMOVE s d BYSCORE 7 8", None, [b"a", b"1", b"b", b"2", b"c", b"3"], [b"b", b"9", b"z", b"26"]),
    ("ZMOVE s s MIN", None, [b"a", b"1", b"b", b"2", b"c", b"3"], [b"b", b"9", b"z", b"26"]),
    ("ZMOVE missing d MIN", None, [b"a", b"1", b"b", b"2", b"c", b"3"], [b"b", b"9", b"z", b"26"]),
    ("BZMOVE s d MAX 0", [b"c"], [b"a", b"1", b"b", b"2"], [b"c", b"3", b"b", b"9", b"z", b"26"]),
    ("BZMOVE s s MAX 0", None, [b"a", b"1", b"b", b"2", b"c", b"3"], [b"b", b"9", b"z", b"26"]),
    (
        "ZMOVEMEMBER s d MEMBERS 4 c x b c",
        [b"c", b"b"],
        [b"a", b"1"],
        [b"b", b"2", b"c", b"3", b"z", b"26"],
    ),
    ("ZMOVEMEMBER s d NX MEMBERS 2 b c", [b"c"], [b"a", b"1", b"b", b"2"], [b"c", b"3", b"b", b"9", b"z", b"26"]),
    ("ZMOVEMEMBER s d XX MEMBERS 2 b c", [b"b"], [b"a", b"1", b"c", b"3"], [b"b", b"2", b"z", b"26"]),
    ("ZMOVEMEMBER s d XX MEMBERS 1 c", None, [b"a", b"1", b"b", b"2", b"c", b"3"], [b"b", b"9", b"z", b"26"]),
]


@pytest.mark.parametrize(("line", "answer", "source", "destination"), MOVES, ids=[line for line, *_ in MOVES])
def test_members_move_with_their_scores(
    dialogue: Dialogue, line: str, answer: Any, source: list[bytes], destination: list[bytes]
) -> None:
    dialogue("ZADD s 1 a 2 b 3 c", "ZADD d 9 b 26 z")

    assert dialogue(line) == answer
    assert dialogue(SCORES.format("s")) == source
    assert dialogue(SCORES.format("d")) == destination


def test_a_move_is_logged_as_what_was_done_and_published() -> None:
    *_, last = steps_of_engine(["ZADD s 1 a 2.5 b", "ZMOVE s d MIN COUNT 9"])

    assert last.logged == ["MULTI", "ZREM s a b", "ZADD d 1 a 2.5 b", "EXEC"]
    assert last.events == ["@0 zrem s", "@0 del s", "@0 new d", "@0 zadd d"]


def test_a_client_waits_until_there_is_a_source(dialogue: Dialogue) -> None:
    other = dialogue.another()
    assert dialogue("BZMOVE s d MIN 0 COUNT 5") == NO_REPLY
    other("ZADD d 1 z")
    assert dialogue.arrived() == []

    other("ZADD s 2 b 1 a")

    assert dialogue.arrived() == [[b"a", b"b"]]
    assert other(SCORES.format("d")) == [b"a", b"1", b"z", b"1", b"b", b"2"]


def test_what_is_moved_wakes_the_client_that_waits_at_the_destination(dialogue: Dialogue) -> None:
    other = dialogue.another()
    dialogue("BZMOVE d e MAX 0")

    other("ZADD s 1 a 2 b", "ZMOVE s d MIN COUNT 2")

    assert dialogue.arrived() == [[b"b"]]
    assert other("ZRANGE d 0 -1") == [b"a"]


def test_a_wait_ends_with_null(dialogue: Dialogue) -> None:
    dialogue("BZMOVE s d MIN 2")

    turn_to(dialogue.engine, NOW_MS + 2001)
    dialogue.engine.tick()

    assert dialogue.arrived() == [None]
