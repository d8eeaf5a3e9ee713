"""Arrays of Redis 8.8, after its documentation: no Redis at hand knows them."""

from typing import Any

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, steps_of_engine
from tests.support.engines import loaded_engine, make_engine, settings_with

LAST = 2**64 - 2
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
BAD_INDEX = "ERR invalid array index"

ANSWERS: dict[str, list[tuple[str, Any]]] = {
    "set and read": [
        ("ARSET a 5 x y z", 3), ("ARSET a 6 Y W", 0), ("ARGET a 6", b"Y"), ("ARGET a 9", None), ("ARGET m 0", None),
        ("ARMSET a 0 p 100 q 0 r", 2), ("ARMGET a 0 1 100", [b"r", None, b"q"]), ("ARMGET m 1", [None]),
        ("ARLEN a", 101), ("ARCOUNT a", 5), ("ARLEN m", 0), ("ARCOUNT m", 0), ("TYPE a", b"array"),
        ("OBJECT ENCODING a", b"sliced-array"),
        (f"ARSET a {LAST} end", 1), (f"ARGET a {LAST}", b"end"),
    ],
    "ranges": [
        ("ARMSET a 1 b 3 d", 2), ("ARGETRANGE a 0 3", [None, b"b", None, b"d"]), ("ARGETRANGE a 3 2", [b"d", None]),
        ("ARGETRANGE m 0 1", [None, None]), ("ARSCAN a 0 9", [[1, b"b"], [3, b"d"]]),
        ("ARSCAN a 9 0 LIMIT 1", [[3, b"d"]]),
        ("ARSCAN m 0 9", []),
    ],
    "deleted": [
        ("ARSET a 0 a b c d e", 5), ("ARDEL a 1 1 9", 1), ("ARLEN a", 5), ("ARDEL a 4", 1), ("ARLEN a", 4),
        ("ARDELRANGE a 3 2 2 3", 2), ("ARDELRANGE a 7 9", 0), ("ARDELRANGE a 0 9", 1), ("EXISTS a", 0),
        ("ARDEL m 1", 0),
    ],
    "inserted": [
        ("ARMSET m 0 a 1 b 100 c", 3), ("ARINSERT m d", 0), ("ARGET m 0", b"d"), ("ARNEXT m", 1), ("ARSEEK m 7", 1),
        ("ARINSERT m e f", 8), ("ARLASTITEMS m 2", [b"e", b"f"]), ("ARLASTITEMS m 2 REV", [b"f", b"e"]),
        ("ARLASTITEMS m 0", []), ("ARLASTITEMS x 4", []), ("ARNEXT x", 0), ("ARSEEK x 4", 0), ("EXISTS x", 0),
        ("ARSEEK m 18446744073709551615", 1), ("ARNEXT m", None), ("ARSEEK m 0", 1), ("ARNEXT m", 0),
        ("ARDEL m 8", 1), ("ARINSERT y a b", 1), ("ARDEL y 1", 1), ("ARNEXT y", 2),
    ],
    "rings": [
        ("ARRING r 3 v0", 0), ("ARRING r 3 v1", 1), ("ARRING r 3 v2", 2), ("ARRING r 3 v3", 0),
        ("ARLASTITEMS r 3", [b"v1", b"v2", b"v3"]), ("ARRING a 5 v0 v1 v2 v3 v4", 4), ("ARRING a 3 v5", 0),
        ("ARLEN a", 3),
        ("ARGETRANGE a 0 2", [b"v5", b"v3", b"v4"]), ("ARRING b 5 1 2 3 4 5 6", 0), ("ARRING b 8 7", 5),
        ("ARGETRANGE b 0 5", [b"2", b"3", b"4", b"5", b"6", b"7"]),
    ],
    "reckoned": [
        ("ARSET a 0 1 2 3 4 5", 5), ("AROP a 0 4 SUM", b"15"), ("AROP a 0 4 AND", 0), ("AROP a 4 0 OR", 7),
        ("AROP a 0 4 XOR", 1), ("AROP a 1 3 MIN", b"2"), ("AROP a 1 3 MAX", b"4"), ("AROP a 0 99 USED", 5),
        ("AROP a 0 9 MATCH 3", 1), ("ARSET f 0 1.5 x 2.25 -7.9", 4), ("AROP f 0 3 SUM", b"-4.15"),
        ("AROP f 0 3 OR", -5),
        ("AROP f 1 1 SUM", None), ("AROP m 0 1 USED", 0), ("AROP m 0 1 MATCH x", 0), ("AROP m 0 1 SUM", None),
    ],
    "searched": [
        ("ARSET a 0 apple Banana cherry apricot", 4), ("ARGREP a - + MATCH ap", [0, 3]),
        ("ARGREP a + - MATCH ap", [3, 0]),
        ("ARGREP a 0 3 EXACT banana NOCASE", [1]), ("ARGREP a - + GLOB *an* WITHVALUES", [[1, b"Banana"]]),
        ("ARGREP a - + MATCH ap MATCH ric AND", [3]), ("ARGREP a - + MATCH ch MATCH ric OR LIMIT 1", [2]),
        ("ARGREP m - + MATCH x", []), ("ARGREP a - + MATCH ''", [0, 1, 2, 3]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", ANSWERS.values(), ids=ANSWERS)
def test_arrays_answer_as_documented(dialogue: Dialogue, steps: list[tuple[str, Any]]) -> None:
    assert [(line, dialogue(line)) for line, _ in steps] == steps


REFUSALS = [
    ("ARSET a -1 x", BAD_INDEX), ("ARSET a 18446744073709551615 x", BAD_INDEX), ("ARSET a x x", BAD_INDEX),
    (f"ARSET a {LAST} x y", "ERR array index overflow"), ("ARSEEK t 18446744073709551616", BAD_INDEX),
    ("ARMSET a 1 x 2", "ERR wrong number of arguments for 'armset' command"), ("ARGET t x", WRONG_TYPE),
    ("ARSET t x y", BAD_INDEX), ("ARSET t 1 y", WRONG_TYPE), ("ARMGET a x", BAD_INDEX),
    ("ARGETRANGE a 0 1000000", "ERR range exceeds maximum of 1000000 items"),
    ("ARSCAN a 0 1 LIMIT x", "ERR value is not an integer or out of range"),
    ("ARSCAN a 0 1 LIMIT 0", "ERR LIMIT must be positive"), ("ARSCAN a 0 1 FOO 1", "ERR syntax error"),
    ("ARSCAN a 0 1 LIMIT", "ERR wrong number of arguments for 'arscan' command"),
    ("ARRING a x v", "ERR invalid size"), ("ARRING a 0 v", "ERR size must be positive"),
    ("ARLASTITEMS a x", "ERR invalid COUNT"), ("ARLASTITEMS a 1 FOO", "ERR syntax error"),
    ("AROP a 0 1 FOO", "ERR unknown operation"), ("AROP a 0 1 MATCH", "ERR MATCH requires a value argument"),
    ("AROP a 0 1 SUM 1", "ERR wrong number of arguments for 'arop' command"), ("ARINFO a", "ERR no such key"),
    ("ARINFO t FOO", "ERR syntax error"), ("ARGREP a 0 1 FOO x", "ERR syntax error"),
    ("ARGREP a 0 1 AND OR", "ERR syntax error"), ("ARGREP a x 1 MATCH x", BAD_INDEX),
    ("ARDELRANGE a 0 1 2", "ERR wrong number of arguments for 'ardelrange' command"),
    ("ARGREP a 0 1 " + "EXACT x " * 251, "ERR too many predicates, maximum is 250"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "refusal"), REFUSALS, ids=[line[:40] for line, _ in REFUSALS])
def test_what_no_array_has_is_refused(dialogue: Dialogue, line: str, refusal: str) -> None:
    dialogue("SET t x")

    assert str(dialogue(line)) == refusal
    assert dialogue("EXISTS a") == 0


def test_an_array_that_is_full_takes_no_more(dialogue: Dialogue) -> None:
    dialogue("ARSET a 0 x", f"ARSEEK a {LAST}")

    assert str(dialogue("ARINSERT a y z")) == "ERR insert index overflow"
    assert dialogue.raw("ARINSERT a y") == b":18446744073709551614\r\n"  # beyond what most clients read
    assert str(dialogue("ARINSERT a z")) == "ERR insert index overflow"


def test_changes_are_told_and_logged_as_they_were_asked_for() -> None:
    lines = ["ARSET a 0 x", "ARINSERT a y", "ARSEEK a 5", "ARDEL a 9", "ARDEL a 0", "ARSEEK m 1"]
    steps = steps_of_engine(lines)

    assert [step.events for step in steps] == [
        ["@0 new a", "@0 arset a"], ["@0 arinsert a"], ["@0 arseek a"], [], ["@0 ardel a", "@0 del a"], [],
    ]  # fmt: skip
    assert [line for step in steps for line in step.logged] == ["SELECT 0", *lines[:3], "ARDEL a 0"]


def test_what_an_array_is_like_is_told(dialogue: Dialogue) -> None:
    dialogue("ARMSET m 0 a 1 b 100 c", "ARINSERT m d", "HELLO 3")

    assert dialogue("ARINFO m") == {
        b"count": 3, b"len": 101, b"next-insert-index": 1, b"slices": 1, b"directory-size": 1, b"super-dir-entries": 0,
        b"slice-size": 4096,
    }  # fmt: skip
    assert dialogue("ARINFO m FULL")[b"avg-sparse-size"] == 3.0


def test_an_array_survives_the_log_a_copy_and_a_dump() -> None:
    observed = ObservedEngine()
    dialogue = Dialogue(observed)
    dialogue("ARMSET a 0 x 70000 y", "ARINSERT a p q", "COPY a b")
    dialogue.words(b"RESTORE", b"c", b"0", dialogue("DUMP a"))
    reloaded = Dialogue(loaded_engine(observed.units))

    for key in "abc":
        assert reloaded(f"ARSCAN {key} 0 99999") == [[0, b"p"], [1, b"q"], [70000, b"y"]]
        assert reloaded(f"ARNEXT {key}") == 2


def test_clients_of_an_older_server_see_no_arrays() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="8.6")))

    assert "unknown command" in str(dialogue("ARSET a 0 x"))
