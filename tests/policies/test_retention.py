"""Retention: what MAXLEN, MAXAGE and ACKED remove by themselves, and what the log says of it."""

from typing import Any

import pytest

from tests.policies.conftest import PolicyDialogue, made
from tests.support.clock import NOW_MS


def ids_of(dialogue: PolicyDialogue, key: str = "s") -> list[str]:
    return [entry[0].decode() for entry in dialogue(f"XRANGE {key} - +")]


def refused(answer: Any) -> str:
    assert isinstance(answer, Exception)
    return str(answer)


@pytest.fixture
def jobs(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries, of which one group has read all."""
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v", "XGROUP CREATE s g 0")
    dialogue("XREADGROUP GROUP g c STREAMS s >")
    return dialogue


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("PENSTOCK.POLICY nokey MAXLEN 5", "ERR no such key"),
        (
            "PENSTOCK.POLICY text MAXLEN 5",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("PENSTOCK.POLICY s", "ERR At least one parameter must be specified"),
        ("PENSTOCK.POLICY s FLOOR 1-0", "ERR syntax error"),
        ("PENSTOCK.POLICY s MAXLEN", "ERR syntax error"),
        ("PENSTOCK.POLICY s MAXLEN 5 RESET", "ERR syntax error"),
        ("PENSTOCK.POLICY s RESET MAXLEN 5", "ERR syntax error"),
        ("PENSTOCK.POLICY s ACKED DELREF", "ERR syntax error"),
        ("PENSTOCK.POLICY s MAXLEN 5 maxlen 6", "ERR MAXLEN specified multiple times"),
        ("PENSTOCK.POLICY s MAXLEN five", "ERR value is not an integer or out of range"),
        ("PENSTOCK.POLICY s MAXAGE 0", "ERR MAXAGE must be at least 1"),
        ("PENSTOCK.POLICY s MAXLEN -1", "ERR MAXLEN must be at least 0"),
        ("PENSTOCK.POLICY s MAXLEN 0", "ERR MAXLEN 0 needs ACKED"),
        ("PENSTOCK.POLICY s MAXLEN 0 DELREF", "ERR MAXLEN 0 needs ACKED"),
    ],
)
def test_a_policy_refuses_and_changes_nothing(jobs: PolicyDialogue, line: str, text: str) -> None:
    jobs("SET text t")
    jobs.since()

    assert refused(jobs(line)) == text
    assert jobs.since() == []
    assert b"penstock-policy" not in jobs("XINFO STREAM s")


def test_what_is_not_named_keeps_its_value_and_none_unsets_it(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 5 MAXAGE 99999999999999", "PENSTOCK.POLICY s MAXLEN none DELREF")
    fields = jobs("XINFO STREAM s")[-1]

    assert fields[:6] == [b"maxlen", None, b"maxage", 99999999999999, b"refs", b"delref"]
    jobs("PENSTOCK.POLICY s RESET")
    assert b"penstock-policy" not in jobs("XINFO STREAM s FULL")


def test_a_stream_is_trimmed_when_the_policy_is_set_and_at_each_append(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "XADD s 3-0 f v")
    dialogue.since()
    dialogue("PENSTOCK.POLICY s MAXLEN 2")
    assert dialogue.since() == ["PENSTOCK.POLICY s MAXLEN 2 ; XTRIM s MAXLEN = 2"]
    dialogue("XADD s 4-0 f v")

    assert ids_of(dialogue) == ["3-0", "4-0"]
    assert dialogue.since() == ["XADD s 4-0 f v ; XTRIM s MAXLEN = 2"]
    dialogue.reloaded()
    dialogue.rewritten()


def test_an_age_is_that_of_the_id(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * f v", "PENSTOCK.POLICY s MAXAGE 1000", "PENSTOCK.CLOCK ADVANCE 999")
    assert len(ids_of(dialogue)) == 1
    dialogue.since()
    dialogue("PENSTOCK.CLOCK ADVANCE 1")

    assert ids_of(dialogue) == []
    assert dialogue.since() == ["XTRIM s MAXLEN = 0"]


def test_pending_entries_go_too_with_delref(jobs: PolicyDialogue) -> None:
    jobs.since()
    jobs("PENSTOCK.POLICY s MAXLEN 1 DELREF")

    assert jobs("XPENDING s g")[0] == 1
    assert jobs.since() == ["PENSTOCK.POLICY s MAXLEN 1 DELREF ; XTRIM s MAXLEN = 1 DELREF"]
    jobs.reloaded()


def test_pending_entries_stay_with_keepref(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 1")

    assert jobs("XPENDING s g")[0] == 3
    jobs.reloaded()


def test_an_acknowledged_entry_goes_within_the_unit_of_its_xack(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 0 ACKED")
    jobs.since()

    jobs("XACK s g 1-0", "XACK s g 3-0")
    assert ids_of(jobs) == ["2-0"]
    assert jobs.since() == ["XACK s g 1-0 ; XTRIM s MINID = 1-1", "XACK s g 3-0 ; XTRIM s MINID = 3-1 ACKED"]
    assert jobs("XINFO STREAM s")[9] == b"0-0"
    jobs.reloaded()
    jobs.rewritten()


def test_the_newest_acknowledged_entries_are_kept_for_looking_back(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 2 ACKED", "XACK s g 3-0")
    assert ids_of(jobs) == ["1-0", "2-0"]
    jobs("XACK s g 1-0 2-0")

    assert ids_of(jobs) == ["1-0", "2-0"]
    jobs("XADD s 4-0 f v")
    assert ids_of(jobs) == ["2-0", "4-0"]
    jobs.reloaded()


def test_xackdel_and_a_read_without_acknowledging_are_done_too(jobs: PolicyDialogue) -> None:
    jobs("XGROUP CREATE s h 0", "PENSTOCK.POLICY s MAXLEN 0 ACKED")
    jobs("XACKDEL s g ACKED IDS 3 1-0 2-0 3-0")
    assert len(ids_of(jobs)) == 3

    jobs("XREADGROUP GROUP h c NOACK STREAMS s >")
    assert ids_of(jobs) == []
    jobs.reloaded()


def test_a_read_without_acknowledging_shows_what_goes_with_it(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 0 ACKED", "XACK s g 1-0 2-0 3-0", "XADD s 4-0 f v")

    assert jobs("XREADGROUP GROUP g c NOACK STREAMS s >") == [[b"s", [[b"4-0", [b"f", b"v"]]]]]
    assert ids_of(jobs) == []


def test_a_deleted_consumer_needs_nothing(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 0 ACKED", "XGROUP DELCONSUMER s g c")

    assert ids_of(jobs) == []
    jobs.reloaded()


def test_a_transaction_trims_at_the_end_of_each_command_and_logs_one_unit(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 0 ACKED")
    jobs.since()
    jobs("MULTI", "XACK s g 1-0", "XLEN s", "XACK s g 2-0")

    assert jobs("EXEC") == [1, 2, 1]
    assert jobs.since() == ["XACK s g 1-0 ; XTRIM s MINID = 1-1 ; XACK s g 2-0 ; XTRIM s MINID = 2-1"]


def test_a_trim_touches_watched_keys_and_is_an_event(jobs: PolicyDialogue) -> None:
    watching, listening = jobs.another(), jobs.another()
    jobs("CONFIG SET notify-keyspace-events KEA", "PENSTOCK.POLICY s MAXAGE 9000000000000", "PENSTOCK.POLICY s RESET")
    watching("WATCH s", "MULTI", "PING")
    listening("SUBSCRIBE __keyspace@0__:s")
    jobs("PENSTOCK.POLICY s MAXLEN 1")

    assert listening.arrived() == [[b"message", b"__keyspace@0__:s", b"xtrim"]]
    assert watching("EXEC") is None


# -- the floor --------------------------------------------------------------------------------------------------------


def test_what_is_added_below_all_positions_stays(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 5-0 f v", "XGROUP CREATE s g 0", "XGROUP CREATE s h 4-0", "PENSTOCK.POLICY s MAXLEN 0 ACKED")
    dialogue("XREADGROUP GROUP g c STREAMS s >", "XACK s g 5-0", "XTRIM s MAXLEN 0")
    dialogue.since()
    dialogue("XSETID s 1-0", "XADD s 2-0 f v", "XADD s 5-0 f v")
    assert dialogue.since()[0] == "XSETID s 1-0 ; PENSTOCK.POLICY s FLOOR 4-0"
    dialogue("XREADGROUP GROUP h c STREAMS s >", "XACK s h 5-0")

    assert ids_of(dialogue) == ["2-0"]
    again = PolicyDialogue(dialogue.reloaded(), dialogue._log)
    again("PENSTOCK.CLOCK ADVANCE 9000")
    assert ids_of(again) == ["2-0"]


def test_the_floor_rises_with_the_groups_that_are_left_and_after_a_trim_by_hand(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 5-0 f v", "XGROUP CREATE s g $", "XGROUP CREATE s h 2-0", "PENSTOCK.POLICY s MAXLEN 0 ACKED")
    dialogue("XTRIM s MAXLEN 0", "XSETID s 1-0")
    dialogue.since()
    dialogue("XGROUP DESTROY s h", "XADD s 3-0 f v", "XTRIM s MAXLEN 9", "XADD s 4-0 f v")

    assert dialogue.since() == [
        "XGROUP DESTROY s h ; PENSTOCK.POLICY s FLOOR 5-0", "XADD s 3-0 f v",
        "PENSTOCK.POLICY s FLOOR 0-0 ; XTRIM s MINID = 3-1 ; PENSTOCK.POLICY s FLOOR 5-0", "XADD s 4-0 f v",
    ]  # fmt: skip
    dialogue.reloaded()


def test_what_the_first_group_passes_over_stays(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s 1-0 f v", "XADD s 2-0 f v", "PENSTOCK.POLICY s MAXLEN 0 ACKED")
    dialogue.since()
    dialogue("XGROUP CREATE s g $")
    assert dialogue.since() == ["XGROUP CREATE s g $ ; PENSTOCK.POLICY s FLOOR 2-0"]
    dialogue("XADD s 3-0 f v", "XREADGROUP GROUP g c STREAMS s >", "XACK s g 3-0")

    assert ids_of(dialogue) == ["1-0", "2-0"]
    assert dialogue.since()[-1] == "XACK s g 3-0 ; XDEL s 3-0 ; XSETID s 3-0 MAXDELETEDID 0-1"
    assert dialogue("XINFO GROUPS s")[0][11] == 0
    dialogue.reloaded()
    engine = dialogue.rewritten()
    policies = engine.keyspace.databases[0].values[b"s"].policies  # type: ignore[union-attr]  # it is a stream
    assert policies is not None and policies.floor == 2 << 64


def test_what_a_group_skips_stays_until_a_client_trims(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 0 ACKED", "XADD s 4-0 f v", "XGROUP SETID s g $", "XACK s g 1-0 2-0 3-0")
    assert ids_of(jobs) == ["1-0", "2-0", "3-0", "4-0"]
    jobs.since()

    assert jobs("XTRIM s MAXLEN 10") == 0
    assert ids_of(jobs) == []
    assert jobs.since() == ["PENSTOCK.POLICY s FLOOR 0-0 ; XTRIM s MINID = 4-1"]
    jobs.reloaded()


def test_a_group_that_goes_back_needs_again_what_it_acknowledged(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 3 ACKED", "XACK s g 2-0", "XGROUP SETID s g 1-0", "XADD s 4-0 f v")

    assert ids_of(jobs) == ["1-0", "2-0", "3-0", "4-0"]
    jobs.reloaded()


# -- restarts ---------------------------------------------------------------------------------------------------------


def test_a_loaded_log_goes_on_with_its_policies(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 2 ACKED", "XACK s g 1-0 2-0")
    engine = jobs.reloaded()
    engine.tick()
    engine.handle(engine.server.connect(), [b"XADD", b"s", b"4-0", b"f", b"v"])

    assert engine.handle(engine.server.connect(), [b"XLEN", b"s"]) == b":2\r\n"


def test_a_policy_goes_with_its_stream(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 3", "RENAME s t", "COPY t u", "MOVE u 1", "SWAPDB 1 2", "SELECT 2")
    jobs("XADD u 9-0 f v", "SELECT 0", "XADD t 9-0 f v")

    assert jobs("XLEN t", "SELECT 2", "XLEN u") == 3
    jobs("SELECT 0")
    jobs.reloaded()
    jobs.rewritten()


def test_a_policy_ends_with_its_stream(jobs: PolicyDialogue) -> None:
    jobs("PENSTOCK.POLICY s MAXLEN 3", "DEL s", "XADD s 1-0 f v")

    assert b"penstock-policy" not in jobs("XINFO STREAM s")
    jobs.reloaded()


def test_with_a_named_compat_version_policies_sleep() -> None:
    awake = made()
    awake("XADD s 1-0 f v", "PENSTOCK.POLICY s MAXLEN 2")
    asleep = made(compat_version="8.10")
    asleep.engine.keyspace.databases[0].put(b"s", awake.engine.keyspace.databases[0].values[b"s"])
    asleep("XADD s 2-0 f v", "XADD s 3-0 f v")

    assert ids_of(asleep) == ["1-0", "2-0", "3-0"]
    assert b"penstock-policy" not in asleep("XINFO STREAM s")
    asleep.engine.tick()
    asleep.rewritten()


def test_a_long_name_is_logged_in_lines_that_a_redis_can_read(dialogue: PolicyDialogue) -> None:
    key = b'"\\ #' + bytes(range(256)) * 9
    dialogue.words(b"XADD", key, b"1-0", b"f", b"v")
    dialogue.words(b"PENSTOCK.POLICY", key, b"MAXLEN", b"7")
    lines = dialogue._log.units[-1].splitlines(keepends=True)

    assert len(lines) > 5
    assert max(map(len, lines)) <= 1000
    assert {line[:1] for line in lines} == {b"#"}
    dialogue.reloaded()
    dialogue.rewritten()


def test_the_time_of_the_next_trim_is_shown(dialogue: PolicyDialogue) -> None:
    dialogue("XADD s * f v", "PENSTOCK.POLICY s MAXAGE 1000")
    fields = dialogue("XINFO STREAM s")[-1]

    assert fields[fields.index(b"next") + 1] == NOW_MS + 1000


@pytest.mark.parametrize(
    "lines",
    [
        ["RENAME s t"],
        ["COPY s t", "DEL s"],
        ["MOVE s 1", "SELECT 1", "RENAME s t"],
        ["SWAPDB 0 1", "SELECT 1", "RENAME s t"],
    ],
    ids=["rename", "copy", "move", "swapdb"],
)
def test_a_group_was_read_until_its_stream_left_a_blocked_reader(dialogue: PolicyDialogue, lines: list[str]) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE s h 0", "PENSTOCK.POLICY s MAXLEN 0 ACKED IDLEGROUP 1000")
    dialogue.another()("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")
    dialogue("PENSTOCK.CLOCK ADVANCE 900", *lines, "PENSTOCK.CLOCK ADVANCE 100")
    policy = dialogue("XINFO STREAM t")[-1]

    assert policy[policy.index(b"idle-groups") + 1] == 1
