"""Leases: what is not acknowledged in time is delivered again; what is given back may be held for a while."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS
from tests.support.lines_run import lines_run

Advance = Callable[[int], Any]
READ = "XREADGROUP GROUP g {} STREAMS s >"


@pytest.fixture
def leased(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries and a group with leases of 30 seconds."""
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000")
    return dialogue


def read_ids(dialogue: PolicyDialogue, line: str) -> list[str]:
    answer = dialogue(line)
    return [entry[0].decode() for entry in answer[0][1]] if answer else []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("GROUP", "ERR syntax error"),
        ("GROUP h ACKWAIT 5", "NOGROUP No such key 's' or consumer group 'h'"),
        ("GROUP g", "ERR At least one parameter must be specified"),
        ("GROUP g MAXLEN 5", "ERR MAXLEN is a policy of streams, not of groups"),
        ("GROUP g ACKED", "ERR ACKED is a policy of streams, not of groups"),
        ("ACKWAIT 5", "ERR ACKWAIT is a policy of groups: say GROUP name before it"),
        ("GROUP g ACKWAIT 0", "ERR ACKWAIT must be between 1 and 2592000000"),
        ("GROUP g ACKWAIT 2592000001", "ERR ACKWAIT must be between 1 and 2592000000"),
        ("GROUP g JITTER 101", "ERR JITTER must be between 0 and 100"),
        ("GROUP g JITTER 5", "ERR JITTER needs BACKOFF"),
        ("GROUP g BACKOFF 5", "ERR BACKOFF needs a shortest and a longest delay"),
        ("GROUP g BACKOFF 5 4", "ERR BACKOFF needs a shortest and a longest delay"),
        ("GROUP g BACKOFF 0 4", "ERR BACKOFF needs a shortest and a longest delay"),
        ("GROUP g BACKOFF one two", "ERR BACKOFF needs a shortest and a longest delay"),
        ("GROUP g REAP 0", "ERR REAP must be at least 1"),
        ("GROUP g REAP soon", "ERR value is not an integer or out of range"),
        ("GROUP g ACKWAIT 5 ACKWAIT 6", "ERR ACKWAIT specified multiple times"),
        ("GROUP g RESET ACKWAIT 6", "ERR syntax error"),
    ],
)
def test_a_policy_of_a_group_refuses(leased: PolicyDialogue, options: str, text: str) -> None:
    leased.since()

    assert refused(leased(f"PENSTOCK.POLICY s {options}")) == text
    assert leased.since() == []


def test_a_redelivery_is_logged_as_a_claim(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"), "PENSTOCK.CLOCK ADVANCE 30000")
    leased.since()
    assert read_ids(leased, "XREADGROUP GROUP g bob COUNT 2 STREAMS s >") == ["1-0", "2-0"]

    assert leased.since() == [
        "XGROUP CREATECONSUMER s g bob ; "
        "XCLAIM s g bob 0 1-0 2-0 TIME 1795300030000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0"
    ]
    leased.reloaded()
    leased.rewritten()


def test_the_end_of_a_lease_changes_nothing_by_itself(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"))
    leased.since()
    leased("PENSTOCK.CLOCK ADVANCE 90000")

    assert leased("XPENDING s g - + 1") == [[b"1-0", b"alice", 90000, 1]]
    assert leased.since() == []
    assert leased("XACK s g 1-0 2-0 3-0") == 3


def test_old_entries_come_before_new_ones_and_count_counts_both(leased: PolicyDialogue) -> None:
    leased("XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 30000")
    leased("XNACK s g SILENT IDS 1 2-0")

    assert read_ids(leased, "XREADGROUP GROUP g bob COUNT 1 STREAMS s >") == ["2-0"]
    assert read_ids(leased, READ.format("bob")) == ["1-0", "3-0"]


def test_a_read_that_does_not_acknowledge_gets_new_entries_only(leased: PolicyDialogue) -> None:
    leased("XREADGROUP GROUP g alice COUNT 1 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 30000")

    assert read_ids(leased, "XREADGROUP GROUP g bob NOACK STREAMS s >") == ["2-0", "3-0"]


def test_nor_does_one_that_claims_and_nothing_wakes_it_for_that(leased: PolicyDialogue) -> None:
    bob = leased.another()
    leased("XREADGROUP GROUP g alice COUNT 1 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 30000")
    assert read_ids(bob, "XREADGROUP GROUP g bob NOACK CLAIM 0 STREAMS s >") == ["2-0", "3-0"]
    bob("XREADGROUP GROUP g bob NOACK CLAIM 0 BLOCK 0 STREAMS s >")

    assert not 0 < leased.engine.next_wakeup_ms() <= NOW_MS + 90_000
    leased("XADD s 4-0 f v")
    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"4-0"]


@pytest.mark.parametrize("options", ["INFLIGHT 9", "KEY f PARALLEL 3", "PRIORITY p", "KEY f PARALLEL 3 FAIR YES"])
@pytest.mark.parametrize("line", [READ, "XREADGROUP GROUP g {} CLAIM 0 STREAMS s >"], ids=["plain", "claim"])
def test_what_is_new_again_by_a_position_set_back_is_in_a_reply_once(
    leased: PolicyDialogue, options: str, line: str
) -> None:
    leased(f"PENSTOCK.POLICY s GROUP g {options}", READ.format("alice"), "XNACK s g FAIL IDS 1 2-0")
    leased("PENSTOCK.CLOCK ADVANCE 30000", "XGROUP SETID s g 0")
    assert [entry[0] for entry in leased("PENSTOCK.PEEK s g")] == [b"1-0", b"2-0", b"3-0"]
    assert read_ids(leased, line.format("bob")) == ["1-0", "2-0", "3-0"]

    assert [row[1:] for row in leased("XPENDING s g - + 9")] == [[b"bob", 0, 1]] * 3


def test_a_position_that_is_set_back_serves_blocked_readers(leased: PolicyDialogue) -> None:
    bob = leased.another()
    leased(READ.format("alice"), "XACK s g 1-0 2-0 3-0")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    leased("XGROUP SETID s g 1-0")

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"2-0", b"3-0"]


def test_an_idle_time_set_by_xclaim_ends_a_lease_at_once(leased: PolicyDialogue) -> None:
    bob = leased.another()
    leased(READ.format("alice"), "PENSTOCK.CLOCK ADVANCE 1000")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    leased("XCLAIM s g alice 0 2-0 IDLE 30000 JUSTID", "PENSTOCK.CLOCK ADVANCE 0")

    assert bob.arrived() == [[[b"s", [[b"2-0", [b"f", b"v"]]]]]]


def test_ten_leases_that_end_serve_as_many_blocked_readers_in_order(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"))
    readers = [leased.another() for _ in range(5)]
    for number, reader in enumerate(readers):
        reader(f"XREADGROUP GROUP g w{number} COUNT 1 BLOCK 0 STREAMS s >")
    leased("PENSTOCK.CLOCK ADVANCE 29999")
    assert [reader.arrived() for reader in readers] == [[], [], [], [], []]
    leased("PENSTOCK.CLOCK ADVANCE 1")

    assert [[got[0][1][0][0] for got in reader.arrived()] for reader in readers] == [
        [b"1-0"],
        [b"2-0"],
        [b"3-0"],
        [],
        [],
    ]


def test_a_deleted_entry_is_dropped_at_the_end_of_its_lease(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"), "XDEL s 2-0")
    leased.since()
    leased("PENSTOCK.CLOCK ADVANCE 30000")

    assert leased("XPENDING s g")[0] == 2
    assert leased.since() == ["XDEL s 2-0", "XACK s g 2-0"][1:]
    leased.reloaded()


@pytest.mark.parametrize("line", ["XDEL s 1-0 1-0", "XDELEX s IDS 2 1-0 1-0", "XACKDEL s h IDS 2 1-0 1-0"])
def test_an_entry_that_a_request_deletes_twice_is_dropped_once(leased: PolicyDialogue, line: str) -> None:
    leased("XGROUP CREATE s h 0", "XREADGROUP GROUP h bob STREAMS s >")
    leased(READ.format("alice"), "PENSTOCK.CLOCK ADVANCE 30000")

    assert leased(line) in (1, [1, -1])
    assert [row[0] for row in leased("XPENDING s g - + 9")] == [b"2-0", b"3-0"]


def test_a_released_entry_that_was_deleted_is_dropped_when_it_would_be_handed_out(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"), "XNACK s g FAIL IDS 2 1-0 2-0", "XDEL s 1-0")

    assert read_ids(leased, READ.format("bob")) == ["2-0"]
    assert leased("XPENDING s g")[0] == 2
    leased.reloaded()


# -- holds -------------------------------------------------------------------------------------------------------


def test_a_failed_entry_is_held_longer_each_time(leased: PolicyDialogue) -> None:
    leased("PENSTOCK.POLICY s GROUP g BACKOFF 1000 3000", "XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    leased("XGROUP SETID s g 3-0")
    holds = []
    for _ in range(4):
        leased("XNACK s g FAIL IDS 1 1-0")
        fields = leased("XINFO GROUPS s")[0][-1]
        holds.append(fields[fields.index(b"next") + 1])
        leased(f"PENSTOCK.CLOCK SET {holds[-1]}")
        assert read_ids(leased, READ.format("a")) == ["1-0"]

    assert [end - start for start, end in zip([NOW_MS, *holds], holds, strict=False)] == [1000, 2000, 3000, 3000]
    leased.reloaded()


def test_jitter_shortens_a_hold_by_its_percentage_at_most(leased: PolicyDialogue) -> None:
    leased(
        "PENSTOCK.POLICY s GROUP g BACKOFF 1000 3000 JITTER 20", READ.format("a"), "XNACK s g FAIL IDS 3 1-0 2-0 3-0"
    )
    policy = leased.engine.keyspace.databases[0].values[b"s"].groups[b"g"].policy  # type: ignore[union-attr]
    assert policy is not None

    moments = [ready_ms - NOW_MS for ready_ms, _ in policy.ready.values()]
    assert len(moments) == 3
    assert all(800 <= moment <= 1000 for moment in moments)
    leased.reloaded()
    leased.rewritten()


def test_a_hold_is_logged_behind_the_release(leased: PolicyDialogue) -> None:
    leased("PENSTOCK.POLICY s GROUP g BACKOFF 1000 3000", READ.format("a"))
    leased.since()
    leased("XNACK s g FAIL IDS 2 1-0 2-0")

    assert leased.since() == [
        "XNACK s g FAIL IDS 2 1-0 2-0 RETRYCOUNT 1 FORCE ; "
        "PENSTOCK.XNACK s g FAIL IDS 2 1-0 2-0 RETRYCOUNT 1 UNTIL 1795300001000"
    ]
    leased.reloaded()
    leased.rewritten()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("DELAY -1", "ERR Invalid DELAY value, must be >= 0"),
        ("UNTIL -1", "ERR Invalid UNTIL value, must be >= 0"),
        ("DELAY soon", "ERR value is not an integer or out of range"),
        ("LATER 5", "ERR Unrecognized XNACK option 'LATER'"),
    ],
)
def test_a_delay_refuses(leased: PolicyDialogue, options: str, text: str) -> None:
    assert refused(leased(f"PENSTOCK.XNACK s g FAIL IDS 1 1-0 {options}")) == text


def test_a_delay_works_without_a_policy(dialogue: PolicyDialogue) -> None:
    bob = dialogue.another()
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g a STREAMS s >")
    assert dialogue("PENSTOCK.XNACK s g FAIL IDS 1 1-0 DELAY 5000") == 1
    assert dialogue("XAUTOCLAIM s g a 0 0") == [b"0-0", [], []]
    bob("XREADGROUP GROUP g b BLOCK 0 CLAIM 0 STREAMS s >")
    dialogue.reloaded()
    dialogue("PENSTOCK.CLOCK ADVANCE 4999")
    assert bob.arrived() == []
    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert bob.arrived() == [[[b"s", [[b"1-0", [b"f", b"v"], NOW_MS + 5000, 1]]]]]
    assert dialogue.engine.keyspace.databases[0].values[b"s"].policies is None  # type: ignore[union-attr]


def test_a_moment_may_be_named_instead_of_a_delay(leased: PolicyDialogue) -> None:
    leased(READ.format("a"), f"PENSTOCK.XNACK s g SILENT IDS 1 1-0 UNTIL {NOW_MS + 10}")
    assert read_ids(leased, READ.format("b")) == []
    leased("PENSTOCK.CLOCK ADVANCE 10")

    assert read_ids(leased, READ.format("b")) == ["1-0"]


def test_entries_that_become_ready_are_delivered_in_the_order_of_their_moments(leased: PolicyDialogue) -> None:
    leased(READ.format("a"), "PENSTOCK.XNACK s g FAIL IDS 1 1-0 DELAY 20", "PENSTOCK.XNACK s g FAIL IDS 1 3-0 DELAY 10")
    leased("PENSTOCK.CLOCK ADVANCE 15", "XNACK s g FAIL IDS 1 2-0", "PENSTOCK.CLOCK ADVANCE 5")

    assert read_ids(leased, READ.format("b")) == ["3-0", "2-0", "1-0"]


# -- consumers -------------------------------------------------------------------------------------------------------


def test_a_deleted_consumer_gives_back_what_it_had(leased: PolicyDialogue) -> None:
    bob = leased.another()
    leased("PENSTOCK.POLICY s GROUP g BACKOFF 1000 1000", READ.format("alice"), "XDEL s 2-0")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    leased.since()
    assert leased("XGROUP DELCONSUMER s g alice") == 3
    assert leased.since() == [
        "XNACK s g FAIL IDS 2 1-0 3-0 RETRYCOUNT 1 FORCE ; "
        "PENSTOCK.XNACK s g FAIL IDS 2 1-0 3-0 RETRYCOUNT 1 UNTIL 1795300001000 ; XGROUP DELCONSUMER s g alice"
    ]
    leased.reloaded()
    leased("PENSTOCK.CLOCK ADVANCE 1000")

    assert bob.arrived() == [[[b"s", [[b"1-0", [b"f", b"v"]], [b"3-0", [b"f", b"v"]]]]]]


def test_a_consumer_that_still_reads_or_holds_entries_is_not_reaped(leased: PolicyDialogue) -> None:
    parked = leased.another()
    leased("PENSTOCK.POLICY s GROUP g REAP 1000 ACKWAIT 60000", READ.format("holding"))
    leased("XGROUP CREATECONSUMER s g idle")
    parked("XREADGROUP GROUP g parked BLOCK 0 STREAMS s >")
    leased.since()
    leased("PENSTOCK.CLOCK ADVANCE 1000")
    assert [consumer[1] for consumer in leased("XINFO CONSUMERS s g")] == [b"holding", b"parked"]
    assert leased.since() == ["XGROUP DELCONSUMER s g idle"]
    leased("XACK s g 1-0 2-0 3-0", "PENSTOCK.CLOCK ADVANCE 1000")

    assert [consumer[1] for consumer in leased("XINFO CONSUMERS s g")] == [b"parked"]


def lines_of_a_lease_s_end(consumers: int) -> int:
    """How many lines of Python the end of a lease runs in a group with so many consumers, none of which is due."""
    dialogue = made()
    dialogue("XADD s 1-0 f v", "XGROUP CREATE s g 0", "PENSTOCK.POLICY s GROUP g ACKWAIT 1000 REAP 90000")
    dialogue(*[f"XGROUP CREATECONSUMER s g c{number}" for number in range(consumers)])
    dialogue("PENSTOCK.CLOCK ADVANCE 1", "XREADGROUP GROUP g c0 STREAMS s >")
    return lines_run(lambda: dialogue("PENSTOCK.CLOCK ADVANCE 1000"))


def test_the_end_of_a_lease_costs_no_more_the_more_consumers_there_are() -> None:
    assert lines_of_a_lease_s_end(1000) < 1.1 * lines_of_a_lease_s_end(10)


# -- restarts -------------------------------------------------------------------------------------------------------


def test_no_lease_ends_within_five_seconds_of_a_start(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"), "PENSTOCK.CLOCK ADVANCE 60000")
    engine = leased.reloaded()
    again = PolicyDialogue(engine, leased._log)
    bob = again.another()
    engine.tick()
    assert bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >") == "(no answer)"
    engine.clock.advance(4999)  # type: ignore[attr-defined]  # a manual clock
    engine.tick()
    assert bob.arrived() == []
    assert engine.next_wakeup_ms() == NOW_MS + 65000
    engine.clock.advance(1)  # type: ignore[attr-defined]
    engine.tick()

    assert len(bob.arrived()[0][0][1]) == 3


def test_a_loaded_hold_ends_at_its_moment(leased: PolicyDialogue) -> None:
    leased(READ.format("alice"), "PENSTOCK.XNACK s g FAIL IDS 1 2-0 DELAY 600000", "PENSTOCK.CLOCK ADVANCE 60000")
    engine = leased.rewritten()
    again = PolicyDialogue(engine, leased._log)
    engine.tick()
    engine.clock.advance(539_999)  # type: ignore[attr-defined]
    assert read_ids(again, READ.format("bob")) == ["1-0", "3-0"]
    engine.clock.advance(1)  # type: ignore[attr-defined]

    assert read_ids(again, READ.format("carol")) == ["2-0"]


@pytest.mark.parametrize(
    "line",
    [
        "XDEL s 1-0",
        "XDELEX s KEEPREF IDS 1 1-0",
        "XACKDEL s h KEEPREF IDS 1 1-0",
        "XDEL s 1-1",
        "XACKDEL s h KEEPREF IDS 1 1-1",
        "XTRIM s MINID 2",
        "XADD s MAXLEN 1 3-0 n 3",
        "PENSTOCK.POLICY s MAXLEN 1",
        "PENSTOCK.POLICY s FORWARD other",
    ],
)
def test_an_entry_whose_lease_has_ended_leaves_the_pending_list_with_its_deletion(
    dialogue: PolicyDialogue, line: str
) -> None:
    dialogue("XADD s 1-0 n 1", "XADD s 1-1 n 1", "XADD s 2-0 n 2", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 1000", "XREADGROUP GROUP h h STREAMS s >")
    dialogue("XREADGROUP GROUP g a COUNT 2 STREAMS s >", "PENSTOCK.CLOCK ADVANCE 2000")
    dialogue(line, "PENSTOCK.CLOCK ADVANCE 0")
    there = [entry[0] for entry in dialogue("XRANGE s - +")]

    assert [row[0] for row in dialogue("XPENDING s g - + 9") if row[0] not in there] == []
    dialogue.reloaded()
