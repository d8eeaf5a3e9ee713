"""Scheduled entries: each moves to another stream when it is due."""

import pytest

from tests.policies.conftest import PolicyDialogue
from tests.policies.test_retention import ids_of, refused
from tests.support.clock import NOW_MS


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("AT at", "ERR AT and AFTER need FORWARD"),
        ("AFTER 5", "ERR AT and AFTER need FORWARD"),
        ("FORWARD t AFTER -1", "ERR AFTER must be at least 0"),
        ("FORWARD s", "ERR a stream cannot be its own FORWARD"),
        ("FORWARD list", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("FORWARD b", "ERR FORWARD would go round in a circle"),
    ],
)
def test_forwarding_refuses(dialogue: PolicyDialogue, options: str, text: str) -> None:
    dialogue("XADD s 1-0 f v", "XADD b 1-0 f v", "RPUSH list x", "XADD c 1-0 f v")
    dialogue("PENSTOCK.POLICY c FORWARD s", "PENSTOCK.POLICY b FORWARD c")

    assert refused(dialogue(f"PENSTOCK.POLICY s {options}")) == text


def test_entries_move_in_the_order_of_their_moments_as_one_unit(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 n 1 at 30", "XADD s 2-0 n 2 at 20", "XADD s 3-0 n 3 at +7", "XADD s 4-0 n 4 at soon")
    dialogue("PENSTOCK.POLICY s FORWARD t AT at AFTER 9000000000000")
    dialogue.since()
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert dialogue.since() == [
        f"XADD t {NOW_MS}-0 n 3 at +7 ; XADD t {NOW_MS}-1 n 2 at 20 ; XADD t {NOW_MS}-2 n 1 at 30 ; XDEL s 3-0 2-0 1-0"
    ]
    fields = dialogue("XINFO STREAM s")[-1]
    assert fields[fields.index(b"next") + 1] == 9000000000004
    dialogue.reloaded()
    dialogue.rewritten()


def test_a_reader_of_the_target_is_served_when_an_entry_is_due(dialogue: PolicyDialogue) -> None:
    reader = dialogue.another()
    dialogue("XADD s * n 1", "PENSTOCK.POLICY s FORWARD t AFTER 600000")
    reader("XREAD BLOCK 0 STREAMS t 0")
    dialogue("PENSTOCK.CLOCK ADVANCE 599999")
    assert reader.arrived() == []
    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert reader.arrived() == [[[b"t", [[f"{NOW_MS + 600000}-0".encode(), [b"n", b"1"]]]]]]


def test_streams_may_forward_to_each_other_in_a_row(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * n 1", "XADD t 1-0 n 0", "PENSTOCK.POLICY s FORWARD t AFTER 10")
    dialogue("PENSTOCK.POLICY t FORWARD u AFTER 10", "PENSTOCK.CLOCK ADVANCE 20")

    assert ids_of(dialogue, "s") == ids_of(dialogue, "t") == []
    assert ids_of(dialogue, "u") == [f"{NOW_MS}-0", f"{NOW_MS + 20}-0"]
    dialogue.reloaded()


def test_a_target_that_cannot_take_entries_is_tried_again(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * n 1", "PENSTOCK.POLICY s FORWARD t AFTER 10", "SET t text", "PENSTOCK.CLOCK ADVANCE 5000")
    fields = dialogue("XINFO STREAM s")[-1]
    assert fields[-1] == b"t holds a string"
    assert ids_of(dialogue) == [f"{NOW_MS}-0"]
    dialogue("DEL t", "PENSTOCK.CLOCK ADVANCE 1000")

    assert len(ids_of(dialogue, "t")) == 1
    assert dialogue("XINFO STREAM s")[-1][-1] is None


def test_nothing_moves_round_in_a_circle_that_was_made_by_a_new_name(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * n 1", "PENSTOCK.POLICY s FORWARD t AFTER 10", "XADD u * n 2")
    dialogue("PENSTOCK.POLICY u FORWARD s AFTER 10", "RENAME u t", "PENSTOCK.CLOCK ADVANCE 5000")
    assert [dialogue(f"XINFO STREAM {key}")[-1][-1] for key in "st"] == [
        b"t leads back to the stream itself", b"s leads back to the stream itself"
    ]  # fmt: skip
    assert ids_of(dialogue, "s") == ids_of(dialogue, "t") == [f"{NOW_MS}-0"]
    dialogue("PENSTOCK.POLICY t RESET", "PENSTOCK.CLOCK ADVANCE 1000")

    assert ids_of(dialogue, "s") == []


@pytest.mark.parametrize(
    "lines",
    [
        ["PENSTOCK.POLICY s FORWARD NONE AFTER NONE MAXLEN 9"],
        ["PENSTOCK.POLICY s RESET", "PENSTOCK.POLICY s MAXLEN 9"],
        ["XDEL s 1-0"],
    ],
    ids=["none", "reset", "deleted"],
)
def test_nothing_is_blocked_where_nothing_waits(dialogue: PolicyDialogue, lines: list[str]) -> None:
    dialogue("XADD s 1-0 n 1", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 5")
    dialogue("PENSTOCK.POLICY s FORWARD t AFTER 10", "SET t text", "PENSTOCK.CLOCK ADVANCE 5000", *lines)

    assert dialogue("XINFO STREAM s")[-1][-1] is None


def test_no_more_than_a_thousand_entries_move_at_a_time(dialogue: PolicyDialogue) -> None:
    for number in range(1, 1502):
        dialogue.words(b"XADD", b"s", b"%d-0" % number, b"n", b"1")
    dialogue("PENSTOCK.POLICY s FORWARD t")
    dialogue.since()
    dialogue("PENSTOCK.CLOCK ADVANCE 0")

    assert dialogue("XLEN t") == 1501
    assert [unit.count(" ; ") for unit in dialogue.since()] == [1000, 501]


def test_an_entry_with_an_id_that_was_given_before_is_forwarded_too(dialogue: PolicyDialogue) -> None:
    dialogue("XADD later 5-0 n 1 at +90000000000000", "PENSTOCK.POLICY later FORWARD orders AT at")
    dialogue("XTRIM later MAXLEN 0", "XSETID later 1-0", "XADD later 4-0 n 2", "PENSTOCK.CLOCK ADVANCE 1")

    assert [entry[1] for entry in dialogue("XRANGE orders - +")] == [[b"n", b"2"]]
