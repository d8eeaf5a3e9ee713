"""Native bitmaps (Redis 8.12), after the documentation: compressed bits. No Redis at hand knows them."""

import random

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.rewrite import base_lines
from penstock.protocol import reply
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import steps_of_engine
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine, saved_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.seeds import seeds

STRING_COMMANDS = [
    "GET b",
    "STRLEN b",
    "GETRANGE b 0 1",
    "APPEND b x",
    "SETRANGE b 0 x",
    "INCR b",
    "GETDEL b",
]


@pytest.fixture
def native(clock: ManualClock) -> Dialogue:
    return Dialogue(make_engine(clock, settings=settings_with(bitmap_default_roaring="yes")))


def test_a_bit_command_makes_a_native_bitmap(native: Dialogue) -> None:
    assert native("SETBIT b 4294967295 1", "TYPE b") == b"bitmap"
    assert native("OBJECT ENCODING b") == b"bitmap-roaring"
    assert native("SCAN 0 TYPE bitmap") == [b"0", [b"b"]]
    assert native("BITPOS b 1") == 4294967295
    assert native("MEMORY USAGE b") < 1000


def test_a_string_becomes_a_native_bitmap_and_keeps_its_time(native: Dialogue) -> None:
    native("SET s foobar EX 100", "BLESS SET s NO-EVICT")

    assert native("BITFIELD s SET u8 0 70 GET u8 8") == [102, 111]
    assert native("TYPE s") == b"bitmap"
    assert native("TTL s") == 100
    assert native("BLESS GET s") == [b"NO-EVICT"]
    assert native("BITRANGEINTARRAY s 0 0") == [1, 5, 6]


def test_reads_and_set_convert_nothing(native: Dialogue) -> None:
    native("SET s foobar", "GETBIT s 1", "BITCOUNT s", "BITFIELD s GET u8 0", "BITPOS s 1")

    assert native("TYPE s") == b"string"
    assert native("SETBIT b 0 1", "SET b x", "GET b") == b"x"


@pytest.mark.parametrize("line", STRING_COMMANDS)
def test_a_string_command_refuses_a_native_bitmap(native: Dialogue, line: str) -> None:
    assert str(native("SETBIT b 0 1", line)).startswith("WRONGTYPE")


def test_a_native_bitmap_stays_one_where_the_directive_says_no(native: Dialogue) -> None:
    native("SETBIT b 0 1", "SET s a", "CONFIG SET bitmap-default-roaring no", "SETBIT b 9 1", "SETBIT new 1 1")
    native("BITOP OR both b s", "BITOP OR strings s s")

    assert [native(f"TYPE {key}") for key in ("b", "new", "both", "strings")] == [
        b"bitmap", b"string", b"bitmap", b"string",
    ]  # fmt: skip


def test_an_empty_result_deletes_the_destination(native: Dialogue) -> None:
    assert native("SETBIT b 0 1", "BITOP AND b none", "EXISTS b") == 0


def test_a_client_does_not_know_the_commands_of_the_log(native: Dialogue) -> None:
    assert str(native("BITCONVERT b")).startswith("ERR unknown command")
    assert str(native("BITROAROP AND d b")).startswith("ERR unknown command")
    assert native("COMMAND INFO BITCONVERT") == [None]
    assert native("COMMAND DOCS BITROAROP") == []


def test_a_conversion_is_logged_and_published() -> None:
    lines = ["SET s a", "CONFIG SET bitmap-default-roaring yes", "SETBIT s 0 1", "SETBIT s 0 1", "BITOP OR d s"]
    steps = steps_of_engine([*lines, "SETBIT new 0 0"])

    assert [step.logged for step in steps[2:]] == [
        ["MULTI", "BITCONVERT s", "SETBIT s 0 1", "EXEC"],
        [],
        ["MULTI", "BITOP OR d s", "BITCONVERT d", "EXEC"],
        ["MULTI", "BITCONVERT new", "SETBIT new 0 0", "EXEC"],
    ]  # fmt: skip
    assert [step.events for step in steps[2:]] == [
        ["@0 overwritten s", "@0 type_changed s", "@0 setbit s"],
        [],
        ["@0 new d", "@0 set d"],
        ["@0 new new", "@0 setbit new"],
    ]


def test_a_master_and_a_log_make_native_bitmaps_by_their_own_words() -> None:
    lines = ["SET s a", "BITCONVERT s", "BITCONVERT new", "SETBIT t 0 1", "BITROAROP NOT d t", "BITROAROP OR s none"]
    units = [reply.bulks(line.encode().split()) for line in lines]
    engine = loaded_engine(units, settings=settings_with(bitmap_default_roaring="yes"))
    loaded = Dialogue(engine)

    assert [loaded(f"TYPE {key}") for key in ("s", "new", "t", "d")] == [b"none", b"bitmap", b"string", b"bitmap"]


@pytest.mark.parametrize("version", ["newest", "7.0"])
def test_native_bitmaps_survive_a_restart_a_rewrite_and_a_save(version: str) -> None:
    log = UnitLog()
    settings = settings_with(aof_compat_version=version, bitmap_default_roaring="yes")
    dialogue = Dialogue(make_engine(log=log, settings=settings))
    dialogue("SETBIT sparse 9000000 1", "SETBIT zeros 100 0", "SET s foobar EX 100", "SETBIT s 3 1", "COPY s copied")
    dialogue("SELECT 3", "BITFIELD b SET i64 #9000 -1", "BITOP NOT n b", "RENAME n m")
    dialogue.words(b"RESTORE", b"r", b"0", dialogue("DUMP b"))

    engine = dialogue.engine
    assert keyspace(loaded_engine([log.text])) == keyspace(engine)
    assert keyspace(loaded_engine(base_lines(engine.keyspace, settings, NOW_MS))) == keyspace(engine)
    assert keyspace(saved_engine(engine, NOW_MS, settings=settings)) == keyspace(engine)
    assert keyspace(rdb_based_engine(engine, NOW_MS)) == keyspace(engine)
    assert dialogue("TYPE r", "TYPE m") == b"bitmap"


def test_an_expired_bitmap_of_a_file_is_left_out(native: Dialogue) -> None:
    native("SETBIT b 0 1", "PEXPIRE b 5", "SETBIT c 0 1")
    again = Dialogue(saved_engine(native.engine, NOW_MS, clock=ManualClock(NOW_MS + 10)))

    assert again("KEYS *") == [b"c"]


OFFSETS = ["0", "7", "8", "63", "100", "65535", "65536", "70000", "1048576"]
KEYS = ["a", "b", "c"]
OPERATIONS = ["AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE"]


def random_line(chance: random.Random) -> str:
    """A request about bits."""
    key, offset = chance.choice(KEYS), chance.choice(OFFSETS)
    bounds = f"{chance.choice(['0', '1', '-3', '-1', '8190'])} {chance.choice(['0', '5', '-1', '-2', '9000'])}"
    unit = chance.choice(["", " BYTE", " BIT"])
    sources = " ".join(chance.choices(KEYS, k=chance.randrange(1, 4)))
    field = f"{chance.choice(['u8', 'i5', 'i64', 'u63'])} {chance.choice(['#', ''])}{chance.choice(OFFSETS[:-1])}"
    return chance.choice([
        f"SETBIT {key} {offset} {chance.randrange(2)}", f"SETBIT {key} {chance.randrange(9000)} 1",
        f"GETBIT {key} {offset}", f"BITCOUNT {key}", f"BITCOUNT {key} {bounds}{unit}",
        f"BITPOS {key} {chance.randrange(2)} {bounds}{unit}", f"BITPOS {key} {chance.randrange(2)}",
        f"BITFIELD {key} OVERFLOW {chance.choice(['WRAP', 'SAT', 'FAIL'])} INCRBY {field} {chance.randrange(300)}",
        f"BITFIELD {key} SET {field} {chance.randrange(300)} GET {field}", f"BITFIELD_RO {key} GET {field}",
        f"BITOP {chance.choice(OPERATIONS)} {chance.choice(KEYS)} {sources}",
        f"BITRANGEINTARRAY {key} {bounds}{unit} LIMIT 40{chance.choice(['', ' ZEROS'])}",
        f"SET {key} {chance.choice(['foobar', '1', 'x' * 50])}", f"DEL {key}",
        f"COPY {key} {chance.choice(KEYS)} REPLACE",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_bit_commands_reply_the_same_about_both_forms(clock: ManualClock, native: Dialogue, seed: int) -> None:
    chance = random.Random(seed)
    strings = Dialogue(make_engine(clock))
    done: list[str] = []
    for _ in range(200):
        line = random_line(chance)
        done.append(line)
        assert str(native(line)) == str(strings(line)), done
        if chance.randrange(20) == 0:
            native(f"CONFIG SET bitmap-default-roaring {chance.choice(['yes', 'no'])}")
