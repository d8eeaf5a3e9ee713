"""KEY: of each value of a field one entry at a time is handed out, in order."""

import pytest

from tests.policies.conftest import PolicyDialogue
from tests.policies.test_leases import READ, read_ids
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS


@pytest.fixture
def orders(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries of anna, one of ben, one without a user."""
    dialogue("XADD s 1-0 user anna", "XADD s 2-0 user anna", "XADD s 3-0 user ben", "XADD s 4-0 n 4")
    dialogue("XADD s 5-0 user anna user ben", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY user")
    return dialogue


def test_a_key_needs_a_lease(dialogue: PolicyDialogue) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM")

    assert refused(dialogue("PENSTOCK.POLICY s GROUP g KEY user")) == "ERR KEY needs ACKWAIT"


def test_what_waits_is_pending_without_an_owner_and_logged_with_the_read(orders: PolicyDialogue) -> None:
    orders.since()
    assert read_ids(orders, READ.format("alice")) == ["1-0", "3-0", "4-0"]

    assert orders("XPENDING s g - + 10")[1] == [b"2-0", b"", -1, 0]
    assert orders.since() == [
        "XGROUP CREATECONSUMER s g alice ; "
        "XCLAIM s g alice 0 1-0 3-0 4-0 TIME 1795300000000 RETRYCOUNT 1 FORCE JUSTID LASTID 0-0 ; "
        "XNACK s g FAIL IDS 2 2-0 5-0 RETRYCOUNT 0 FORCE ; XGROUP SETID s g 5-0 ENTRIESREAD 5"
    ]
    assert orders("XINFO GROUPS s")[0][11] == 0
    orders.reloaded()
    orders.rewritten()


def test_a_read_goes_no_further_than_it_must(orders: PolicyDialogue) -> None:
    assert read_ids(orders, "XREADGROUP GROUP g alice COUNT 1 STREAMS s >") == ["1-0"]
    assert orders("XINFO GROUPS s")[0][7] == b"1-0"
    assert read_ids(orders, "XREADGROUP GROUP g alice COUNT 1 STREAMS s >") == ["3-0"]

    assert orders("XINFO GROUPS s")[0][7] == b"3-0"


@pytest.mark.parametrize(
    "line", ["XACK s g 1-0", "XDEL s 1-0", "XACKDEL s g IDS 1 1-0", "XTRIM s MINID 2", "XDELEX s DELREF IDS 1 1-0"]
)
def test_the_next_entry_is_ready_when_the_one_before_it_is_gone(orders: PolicyDialogue, line: str) -> None:
    bob = orders.another()
    orders(READ.format("alice"))
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    assert bob.arrived() == []
    orders(line)

    assert bob.arrived() == [[[b"s", [[b"2-0", [b"user", b"anna"]]]]]]
    orders.reloaded()
    orders.rewritten()


def test_a_failed_entry_keeps_its_key_until_it_is_done(orders: PolicyDialogue) -> None:
    orders(READ.format("alice"), "PENSTOCK.XNACK s g FAIL IDS 1 1-0 DELAY 5000")
    assert read_ids(orders, READ.format("bob")) == []
    orders("PENSTOCK.CLOCK ADVANCE 5000")
    assert read_ids(orders, READ.format("bob")) == ["1-0"]
    orders("XACK s g 1-0")

    assert read_ids(orders, READ.format("bob")) == ["2-0"]


def test_a_dead_letter_frees_its_key(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.POLICY s GROUP g DEADLETTER dead", READ.format("alice"), "XNACK s g FATAL IDS 1 1-0")

    assert read_ids(orders, READ.format("bob")) == ["2-0"]
    orders.reloaded()


def test_an_explicit_claim_takes_what_waits_and_other_claims_do_not(orders: PolicyDialogue) -> None:
    orders(READ.format("alice"))
    assert [entry[0] for entry in orders("XAUTOCLAIM s g alice 0 0")[1]] == [b"1-0", b"3-0", b"4-0"]
    assert read_ids(orders, "XREADGROUP GROUP g alice CLAIM 0 STREAMS s >") == ["1-0", "3-0", "4-0"]

    assert orders("XCLAIM s g ops 0 2-0 JUSTID") == [b"2-0"]
    orders.reloaded()


def test_a_loaded_log_knows_what_waits(orders: PolicyDialogue) -> None:
    orders(READ.format("alice"))
    again = PolicyDialogue(orders.reloaded(), orders._log)
    again.engine.tick()
    assert read_ids(again, READ.format("bob")) == []
    again("XACK s g 1-0")

    assert read_ids(again, READ.format("bob")) == ["2-0"]


def test_without_the_key_all_that_waited_is_ready(orders: PolicyDialogue) -> None:
    orders(READ.format("alice"), "PENSTOCK.POLICY s GROUP g KEY NONE")

    assert read_ids(orders, READ.format("bob")) == ["2-0", "5-0"]
    orders.reloaded()


def test_the_lag_stays_exact(orders: PolicyDialogue) -> None:
    orders("XREADGROUP GROUP g alice COUNT 2 STREAMS s >")

    assert orders("XINFO GROUPS s")[0][11] == 2


@pytest.mark.parametrize("line", ["XDEL s 2-0 5-0", "XDELEX s IDS 2 2-0 5-0", "XTRIM s MINID 6"])
def test_entries_that_waited_and_are_deleted_leave_their_places_and_go_with_the_next_read(
    orders: PolicyDialogue, line: str
) -> None:
    orders("PENSTOCK.POLICY s GROUP g LOOKAHEAD 2", "XADD s 6-0 user ben", "XADD s 7-0 user cleo")
    assert read_ids(orders, READ.format("alice")) == ["1-0", "3-0", "4-0"]
    orders(line)
    assert orders("XINFO GROUPS s")[0][13][19] == 0  # waiting

    assert "7-0" in read_ids(orders, READ.format("bob"))
    assert not {b"2-0", b"5-0"} & {row[0] for row in orders("XPENDING s g - + 10")}
    orders.reloaded()
    orders.rewritten()


def test_what_goes_while_its_group_is_idle_leaves_the_pending_list_and_its_value(orders: PolicyDialogue) -> None:
    orders("XADD s 6-0 user ben", "XGROUP CREATE s busy 0", "PENSTOCK.POLICY s MAXLEN 0 ACKED IDLEGROUP 90000")
    assert read_ids(orders, READ.format("alice")) == ["1-0", "3-0", "4-0"]
    orders("XREADGROUP GROUP busy b COUNT 3 STREAMS s >", "XACK s busy 1-0 3-0", "PENSTOCK.CLOCK ADVANCE 60000")
    orders("XREADGROUP GROUP busy b COUNT 1 STREAMS s >", "XACK s busy 4-0", "PENSTOCK.CLOCK ADVANCE 30000")
    assert [entry[0] for entry in orders("XRANGE s - +")] == [b"2-0", b"5-0", b"6-0"]
    assert [row[0] for row in orders("XPENDING s g - + 9")] == [b"2-0", b"5-0", b"6-0"]

    assert read_ids(orders, READ.format("bob")) == ["2-0", "6-0"]
    orders.reloaded()
    orders.rewritten()


@pytest.mark.parametrize("line", ["XDEL s 2-0 5-0", "XACK s g 2-0", "XCLAIM s g carol 0 2-0", "XACKDEL s g IDS 1 5-0"])
@pytest.mark.parametrize("expiry", ["", f"EXPIRE {2 * NOW_MS}"])
def test_a_blocked_reader_gets_what_comes_into_reach(orders: PolicyDialogue, line: str, expiry: str) -> None:
    """Where entries may expire, a read applies the policies behind it: it must not forget why it found nothing."""
    bob = orders.another()
    orders(f"PENSTOCK.POLICY s GROUP g LOOKAHEAD 2 {expiry}", "XADD s 6-0 user ben", "XADD s 7-0 user cleo")
    orders(READ.format("alice"))
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    orders("XADD s 8-0 user ben")
    assert bob.arrived() == []
    orders(line)

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"7-0"]


def test_an_entry_with_the_id_of_a_pending_one_has_the_value_of_its_own_fields(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 k x", "XADD s 2-0 k x", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 9000 KEY k")
    dialogue(READ.format("a"), "XTRIM s MAXLEN 0", "XSETID s 0-1", "XADD s 1-0 k y", "XADD s 3-0 k y", "XADD s 4-0 k x")

    assert read_ids(dialogue, READ.format("b")) == ["4-0"]


@pytest.mark.slow
def test_a_read_looks_ahead_of_ten_thousand_waiting_entries_at_most(dialogue: PolicyDialogue) -> None:
    for number in range(1, 10_004):
        dialogue.words(b"XADD", b"s", b"%d-0" % number, b"user", b"anna")
    dialogue("XADD s 10004-0 user ben", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY user")
    assert read_ids(dialogue, READ.format("alice")) == ["1-0"]
    assert dialogue("XINFO GROUPS s")[0][7] == b"10001-0"
    dialogue("XACK s g 1-0")

    assert read_ids(dialogue, READ.format("alice")) == ["2-0"]
    assert dialogue("XINFO GROUPS s")[0][7] == b"10002-0"
