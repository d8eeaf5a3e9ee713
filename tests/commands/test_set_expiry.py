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


REPLIES: list[tuple[str, Any]] = [
    ("SEXPIRE s 100 MEMBERS 3 a x a", [1, -2, 1]),
    ("SEXPIRE s 100 NX MEMBERS 2 a t", [1, 0]),
    ("SEXPIRE s 100 XX MEMBERS 2 a t", [0, 1]),
    ("SEXPIRE s 100 GT MEMBERS 2 a t", [0, 1]),
    ("SEXPIRE s 50 GT MEMBERS 1 t", [0]),
    ("SEXPIRE s 50 LT MEMBERS 2 a t", [1, 0]),
    ("SEXPIRE s 10 LT MEMBERS 2 a t", [1, 1]),
    ("SPEXPIRE s 50000 MEMBERS 1 t LT", [0]),
    ("SEXPIRE s 0 MEMBERS 3 a a x", [2, -2, -2]),
    ("SEXPIREAT s 1 MEMBERS 1 a", [2]),
    ("SPEXPIREAT s 35184372088832 MEMBERS 1 a", [1]),
    ("SEXPIRE missing 100 MEMBERS 2 a b", [-2, -2]),
    ("STTL s MEMBERS 3 t a x", [50, -1, -2]),
    ("SPTTL s MEMBERS 1 t", [50000]),
    ("SEXPIRETIME s MEMBERS 1 t", [NOW_MS // 1000 + 50]),
    ("SPEXPIRETIME s MEMBERS 1 t", [NOW_MS + 50000]),
    ("STTL missing MEMBERS 1 t", [-2]),
    ("SPERSIST s MEMBERS 3 t a x", [1, -1, -2]),
    ("SPERSIST missing MEMBERS 1 t", [-2]),
    ("SADDEX s EX 5 MEMBERS 2 a n", 1),
    ("SADDEX s MNX EX 5 MEMBERS 2 a n", 0),
    ("SADDEX s MNX EX 5 MEMBERS 2 m n", 1),
    ("SADDEX s MXX EX 5 MEMBERS 2 a n", 0),
    ("SADDEX s EX 5 MXX MEMBERS 2 a t", 1),
    ("SADDEX s EXAT 1 MEMBERS 2 a n", 1),
    ("SADDEX missing EXAT 1 MEMBERS 1 a", 1),
    ("SADDEX missing MXX MEMBERS 1 a", 0),
    ("SMEMBERS s", [b"a", b"b", b"t"]),
]


@pytest.mark.parametrize(("line", "answer"), REPLIES, ids=[line for line, _ in REPLIES])
def test_each_member_is_answered_by_a_number(dialogue: Dialogue, line: str, answer: Any) -> None:
    dialogue("SADD s a b t", "SEXPIRE s 50 MEMBERS 1 t")

    assert dialogue(line) == answer


REFUSALS = [
    ("SEXPIRE string x MEMBERS 1 a", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("SEXPIRE s x MEMBERS 1 a", "ERR value is not an integer or out of range"),
    ("SEXPIRE s -1 MEMBERS 1 a", "ERR invalid expire time, must be >= 0"),
    ("SPEXPIREAT s 70368744177664 MEMBERS 1 a", "ERR invalid expire time in 'spexpireat' command"),
    ("SEXPIRE s 1 MEMBERS 1 a MEMBERS 1 a", "ERR MEMBERS keyword specified multiple times"),
    ("SEXPIRE s 1 NX GT MEMBERS 1", "ERR MEMBERS requires at least nummembers and one member argument"),
    ("SEXPIRE s 1 MEMBERS 0 a", "ERR Parameter `numMembers` should be greater than 0"),
    ("SEXPIRE s 1 MEMBERS x a", "ERR Parameter `numMembers` should be greater than 0"),
    ("SEXPIRE s 1 MEMBERS 2 a", "ERR wrong number of arguments"),
    ("SEXPIRE s 1 MEMBERS 1 a b", "ERR unknown argument: b"),
    ("SEXPIRE s 1 NX XX NX", "ERR missing MEMBERS argument"),
    ("SEXPIRE s 1 NX XX MEMBERS 1 a", "ERR Multiple condition flags specified"),
    ("STTL s a 1 a", "ERR Mandatory argument MEMBERS is missing or not at the right position"),
    ("STTL s MEMBERS 0 a", "ERR Number of members must be a positive integer"),
    ("SPERSIST s MEMBERS 2 a", "ERR The `nummembers` parameter must match the number of arguments"),
    ("SADDEX string EX x MEMBERS 1 a", "ERR value is not an integer or out of range"),
    ("SADDEX string EX 1 MEMBERS 1 a", "WRONGTYPE Operation against a key holding the wrong kind of value"),
    ("SADDEX s MEMBERS 1 a MEMBERS 1 a", "ERR MEMBERS keyword specified multiple times"),
    ("SADDEX s EX 1 MEMBERS", "ERR wrong number of arguments for 'saddex' command"),
    ("SADDEX s MEMBERS 0 a", "ERR invalid number of members"),
    ("SADDEX s MEMBERS 2 a", "ERR wrong number of arguments"),
    ("SADDEX s EX 1 KEEPTTL MEMBERS 1 a", "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"),
    ("SADDEX s MEMBERS 1 a EX", "ERR missing expire time"),
    ("SADDEX s MNX MXX MEMBERS 1 a", "ERR Only one of MXX or MNX arguments can be specified"),
    ("SADDEX s FNX MEMBERS 1 a", "ERR unknown argument: FNX"),
    ("SADDEX s PERSIST MEMBERS 1 a", "ERR unknown argument: PERSIST"),
    ("SADDEX s MNX KEEPTTL EX", "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"),
    ("SADDEX s MNX KEEPTTL mnx", "ERR Only one of MXX or MNX arguments can be specified"),
]


@pytest.mark.parametrize(("line", "refusal"), REFUSALS, ids=[line for line, _ in REFUSALS])
def test_refusals_come_in_the_order_of_the_checks(dialogue: Dialogue, line: str, refusal: str) -> None:
    dialogue("SET string x", "SADD s a b")

    assert str(dialogue(line)) == refusal


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
