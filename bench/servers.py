"""The servers that are measured: Penstock, plain and compiled, Redis, Valkey and fakeredis's TCP server."""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.link import Link

ROOT: Final = Path(__file__).parent.parent
START_S: Final = 30.0
END_S: Final = 30.0
LOOK_EVERY_S: Final = 0.05
QUIET: Final = ("--save", "")

PLAIN, COMPILED, REDIS, VALKEY, FAKE = NAMES = ("plain", "compiled", "redis", "valkey", "fakeredis")
OURS: Final = (PLAIN, COMPILED)
PEERS: Final = (REDIS, VALKEY)


@dataclass(frozen=True, slots=True)
class Pythons:
    """Which Python runs the plain source and fakeredis, and which has a compiled wheel (`make bench` makes one)."""

    plain: Path = Path(sys.executable)
    compiled: Path = ROOT / "build/compiled/bin/python"


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. `slowness` divides the number of commands that it is given."""

    name: str
    port: int
    pid: int
    slowness: int


class Absent(Exception):
    """A server that cannot be started here; the text says why."""


def command(name: str, port: int, directory: Path, pythons: Pythons) -> list[str]:
    """The words that start a server, or Absent."""
    listening = ["--port", str(port), "--dir", str(directory)]
    if name == PLAIN:
        return [str(pythons.plain), "-P", "-m", "penstock", "serve", *listening]
    if name == COMPILED:
        if not pythons.compiled.exists():
            raise Absent("no compiled build: `make bench` makes one")
        return [str(pythons.compiled), "-P", "-m", "penstock", "serve", *listening]
    if name == FAKE:
        return [str(pythons.plain), "-m", "bench.fakeserver", str(port)]
    found = subprocess.run(
        [sys.executable, ROOT / "tools/reference-server", name], stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode:
        raise Absent(f"no {name}: tools/reference-server could not fetch one")
    return [f"{found.stdout.strip()}/bin/{name}-server", *listening, *QUIET]


@contextmanager
def running(name: str, *flags: str, pythons: Pythons = Pythons()) -> Iterator[Server]:
    """A fresh server with its data in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder, Path(folder, "said").open("w+b") as said:
        port = free_port()
        words = command(name, port, Path(folder), pythons)
        if name != FAKE:
            words += flags
        process = subprocess.Popen(
            words, cwd=ROOT if name in (PLAIN, FAKE) else folder, env=environment(name), stdout=said, stderr=said
        )
        try:
            wait_until_ready(process, port, Path(said.name), words)
            if name in OURS:
                check_build(name, port)
            yield Server(name, port, process.pid, 40 if name == FAKE else 1)
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment(name: str) -> dict[str, str]:
    if name in (PLAIN, FAKE):
        return os.environ | {"PYTHONPATH": str(ROOT)}
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(process: subprocess.Popen[bytes], port: int, said: Path, words: list[str]) -> None:
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            with Link(port) as link:
                if link.ask(b"PING") == b"PONG":
                    return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise Absent(f"{shlex.join(words[:4])} does not start: {said.read_text(errors='replace')[-500:]}")
        time.sleep(LOOK_EVERY_S)


def check_build(name: str, port: int) -> None:
    """A compiled server that runs plain source would be a lie in the table."""
    with Link(port) as link:
        told = link.ask(b"INFO", b"server")
    assert isinstance(told, bytes)
    build = b"penstock_build:compiled" if name == COMPILED else b"penstock_build:python"
    assert build in told, f"the server called {name} says otherwise:\n{told.decode()}"
