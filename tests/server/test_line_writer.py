"""A reader that stops reading the server's log, of a pipe or a terminal, does not stop the server."""

import fcntl
import os
import pty
import random
import re
import resource
import select
import socket
import subprocess
import sys
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.server.line_writer import LineWriter
from tests.support.seeds import seeds
from tests.support.server_process import START_S

MISSING = re.compile(rb"(\d+) lines are missing")
LOOKS, LOOK_S = 6000, 0.01
CONNECTIONS = 800  # two lines each: more than a pipe or a terminal holds


def missing(lines: int) -> str:
    return f"{lines} lines are missing\n"


def available(fd: int, most: int, wait_s: float = 0) -> bytes:
    """What a reader takes at once, at most so much."""
    return os.read(fd, most) if select.select([fd], [], [], wait_s)[0] else b""


def read_until(fd: int, words: bytes, again: Callable[[], object]) -> bytes:
    """What is read until these words come; `again` is called before each look: a terminal makes room a little later."""
    got = b""
    for _ in range(LOOKS):
        again()
        got += available(fd, 1 << 20, LOOK_S)
        if words in got and got.endswith(b"\n"):
            return got
    raise AssertionError(f"{words!r} does not come")


def ends(kind: str) -> tuple[int, int]:
    """The end that is read and the end that is written."""
    if kind == "pipe":
        return os.pipe()
    reads, writes = pty.openpty()
    tty.setraw(writes)  # no line end is changed
    return reads, writes


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
@pytest.mark.parametrize("seed", seeds(3, 40))
def test_each_line_is_read_whole_and_in_order_or_is_counted_where_it_is_missing(seed: int, kind: str) -> None:
    chance = random.Random(seed)
    reads, writes = ends(kind)
    writer, got = LineWriter(missing), b""
    numbers = iter(range(100_000))
    with os.fdopen(writes, "w") as stream:
        for _ in range(60):
            for _ in range(chance.randrange(60)):
                writer.say(stream, f"{next(numbers)} {'x' * chance.choice([0, 100, 5000])}\n")
            got += available(reads, chance.choice([1, 10_000, 100_000]))
        got += read_until(reads, b" end", lambda: writer.say(stream, f"{next(numbers)} end\n"))
    os.close(reads)

    expected = 0
    for line in got.splitlines():
        found = MISSING.match(line)
        expected += int(found[1]) if found else 1
        assert found or re.fullmatch(b"%d (x*|end)" % (expected - 1), line), line[:40]
    assert MISSING.search(got)


def test_a_file_that_cannot_be_written_gets_the_number_of_its_missing_lines(tmp_path: Path) -> None:
    writer, path = LineWriter(missing), tmp_path / "folder" / "log"
    writer.append(str(path), "a\nb\n")
    path.parent.mkdir()
    writer.append(str(path), "c\n")

    assert path.read_text() == "2 lines are missing\nc\n"


def test_a_descriptor_that_select_does_not_take_is_written_to() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    reads, writes = os.pipe()
    high = fcntl.fcntl(writes, fcntl.F_DUPFD, 1500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(writes)
    with os.fdopen(high, "w") as stream:
        LineWriter(missing).say(stream, "a\n")

    assert available(reads, 10) == b"a\n"
    os.close(reads)


@pytest.mark.parametrize("kind", ["pipe", "terminal"])
@pytest.mark.parametrize("logfile", ["", "/dev/stdout"])
def test_a_server_whose_log_is_not_read_goes_on_serving(kind: str, logfile: str, tmp_path: Path) -> None:
    reads, writes = ends(kind)
    flags = ["--port", "0", "--unixsocket", "s", "--dir", str(tmp_path), "--save", "", "--loglevel", "verbose"]
    command = [sys.executable, "-m", "penstock", "serve", *flags, "--logfile", logfile]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, cwd=tmp_path, stdout=writes, stderr=writes, env=environment) as process:
        os.close(writes)
        try:
            read_until(reads, b"Ready to accept", bool)
            for _ in range(CONNECTIONS):
                assert ask(tmp_path / "s") == b"+PONG\r\n"
            read_until(reads, b"lines are missing", lambda: ask(tmp_path / "s"))
        finally:
            process.kill()
            os.close(reads)


def ask(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(START_S)
        link.connect(os.path.relpath(path))
        link.sendall(b"PING\r\n")
        return link.recv(100)
