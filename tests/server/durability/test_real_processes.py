"""The log among real files, rewritten by real processes."""

import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest
import redis

from penstock.commands.server.info_sections import fields_of
from penstock.server.files.rewrite_child import BASE_WRITTEN
from penstock.server.turns.sync_thread import IS_SLOW
from penstock.storage.aof.append_log import SYNC
from tests.server.durability.servers import DelegatingDisk, FlakyDisk, HaltingDisk, RealServer
from tests.support.server_process import running_server


def has_env_of_signals() -> bool:
    """Whether the system has coreutils' env from 8.31 on."""
    try:
        return not subprocess.run(["env", "--ignore-signal=CHLD", "true"], capture_output=True).returncode
    except OSError:
        return False


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


class SyncsNoted(DelegatingDisk):
    """Notes which thread syncs."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def reach(self, point: str) -> None:
        if point == SYNC:
            self.threads.append(threading.current_thread().name)


def test_the_last_sync_keeps_no_signal_from_the_server_however_long_it_takes(tmp_path: Path) -> None:
    disk = SyncsNoted()
    server = RealServer(tmp_path, disk, appendfsync="everysec")
    server.turn("SET a 1")

    assert server.durability.close()
    assert disk.threads == ["log"]  # a handler of Python's runs in the main thread, between two of its steps


def test_a_server_that_waits_for_a_slow_sync_says_so_and_a_second_signal_ends_it(tmp_path: Path) -> None:
    with running_server(dir=tmp_path, environment={"PENSTOCK_FAULT": "sync:sleep600000ms"}) as process:
        redis.Redis(port=process.port).set("a", 1)
        os.kill(process.pid, signal.SIGTERM)
        process.wait_until_said(IS_SLOW)
        os.kill(process.pid, signal.SIGTERM)

        assert process.wait() == 1
    with running_server(dir=tmp_path) as again:
        assert redis.Redis(port=again.port).get("a") == b"1"


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


def test_a_child_counts_as_failed_if_its_end_is_seen_elsewhere(tmp_path: Path) -> None:
    server = RealServer(tmp_path, appendfsync="always")
    server.turn("SET a 1", "BGREWRITEAOF")
    os.waitpid(server.durability.aof_rewrite.process.pid, 0)
    server.durability.cron()

    assert server.engine.persistence.child == ""
    assert "it is not known how its process ended" in server.said[-1]
    server.turn("BGREWRITEAOF")
    server.until_rewritten()
    assert server.durability.close()


@pytest.mark.skipif(not has_env_of_signals(), reason="no `env --ignore-signal`")
def test_a_server_sees_the_end_of_its_children_although_its_parent_ignores_such_ends(tmp_path: Path) -> None:
    with running_server(dir=tmp_path, wrapper=("env", "--ignore-signal=CHLD")) as server:
        client = redis.Redis(port=server.port)
        client.set("a", "1")
        client.bgrewriteaof()
        server.wait_until_said("Background AOF rewrite finished successfully")


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
