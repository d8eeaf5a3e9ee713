"""PARALLEL, FAIR, PRIORITY, AGING and LOOKAHEAD: which entry is handed out next."""

import pytest

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_leases import READ, read_ids
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS
from tests.support.lines_run import lines_run

PRIORITY = "PENSTOCK.POLICY s GROUP g ACKWAIT 30000 PRIORITY p"
FAIR = "PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k FAIR YES"
ONE = "XREADGROUP GROUP g {} COUNT 1 STREAMS s >"


@pytest.fixture
def jobs(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Four entries of levels 4, 0, 9 and 9; the values of k are x, x, y and none."""
    dialogue("XADD s 1-0 k x", "XADD s 2-0 k x p 0", "XADD s 3-0 k y p 9", "XADD s 4-0 p 9", "XGROUP CREATE s g 0")
    return dialogue


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("PARALLEL 2", "ERR PARALLEL needs KEY"),
        ("ACKWAIT 5 KEY k PARALLEL 0", "ERR PARALLEL must be between 1 and 1000000"),
        ("ACKWAIT 5 KEY k PARALLEL 1000001", "ERR PARALLEL must be between 1 and 1000000"),
        ("FAIR YES", "ERR FAIR needs KEY"),
        ("FAIR maybe", "ERR FAIR must be YES or NO"),
        ("PRIORITY p", "ERR PRIORITY needs ACKWAIT"),
        ("ACKWAIT 5 AGING 5", "ERR AGING needs PRIORITY"),
        ("ACKWAIT 5 PRIORITY p AGING 0", "ERR AGING must be between 1 and 2592000000"),
        ("LOOKAHEAD 5", "ERR LOOKAHEAD needs KEY or PRIORITY"),
        ("ACKWAIT 5 KEY k LOOKAHEAD -1", "ERR LOOKAHEAD must be between 0 and 1000000"),
        ("PRIORITY", "ERR syntax error"),
    ],
)
def test_an_option_refuses(jobs: PolicyDialogue, options: str, text: str) -> None:
    assert refused(jobs(f"PENSTOCK.POLICY s GROUP g {options}")) == text


def test_what_was_jumped_is_logged_with_the_read_in_words_of_redis(jobs: PolicyDialogue) -> None:
    jobs(PRIORITY)
    jobs.since()
    assert read_ids(jobs, "XREADGROUP GROUP g a COUNT 2 STREAMS s >") == ["3-0", "4-0"]

    assert jobs.since() == [
        "XGROUP CREATECONSUMER s g a ; XNACK s g FAIL IDS 2 1-0 2-0 RETRYCOUNT 0 FORCE ; "
        "XCLAIM s g a 0 3-0 4-0 TIME 1795300000000 RETRYCOUNT 1 FORCE JUSTID LASTID 0-0 ; "
        "XGROUP SETID s g 4-0 ENTRIESREAD 4"
    ]
    jobs.reloaded()
    jobs.rewritten()


def test_with_equal_levels_the_log_is_as_without_priority(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 n 1", "XADD s 2-0 n 2", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0")
    dialogue("PENSTOCK.POLICY s GROUP h ACKWAIT 30000", PRIORITY, "XGROUP CREATECONSUMER s g a")
    dialogue("XGROUP CREATECONSUMER s h a")
    dialogue.since()
    dialogue("XREADGROUP GROUP h a STREAMS s >", "XREADGROUP GROUP g a STREAMS s >")
    plain, chosen = dialogue.since()

    assert chosen == plain.replace(" h ", " g ")


def test_retries_come_before_what_was_never_delivered(jobs: PolicyDialogue) -> None:
    jobs(PRIORITY, ONE.format("a"), "XNACK s g FAIL IDS 1 3-0")
    assert read_ids(jobs, ONE.format("a")) == ["3-0"]
    jobs("XNACK s g SILENT IDS 1 3-0", "XADD s 5-0 p 9", "PENSTOCK.XNACK s g SILENT IDS 1 3-0 DELAY 500")
    assert read_ids(jobs, ONE.format("a")) == ["4-0"]
    jobs("PENSTOCK.CLOCK ADVANCE 500")

    assert read_ids(jobs, READ.format("a")) == ["3-0", "5-0", "1-0", "2-0"]


def test_a_value_keeps_the_order_of_its_ids_whatever_the_levels(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 k x p 0", "XADD s 2-0 k x p 9", "XADD s 3-0 k y p 5", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k PARALLEL 2 PRIORITY p")

    assert read_ids(dialogue, READ.format("a")) == ["3-0", "1-0", "2-0"]


def test_the_value_with_the_fewest_workers_comes_next_then_the_one_whose_turn_is_longest_ago(
    dialogue: PolicyDialogue,
) -> None:
    dialogue(*[f"XADD s {at}-0 k {value}" for at, value in enumerate("xxxxyyz", 1)], "XGROUP CREATE s g 0", FAIR)
    dialogue("PENSTOCK.POLICY s GROUP g PARALLEL 3")
    assert read_ids(dialogue, "XREADGROUP GROUP g a COUNT 5 STREAMS s >") == ["1-0", "5-0", "7-0", "2-0", "6-0"]
    assert dialogue("XINFO GROUPS s")[0][13][19] == 2  # waiting
    dialogue("XADD s 8-0 k z", "XACK s g 5-0 6-0", "XADD s 9-0 k y")
    assert read_ids(dialogue, ONE.format("a")) == ["9-0"]  # none with a worker, but the last turn
    dialogue("XACK s g 1-0 2-0")

    assert read_ids(dialogue, ONE.format("a")) == ["3-0"]
    dialogue.reloaded()
    dialogue.rewritten()


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("XDEL s 3-0", ["4-0", "1-0", "2-0"]),
        ("XTRIM s MINID 2", ["3-0", "4-0", "2-0"]),
        ("XGROUP SETID s g 3-0", ["4-0"]),
        ("XADD s 5-0 p 9", ["3-0", "4-0", "5-0", "1-0", "2-0"]),
        ("XREADGROUP GROUP g b COUNT 1 NOACK STREAMS s >", ["3-0", "4-0", "2-0"]),
    ],
)
def test_candidates_change_with_the_stream(jobs: PolicyDialogue, line: str, ids: list[str]) -> None:
    jobs(PRIORITY, "PENSTOCK.PEEK s g", line)

    assert [entry[0].decode() for entry in jobs("PENSTOCK.PEEK s g COUNT 9")] == ids
    assert read_ids(jobs, READ.format("a")) == ids
    jobs.reloaded()
    jobs.rewritten()


@pytest.mark.parametrize("line", ["XDEL s 1-0", "XTRIM s MINID 2", "XACK s g 1-0", "XCLAIM s g b 0 1-0 JUSTID"])
def test_what_waits_may_go_without_being_handed_out(jobs: PolicyDialogue, line: str) -> None:
    jobs(PRIORITY, ONE.format("a"), line)

    assert read_ids(jobs, READ.format("a")) == ["4-0", "2-0"]
    jobs.reloaded()
    jobs.rewritten()


def test_a_position_that_was_set_back_has_entries_delivered_again(jobs: PolicyDialogue) -> None:
    jobs(PRIORITY, "XREADGROUP GROUP g a COUNT 3 STREAMS s >", "XGROUP SETID s g 0")

    assert read_ids(jobs, READ.format("b")) == ["3-0", "4-0", "1-0", "2-0"]
    assert [row[:2] + row[3:] for row in jobs("XPENDING s g - + 9")] == [
        [b"1-0", b"b", 1], [b"2-0", b"b", 1], [b"3-0", b"b", 1], [b"4-0", b"b", 1]
    ]  # fmt: skip
    jobs.reloaded()


def test_what_a_consumer_has_is_no_candidate_once_it_was_passed_over(jobs: PolicyDialogue) -> None:
    jobs(PRIORITY, READ.format("a"), "XGROUP SETID s g 0")
    assert read_ids(jobs, ONE.format("b")) == ["3-0"]

    assert read_ids(jobs, READ.format("c")) == ["4-0"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("LOOKAHEAD 3", "XCLAIM s g ops 0 2-0 JUSTID"),
        ("LOOKAHEAD 3", "XACK s g 2-0"),
        ("LOOKAHEAD 3", "XDEL s 5-0"),
        ("LOOKAHEAD 3", "XTRIM s MINID 6"),
        ("LOOKAHEAD 3 FAIR YES", "XDEL s 4-0"),
        ("LOOKAHEAD 3 FAIR YES", "XTRIM s MINID 3"),
    ],
)
def test_a_blocked_reader_gets_what_comes_into_reach(dialogue: PolicyDialogue, options: str, line: str) -> None:
    bob = dialogue.another()
    dialogue(*[f"XADD s {at}-0 k {value}" for at, value in enumerate("xxxxxy", 1)], "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k {options}", ONE.format("a"))
    bob("XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >")
    assert bob.arrived() == []
    dialogue(line)

    assert len(bob.arrived()) == 1


@pytest.mark.parametrize("order", ["FAIR YES", "PRIORITY p"])
def test_a_blocked_reader_gets_what_comes_into_reach_when_another_entry_expires(
    dialogue: PolicyDialogue, order: str
) -> None:
    bob = dialogue.another()
    dialogue(
        "XADD s 1-0 k x", "XADD s 2-0 k x", f"XADD s 3-0 k x at {NOW_MS + 500}", "XADD s 4-0 k x", "XADD s 5-0 k y"
    )
    dialogue("XGROUP CREATE s g 0", f"PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k LOOKAHEAD 2 EXPIREAT at {order}")
    dialogue(ONE.format("a"))
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    dialogue("PENSTOCK.CLOCK ADVANCE 499")
    assert bob.arrived() == []
    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"5-0"]


def test_a_deletion_by_another_group_frees_a_value(dialogue: PolicyDialogue) -> None:
    bob = dialogue.another()
    dialogue("XADD s 1-0 k y", "XADD s 2-0 k x", "XADD s 3-0 k x", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k", READ.format("a"), "XREADGROUP GROUP h a STREAMS s >")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    dialogue("XACKDEL s h KEEPREF IDS 1 2-0")

    assert [answer[0][1][0][0] for answer in bob.arrived()] == [b"3-0"]


@pytest.mark.parametrize(
    "lines",
    [
        ["COPY s t", "DEL s", "RENAME t s"],
        ["RENAME s t", "RENAME t s"],
        ["MOVE s 1", "SELECT 1"],
        ["SWAPDB 0 1", "SELECT 1"],
    ],
    ids=["copy", "rename", "move", "swapdb"],
)
def test_a_stream_keeps_its_order_where_it_goes(jobs: PolicyDialogue, lines: list[str]) -> None:
    jobs(
        f"{PRIORITY} KEY k PARALLEL 2 FAIR YES AGING 50000 LOOKAHEAD 5",
        "XREADGROUP GROUP g a COUNT 2 STREAMS s >",
        *lines,
    )
    field = jobs("XINFO GROUPS s")[0][13]
    settings = dict(zip(field[::2], field[1::2], strict=True))

    assert [settings[name] for name in (b"parallel", b"fair", b"priority", b"aging", b"lookahead", b"waiting")] == [
        2, 1, b"p", 50000, 5, 1
    ]  # fmt: skip
    assert read_ids(jobs, READ.format("b")) == ["4-0", "2-0"]


def test_without_an_option_what_was_jumped_is_ready(jobs: PolicyDialogue) -> None:
    jobs(PRIORITY, ONE.format("a"), "PENSTOCK.POLICY s GROUP g PRIORITY NONE")
    assert read_ids(jobs, READ.format("b")) == ["1-0", "2-0", "4-0"]
    jobs(PRIORITY, "XNACK s g SILENT IDS 3 1-0 2-0 4-0", "PENSTOCK.POLICY s GROUP g RESET", PRIORITY)

    assert read_ids(jobs, READ.format("b")) == ["4-0", "1-0", "2-0"]


def test_an_entry_with_an_id_that_was_given_before_may_be_chosen(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 5-0 p 1", "XADD s 6-0 p 2", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000 PRIORITY p", "PENSTOCK.PEEK s g", "XINFO GROUPS s")
    dialogue("XTRIM s MAXLEN 0", "XSETID s 1-0", "XADD s 3-0 p 1", "XADD s 6-0 p 9")

    assert read_ids(dialogue, READ.format("a")) == ["6-0", "3-0"]


def test_turns_are_given_in_order_of_the_smallest_ids_whatever_their_levels(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 p 3", "XADD s 2-0 k x p 8", "XADD s 3-0 p 7", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000 KEY k FAIR YES PRIORITY p")

    assert read_ids(dialogue, READ.format("a")) == ["3-0", "2-0", "1-0"]


def lines_of_a_read(waiting: int) -> int:
    """How many lines of Python an acknowledgement and a read run, after many entries of one tenant were passed over."""
    dialogue = made()
    dialogue("XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s GROUP g ACKWAIT 90000000 KEY k FAIR YES")
    dialogue(*[f"XADD s {at + 1}-0 k noisy" for at in range(waiting)], f"XADD s {waiting + 1}-0 k quiet")
    assert read_ids(dialogue, ONE.format("a")) == ["1-0"]
    dialogue("XCLAIM s g a 0 1-0 JUSTID")  # what is delivered in its millisecond is not in the order of ids
    assert read_ids(dialogue, READ.format("a")) == [f"{waiting + 1}-0"]
    dialogue(f"XACK s g {waiting + 1}-0 1-0")
    assert read_ids(dialogue, READ.format("a")) == ["2-0"]
    return lines_run(lambda: dialogue("XACK s g 2-0", READ.format("a")))


def test_a_read_costs_no_more_the_more_entries_wait() -> None:
    assert lines_of_a_read(4000) < 1.1 * lines_of_a_read(400)
