"""BLESS (Redis 8.12), after the documentation: keys that are never evicted. No Redis at hand knows it."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.memory.value_sizes import dataset_bytes
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.storage.aof.log_directory import write_all
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import steps_of_engine
from tests.support.engines import loaded_engine, make_engine, saved_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.memory_disk import MemoryDisk


def test_a_scan_tells_every_blessed_key_of_its_database(dialogue: Dialogue) -> None:
    names = {b"%d" % number for number in range(50)}
    dialogue("SELECT 1", "SET other v", "BLESS SET other NO-EVICT", "SELECT 0")
    for name in names:
        dialogue(f"SET {name.decode()} v", f"BLESS SET {name.decode()} NO-EVICT")
    met: list[bytes] = []
    cursor, some = dialogue("BLESS SCAN 0 NO-EVICT COUNT 7")
    met += some
    while cursor != b"0":
        cursor, some = dialogue(f"BLESS SCAN {cursor.decode()} NO-EVICT COUNT 7")
        met += some

    assert sorted(met) == sorted(names)
    assert b"blessed_keys:51\r\n" in dialogue("INFO stats")


def test_a_blessing_is_logged_and_published_where_it_changes() -> None:
    steps = steps_of_engine(["SET k v", "BLESS SET k NO-EVICT", "BLESS SET k NO-EVICT", "BLESS CLEAR k no-evict"])

    assert [step.logged for step in steps[1:]] == [["BLESS SET k NO-EVICT"], [], ["BLESS CLEAR k no-evict"]]
    assert [step.events for step in steps[1:]] == [["@0 bless k"], [], ["@0 unbless k"]]


def test_help_names_every_subcommand(dialogue: Dialogue) -> None:
    lines = dialogue("BLESS HELP")

    assert [line.split()[0] for line in lines[1::2]] == [b"CLEAR", b"GET", b"SCAN", b"SET", b"HELP"]


CARRIED = [
    ("SET b w", "b", [b"NO-EVICT"]),
    ("SUNIONSTORE b s", "b", [b"NO-EVICT"]),
    ("RENAME b d", "d", [b"NO-EVICT"]),
    ("COPY b d", "d", [b"NO-EVICT"]),
    ("RENAME k b", "b", []),
    ("COPY k b REPLACE", "b", []),
    ("MOVE b 1", "b", [b"NO-EVICT"]),
    ("SWAPDB 0 1", "b", [b"NO-EVICT"]),
]


@pytest.mark.parametrize(("line", "key", "flags"), CARRIED, ids=[line for line, *_ in CARRIED])
def test_a_key_keeps_its_blessing(dialogue: Dialogue, line: str, key: str, flags: list[bytes]) -> None:
    dialogue("SET k v", "SADD s m", "SET b v", "BLESS SET b NO-EVICT", line)
    if line.startswith(("MOVE", "SWAPDB")):
        dialogue("SELECT 1")

    assert dialogue(f"BLESS GET {key}") == flags
    dialogue.engine.keyspace.databases[0].check()


def test_a_key_that_is_deleted_loses_its_blessing(dialogue: Dialogue) -> None:
    dialogue("SET b v", "BLESS SET b NO-EVICT", "DEL b", "SET b v")

    assert dialogue("BLESS GET b") == []
    assert dialogue("BLESS SET b NO-EVICT", "FLUSHDB", "BLESS SCAN 0 NO-EVICT") == [b"0", []]


def test_a_payload_carries_no_blessing_and_takes_none_away(dialogue: Dialogue) -> None:
    dialogue("SET k v", "SET b v", "BLESS SET b NO-EVICT")
    payload = dialogue("DUMP b")

    dialogue.words(b"RESTORE", b"k", b"0", payload, b"REPLACE")
    dialogue.words(b"RESTORE", b"b", b"0", payload, b"REPLACE")

    assert (dialogue("BLESS GET k"), dialogue("BLESS GET b")) == ([], [b"NO-EVICT"])


POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-lrm", "allkeys-random", "volatile-ttl", "volatile-random"]


@pytest.mark.parametrize("policy", [*POLICIES, "volatile-lru"])
def test_no_policy_evicts_a_blessed_key(clock: ManualClock, policy: str) -> None:
    roomy = Dialogue(make_engine(clock))
    roomy.engine.memory.reading = lambda: (dataset_bytes(roomy.engine.keyspace), 0)
    for number in range(60):
        roomy(f"SET {number} v EX {100 + number}")
    for number in range(20):
        roomy(f"BLESS SET {number} NO-EVICT")

    roomy(f"CONFIG SET maxmemory-policy {policy} maxmemory 1", "PING")

    assert {int(key) for key in roomy("KEYS *")} == set(range(20))
    assert str(roomy("SET new v")).startswith("OOM ")
    assert str(roomy("BLESS SET 1 NO-EVICT")).startswith("OOM ")
    assert roomy("BLESS CLEAR 1 NO-EVICT") == 1
    assert roomy("PING", "EXISTS 1") == 0


@pytest.mark.parametrize("version", ["newest", "7.0"])
def test_a_blessing_survives_a_restart(version: str) -> None:
    log = UnitLog()
    settings = settings_with(aof_compat_version=version)
    dialogue = Dialogue(make_engine(log=log, settings=settings))
    dialogue("SET a v EX 50", "SADD b m", "BLESS SET a NO-EVICT", "BLESS SET b NO-EVICT", "BLESS CLEAR b NO-EVICT")
    dialogue("COPY a c", "SELECT 3", "SET d v", "BLESS SET d NO-EVICT", "RENAME d e")
    dialogue.words(b"RESTORE", b"e", b"0", dialogue("DUMP e"), b"REPLACE")

    engine = dialogue.engine
    assert keyspace(loaded_engine([log.text])) == keyspace(engine)
    assert keyspace(loaded_engine(base_lines(engine.keyspace, settings, NOW_MS))) == keyspace(engine)
    assert keyspace(saved_engine(engine, NOW_MS, settings=settings)) == keyspace(engine)


def test_an_rdb_file_of_redis_8_12_says_which_keys_are_blessed() -> None:
    disk, engine = MemoryDisk(), make_engine()
    keys = b"\xf1\x00\x01a\x011" + b"\x00\x01b\x011"
    write_all(disk.create("/a.rdb"), b"REDIS0017\xfe\x00" + keys + b"\xff" + bytes(8))

    list(RdbLoading(engine.server, disk, "/a.rdb", print).run())

    assert list(engine.keyspace.databases[0].blessed) == [b"a"]


@pytest.mark.parametrize("kind", [33, 34, 35, 240])
def test_an_unknown_type_of_redis_8_12_is_refused_by_its_number_and_key(kind: int) -> None:
    disk, engine = MemoryDisk(), make_engine()
    write_all(disk.create("/a.rdb"), b"REDIS0017\xfe\x00" + bytes((kind,)) + b"\x01k\x011" + b"\xff" + bytes(8))
    loading = RdbLoading(engine.server, disk, "/a.rdb", print)

    with pytest.raises(Exception, match=rf"key `?'?\"?k.*: a value of the unknown type {kind} "):
        list(loading.run())
