"""Children of a server that is killed: they end with it, and replace nothing that the next server has confirmed."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.crash.faulty_disk import VARIABLE
from tests.support.server_process import ServerProcess, running_server

PATIENCE_S = 30.0
SAVES = ("--appendonly", "no")
LOG = ("--appendonly", "yes", "--appendfsync", "always")
BASE_POINTS = ["base-started", "base-written", "base-synced"]

# Forked in a thread that is not the process's first, a child is not killed by the system: it looks for itself, and
# holds the file's lock meanwhile.
IN_A_THREAD = """
import os, sys, threading
from penstock.clock import SystemClock
from penstock.config.settings import Settings
from penstock.server.files.snapshots import Snapshots
from tests.crash.faulty_disk import VARIABLE, FaultyDisk, parse
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

def begin():
    settings = Settings()
    settings.read_line(["dir", sys.argv[1]], set())
    engine = make_engine(SystemClock(), settings=settings)
    snapshots = Snapshots(settings, engine, FaultyDisk(parse(os.environ[VARIABLE])), print)
    Dialogue(engine)("SET a old", "BGSAVE")
    print(snapshots.child.pid, flush=True)
    threading.Event().wait()

threading.Thread(target=begin).start()
"""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the system kills no child, it looks for itself")


def children_of(pid: int) -> list[int]:
    """The ids of the processes that a process forked."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def state_of(pid: int) -> str:
    """A letter of proc(5): T for a process that is stopped, Z or nothing for one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0].replace("Z", "")
    except OSError:
        return ""


def until_in(pid: int, states: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while state_of(pid) not in states.split(","):
        assert time.monotonic() < deadline, f"{pid} is in state {state_of(pid)!r}, not {states}"
        time.sleep(0.005)  # another process


def child_of(server: ServerProcess) -> int:
    """The child, once it is there."""
    deadline = time.monotonic() + PATIENCE_S
    while not children_of(server.pid):
        assert time.monotonic() < deadline, server.said
        time.sleep(0.005)  # another process
    return children_of(server.pid)[0]


def stopped_child(server: ServerProcess) -> int:
    """The child, once it stands still at the point of the fault."""
    child = child_of(server)
    until_in(child, "T")
    return child


def faulty(directory: Path, flags: tuple[str, ...], fault: str) -> ServerProcess:
    server = ServerProcess(flags, directory, {"PENSTOCK_FAULT": fault})
    server.wait_until_ready()
    return server


@linux_only
@pytest.mark.parametrize("point", [*BASE_POINTS, "snapshot-synced"])
def test_the_child_of_a_killed_server_replaces_no_file_that_the_next_one_saved(tmp_path: Path, point: str) -> None:
    server = faulty(tmp_path, SAVES, f"{point}:stop@1")
    client = redis.Redis(port=server.port)
    client.set("a", "old")
    client.bgsave()
    child = stopped_child(server)
    server.kill()

    with running_server(*SAVES, dir=tmp_path) as second:
        client = redis.Redis(port=second.port)
        client.set("a", "new")
        assert client.save() is True
        go_on(child)
        until_in(child, "")
        second.kill()
    with running_server(*SAVES, dir=tmp_path) as third:
        assert redis.Redis(port=third.port).get("a") == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dump.rdb.lock", "dump.rdb"]


@linux_only
@pytest.mark.parametrize("point", ["base-written", "snapshot-synced"])
def test_while_an_orphan_may_replace_the_file_no_save_is_confirmed(tmp_path: Path, point: str) -> None:
    words = [sys.executable, "-c", IN_A_THREAD, str(tmp_path)]
    environment = os.environ | {VARIABLE: f"{point}:stop@1"}
    root = Path(__file__).parents[2]
    with subprocess.Popen(words, cwd=root, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the line for a person
        child = int(process.stdout.readline())
        until_in(child, "T")
        process.kill()

    with running_server(*SAVES, dir=tmp_path) as second:
        client = redis.Redis(port=second.port)
        client.set("a", "new")
        with pytest.raises(redis.ResponseError):
            client.save()
        go_on(child)
        until_in(child, "")
        assert client.save() is True
    with running_server(*SAVES, dir=tmp_path) as third:
        assert redis.Redis(port=third.port).get("a") == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".dump.rdb.lock", "dump.rdb"]


def go_on(pid: int) -> None:
    if state_of(pid):
        os.kill(pid, signal.SIGCONT)


@linux_only
@pytest.mark.parametrize("point", BASE_POINTS)
def test_the_child_that_rewrites_the_log_ends_with_its_server(tmp_path: Path, point: str) -> None:
    server = faulty(tmp_path, LOG, f"{point}:stop@1")
    client = redis.Redis(port=server.port)
    client.set("a", "1")
    client.bgrewriteaof()
    child = stopped_child(server)

    server.kill()

    until_in(child, "")
    with running_server(*LOG, dir=tmp_path) as second:
        assert redis.Redis(port=second.port).get("a") == b"1"
        assert not list(tmp_path.glob("**/temp-*"))


@linux_only
@pytest.mark.parametrize("diskless", ["yes", "no"])
def test_the_child_that_writes_for_a_replica_ends_with_its_server(tmp_path: Path, diskless: str) -> None:
    flags = (
        *SAVES,
        "--enable-debug-command",
        "yes",
        "--repl-diskless-sync",
        diskless,
        "--repl-diskless-sync-delay",
        "0",
    )
    with running_server(*flags, dir=tmp_path, environment={"PENSTOCK_FAULT": "base-synced:stop@1"}) as server:
        redis.Redis(port=server.port).execute_command("DEBUG", "POPULATE", "100000", "k", "100")
        with socket.create_connection(("127.0.0.1", server.port)) as replica:  # it reads nothing
            replica.sendall(b"REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n")
            child = child_of(server)
            server.kill()

            until_in(child, "")
    with running_server(*SAVES, dir=tmp_path):
        assert not list(tmp_path.glob("temp-*"))
