"""The servers that are measured: how each is started, asked, and what its process has used.

Penstock runs as `plain` (this source), `core` and `compiled` (what `make bench` builds); `--builds` names others. Redis
and Valkey come from tools/reference-server. `python -m bench.servers PORT` is fakeredis's TCP server.
"""

import os
import resource
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import hiredis

Request = tuple[bytes, ...]

ROOT: Final = Path(__file__).parent.parent
LOCALHOST: Final = "127.0.0.1"
START_S: Final = 60.0
END_S: Final = 30.0
REPLY_S: Final = 300.0
LOOK_EVERY_S: Final = 0.002
RECEIVE_BYTES: Final = 1 << 20
OPEN_FILES: Final = 21_000
PREPARED_AT_ONCE: Final = 1000
WITHOUT_LOG: Final = ("--appendonly", "no")
NO_RDB: Final = ("--save", "")
UNFINISHED: Final = object()

OF_PYTHON: Final = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
PLAIN, CORE, COMPILED, REDIS, VALKEY, FAKE = NAMES = ("plain", "core", "compiled", "redis", "valkey", "fakeredis")
OURS: Final = {PLAIN: "python", CORE: "core", COMPILED: "compiled"}  # and what INFO calls the build
CORE_FOLDER: Final = ROOT / "build/core"
PEERS: Final = (REDIS, VALKEY)
FAKE_SLOWNESS: Final = 40


class Absent(Exception):
    """A server or library that is not there; the text says why."""


class Refused(Exception):
    """A server answered a request with an error."""


# -- what can be started ----------------------------------------------------------------------------------------------

FAULTS: Final = "PENSTOCK_FAULT"  # the environment variable of tests/crash/faulty_disk.py
FAULTY_DISK: Final = ROOT / "tests/crash/faulty_disk.py"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that can be started.

    A Penstock has a `python`, and a `source` folder where it does not run the package installed for that Python.
    """

    name: str
    python: Path | None = None
    source: Path | None = None

    @property
    def is_penstock(self) -> bool:
        return self.python is not None and self.name != FAKE

    def command(self, port: int, directory: Path, faulty: bool = False) -> list[str]:
        """The words that start it, or Absent. faulty: a Penstock with the disk faults that PENSTOCK_FAULT lists."""
        if self.name == FAKE:
            return [str(self.python), "-m", "bench.servers", str(port)]
        listening = ["--port", str(port), "--dir", str(directory)]
        if self.python is not None:
            for needed in filter(None, (self.python, self.source)):
                if not needed.exists():
                    raise Absent(f"no {self.name} build at {needed}: `make bench` makes it")
            program = [str(FAULTY_DISK)] if faulty else ["-m", "penstock", "serve"]
            return [str(self.python), "-P", *program, *listening]
        tool = [sys.executable, str(ROOT / "tools/reference-server"), self.name]
        found = subprocess.run(tool, stdout=subprocess.PIPE, text=True, check=False)
        if found.returncode:
            raise Absent(f"no {self.name}: tools/reference-server could not fetch one")
        return [f"{found.stdout.strip()}/bin/{self.name}-server", *listening, *NO_RDB]

    def environment(self) -> dict[str, str]:
        """PYTHONPATH names the source folder, or is absent. Python keeps its bytecode, as for a user."""
        inherited = {name: value for name, value in os.environ.items() if name not in OF_PYTHON}
        return inherited | ({"PYTHONPATH": str(self.source)} if self.source else {})


def usual(name: str, python: Path, compiled_python: Path) -> Candidate:
    """One of NAMES; Absent for another name."""
    if name not in NAMES:
        raise Absent(f"no server is called {name!r}: there are {', '.join(NAMES)}")
    if name in (PLAIN, CORE, FAKE):
        return Candidate(name, python, CORE_FOLDER if name == CORE else ROOT)
    return Candidate(name, compiled_python if name == COMPILED else None)


def build(name: str, path: Path, python: Path) -> Candidate:
    """A Penstock by its path: a checkout (run by `python`), a virtual environment, or a Python; else Absent."""
    path = path.absolute()
    if (path / "penstock").is_dir():
        return Candidate(name, python, path)
    if (path / "bin/python").exists():
        return Candidate(name, path / "bin/python")
    if path.is_file():
        return Candidate(name, path)
    raise Absent(f"{path} is no checkout of Penstock, no virtual environment and no Python")


# -- running ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. `slowness` divides the number of requests that it is given.

    user: the user of the measured requests, without a password; the default user if it is empty.
    """

    name: str
    port: int
    directory: Path
    process: subprocess.Popen[bytes]
    slowness: int = 1
    user: bytes = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running(
    candidate: Candidate,
    *flags: str,
    directory: Path | None = None,
    variables: dict[str, str] | None = None,
    start_s: float = START_S,
) -> Iterator[Server]:
    """A fresh server, with its data in `directory` or in one that is deleted with it. Absent if it does not start."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{candidate.name}-") as folder:
        port = free_port()
        data = directory or Path(folder)
        words = candidate.command(port, data, faulty=FAULTS in (variables or {}))
        if candidate.name != FAKE:
            words += flags
        environment = candidate.environment() | (variables or {})
        with Path(folder, "output").open("w+b") as output:
            process = subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=output)
            try:
                wait_until_ready(process, port, start_s, Path(output.name), words)
                check_build(candidate.name, port)
                yield Server(candidate.name, port, data, process, FAKE_SLOWNESS if candidate.name == FAKE else 1)
            finally:
                process.terminate()
                wait_for_end(process)


def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Of a process that was asked to end; it is killed where it does not in END_S."""
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether a server accepts requests there: not while it loads its log."""
    try:
        with Link(port) as link:
            return link.ask(b"PING") == b"PONG"
    except OSError:
        return False


def wait_until_ready(
    process: subprocess.Popen[bytes], port: int, start_s: float, output: Path, words: Sequence[str]
) -> None:
    deadline_s = time.monotonic() + start_s
    while not answers(port):
        if process.poll() is not None or time.monotonic() > deadline_s:
            raise Absent(f"{shlex.join(words[:4])} does not start: {output.read_text(errors='replace')[-500:]}")
        time.sleep(LOOK_EVERY_S)


def check_build(name: str, port: int) -> None:
    """Refuse to call one of our builds another."""
    if name not in OURS:
        return
    told = information(port, b"server")["penstock_build"]
    assert told == OURS[name], f"the server called {name} is a {told} build"


# -- a client that costs little ---------------------------------------------------------------------------------------


def packed(requests: Iterable[Request]) -> bytes:
    """Requests as one pipeline."""
    return b"".join([hiredis.pack_command(request) for request in requests])  # type: ignore[arg-type]  # the stub wants one word


class Link:
    """One blocking connection; pipelines are packed beforehand, replies only parsed."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((LOCALHOST, port), REPLY_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader(notEnoughData=UNFINISHED)

    def replies(self, count: int) -> list[object]:
        """The next replies; ConnectionError if the server closes before them."""
        found: list[object] = []
        while len(found) < count:
            value = self._reader.gets()
            if value is UNFINISHED:
                received = self.socket.recv(RECEIVE_BYTES)
                if not received:
                    raise ConnectionError("the server closed the connection")
                self._reader.feed(received)
            else:
                found.append(value)
        return found

    def ask(self, *words: bytes) -> object:
        self.socket.sendall(packed([words]))
        return self.replies(1)[0]

    def deliver(self, requests: Sequence[Request]) -> list[object]:
        """The replies to a pipeline; Refused at the first error."""
        self.socket.sendall(packed(requests))
        replies = self.replies(len(requests))
        for reply in replies:
            if isinstance(reply, Exception):
                raise Refused(str(reply))
        return replies

    def prepare(self, requests: Iterable[Request]) -> None:
        """Send what a measurement needs to be there, a thousand requests at a time."""
        chunk: list[Request] = []
        for request in requests:
            chunk.append(request)
            if len(chunk) == PREPARED_AT_ONCE:
                self.deliver(chunk)
                chunk = []
        if chunk:
            self.deliver(chunk)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def information(port: int, section: bytes) -> dict[str, str]:
    """INFO, one section, as a dict."""
    with Link(port) as link:
        text = link.ask(b"INFO", section)
    assert isinstance(text, bytes), f"INFO answered {text!r}"
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


def percentiles(ages_s: Sequence[float]) -> tuple[float, float, float]:
    """The 50th, 99th and 99.9th in ms."""
    ordered = sorted(ages_s)
    p50, p99, p999 = (1000 * ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.99, 0.999))
    return p50, p99, p999


def of_better_peer(costs: Mapping[str, float], name: str) -> float:
    """What a server costs beside the cheaper of the peers; 0 if none of them ran."""
    peers = [costs[peer] for peer in PEERS if peer in costs]
    return costs[name] / min(peers) if peers else 0.0


# -- what a process has used ------------------------------------------------------------------------------------------

TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_FAULTS: Final = 7  # fields of /proc/PID/stat behind the name
CHILDREN_TIME: Final = (13, 14)


def stat_fields(pid: int) -> list[int]:
    """The numbers of /proc/PID/stat behind the name and the state; the state stands as 0."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [0, *(int(word) for word in words[1:])]


def children_ns(pid: int) -> int:
    """CPU time of a process's children that have ended, to the kernel's tick."""
    fields = stat_fields(pid)
    return TICK_NS * sum(fields[field] for field in CHILDREN_TIME)


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, to the nanosecond, and of its children that have ended."""
    own = time.clock_gettime_ns((~pid << 3) | 2)  # what clock_getcpuclockid(3) gives for a process
    return own + children_ns(pid)


def allow_open_files() -> None:
    """Let this process, and the servers that it starts, have as many connections as a part opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, OPEN_FILES) if hard == resource.RLIM_INFINITY else min(hard, max(soft, OPEN_FILES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def resident_bytes(pid: int) -> int:
    """How much of a process's memory is in the machine's."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def serve_fakeredis(port: int) -> None:
    from fakeredis import TcpFakeServer  # only this process needs it

    server = TcpFakeServer((LOCALHOST, port), server_type="redis", server_version=(8, 8))
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    serve_fakeredis(int(sys.argv[1]))
