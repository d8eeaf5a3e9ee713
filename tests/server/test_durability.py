"""Write, then answer: under every policy, on a disk that stalls, fails and forgets."""

import errno
import os
import random
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.clock import ManualClock, SystemClock
from penstock.commands.server.info_sections import fields_of
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.files.rewrite_child import BASE_WRITTEN
from penstock.server.turns.log_writer import AofWriter
from penstock.storage.aof.append_log import LEAST_ROOM
from penstock.storage.aof.disk import SystemDisk
from tests.support.clock import NOW_MS
from tests.support.deferred_log import DeferredRewriteChild, DeferredThreads
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.memory_disk import OUT_OF_MEMORY, MemoryDisk

MISCONF = b"MISCONF Errors writing to the AOF file: "
ROOT = "/tmp"  # in memory; the settings want a directory that exists
DIRECTORY = ROOT + "/appendonlydir"
INCREMENT = DIRECTORY + "/appendonly.aof.1.incr.aof"
LARGE = b"v" * (LEAST_ROOM // 4)


class Server:
    """An engine with a log on a disk in memory, one client, and a clock that tests turn."""

    def __init__(self, disk: MemoryDisk | None = None, root: str = ROOT, now_ms: int = NOW_MS, **settings: str) -> None:
        self.clock = ManualClock(now_ms)
        self.settings = Settings()
        pairs = {"dir": root, "appendfsync": "always", "enable-debug-command": "yes"} | settings
        for name, value in pairs.items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.disk = MemoryDisk() if disk is None else disk
        self.threads = DeferredThreads()
        self.said: list[Any] = []
        self.engine = make_engine(self.clock, settings=self.settings)
        self.rewriting = DeferredRewriteChild(self.disk, self.engine)
        self.durability = AofWriter(
            self.settings, self.engine, self.said.append, self.disk, self.threads, self.rewriting
        )
        for _ in self.durability.loading():
            pass
        self.client = Dialogue(self.engine)
        self.turns: list[str] = []  # of each turn: "sent", or "unknown" where those that tell of changes are not

    def turn(self, *lines: str) -> Any:
        """Requests that arrive together, and the turn's end; the last reply, whether it was sent or not."""
        answer = self.client(*lines)
        self.durability.end_of_turn(lambda is_kept: self.turns.append("sent" if is_kept else "unknown"))
        return answer

    def fill(self, key: str) -> None:
        """Turns that take so much of the room that more is reserved, or the last is refused."""
        for _ in range(3):
            self.client.words(b"SET", key.encode(), LARGE)
            self.turn()

    def later(self, ms: int) -> None:
        self.clock.advance(ms)
        self.durability.cron()

    def finish_rewriting(self) -> None:
        """The child gets to its end, and the threads that swap files and delete old ones."""
        self.durability.cron()
        self.rewriting.write()
        for _ in range(3):
            self.durability.cron()
            self.threads.run()
        self.durability.cron()

    def again(self, power: bool = False, chance: random.Random | None = None) -> "Server":
        """The server after it was killed, or after the power was lost."""
        return Server(self.disk.lose_power(chance) if power else self.disk.restart())


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def everysec() -> Server:
    return Server(appendfsync="everysec")


# -- policies ---------------------------------------------------------------------------------------------------------


def test_always_syncs_once_for_all_requests_of_a_turn(server: Server) -> None:
    server.turn("SET a 1", "SET b 2", "XADD s 1-0 f v")
    assert server.turns == ["sent"]
    assert (server.disk.points.count("write"), server.disk.points.count("sync")) == (1, 1)


def test_always_syncs_before_the_replies(server: Server) -> None:
    server.client("SET a 1")
    server.durability.end_of_turn(lambda is_kept: server.turns.append(server.disk.points[-1]))
    assert server.turns == ["synced"]


def test_always_loses_nothing_that_was_answered(server: Server) -> None:
    server.turn("SET a 1")
    assert server.again(power=True).client("GET a") == b"1"


def test_a_turn_that_changed_nothing_touches_no_disk(server: Server) -> None:
    before = list(server.disk.points)
    server.turn("GET a")
    assert server.turns == ["sent"]
    assert server.disk.points == before


def test_everysec_answers_after_the_write_and_syncs_later(everysec: Server) -> None:
    everysec.turn("SET a 1")
    assert everysec.turns == ["sent"]
    assert "sync" not in everysec.disk.points
    assert everysec.again().client("GET a") == b"1"

    everysec.later(1000)
    everysec.threads.run()
    everysec.later(100)
    assert everysec.again(power=True).client("GET a") == b"1"


def test_everysec_answers_after_the_write_while_it_syncs(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.turn("SET a 2")
    assert everysec.turns == ["sent", "sent"]
    assert everysec.again().client("GET a") == b"2"
    assert everysec.threads.given, "the sync runs"


def test_everysec_holds_turns_back_when_a_sync_takes_a_second(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.later(1000)
    everysec.turn("SET a 2")
    everysec.turn("GET a")
    assert everysec.turns == ["sent"]

    everysec.threads.run()
    everysec.later(100)
    assert everysec.turns == ["sent", "sent", "sent"]


def test_everysec_writes_anyway_after_two_seconds(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.later(1000)
    everysec.later(1000)
    everysec.turn("SET a 2")
    everysec.later(1999)
    assert everysec.turns == ["sent"]
    everysec.later(1)
    assert everysec.turns == ["sent", "sent"]
    assert "aof_delayed_fsync:1\r\n" in everysec.engine.persistence.info()


def test_no_leaves_the_syncing_to_the_system() -> None:
    server = Server(appendfsync="no")
    server.turn("SET a 1")
    server.later(5000)
    assert server.turns == ["sent"]
    assert server.threads.given == []


def test_the_policy_changes_at_run_time(everysec: Server) -> None:
    everysec.turn("CONFIG SET appendfsync always")
    everysec.turn("SET a 1")
    assert everysec.disk.points[-1] == "synced"


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_after_a_loss_of_power_is_a_prefix(seed: int) -> None:
    server = Server(appendfsync="always" if seed % 2 else "everysec")
    for number in range(10):
        server.turn(f"SET last {number}", f"XADD s {number + 1}-0 f v")
    after = server.disk.lose_power(random.Random(seed))
    try:
        again = Server(after)
    except UsageError as refusal:
        assert seed % 2 == 0, refusal  # written out of order: the file has a hole, and the start says where
        assert "byte" in str(refusal)
        return
    length = again.client("XLEN s")
    last = again.client("GET last")
    assert last in (None if length == 0 else str(length - 1).encode(), str(length).encode() if length < 10 else None)
    assert length == 10 or seed % 2 == 0


def test_the_time_is_written_once_a_second_where_that_is_wanted() -> None:
    server = Server(aof_timestamp_enabled="yes")
    server.turn("SET a 1")
    server.turn("SET a 2")
    server.later(1000)
    server.turn("SET a 3")

    written = bytes(server.disk.files[DIRECTORY + "/appendonly.aof.1.incr.aof"].seen)
    assert written.startswith(b"#TS:1795300000\r\n*2\r\n$6\r\nSELECT")
    assert written.count(b"#TS:") == 2
    assert server.again().client("GET a") == b"3"


# -- trouble ----------------------------------------------------------------------------------------------------------


def test_always_does_not_confirm_a_change_with_a_failed_write(server: Server) -> None:
    server.disk.failures["write"] = [errno.EIO]
    server.turn("SET a 1")
    assert server.turns == ["unknown"]


def test_everysec_confirms_a_change_with_a_failed_write_and_writes_it_later(everysec: Server) -> None:
    everysec.disk.failures["write"] = [errno.EIO]
    everysec.turn("SET a 1")
    assert everysec.turns == ["sent"]
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")
    assert any("confirmed, and kept in memory until they can be written" in line for line in everysec.said)

    everysec.later(1000)
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again().client("MGET a b") == [b"1", b"2"]


def test_in_trouble_writers_are_refused_and_readers_go_on(server: Server) -> None:
    server.disk.failures["write"] = [errno.ENOSPC]
    server.turn("SET a 1")

    assert str(server.turn("SET b 1")) == (MISCONF + b"No space left on device").decode()
    assert str(server.turn("PING")).startswith("MISCONF")
    assert server.turn("GET a") == b"1"
    assert server.turns[1:] == ["sent", "sent", "sent"]
    assert "aof_last_write_status:err\r\n" in server.engine.persistence.info()


def test_a_full_disk_that_is_emptied_ends_the_trouble(server: Server) -> None:
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).encode() == MISCONF + b"No space left on device"
    server.disk.room = None
    server.later(1000)

    assert server.turn("SET b 2") == b"OK"
    again = server.again(power=True)
    assert [again.client("GET a"), again.client("GET b")] == [LARGE, b"2"]


def test_a_full_disk_is_known_before_a_change_is_made(server: Server) -> None:
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).encode() == MISCONF + b"No space left on device"

    assert server.turns == ["sent"] * 4
    assert server.turn("GET b") is None
    assert server.again(power=True).client("EXISTS a b") == 1


def test_room_is_reserved_rarely_and_given_back_at_the_end(server: Server) -> None:
    calls = server.disk.points.count("reserve")
    for _ in range(100):
        server.turn("SET a 1")
    assert server.disk.points.count("reserve") == calls
    node = server.disk.files[INCREMENT]
    assert node.taken > len(node.seen)

    server.durability.close()
    assert node.taken == len(node.seen)


def test_room_is_reserved_for_the_file_that_a_rewrite_begins_and_given_back_behind_the_old_one(server: Server) -> None:
    server.turn("SET a 1")
    old = server.disk.files[INCREMENT]
    server.turn("BGREWRITEAOF")
    assert old.taken == len(old.seen)
    assert server.disk.files[INCREMENT.replace(".1.", ".2.")].taken == LEAST_ROOM


def test_a_rewrite_makes_room_on_a_full_disk(server: Server) -> None:
    server.fill("a")
    server.fill("a")
    server.disk.room = 0
    server.fill("a")
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    server.turn("BGREWRITEAOF")
    server.finish_rewriting()
    server.later(1000)

    assert server.turn("SET b 2") == b"OK"
    assert server.again(power=True).client("MGET a b") == [LARGE, b"2"]


def test_a_file_system_that_reserves_nothing_is_told_once_and_refuses_what_comes_behind_the_full_disk() -> None:
    disk = MemoryDisk()
    disk.reserves = False
    server = Server(disk, appendfsync="everysec")
    server.turn("BGREWRITEAOF")
    server.finish_rewriting()
    server.disk.room = 0
    assert server.turn("SET a 1") == b"OK"
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    assert len([line for line in server.said if "cannot reserve room" in line]) == 1


def test_always_does_not_confirm_a_change_with_a_failed_sync(server: Server) -> None:
    server.disk.failures["sync"] = [errno.EIO]
    server.turn("SET a 1")
    assert server.turns == ["unknown"]


def test_a_sync_that_failed_is_over_with_a_fresh_base_only(server: Server) -> None:
    server.disk.failures["sync"] = [errno.EIO]
    server.turn("SET a 1")
    assert str(server.turn("SET b 1")).startswith("MISCONF")
    server.finish_rewriting()
    assert server.turn("SET b 2") == b"OK"

    again = server.again(power=True)
    assert [again.client("GET a"), again.client("GET b")] == [b"1", b"2"]


def test_a_background_sync_that_fails_refuses_writers(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.failures["sync"] = [errno.EIO]
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")


def test_writers_are_refused_while_no_thread_can_be_started_to_sync(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.threads.refusal = RuntimeError("can't start new thread")
    everysec.later(1000)

    assert str(everysec.turn("SET b 1")).encode() == MISCONF + b"can't start new thread"
    assert everysec.turn("GET a") == b"1"


@pytest.mark.parametrize("refusal", [RuntimeError("can't start new thread"), MemoryError()])
def test_writers_are_served_again_once_a_sync_has_worked(everysec: Server, refusal: MemoryError | RuntimeError) -> None:
    everysec.turn("SET a 1")
    everysec.threads.refusal = refusal
    everysec.later(1000)
    everysec.later(1000)
    everysec.threads.refusal = None
    everysec.later(1000)
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")

    everysec.threads.run()
    everysec.durability.cron()
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again(power=True).client("GET a") == b"1"


def out_of_memory(wanted: str) -> Callable[..., Any]:
    def reach(point: str) -> None:
        if point == wanted:
            raise MemoryError

    return reach


def test_a_thread_that_runs_out_of_memory_before_it_syncs_is_tried_again(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.on_reach = out_of_memory("sync")
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).encode() == MISCONF + b"Cannot allocate memory"

    everysec.disk.on_reach = None
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert everysec.turn("SET b 2") == b"OK"
    assert everysec.again(power=True).client("GET a") == b"1"


def test_a_sync_with_an_unknown_end_is_not_trusted(everysec: Server) -> None:
    everysec.turn("SET a 1")
    everysec.disk.failures["sync"] = [OUT_OF_MEMORY]
    everysec.later(1000)
    everysec.threads.run()
    everysec.durability.cron()
    assert str(everysec.turn("SET b 1")).startswith("MISCONF")
    assert everysec.durability.log is not None and everysec.durability.log.writes_held

    everysec.finish_rewriting()
    assert everysec.turn("SET b 2") == b"OK"


def test_files_are_swapped_although_no_thread_can_be_started(server: Server) -> None:
    server.turn("SET a 1", "SET a 2", "BGREWRITEAOF")
    server.threads.refusal = RuntimeError("can't start new thread")
    server.finish_rewriting()

    assert "aof_rewrites:1\r\n" in server.engine.persistence.info()
    assert server.again(power=True).client("GET a") == b"2"


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


# -- real processes and files -----------------------------------------------------------------------------------------


class RealServer:
    """A server's engine and log on the real disk."""

    def __init__(self, root: Path, disk: "FlakyDisk | HaltingDisk | None" = None, **settings: str) -> None:
        self.settings = Settings()
        for name, value in ({"dir": str(root)} | settings).items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.said: list[Any] = []
        self.engine = make_engine(SystemClock(), settings=self.settings)
        self.durability = AofWriter.open(self.settings, self.engine, self.said.append, disk)
        self.client = Dialogue(self.engine)
        self.answered = 0

    def turn(self, *lines: str) -> bytes | int:
        answer = self.client(*lines)
        self.durability.end_of_turn(self._answer)
        return answer

    def until_ready(self) -> None:
        """Time passes until writers are served again."""
        deadline = time.monotonic() + 20
        while self.engine.conditions.trouble is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # a process of its own writes the base
            self.durability.cron()

    def _answer(self, is_kept: bool) -> None:
        self.answered += 1

    def until_reported(self) -> dict[str, str]:
        """Time passes until the child has told how far it is: INFO's fields then."""
        deadline = time.monotonic() + 20
        while not self.engine.persistence.progress.copied and time.monotonic() < deadline:
            time.sleep(0.01)
            self.durability.cron()
        return dict(fields_of(self.engine.persistence.info()))

    def until_rewritten(self) -> int:
        """Turn after turn while a child writes the base; how many there were."""
        deadline = time.monotonic() + 20
        turns = 0
        while self.engine.persistence.child and time.monotonic() < deadline:
            turns += 1
            self.turn(f"XADD meanwhile {turns}-0 f v", "INCR counted")
            self.durability.cron()
        return turns


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_a_forked_rewrite_loses_nothing_that_comes_meanwhile(tmp_path: Path, policy: str) -> None:
    server = RealServer(tmp_path, appendfsync=policy)
    for number in range(2000):
        server.client(f"XADD s {number + 1}-0 f v")
    server.client("XGROUP CREATE s g 0", "XREADGROUP GROUP g alice COUNT 500 STREAMS s >")
    server.turn("BGREWRITEAOF")
    turns = server.until_rewritten()
    server.turn("SET after 1")
    summary = server.client("XPENDING s g")
    assert server.durability.close()

    again = RealServer(tmp_path)
    assert turns > 0
    assert again.client("XLEN s") == 2000
    assert again.client("XPENDING s g") == summary
    assert again.client("XLEN meanwhile") == turns
    assert again.client("GET counted") == str(turns).encode()
    assert again.client("GET after") == b"1"
    names = sorted(path.name for path in (tmp_path / "appendonlydir").iterdir())
    assert names[:2] == ["appendonly.aof.2.base.aof", "appendonly.aof.2.incr.aof"]
    assert "aof_last_bgrewrite_status:ok\r\n" in server.engine.persistence.info()
    assert server.engine.persistence.forks == 1
    again.durability.close()


class DelegatingDisk:
    """The system's, but for what a subclass does itself."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(SystemDisk(), name)


class FlakyDisk(DelegatingDisk):
    """Fails once at each of the named moments that `fails` lists."""

    def __init__(self) -> None:
        self.fails: list[Any] = []

    def reach(self, point: str) -> None:
        if point in self.fails:
            self.fails.remove(point)
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class HaltingDisk(DelegatingDisk):
    """Waits at a named moment until there is a file."""

    def __init__(self, point: str, file: Path) -> None:
        self._point = point
        self._file = file

    def reach(self, point: str) -> None:
        while point == self._point and not self._file.exists():
            time.sleep(0.01)


@pytest.mark.parametrize("fails", [["sync"], ["sync", "base-renamed"], ["sync", "manifest-written"]])
def test_a_server_recovers_from_a_failed_sync_by_itself(tmp_path: Path, fails: list[str]) -> None:
    disk = FlakyDisk()
    server = RealServer(tmp_path, disk, appendfsync="always")
    server.turn("SET a 1")
    disk.fails = list(fails)
    server.turn("SET b 2")
    assert str(server.turn("SET c 3")).startswith("MISCONF")

    server.until_ready()
    assert server.turn("SET c 3") == b"OK"
    server.durability.close()
    again = RealServer(tmp_path)
    assert again.client("MGET a b c") == [b"1", b"2", b"3"]
    again.durability.close()


def test_a_child_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    server = RealServer(tmp_path)
    server.turn("SET a 1", "BGREWRITEAOF")
    server.durability.aof_rewrite.process.kill() if server.durability.aof_rewrite.process.pid else None
    server.durability.close()
    again = RealServer(tmp_path)
    assert again.client("GET a") == b"1"
    again.durability.close()


def test_a_server_that_stops_takes_its_child_along(tmp_path: Path) -> None:
    server = RealServer(tmp_path, appendfsync="always")
    server.turn("SET a 1", "BGREWRITEAOF")
    pid = server.durability.aof_rewrite.process.pid
    assert pid
    assert server.durability.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_info_tells_how_far_a_rewrite_is_and_what_it_copied(tmp_path: Path) -> None:
    server = RealServer(tmp_path, HaltingDisk(BASE_WRITTEN, tmp_path / "go on"))
    for number in range(200):
        server.client(f"SET key{number} {'v' * 5000}")
    server.turn("BGREWRITEAOF")
    amid = server.until_reported()
    (tmp_path / "go on").touch()
    server.until_rewritten()
    after = dict(fields_of(server.engine.persistence.info()))

    assert 0 < int(amid["current_save_keys_processed"]) <= int(amid["current_save_keys_total"]) == 200
    assert 0 < float(amid["current_fork_perc"]) <= 100
    assert int(amid["current_cow_peak"]) >= int(amid["current_cow_size"]) > 4096
    assert after["current_fork_perc"] == "0.00"
    assert after["current_cow_size"] == after["current_cow_peak"] == after["rdb_last_cow_size"] == "0"
    assert int(after["aof_last_cow_size"]) > 4096
    told = r"finished successfully in \d+\.\d seconds: .* \d+\.\d MiB of memory were copied"
    assert re.search(told, "\n".join(server.said))
    server.durability.close()


def test_a_child_says_why_it_failed_after_all_its_reports(tmp_path: Path) -> None:
    disk = FlakyDisk()
    server = RealServer(tmp_path, disk)
    server.client("SET a 1")
    disk.fails = [BASE_WRITTEN]
    server.turn("BGREWRITEAOF")
    server.until_rewritten()
    assert any("Rewriting the log failed: Input/output error (" in line for line in server.said)
    server.durability.close()


def test_a_log_that_grows_is_rewritten_of_itself(tmp_path: Path) -> None:
    server = RealServer(
        tmp_path, appendfsync="always", auto_aof_rewrite_min_size="1000", auto_aof_rewrite_percentage="100"
    )
    for _ in range(100):
        server.turn("SET a 1")
    server.durability.cron()
    assert server.engine.persistence.child == "rewrite"
    server.until_rewritten()
    assert "aof_rewrites:1\r\n" in server.engine.persistence.info()
    server.durability.close()


def test_a_second_rewrite_waits_for_the_first(tmp_path: Path) -> None:
    server = RealServer(tmp_path, appendfsync="always")
    server.turn("SET a 1", "BGREWRITEAOF")
    assert str(server.turn("BGREWRITEAOF")) == "ERR Background append only file rewriting already in progress"
    server.until_rewritten()
    server.durability.cron()
    assert "aof_rewrites:1\r\n" in server.engine.persistence.info()
    server.durability.close()
