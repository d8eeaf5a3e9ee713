"""Rewrites, and logs that are turned on, off and begun anew."""

import errno

import pytest

from penstock.errors import UsageError
from tests.server.durability.servers import DIRECTORY, Server
from tests.support.clock import NOW_MS

# -- rewriting and saving ---------------------------------------------------------------------------------------------


def test_a_rewrite_writes_a_fresh_base(server: Server) -> None:
    server.turn("SET a 1", "SET a 2", "SET a 3", "BGREWRITEAOF")
    server.finish_rewriting()
    base = bytes(server.disk.files[DIRECTORY + "/appendonly.aof.2.base.aof"].seen)
    assert base.count(b"SET") == 1
    assert server.again(power=True).client("GET a") == b"3"


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_what_was_to_expire_and_was_kept_after_a_rewrite_is_there_after_a_later_restart(preamble: str) -> None:
    server = Server(aof_use_rdb_preamble=preamble)
    server.turn("SET k v PX 4000", "SET gone v PX 4000", "HSET h f v g w", "HPEXPIRE h 4000 FIELDS 1 f", "BGREWRITEAOF")
    server.finish_rewriting()
    server.turn("PERSIST k", "HPERSIST h FIELDS 1 f")
    later = Server(server.disk.restart(), now_ms=NOW_MS + 5000)

    assert later.client("GET k") == b"v"
    assert later.client("HGET h f") == b"v"
    assert later.client("GET gone") is None


def test_a_rewrite_that_fails_leaves_everything_as_it_was(server: Server) -> None:
    server.turn("SET a 1", "BGREWRITEAOF")
    server.disk.failures["rename"] = [errno.EIO]
    server.finish_rewriting()
    assert "aof_last_bgrewrite_status:err\r\n" in server.engine.persistence.info()
    assert server.turn("SET a 2") == b"OK"
    assert server.again(power=True).client("GET a") == b"2"


def test_history_is_deleted_in_the_background(server: Server) -> None:
    server.turn("BGREWRITEAOF")
    server.finish_rewriting()
    assert [name for name in server.disk.names(DIRECTORY) if ".1." in name] == []


def test_loadaof_gives_what_a_restart_would(server: Server) -> None:
    server.turn("SET a 1")
    server.engine.keyspace.databases[0].put(b"forged", b"never logged")
    assert server.turn("DEBUG LOADAOF") == b"OK"
    assert server.turn("KEYS *") == [b"a"]
    server.turn("SET b 2")
    assert server.again().client("GET b") == b"2"


# -- appendonly -------------------------------------------------------------------------------------------------------


def test_without_a_log_nothing_is_written() -> None:
    server = Server(appendonly="no")
    server.turn("SET a 1")
    assert server.turns == ["sent"]
    assert server.disk.files == {}


def test_a_log_that_is_turned_off_keeps_what_it_has(server: Server) -> None:
    server.turn("SET a 1")
    server.turn("CONFIG SET appendonly no")
    server.turn("SET a 2")
    assert server.again(power=True).client("GET a") == b"1"


def test_a_log_that_is_turned_on_begins_with_what_is_there() -> None:
    server = Server(appendonly="no")
    server.turn("SET a 1")
    server.client("CONFIG SET appendonly yes", "SET b 2")
    server.finish_rewriting()
    server.turn("SET c 3")

    again = server.again(power=True)
    assert [again.client(f"GET {key}") for key in "abc"] == [b"1", b"2", b"3"]


def test_always_confirms_nothing_before_the_first_base_is_in_force() -> None:
    server = Server(appendonly="no")
    server.turn("CONFIG SET appendonly yes")
    server.turn("SET a 1")
    server.turn("GET a")
    assert server.turns == ["sent", "sent"]  # what changed nothing
    assert "penstock_aof_base_written:0\r\n" in server.engine.persistence.info()

    server.finish_rewriting()
    assert server.turns == ["sent", "sent", "sent"]
    assert "penstock_aof_base_written:1\r\n" in server.engine.persistence.info()
    assert server.again(power=True).client("GET a") == b"1"


def test_everysec_confirms_while_the_first_base_is_written() -> None:
    server = Server(appendonly="no", appendfsync="everysec")
    server.turn("CONFIG SET appendonly yes", "SET a 1")
    server.turn("SET b 1")
    assert server.turns == ["sent", "sent"]
    server.finish_rewriting()
    assert server.again().client("MGET a b") == [b"1", b"1"]


def test_a_first_base_that_cannot_be_written_refuses_writers_until_one_can() -> None:
    server = Server(appendonly="no")
    server.turn("CONFIG SET appendonly yes")
    server.turn("SET a 1")
    server.disk.failures["create"] = [errno.ENOSPC]
    server.finish_rewriting()
    assert server.turns == ["sent", "unknown"]
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    shown = server.engine.persistence.info()
    assert "aof_last_write_status:err\r\n" in shown and "aof_last_bgrewrite_status:err\r\n" in shown

    server.later(2000)
    server.finish_rewriting()
    assert server.turn("SET b 2") == b"OK"
    assert server.again(power=True).client("MGET a b") == [b"1", b"2"]


@pytest.fixture
def beginning() -> Server:
    """Its log begins, and next to nothing may wait in memory for the base."""
    server = Server(appendonly="no", appendfsync="everysec")
    server.durability.most_waiting = 100
    server.turn("SET before 1", "CONFIG SET appendonly yes")
    server.durability.cron()
    return server


def waiting_bytes(server: Server) -> int:
    log = server.durability.log
    assert log is not None and log.writes_held
    return log.buffered


def test_what_changes_while_the_first_base_is_written_waits_in_a_file(beginning: Server) -> None:
    for number in range(10):
        beginning.turn(f"SET key:{number} {'v' * 60}")
        beginning.later(100)
        assert waiting_bytes(beginning) <= 100
    beginning.turn("SET last 1")
    beginning.finish_rewriting()
    beginning.turn("SET behind 1")

    assert beginning.again().client("DBSIZE") == 13
    beginning.later(1000)
    beginning.threads.run()
    assert beginning.again(power=True).client("DBSIZE") == 13
    assert sorted(name.rpartition("/")[2] for name in beginning.disk.files if "temp-" in name) == []


def test_a_first_base_fails_when_what_is_to_follow_it_cannot_be_written(beginning: Server) -> None:
    beginning.disk.failures["create"] = [errno.ENOSPC]
    beginning.turn(f"SET a {'v' * 200}")
    beginning.later(100)
    assert waiting_bytes(beginning) == 0
    assert str(beginning.turn("SET b 1")).startswith("MISCONF")
    assert "Rewriting the log failed: No space left on device." in beginning.said[-2]

    beginning.later(2000)
    beginning.finish_rewriting()
    assert beginning.turn("SET c 2") == b"OK"
    assert beginning.again().client("MGET before a b c") == [b"1", b"v" * 200, None, b"2"]


def test_what_a_master_sends_does_not_wait_in_memory_while_no_base_can_be_written(beginning: Server) -> None:
    beginning.disk.failures["create"] = [errno.ENOSPC]
    beginning.finish_rewriting()
    beginning.durability.aof_rewrite.look_after()
    for number in range(10):
        assert beginning.durability.log is not None
        beginning.durability.log.append(b"*1\r\n$4\r\nPING\r\n" * 20)  # a stream is not refused
        beginning.turn("GET a")
        beginning.durability.cron()
        assert waiting_bytes(beginning) == 0, number


def test_a_first_base_that_waits_for_turns_that_wait_for_it_is_begun() -> None:
    server = Server(appendonly="no")
    server.engine.persistence.saves.runs = True  # a snapshot is being saved
    server.turn("CONFIG SET appendonly yes")
    server.turn("SET a 1")
    server.engine.persistence.saves.runs = False
    server.finish_rewriting()
    assert server.turns == ["sent", "sent"]
    assert server.again(power=True).client("GET a") == b"1"


def test_a_log_that_begins_anew_confirms_nothing_before_its_base_is_in_force(server: Server) -> None:
    server.turn("SET old 1")
    server.client("FLUSHALL", "SET new 1")
    server.durability.begin_anew()
    server.turn("SET new 2")
    assert server.turns == ["sent"]
    server.finish_rewriting()
    assert server.turns == ["sent", "sent"]
    assert server.again(power=True).client("MGET old new") == [None, b"2"]


def test_a_policy_that_no_longer_syncs_always_lets_out_what_waits_for_the_base() -> None:
    server = Server(appendonly="no")
    server.turn("CONFIG SET appendonly yes")
    server.turn("SET a 1")
    server.turn("CONFIG SET appendfsync everysec")
    server.later(100)
    assert server.turns == ["sent", "sent", "sent"]


@pytest.mark.parametrize("line", ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN NOW"])
def test_shutdown_is_refused_before_the_first_base_is_in_force(line: str) -> None:
    server = Server(appendonly="no")
    server.turn("CONFIG SET appendonly yes")
    assert str(server.turn(line)) == "ERR Errors trying to SHUTDOWN. Check logs."
    assert "so the server goes on" in server.said[-1]
    assert not server.engine.persistence.wanted_shutdown

    server.turn("SHUTDOWN NOW FORCE")
    assert server.engine.persistence.wanted_shutdown


def test_the_end_on_a_full_disk_says_one_thing(everysec: Server) -> None:
    everysec.disk.failures["write"] = [errno.ENOSPC, errno.ENOSPC]
    everysec.turn("SET a 1")
    assert not everysec.durability.close()
    assert "can be written again" not in "\n".join(everysec.said)


def test_a_rewrite_without_a_log_writes_what_a_log_can_begin_with() -> None:
    server = Server(appendonly="no")
    server.turn("SET a 1", "BGREWRITEAOF")
    server.finish_rewriting()
    assert server.again(power=True).client("GET a") == b"1"


def test_a_damaged_log_stops_the_start(server: Server) -> None:
    server.turn("SET a 1")
    server.disk.files[DIRECTORY + "/appendonly.aof.1.incr.aof"].seen[0:0] = b"?"
    with pytest.raises(UsageError, match=r"incr.aof: a request .* was expected at byte 0"):
        server.again()


def test_closing_writes_and_syncs_what_is_left(everysec: Server) -> None:
    everysec.client("SET a 1")
    assert everysec.durability.close()
    assert everysec.again(power=True).client("GET a") == b"1"
