"""EXPIRE and EXPIREAT: what was not taken in time goes aside."""

import pytest

from tests.policies.conftest import PolicyDialogue
from tests.policies.test_leases import READ, read_ids
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS


@pytest.fixture
def orders(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries, which expire after a minute, the second one after five seconds; leases of 30 s."""
    dialogue("XADD s * n 1", "XADD s * n 2 at +5000", "XADD s * n 3", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 EXPIRE 60000 EXPIREAT at DEADLETTER dead")
    return dialogue


def reasons(dialogue: PolicyDialogue) -> list[tuple[str, ...]]:
    """Of the dead letters: which entry, how often it was delivered, its last consumer, and the reason."""
    found: list[tuple[str, ...]] = []
    for _, fields in dialogue("XRANGE dead - +"):
        entry_id, deliveries, consumer, reason = fields[-7::2]
        found.append((entry_id.decode()[-1], deliveries.decode(), consumer.decode(), reason.decode()))
    return found


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("GROUP g EXPIRE 0", "ERR EXPIRE must be at least 1"),
        ("GROUP g EXPIRE soon", "ERR value is not an integer or out of range"),
        ("GROUP g EXPIREAT", "ERR syntax error"),
        ("EXPIREAT at", "ERR EXPIREAT is a policy of groups: say GROUP name before it"),
    ],
)
def test_an_option_refuses(orders: PolicyDialogue, options: str, text: str) -> None:
    assert refused(orders(f"PENSTOCK.POLICY s {options}")) == text


def test_a_new_entry_that_a_read_comes_to_is_moved_in_its_unit(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.CLOCK ADVANCE 5000")
    orders.since()
    assert read_ids(orders, READ.format("a")) == [f"{NOW_MS}-0", f"{NOW_MS}-2"]

    unit = orders.since()[0]
    assert f"XADD dead {NOW_MS + 5000}-0 n 2 at +5000 _stream s _group g _id {NOW_MS}-1 _deliveries 0" in unit
    assert unit.endswith(f"XGROUP SETID s g {NOW_MS}-2 ENTRIESREAD 3")
    orders.reloaded()
    orders.rewritten()


@pytest.mark.parametrize("order", ["PRIORITY p", "KEY k FAIR YES"])
def test_what_waits_to_be_chosen_is_not_handed_out_after_its_time(dialogue: PolicyDialogue, order: str) -> None:
    dialogue("XADD s 1-0 k x", "XADD s 2-0 k x at 1795300001000", "XADD s 3-0 k y p 9", "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 90000 EXPIREAT at DEADLETTER dead {order}", "RPUSH dead x")
    dialogue("XREADGROUP GROUP g a COUNT 2 STREAMS s >", "XACK s g 1-0")
    assert [row[:2] for row in dialogue("XPENDING s g - + 9")] == [[b"2-0", b""], [b"3-0", b"a"]]
    dialogue("PENSTOCK.CLOCK ADVANCE 1000")
    assert dialogue("PENSTOCK.PEEK s g") == []
    assert read_ids(dialogue, READ.format("b")) == []
    dialogue("DEL dead", "PENSTOCK.CLOCK ADVANCE 1000")

    assert [entry[1][-7] for entry in dialogue("XRANGE dead - +")] == [b"2-0"]


@pytest.mark.parametrize("options", ["EXPIRE NONE", "EXPIRE 90000"])
def test_candidates_expire_as_the_policy_says_now(dialogue: PolicyDialogue, options: str) -> None:
    dialogue("XADD s * p 1", "XADD s * p 9", "XADD s * p 9", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 90000 PRIORITY p EXPIRE 1000", "PENSTOCK.PEEK s g")
    dialogue(f"PENSTOCK.POLICY s GROUP g {options}", "PENSTOCK.CLOCK ADVANCE 1000")

    assert len(read_ids(dialogue, READ.format("a"))) == 3
    assert dialogue("XINFO GROUPS s")[0][11] == 0


def test_candidates_that_were_seen_before_expire_too(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * p 1", "XADD s * p 9 at +1000", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 90000 PRIORITY p", "PENSTOCK.PEEK s g")
    dialogue("PENSTOCK.POLICY s GROUP g EXPIREAT at", "PENSTOCK.CLOCK ADVANCE 1000")

    assert read_ids(dialogue, READ.format("a")) == ["1795300000000-0"]


def test_without_dead_letters_a_new_entry_leaves_a_position_in_the_log(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.POLICY s GROUP g DEADLETTER NONE EXPIREAT NONE")
    orders.since()
    orders("PENSTOCK.CLOCK ADVANCE 60000")

    assert orders.since() == [f"XGROUP SETID s g {NOW_MS}-2 ENTRIESREAD 3"]
    assert orders("XLEN s") == 3
    orders.reloaded()


@pytest.mark.parametrize(
    ("line", "deliveries"),
    [
        ("XAUTOCLAIM s g b 0 - COUNT 1", "1"),
        (f"XCLAIM s g b 0 {NOW_MS}-0", "1"),
        (f"XCLAIM s g b 0 {NOW_MS}-0 RETRYCOUNT 0", "1"),
        ("XREADGROUP GROUP g a STREAMS s 0", "1"),
        ("XREADGROUP GROUP g b CLAIM 0 STREAMS s >", "1"),
        (f"XNACK s g FAIL IDS 1 {NOW_MS}-0", "1"),
        (f"XNACK s g SILENT IDS 1 {NOW_MS}-0", "0"),
        ("XGROUP DELCONSUMER s g a", "1"),
        ("PENSTOCK.DELCONSUMER s g a RELEASE", "1"),
        ("PENSTOCK.CLOCK ADVANCE 1000", "1"),
    ],
)
def test_what_a_consumer_has_goes_when_its_attempt_ends(orders: PolicyDialogue, line: str, deliveries: str) -> None:
    orders("PENSTOCK.CLOCK ADVANCE 31000", "XREADGROUP GROUP g a COUNT 1 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 29000")
    assert [row[0] for row in orders("XPENDING s g - + 9")] == [f"{NOW_MS}-0".encode()]
    orders(line)

    assert reasons(orders) == [("1", "0", "", "expired"), ("2", "0", "", "expired"), ("0", deliveries, "a", "expired")]
    assert orders("XPENDING s g - + 9") == []
    orders.reloaded()
    orders.rewritten()


def test_a_consumer_may_still_acknowledge_what_it_has_or_prolong_its_lease(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.CLOCK ADVANCE 50000", "XREADGROUP GROUP g a COUNT 1 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 20000")
    assert orders(f"XCLAIM s g a 0 {NOW_MS}-0 JUSTID") == [f"{NOW_MS}-0".encode()]

    assert orders(f"XACK s g {NOW_MS}-0") == 1
    assert [reason[0] for reason in reasons(orders)] == ["1", "2"]


def test_what_has_expired_is_not_pending_again_by_force(orders: PolicyDialogue) -> None:
    orders(READ.format("a"), f"XACK s g {NOW_MS}-0", "PENSTOCK.CLOCK ADVANCE 60000")

    assert orders(f"XCLAIM s g b 0 {NOW_MS}-0 {NOW_MS}-1 FORCE") == []
    assert [row[1] for row in orders("XPENDING s g - + 9")] == [b"a"]
    assert [reason[0] for reason in reasons(orders)] == ["1"]
    orders.reloaded()


@pytest.mark.parametrize(
    "line", ["PING", "XNACK s g FAIL IDS 1 {}-0", "PENSTOCK.XNACK s g FAIL IDS 1 {}-0 DELAY 70000"]
)
def test_what_is_new_again_by_a_position_set_back_moves_once(orders: PolicyDialogue, line: str) -> None:
    orders(READ.format("a"), line.format(NOW_MS), "XGROUP SETID s g 0", "PENSTOCK.CLOCK ADVANCE 60000")

    assert [entry for entry, *_ in reasons(orders)] == ["0", "1", "2"]
    assert orders("XPENDING s g")[0] == 0
    orders("PENSTOCK.CLOCK ADVANCE 60000")
    assert orders("XLEN dead") == 3
    orders.reloaded()
    orders.rewritten()


def test_what_is_held_goes_at_its_time(orders: PolicyDialogue) -> None:
    orders("XREADGROUP GROUP g a COUNT 1 STREAMS s >", f"PENSTOCK.XNACK s g FAIL IDS 1 {NOW_MS}-0 DELAY 900000")
    orders("PENSTOCK.CLOCK ADVANCE 59999")
    assert reasons(orders) == [("1", "0", "", "expired")]
    orders("PENSTOCK.CLOCK ADVANCE 1")

    assert reasons(orders)[1:] == [("0", "1", "", "expired"), ("2", "0", "", "expired")]


def test_of_what_is_due_at_one_moment_what_has_no_owner_goes_first(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.CLOCK ADVANCE 30000", READ.format("a"), f"XNACK s g SILENT IDS 1 {NOW_MS}-2")
    orders("PENSTOCK.CLOCK ADVANCE 30000")

    assert [entry[0] for entry in reasons(orders)] == ["1", "2", "0"]


def test_the_room_of_what_a_read_sets_aside_is_for_the_next_read(dialogue: PolicyDialogue) -> None:
    bob = dialogue.another()
    dialogue(f"XADD s 1-0 at {NOW_MS + 1500}", "XADD s 2-0 n 2", "XADD s 3-0 n 3", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000 EXPIREAT at", READ.format("a"), "XNACK s g SILENT IDS 1 3-0")
    dialogue("PENSTOCK.POLICY s GROUP g INFLIGHT 2 PAUSE FOREVER", "PENSTOCK.CLOCK ADVANCE 1500")
    bob("XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >")
    assert bob.arrived() == []
    dialogue("PENSTOCK.POLICY s GROUP g PAUSE NONE")

    assert bob.arrived() == [[[b"s", [[b"2-0", [b"n", b"2"]]]]]]
    assert read_ids(dialogue, READ.format("a")) == ["3-0"]


def test_where_dead_letters_cannot_be_written_nothing_is_passed_over(orders: PolicyDialogue) -> None:
    orders("RPUSH dead x", "PENSTOCK.CLOCK ADVANCE 5000")
    assert read_ids(orders, READ.format("a")) == [f"{NOW_MS}-0"]
    assert read_ids(orders, READ.format("a")) == []
    orders("DEL dead", "PENSTOCK.CLOCK ADVANCE 1000")
    assert reasons(orders) == [("1", "0", "", "expired")]

    assert read_ids(orders, READ.format("a")) == [f"{NOW_MS}-2"]


def test_an_entry_that_has_expired_is_not_given_back_by_redrive(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.CLOCK ADVANCE 5000", READ.format("a"), f"XNACK s g FATAL IDS 1 {NOW_MS}-2")
    assert orders("PENSTOCK.REDRIVE dead s") == 1
    orders("PENSTOCK.CLOCK ADVANCE 55000")

    assert [reason[0] for reason in reasons(orders)] == ["1", "2"]


def test_the_next_of_a_key_is_ready_when_the_one_before_it_expired(dialogue: PolicyDialogue) -> None:
    bob = dialogue.another()
    dialogue("XADD s * k x at +1000", "XADD s * k x", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 KEY k EXPIREAT at", READ.format("a"))
    dialogue(f"XNACK s g FAIL IDS 1 {NOW_MS}-0", "PENSTOCK.POLICY s GROUP g PAUSE FOREVER")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    dialogue("PENSTOCK.CLOCK ADVANCE 1000", "PENSTOCK.POLICY s GROUP g PAUSE NONE")

    assert [answer[0][1][0][0] for answer in bob.arrived()] == [f"{NOW_MS}-1".encode()]


@pytest.mark.parametrize(
    "lines",
    [["COPY s t", "DEL s"], ["RENAME s t"], ["MOVE s 1", "SELECT 1", "RENAME s t"], ["SWAPDB 0 1", "SELECT 1"]],
    ids=["copy", "rename", "move", "swapdb"],
)
def test_a_stream_keeps_its_times_where_it_goes(orders: PolicyDialogue, lines: list[str]) -> None:
    orders("XREADGROUP GROUP g a COUNT 1 STREAMS s >", f"XNACK s g FAIL IDS 1 {NOW_MS}-0", *lines)
    orders("PENSTOCK.CLOCK ADVANCE 60000")

    assert sorted(reason[0] for reason in reasons(orders)) == ["0", "1", "2"]


def test_what_expires_by_thousands_goes_tick_by_tick(orders: PolicyDialogue) -> None:
    for _ in range(1200):
        orders.words(b"XADD", b"s", b"*", b"n", b"4")
    orders("PENSTOCK.CLOCK ADVANCE 60000", "PENSTOCK.CLOCK ADVANCE 0", "PENSTOCK.CLOCK ADVANCE 0")

    assert orders("XLEN dead") == 1203


def test_what_was_dropped_is_told(orders: PolicyDialogue) -> None:
    told: list[tuple[int, str]] = []
    orders.engine.policies.log.report = lambda level, line: told.append((level, line))
    orders("PENSTOCK.POLICY s GROUP g DEADLETTER NONE", "PENSTOCK.CLOCK ADVANCE 60000", "PENSTOCK.CLOCK ADVANCE 60000")

    assert told[-1] == (3, "s, group g: 3 entries expired and were dropped")


def test_a_blocked_reader_gets_what_was_behind_an_entry_that_its_own_request_put_aside(
    dialogue: PolicyDialogue,
) -> None:
    dialogue("XADD s * k x at +5000", "XADD s * k x", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000 KEY k EXPIREAT at", READ.format("a"))
    dialogue("PENSTOCK.CLOCK ADVANCE 5000", "XREADGROUP GROUP g b BLOCK 0 STREAMS s >")

    assert dialogue.arrived() == [[[b"s", [[b"%d-1" % NOW_MS, [b"k", b"x"]]]]]]
