"""`penstock cluster` as a command: what it says, what ends it, what it refuses, what the next start finds."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster

from penstock.launching.cluster_command import main
from tests.support.deployments import until
from tests.support.reference_server import LOCALHOST

ROOT = Path(__file__).parents[2]


class Command:
    """A run of `penstock cluster`, at a free base port."""

    running: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, folder: Path, *words: str, nodes: int = 2) -> None:
        self.port = base_port(nodes)
        command = [sys.executable, "-m", "penstock", "cluster", str(nodes), "--port", str(self.port)]
        command += ["--dir", str(folder)]
        self.process = subprocess.Popen(
            [*command, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.running.append(self.process)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_until_said(self, text: str) -> None:
        until(lambda: any(text in line for line in self.lines), f"{text!r} is not said")

    def client(self) -> RedisCluster:
        places = [ClusterNode(LOCALHOST, port) for port in (self.port, self.port + 1)]
        return RedisCluster(startup_nodes=places, decode_responses=True)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(60)
        return code


@pytest.fixture(autouse=True)
def _end_all() -> Iterator[None]:
    """Nodes end with their launcher, also after a test that fails."""
    yield
    while Command.running:
        process = Command.running.pop()
        process.kill()
        process.wait()


def base_port(count: int) -> int:
    """A port with free ones behind it, below those that the system gives to other tests meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)
        if all(is_free(port + at) for at in range(count)):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOCALHOST, port)) != 0


def ends(pid: int) -> bool:
    """Whether a process is there no more."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_signal_ends_all_as_one_and_the_next_start_finds_the_same_cluster(tmp_path: Path) -> None:
    first = Command(tmp_path / "data")
    first.wait_until_said("The cluster is ready: redis-cli -c -p")
    client = first.client()
    assert all(client.set(f"key:{at}", at) for at in range(50))
    own = redis.Redis(LOCALHOST, first.port).execute_command("CLUSTER", "MYID")
    redis.Redis(LOCALHOST, first.port).execute_command("CLUSTER", "DELSLOTS", 7)
    redis.Redis(LOCALHOST, first.port + 1).execute_command("CLUSTER", "ADDSLOTS", 7)
    assert first.end(signal.SIGINT) == 0
    assert first.lines[-1] == "The cluster has ended"
    assert first.lines[0] == f"node 1  127.0.0.1:{first.port}  slots 0-8191  {tmp_path}/data/node-1"

    second = Command(tmp_path / "data")
    second.wait_until_said("The cluster is ready")
    client = second.client()
    assert [client.get(f"key:{at}") for at in range(50)] == [str(at) for at in range(50)]
    assert redis.Redis(LOCALHOST, second.port).execute_command("CLUSTER", "MYID") == own
    assert second.lines[1].split("  ")[2] == "slots 7 8192-16383"
    assert second.end(signal.SIGTERM) == 0
    assert second.lines[-1] == "The cluster has ended"


def test_a_killed_launcher_takes_its_nodes_with_it_and_a_second_one_waits_for_none(tmp_path: Path) -> None:
    first = Command(tmp_path)
    first.wait_until_said("The cluster is ready")
    pids = [int(redis.Redis(LOCALHOST, first.port + at).info("server")["process_id"]) for at in range(2)]
    second = Command(tmp_path)
    assert second.process.wait(60) == 1
    second.wait_until_said("another `penstock cluster` uses")

    first.end(signal.SIGKILL)

    until(lambda: all(ends(pid) for pid in pids), "the nodes go on")


def test_nodes_of_a_killed_launcher_save_what_only_their_files_will_have(tmp_path: Path) -> None:
    words = ("--", "--appendonly", "no", "--save", "3600", "1")
    first = Command(tmp_path, *words)
    first.wait_until_said("The cluster is ready")
    assert first.client().set("a", "b")
    pids = [int(redis.Redis(LOCALHOST, first.port + at).info("server")["process_id"]) for at in range(2)]
    first.end(signal.SIGKILL)
    until(lambda: all(ends(pid) for pid in pids), "the nodes go on")

    second = Command(tmp_path, *words)
    second.wait_until_said("The cluster is ready")
    assert second.client().get("a") == "b"
    assert second.end(signal.SIGTERM) == 0


def test_a_killed_node_is_started_again(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.wait_until_said("The cluster is ready")
    os.kill(int(redis.Redis(LOCALHOST, command.port).info("server")["process_id"]), signal.SIGKILL)
    command.wait_until_said(f"node 1 (127.0.0.1:{command.port}) has ended (signal 9) and is started again")
    command.wait_until_said(f"node 1 (127.0.0.1:{command.port}) is ready again")
    assert command.client().set("a", "b")
    assert command.end(signal.SIGINT) == 0


def test_a_node_that_cannot_start_ends_all_and_shows_the_log_of_this_start(tmp_path: Path) -> None:
    (tmp_path / "two/node-1").mkdir(parents=True)
    (tmp_path / "two/node-1/server.log").write_text("a line of a former run\n")
    taken = Command(tmp_path / "one")
    taken.wait_until_said("The cluster is ready")
    other = Command(tmp_path / "two", "--port", str(taken.port))

    assert other.process.wait(60) == 1
    other.wait_until_said("does not start, exit code 1")
    other.wait_until_said("cannot listen on")
    assert "a line of a former run" not in other.lines
    assert taken.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["2", "--", "--port", "7"], "port is not one that all nodes can have"),
        (["2", "--", "--replicaof", "a", "1"], "replicaof is not one that all nodes can have"),
        (["2", "--", "--nonsense", "x"], "nonsense"),
        (["2", "--", "redis.conf"], "behind -- come directives"),
        (["2", "--port", "55535"], "ports 55535 to 55536 are not between 1 and 55535"),
        (["2", "--replicas", "1", "--port", "0"], "ports 0 to 3 are not between 1 and 55535"),
    ],
    ids=["port", "replicaof", "unknown", "file", "high", "zero"],
)
def test_what_cannot_be_started_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], sentence: str
) -> None:
    assert main([words[0], "--dir", str(tmp_path), *words[1:]]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["0"], "argument N: at least one node"),
        (["x"], "argument N: a number of nodes was expected, not 'x'"),
        ([], "the following arguments are required: N\n"),
        (["1", "--replicas", "2"], "argument --replicas: invalid choice: 2"),
        (["1", "redis.conf"], "unrecognized arguments: redis.conf"),
    ],
    ids=["none", "text", "missing", "two", "a word"],
)
def test_wrong_words_are_explained(capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err.replace("choice: '2'", "choice: 2")  # newer Pythons quote it
    assert said.startswith("usage: penstock cluster") and sentence in said


def test_a_folder_keeps_the_number_of_its_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = Command(tmp_path)
    command.wait_until_said("The cluster is ready")
    command.end(signal.SIGTERM)

    assert main(["3", "--dir", str(tmp_path)]) == 1
    assert "has 2 masters and 0 replicas: start as many, or choose another folder (--dir)" in capsys.readouterr().err
    (tmp_path / "cluster.map").write_text("nonsense\n")
    assert main(["2", "--dir", str(tmp_path)]) == 1
    assert "cannot use" in capsys.readouterr().err
