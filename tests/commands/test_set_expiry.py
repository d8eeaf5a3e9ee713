"""Members of sets with a time of expiry (Redis 8.12), after the documentation: no Redis at hand knows them."""

from typing import Any, Final

import pytest

from penstock.engine.aof import aof_compat
from penstock.engine.aof.rewrite import base_lines
from tests.commands.test_hash_expiry import check, told, turn_to
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine
from tests.support.engines import loaded_engine, make_engine, saved_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog


@pytest.fixture
def heard() -> ObservedEngine:
    return ObservedEngine()


@pytest.fixture
def said(heard: ObservedEngine) -> Dialogue:
    return Dialogue(heard)


def test_times_are_told_in_seconds_and_milliseconds(dialogue: Dialogue) -> None:
    dialogue("SADDEX s PX 49001 MEMBERS 1 a")

    assert dialogue("STTL s MEMBERS 1 a") == [50]
    assert dialogue("SPTTL s MEMBERS 1 a") == [49001]
    assert dialogue("SEXPIRETIME s MEMBERS 1 a") == [NOW_MS // 1000 + 50]
    assert dialogue("SPEXPIRETIME s MEMBERS 1 a") == [NOW_MS + 49001]


EFFECTS: list[tuple[str, list[str], list[str]]] = [
    (
        "SEXPIRE s 50 NX MEMBERS 3 a x t",
        ["@0 sexpire s"],
        ["SPEXPIREAT s NOW NX MEMBERS 1 a"],
    ),
    ("SEXPIRE s 50 NX MEMBERS 1 t", [], []),
    ("SEXPIRE s 0 MEMBERS 1 a", ["@0 srem s"], ["SREM s a"]),
    ("SEXPIRE s 0 MEMBERS 2 a t", ["@0 srem s", "@0 del s"], ["SREM s a t"]),
    ("SPERSIST s MEMBERS 2 a t", ["@0 spersist s"], ["SPERSIST s MEMBERS 2 a t"]),
    ("SPERSIST s MEMBERS 1 a", [], []),
    ("SADDEX s PX 7 MEMBERS 2 a n", ["@0 sadd s", "@0 sexpire s"], ["SADDEX s PXAT NOW MEMBERS 2 a n"]),
    ("SADDEX s MEMBERS 1 t", ["@0 sadd s"], ["SADDEX s MEMBERS 1 t"]),
    ("SADDEX s KEEPTTL MEMBERS 1 t", [], []),
    ("SADDEX s PXAT 1 MEMBERS 2 a n", ["@0 srem s"], ["SREM s a"]),
    ("SADD s t", [], []),
    ("SADDEX n PXAT 1 MEMBERS 2 a n", [], []),
]


@pytest.mark.parametrize(("line", "events", "logged"), EFFECTS, ids=[line for line, *_ in EFFECTS])
def test_a_change_is_logged_without_a_clock_and_published(
    heard: ObservedEngine, said: Dialogue, line: str, events: list[str], logged: list[str]
) -> None:
    said("SADD s a t", "SEXPIRE s 100 MEMBERS 1 t")
    told(heard)

    said(line)

    assert told(heard) == (events, logged)
    check(heard.keyspace)


STAYS: Final[tuple[list[str], list[str]]] = ([], [])
REMOVED: Final[tuple[list[str], list[str]]] = (["@0 sexpired s"], ["SREM s a"])
ALL_REMOVED: Final[tuple[list[str], list[str]]] = (["@0 sexpired s"], ["SREM s a b"])
LOOKS: Final[dict[str, tuple[Any, tuple[list[str], list[str]]]]] = {
    "SISMEMBER s a": (0, REMOVED),
    "SMISMEMBER s a c": ([0, 1], REMOVED),
    "SMEMBERS s": ([b"c"], STAYS),
    "SRANDMEMBER s 5": ([b"c"], ALL_REMOVED),
    "SSCAN s 0": ([b"0", [b"c"]], STAYS),
    "SCARD s": (3, STAYS),
    "SINTER s s": ([b"c"], ALL_REMOVED),
    "SUNION s other": ([b"c", b"o"], ALL_REMOVED),
    "SDIFFSTORE d s other": (
        1,
        (["@0 sexpired s", "@0 new d", "@0 sdiffstore d"], ["MULTI", "SREM s a b", "SDIFFSTORE d s other", "EXEC"]),
    ),
    "SINTERCARD 1 s": (1, ALL_REMOVED),
    "ZUNION 1 s": ([b"c"], ALL_REMOVED),
    "SORT s ALPHA": ([b"c"], ALL_REMOVED),
    "SMOVE s other a": (0, REMOVED),
    "SREM s a": (0, REMOVED),
    "SADD s a": (1, (["@0 sexpired s", "@0 sadd s"], ["MULTI", "SREM s a", "SADD s a", "EXEC"])),
    "STTL s MEMBERS 2 a c": ([-2, -1], STAYS),
    "SEXPIRE s 100 MEMBERS 1 a": ([-2], STAYS),
    "SPERSIST s MEMBERS 1 a": ([-2], STAYS),
    "SADDEX s MXX MEMBERS 1 a": (0, REMOVED),
}


@pytest.mark.parametrize(("look", "expected"), LOOKS.items(), ids=LOOKS)
def test_an_overdue_member_is_seen_by_no_client(
    heard: ObservedEngine, said: Dialogue, look: str, expected: tuple[Any, tuple[list[str], list[str]]]
) -> None:
    said("SADD s a b c", "SADD other o", f"SPEXPIREAT s {NOW_MS + 10} MEMBERS 2 a b")
    told(heard)

    turn_to(heard, NOW_MS + 11)

    assert (said(look), told(heard)) == expected
    check(heard.keyspace)


def test_overdue_members_are_counted_until_the_tick_removes_them(heard: ObservedEngine, said: Dialogue) -> None:
    said("SADD s a b c", f"SPEXPIREAT s {NOW_MS + 10} MEMBERS 3 a b c")
    told(heard)
    turn_to(heard, NOW_MS + 11)
    assert said("SCARD s") == 3

    heard.tick()

    assert told(heard) == (["@0 sexpired s", "@0 del s"], ["SREM s a b c"])
    assert said("EXISTS s") == 0
    assert b"expired_subkeys:3\r\nexpired_subkeys_active:3" in said("INFO stats")


ENCODINGS = [
    ("SADD s 1 2", "SEXPIRE s 9 MEMBERS 1 1", b"listpackex"),
    ("SADD s a b", "SEXPIRE s 9 MEMBERS 1 a", b"listpackex"),
    ("SADDEX s EX 9 MEMBERS 2 1 2", "SPERSIST s MEMBERS 2 1 2", b"listpackex"),
    ("SADD s 1 2", "SEXPIRE s 9 XX MEMBERS 1 1", b"intset"),
    ("SADD s a b", "SEXPIRE s 0 MEMBERS 1 a", b"listpack"),
    (f"SADD s {'x' * 65} b", "SEXPIRE s 9 MEMBERS 1 b", b"hashtable"),
    (f"SADD s {' '.join(map(str, range(200)))}", "SEXPIRE s 9 MEMBERS 1 5", b"hashtable"),
]


@pytest.mark.parametrize(("made", "line", "encoding"), ENCODINGS)
def test_a_small_set_changes_its_form_with_the_first_time(
    dialogue: Dialogue, made: str, line: str, encoding: bytes
) -> None:
    dialogue(made, line)

    assert dialogue("OBJECT ENCODING s") == encoding
    assert dialogue("DEBUG RELOAD", "OBJECT ENCODING s") in (encoding, b"intset")


CARRIED = ["COPY s d", "RENAME s d", "MOVE s 1"]


@pytest.mark.parametrize("line", CARRIED)
def test_a_value_takes_the_times_of_its_members_with_it(dialogue: Dialogue, line: str) -> None:
    dialogue("SADD s a b", "SEXPIRE s 50 MEMBERS 1 a", line, "SELECT 1", "RENAME s d", "MOVE d 0", "SELECT 0")

    assert dialogue("STTL d MEMBERS 2 a b") == [50, -1]
    check(dialogue.engine.keyspace)


def test_a_dumped_set_has_its_times_and_no_redis_takes_it(dialogue: Dialogue) -> None:
    dialogue("SADD s a b", "SEXPIRE s 50 MEMBERS 1 a")
    payload = dialogue("DUMP s")

    assert dialogue.words(b"RESTORE", b"d", b"0", payload) == b"+OK\r\n"
    assert dialogue("STTL d MEMBERS 2 a b") == [50, -1]
    assert payload.startswith(b"PENSTOCK")


def test_results_of_set_operations_have_no_times(dialogue: Dialogue) -> None:
    dialogue("SADD s a b", "SEXPIRE s 50 MEMBERS 1 a", "SUNIONSTORE d s", "SMOVE s e a")

    assert dialogue("STTL d MEMBERS 2 a b") == [-1, -1]
    assert dialogue("STTL e MEMBERS 1 a") == [-1]


@pytest.mark.parametrize("version", ["newest", "8.8", "7.0"])
def test_a_log_for_an_older_redis_has_the_times_as_lines_that_it_skips(version: str) -> None:
    log = UnitLog()
    settings = settings_with(aof_compat_version=version)
    dialogue = Dialogue(make_engine(log=log, settings=settings))
    dialogue("SADD s a b c", "SEXPIRE s 50 MEMBERS 2 a b", "SADDEX s EX 9 MEMBERS 1 n", "SADDEX s MEMBERS 1 a")
    dialogue("SPERSIST s MEMBERS 1 n", "SADDEX s PX 77 MEMBERS 2 c m")

    assert [line for line in log.text.split(b"#penstock ") if b"SPEXPIREAT" in line] != []
    assert (b"\r\nSPEXPIREAT\r\n" in log.text) == (version == "newest")
    assert keyspace(loaded_engine([log.text])) == keyspace(dialogue.engine)
    base = base_lines(dialogue.engine.keyspace, settings, NOW_MS, aof_compat.of(settings))
    assert keyspace(loaded_engine(base)) == keyspace(dialogue.engine)
    assert keyspace(saved_engine(dialogue.engine, NOW_MS, settings=settings)) == keyspace(dialogue.engine)
