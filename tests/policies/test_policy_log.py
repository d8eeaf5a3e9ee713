"""The server's output tells what policies did, once a minute for each group."""

import pytest

from penstock.engine.policies.policy_log import IDLE, MISSED, NO_SERIES, PolicyLog
from tests.policies.conftest import PolicyDialogue

Told = list[tuple[int, str]]


@pytest.fixture
def told(dialogue: PolicyDialogue) -> Told:
    lines: Told = []
    dialogue.engine.policies.log.report = lambda level, line: lines.append((level, line))
    dialogue(*["XADD s * f v"] * 9, "XGROUP CREATE s g 0")
    return lines


def test_a_policy_that_is_set_is_told_with_all_its_words(dialogue: PolicyDialogue, told: Told) -> None:
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000", "PENSTOCK.POLICY s MAXLEN 5", "PENSTOCK.CLOCK ADVANCE 0")
    dialogue("PENSTOCK.POLICY s GROUP g MAXDELIVER 2 DEADLETTER dead", "PENSTOCK.POLICY s RESET")
    assert told == [(2, "policy of s, group g: ACKWAIT 1000"), (2, "policy of s: MAXLEN 5")]
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    assert told[2:] == [
        (2, "policy of s, group g: ACKWAIT 1000 MAXDELIVER 2 DEADLETTER dead"),
        (2, "policy of s: none"),
    ]


def test_dead_letters_are_told_once_a_minute(dialogue: PolicyDialogue, told: Told) -> None:
    dialogue("PENSTOCK.POLICY s GROUP g DEADLETTER dead", "PENSTOCK.CLOCK ADVANCE 0")
    for _ in range(3):
        entry_id = dialogue("XREADGROUP GROUP g a COUNT 1 STREAMS s >")[0][1][0][0].decode()
        dialogue(f"XNACK s g FATAL IDS 1 {entry_id}", "PENSTOCK.CLOCK ADVANCE 1")
    assert told[1:] == [(2, "s, group g: 1 entry moved to dead")]
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")
    assert told[2:] == [(2, "s, group g: 2 entries moved to dead")]
    dialogue("PENSTOCK.CLOCK ADVANCE 600000")

    assert len(told) == 3
    assert dialogue.engine.next_wakeup_ms() == 0


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ("GROUP g ACKWAIT 1000 MAXDELIVER 1 DEADLETTER dead", "s, group g: nothing moves: dead holds a list"),
        ("FORWARD dead AFTER 1000", "s: nothing moves: dead holds a list"),
    ],
)
def test_a_target_that_takes_nothing_is_a_warning(dialogue: PolicyDialogue, told: Told, policy: str, line: str) -> None:
    dialogue(f"PENSTOCK.POLICY s {policy}", "XREADGROUP GROUP g a STREAMS s >", "RPUSH dead x")
    dialogue("PENSTOCK.CLOCK ADVANCE 30000")
    assert told[1:] == [(3, line)]
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    assert told[1:] == [(3, line), (3, line)]


def test_consumers_that_were_removed_are_counted_and_some_are_named(dialogue: PolicyDialogue, told: Told) -> None:
    dialogue(*[f"XGROUP CREATECONSUMER s g pod-{number}" for number in range(5)])
    dialogue("PENSTOCK.POLICY s GROUP g REAP 5000", "PENSTOCK.CLOCK ADVANCE 5000")

    assert told[1:] == [(2, "s, group g: 5 consumers were removed, not seen for 5000 ms: pod-0, pod-1, pod-2, ...")]


def test_many_groups_do_not_make_many_lines_without_end(dialogue: PolicyDialogue, told: Told) -> None:
    log = dialogue.engine.policies.log
    for number in range(1500):
        log.note(f"s{number}", 0, 1, "MAXLEN 5", [])
    log.report_due(0)

    assert len(told) == 1000


def test_groups_that_keep_no_entries_any_more_are_told(dialogue: PolicyDialogue, told: Told) -> None:
    dialogue("XGROUP CREATE s h 0", "XGROUP CREATE s i 0", "PENSTOCK.POLICY s MAXLEN 0 ACKED IDLEGROUP 70000")
    dialogue("PENSTOCK.CLOCK ADVANCE 10000", "XREADGROUP GROUP g a STREAMS s >", "PENSTOCK.CLOCK ADVANCE 60000")
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    assert told[1:] == [
        (3, "s: groups h, i were not read for 70000 ms, they keep no entries"),
        (3, "s: group g was not read for 70000 ms, it keeps no entries"),
    ]


def test_a_schedule_that_misses_times_twice_within_a_minute_is_counted_once(
    dialogue: PolicyDialogue, told: Told
) -> None:
    dialogue("XADD cron * every 1000", "PENSTOCK.POLICY cron FORWARD jobs EVERY every", "PENSTOCK.CLOCK ADVANCE 60000")
    del told[:]
    for _ in range(3):
        dialogue("RENAME jobs aside", "RPUSH jobs x", "PENSTOCK.CLOCK ADVANCE 5000", "DEL jobs")
        dialogue("PENSTOCK.CLOCK ADVANCE 5000")
    dialogue("PENSTOCK.CLOCK ADVANCE 60000")

    missed = [line for _, line in told if "missed" in line]
    assert missed == ["cron: times of 1 entry were missed: 1795300000000-0"] * 2


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (MISSED, "s: times of 2 entries were missed: 1-0, 2-0"),
        (NO_SERIES, "s: 2 entries have no valid every: 1-0, 2-0"),
        (IDLE, "s: groups 1-0, 2-0 were not read for every ms, they keep no entries"),
    ],
)
def test_what_has_a_name_is_counted_once_in_a_line(kind: int, line: str) -> None:
    lines: list[str] = []
    log = PolicyLog()
    log.report = lambda level, text: lines.append(text)
    for now_ms in (0, 60_000):
        for name in ("1-0", "2-0", "1-0", "2-0"):
            log.note("s", kind, 1, "every", [name])
        log.report_due(now_ms)

    assert lines == [line, line]
