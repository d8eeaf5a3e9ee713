"""SAVE, BGSAVE, save points: what is in the file, what is answered meanwhile, and what a failure does."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from penstock.commands.server.info_sections import fields_of
from penstock.engine.rdb import rdb_saving
from penstock.errors import UsageError
from penstock.storage.rdb import rdb_format
from tests.interchange.pictures import PATIENCE_S, Ours, ours
from tests.support.clock import NOW_MS
from tests.support.deployments import until
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, rdb_based_engine, saved_engine, settings_with
from tests.support.keyspace_picture import SAVED, keyspace
from tests.support.late_script import LIBRARY
from tests.support.no_retry import NO_RETRY
from tests.support.server_process import running_server

WHILE_ASKED_US = "200000"  # rdb-key-save-delay of a child that is to be there at the next requests


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Ours]:
    with ours(tmp_path / "data", appendonly="no", enable_debug_command="yes") as one:
        yield one


def info(server: Ours) -> dict[str, str]:
    return dict(fields_of(server.engine.persistence.info()))


def until_saved(server: Ours) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while server.engine.persistence.saves.runs:
        assert time.monotonic() < deadline, server.said
        time.sleep(0.01)  # a process of its own writes
        server.durability.cron()


def reloaded(tmp_path: Path, *words: str) -> object:
    with ours(tmp_path / "data", appendonly="no") as again:
        return again.ask(*words)


def test_a_saved_file_is_loaded_again(server: Ours, tmp_path: Path) -> None:
    server.lines("SET a 1", "XADD s 1-0 f v", "SELECT 3", "HSET h f v", "PEXPIREAT h 4102444800000")
    server.clock.advance(5000)

    server.lines("SAVE")

    assert server.ask("LASTSAVE") == server.clock.now_us() // 1_000_000
    told = info(server)
    assert [told["rdb_saves"], told["rdb_changes_since_last_save"], told["rdb_last_bgsave_status"]] == ["1", "0", "ok"]
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [".dump.rdb.lock", "dump.rdb"]
    assert reloaded(tmp_path, "GET", "a") == b"1"


@pytest.mark.parametrize(("delay", "waited_ms"), [("2000000", 6000), ("0", 0), ("-3", 0)])
def test_a_save_and_a_load_wait_for_each_key(server: Ours, delay: str, waited_ms: int) -> None:
    server.lines("MSET a 1 b 2 c 3", f"CONFIG SET rdb-key-save-delay {delay} key-load-delay {delay}")
    began_us = server.clock.now_us()

    server.lines("SAVE")
    saved_us = server.clock.now_us()
    server.lines("DEBUG RELOAD NOSAVE")

    assert (saved_us - began_us) // 1000 == waited_ms
    assert (server.clock.now_us() - saved_us) // 1000 == waited_ms
    assert server.ask("DBSIZE") == 3


def test_two_servers_do_not_save_into_one_file(server: Ours, tmp_path: Path) -> None:
    server.lines("SET a 1", "SAVE")
    with ours(tmp_path / "data", appendonly="no", enable_protected_configs="yes") as other:
        other.lines("SET a 2")

        assert str(other.ask("SAVE")) == "ERR"
        assert str(other.ask("BGSAVE")) == "ERR"
        assert f"Another server saves into {tmp_path}/data/dump.rdb: stop it" in "\n".join(other.said)
        assert info(other)["rdb_last_bgsave_status"] == "err"
        other.lines("CONFIG SET dbfilename other.rdb")
        assert other.ask("SAVE") == b"OK"

    server.lines("SET a 3")
    assert server.ask("SAVE") == b"OK"
    assert reloaded(tmp_path, "GET", "a") == b"3"


def test_with_save_points_a_second_server_does_not_start(tmp_path: Path) -> None:
    with ours(tmp_path / "data", appendonly="no", save="60 1"):
        with (
            pytest.raises(UsageError, match=r"Another server saves into .*dump\.rdb: stop it, or choose another dir"),
            ours(tmp_path / "data", appendonly="no", save="60 1"),
        ):
            pass
        with ours(tmp_path / "data", appendonly="no", save="60 1", dbfilename="other.rdb") as beside:
            assert beside.ask("SAVE") == b"OK"

    with ours(tmp_path / "data", appendonly="no", save="60 1") as after:
        assert after.ask("SAVE") == b"OK"


def test_a_child_saves_what_was_there_when_it_began(server: Ours, tmp_path: Path) -> None:
    server.lines("SET a 1", f"CONFIG SET rdb-key-save-delay {WHILE_ASKED_US}")

    assert server.ask("BGSAVE") == b"Background saving started"
    server.lines("SET a 2")
    assert info(server)["rdb_bgsave_in_progress"] == "1"
    assert str(server.ask("BGSAVE")) == "ERR Background save already in progress"
    assert str(server.ask("SAVE")) == "ERR Background save already in progress"
    until_saved(server)

    told = info(server)
    assert [told["rdb_saves"], told["rdb_changes_since_last_save"], told["rdb_bgsave_in_progress"]] == ["1", "1", "0"]
    assert reloaded(tmp_path, "GET", "a") == b"1"


def test_a_file_that_is_moved_away_at_once_was_saved_all_the_same(server: Ours, tmp_path: Path) -> None:
    server.ask("CONFIG", "SET", "save", "3600 1")
    path = tmp_path / "data" / "dump.rdb"
    path.mkdir()
    server.lines("SET a 1", "BGSAVE")
    until_saved(server)
    path.rmdir()
    server.lines("BGSAVE")
    until(path.exists, "nothing is saved")

    path.unlink()
    until_saved(server)

    assert info(server)["rdb_last_bgsave_status"] == "ok"
    assert server.ask("SET", "b", "1") == b"OK"
    assert any("which is not there any more" in line for line in server.said)


def test_save_points_begin_a_save_when_both_are_reached(server: Ours) -> None:
    server.ask("CONFIG", "SET", "save", "60 2")
    server.lines("SET a 1", "SET b 1")
    server.clock.advance(60_000)
    server.durability.cron()
    assert info(server)["rdb_bgsave_in_progress"] == "0"

    server.clock.advance(1000)
    server.durability.cron()

    assert info(server)["rdb_bgsave_in_progress"] == "1"
    until_saved(server)
    assert info(server)["rdb_saves"] == "1"


def test_a_failed_save_refuses_writers_until_one_works(server: Ours, tmp_path: Path) -> None:
    server.ask("CONFIG", "SET", "save", "3600 1")
    server.lines("SET a 1")
    (tmp_path / "data" / "dump.rdb").mkdir()

    server.ask("BGSAVE")
    until_saved(server)

    assert info(server)["rdb_last_bgsave_status"] == "err"
    assert str(server.ask("SAVE")) == "ERR"
    assert info(server)["rdb_saves_consecutive_failures"] == "1", "a SAVE that fails tells its client"
    assert str(server.ask("SET", "b", "1")).startswith("MISCONF Redis is configured to save RDB snapshots")
    assert server.ask("GET", "a") == b"1"
    assert any("could not be saved" in line for line in server.said)
    (tmp_path / "data" / "dump.rdb").rmdir()
    server.ask("BGSAVE")
    until_saved(server)
    assert server.ask("SET", "b", "1") == b"OK"
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [".dump.rdb.lock", "dump.rdb"]


FLUSHES = {  # the keys after kill -9, and the changes since the last save: of Redis 8.6.3 after the same requests
    "FLUSHALL": (["FLUSHALL"], [], "0"),
    "ASYNC": (["FLUSHALL ASYNC"], [], "0"),
    "SYNC": (["FLUSHALL SYNC"], [], "0"),
    "twice": (["FLUSHALL", "FLUSHALL"], [], "0"),
    "EXEC": (["MULTI", "SET b 1", "FLUSHALL", "SET c 1", "EXEC"], [], "1"),
    "a script": (["EVAL redis.call('FLUSHALL')redis.call('SET','c','1') 0"], [], "1"),
    "FLUSHDB": (["FLUSHDB"], [b"a"], "3"),
    "FLUSHDB ASYNC": (["FLUSHDB ASYNC"], [b"a"], "3"),
}


@pytest.mark.parametrize(("requests", "keys", "changes"), FLUSHES.values(), ids=FLUSHES)
def test_with_save_points_a_flush_of_all_databases_is_saved_at_once(
    server: Ours, tmp_path: Path, requests: list[str], keys: list[bytes], changes: str
) -> None:
    server.lines("SET a 1", "SAVE", "SET b 1")
    server.ask("CONFIG", "SET", "save", "3600 1000")

    server.lines(*requests)

    told = info(server)
    assert [told["rdb_changes_since_last_save"], told["rdb_saves"]] == [changes, "1"]
    with ours(tmp_path / "data", appendonly="no") as killed_and_started:
        assert killed_and_started.ask("KEYS", "*") == keys


@pytest.mark.parametrize("words", ["FLUSHALL", "FLUSHALL ASYNC"])
def test_what_was_flushed_is_not_back_after_a_kill(tmp_path: Path, words: str) -> None:
    flags = ("--appendonly", "no", "--save", "3600 1000")
    with running_server(*flags, dir=tmp_path) as killed:
        client = redis.Redis(port=killed.port)
        client.set("a", "1")
        client.save()
        client.execute_command(*words.split())
        killed.kill()

    with running_server(*flags, dir=tmp_path) as second:
        assert redis.Redis(port=second.port).dbsize() == 0


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_what_is_confirmed_while_a_signal_ends_the_server_is_in_the_file(tmp_path: Path, loop: str) -> None:
    flags = ("--appendonly", "no", "--save", "3600 1", "--enable-debug-command", "yes")
    with running_server(*flags, dir=tmp_path, environment={"PENSTOCK_LOOP": loop}) as ended:
        redis.Redis(port=ended.port).execute_command("DEBUG", "POPULATE", 50_000)
        counters = [Counter(ended.port, f"counter:{number}") for number in range(6)]
        until(lambda: all(counter.confirmed > 50 for counter in counters), "the counters do not count")
        ended.stop()
        confirmed = {counter.key: counter.end() for counter in counters}

    with running_server(*flags, dir=tmp_path) as again:
        client = redis.Redis(port=again.port)
        assert [key for key, count in confirmed.items() if int(client.get(key) or 0) < count] == []


class Counter:
    """A client that counts up until its connection ends. confirmed: the last answer."""

    def __init__(self, port: int, key: str) -> None:
        self.key = key
        self.confirmed = 0
        self._client = redis.Redis(port=port, retry=NO_RETRY)
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()

    def _count(self) -> None:
        with suppress(redis.ConnectionError):
            while True:
                self.confirmed = self._client.incr(self.key)

    def end(self) -> int:
        self._thread.join(PATIENCE_S)
        return self.confirmed


def test_without_save_points_a_flush_is_not_saved(server: Ours, tmp_path: Path) -> None:
    server.lines("SET a 1", "SAVE", "FLUSHALL")

    with ours(tmp_path / "data", appendonly="no") as killed_and_started:
        assert killed_and_started.ask("DBSIZE") == 1


def test_a_flush_ends_the_child_that_saves_what_was_flushed(server: Ours, tmp_path: Path) -> None:
    server.ask("CONFIG", "SET", "save", "3600 1000")
    server.lines("SET a 1", "BGSAVE", "FLUSHALL")

    told = info(server)
    assert [told["rdb_bgsave_in_progress"], told["rdb_last_bgsave_status"]] == ["0", "ok"]
    server.durability.cron()
    assert reloaded(tmp_path, "DBSIZE") == 0
    assert not list((tmp_path / "data").glob("temp-*"))


def test_a_flush_that_cannot_be_saved_is_answered_and_told_in_the_log(server: Ours, tmp_path: Path) -> None:
    server.ask("CONFIG", "SET", "save", "3600 1000")
    (tmp_path / "data" / "dump.rdb").mkdir()
    server.lines("SET a 1", "BGSAVE")

    assert server.ask("FLUSHALL") == b"OK"

    told = info(server)
    assert [told["rdb_last_bgsave_status"], told["rdb_changes_since_last_save"]] == ["ok", "2"]
    assert any("could not be saved" in line for line in server.said)
    assert server.ask("SET", "a", "1") == b"OK"


def test_the_end_of_the_server_ends_the_child_and_leaves_no_half_file(tmp_path: Path) -> None:
    with ours(tmp_path / "data", appendonly="no") as server:
        server.lines("SET a 1")
        server.ask("BGSAVE")

    assert not list((tmp_path / "data").glob("temp-*"))


def test_a_rewrite_waits_for_the_save(tmp_path: Path) -> None:
    with ours(tmp_path / "data", rdb_key_save_delay=WHILE_ASKED_US) as server:
        server.lines("SET a 1", "BGSAVE")

        assert server.ask("BGREWRITEAOF") == b"Background append only file rewriting scheduled"

        until_saved(server)
        server.durability.cron()
        server.until_rewritten()
        assert info(server)["aof_rewrites"] == "1"


def test_a_file_for_a_later_redis_is_told(server: Ours) -> None:
    server.lines("HSET h f v", "HPEXPIREAT h 4102444800000 FIELDS 1 f", "SAVE")

    assert any("is for Redis 7.4 and later, not 7.2 (rdb-compat-version)" in line for line in server.said)


@pytest.mark.parametrize("version", ["5.0", "7.0", "7.2", "8.8"])
def test_a_base_in_rdb_has_what_the_streams_have(version: str) -> None:
    client = Dialogue(make_engine(settings=settings_with(rdb_compat_version=version)))
    client("XADD s 1-0 f v", "XADD s 2-0 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    client("XDEL s 1-0", "SET k v")

    assert keyspace(rdb_based_engine(client.engine, NOW_MS), SAVED) == keyspace(client.engine, SAVED)


def test_a_file_with_functions_is_for_a_redis_that_knows_them() -> None:
    pytest.importorskip("lupa")
    engine = make_engine(settings=settings_with(rdb_compat_version="6.2"))
    Dialogue(engine).words(b"FUNCTION", b"LOAD", LIBRARY)

    assert rdb_saving.snapshot_of(engine.keyspace, engine.settings, NOW_MS).version == rdb_format.OF_REDIS["7.0"]
    assert saved_engine(engine, NOW_MS).keyspace.libraries == {b"lib": LIBRARY}


RELOADED = "ERR Error trying to load the RDB dump, check server logs"


def test_debug_reload_nosave_has_what_the_file_has(server: Ours) -> None:
    server.lines(
        "SET a 1", "XADD s 1-0 f v", "SAVE", "SET a 2", "SET b 2", "XADD s 2-0 f v", "PEXPIREAT a 4102444800000"
    )

    assert server.ask("DEBUG", "RELOAD", "NOSAVE") == b"OK"

    assert server.ask("MGET", "a", "b") == [b"1", None]
    assert [server.ask("XLEN", "s"), server.ask("PTTL", "a")] == [1, -1]


def test_debug_reload_noflush_keeps_what_the_file_has_not(server: Ours) -> None:
    server.lines("SET a 1", "SAVE", "SET a 2", "SET b 2", "PEXPIREAT a 4102444800000")

    assert server.ask("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE") == b"OK"

    assert server.ask("MGET", "a", "b") == [b"1", b"2"]
    assert server.ask("PTTL", "a") == -1
    for db in server.engine.keyspace.databases:
        db.check()
    assert str(server.ask("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH")) == RELOADED
    assert server.ask("DEBUG", "RELOAD", "MERGE") == b"OK"
    assert server.ask("MGET", "a", "b") == [b"1", b"2"]


def test_debug_reload_of_a_damaged_file_changes_nothing(server: Ours, tmp_path: Path) -> None:
    server.lines("SET a 1", "SAVE", "SET a 2")
    path = tmp_path / "data" / "dump.rdb"
    path.write_bytes(path.read_bytes()[:-9])

    assert str(server.ask("DEBUG", "RELOAD", "NOSAVE")) == RELOADED

    assert server.ask("GET", "a") == b"2"
    assert "it ends too early" in server.said[-1]
    assert str(server.ask("DEBUG", "RELOAD", "NOW")) == (
        "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
    )
