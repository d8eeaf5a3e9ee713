"""The order of a real process's system calls, as strace sees them: written, synced, answered."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.loaders import linked
from tests.support.server_process import running_server

CALLS = "write,writev,sendto,sendmsg,fdatasync,fsync"
ATTACH_S = 20.0

# A line of `strace -f -y`: pid, call(fd<what it is>, ...
LINE = re.compile(r"^(?:\d+ +)?(\w+)\(\d+<([^>]*)>?.*= (-?\d+)")


class Tracing:
    """An strace of a process that runs already."""

    def __init__(self, pid: int, output: Path) -> None:
        self._output = output
        self._process = subprocess.Popen(
            ["strace", "-f", "-y", "-s", "16", "-e", f"trace={CALLS}", "-o", str(output), "-p", str(pid)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        if "attached" not in said:
            self._process.kill()
            self._process.wait()
            pytest.skip(f"strace cannot attach here: {said.strip()}")

    def steps(self) -> list[str]:
        """What was done so far, one word a call: written, synced, answered."""
        self._process.terminate()
        self._process.wait(ATTACH_S)
        words = [word_of(line) for line in self._output.read_text(errors="replace").splitlines()]
        return [word for word in words if word]


def word_of(line: str) -> str:
    found = LINE.match(line)
    if found is None or found[3].startswith("-"):
        return ""
    call, target = found[1], found[2]
    if call in ("fdatasync", "fsync"):
        return "synced" if "incr.aof" in target else ""
    if "incr.aof" in target:
        return "written"
    return "answered" if target.startswith(("socket", "TCP")) else ""


@pytest.fixture
def trace(tmp_path: Path) -> Callable[[int], Tracing]:
    if shutil.which("strace") is None:
        pytest.skip("there is no strace here")
    return lambda pid: Tracing(pid, tmp_path / "calls")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_with_always_the_log_is_written_and_synced_before_the_reply(trace: Callable[[int], Tracing], loop: str) -> None:
    environment = {"PENSTOCK_LOOP": loop}
    with running_server("--appendfsync", "always", environment=environment) as server, linked(server.port) as link:
        link.ask(b"PING")
        tracing = trace(server.pid)
        replies = [link.ask(b"XADD", b"s", b"%d-1" % number, b"f", b"v") for number in range(1, 11)]
        link.ask(b"PING")  # a reply may be here before strace has noted its call; this one is not looked at
        steps = tracing.steps()

    assert replies == [b"%d-1" % number for number in range(1, 11)]
    assert steps[:30] == ["written", "synced", "answered"] * 10
    assert "written" not in steps[30:]


REPLACE = """\
import sys
from pathlib import Path
from penstock.config import whole_file
whole_file.replace(Path(sys.argv[1]), b"content", 0o644)
"""


def test_a_small_file_is_synced_before_it_replaces_another_and_its_directory_afterwards(tmp_path: Path) -> None:
    folder, output = tmp_path / "data", tmp_path / "calls"
    folder.mkdir()
    words = ["strace", "-y", "-e", "trace=fsync,rename,renameat,renameat2", "-o", str(output)]
    if shutil.which("strace") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("strace does not work here")
    subprocess.run([*words, sys.executable, "-c", REPLACE, str(folder / "users.acl")], check=True)

    calls = [line.partition("(")[0] for line in output.read_text().splitlines() if str(folder) in line]
    assert calls in (["fsync", "rename", "fsync"], ["fsync", "renameat", "fsync"])


def test_with_always_the_clients_of_one_turn_share_its_sync(trace: Callable[[int], Tracing]) -> None:
    with (
        running_server("--appendfsync", "always", environment={"PENSTOCK_FAULT": "sync:sleep20ms"}) as server,
        linked(server.port) as one,
        linked(server.port) as two,
        linked(server.port) as three,
    ):
        tracing = trace(server.pid)
        one.send([[b"INCR", b"n"]])
        two.send([[b"INCR", b"n"]] * 50)
        three.send([[b"INCR", b"n"]] * 50)
        replies = [one.reply()] + [link.reply() for link in (two, three) for _ in range(50)]
        steps = tracing.steps()

    assert sorted(map(int, map(str, replies))) == list(range(1, 102))
    assert steps.count("synced") == steps.count("written") <= 6
    assert steps[:2] == ["written", "synced"]
