"""The judge of all fuzzers: a server process under attack, and what it may not do whatever it is sent.

It may not die, keep another client waiting for more than `patience_s`, meet an error of its own ("Traceback" in its
log) or use more memory than `most_memory` beyond what it had at the start.
"""

import os
import re
import select
import time
from pathlib import Path
from typing import Final

from tests.support.server_process import ServerProcess
from tests.support.wire import Closed, Connection, Value

MEGABYTE: Final = 1 << 20
PATIENCE_S: Final = 2.0
FORBEARANCE: Final = 8
INTERNAL: Final = ("Traceback", "unexpected error", "nternal error")


class Failure(Exception):
    """The server did what no client may make it do; the text says what."""


class Stopwatch:
    """How long a process has been at something: the time it had a processor, for the machine may have other work.

    A process that waits uses none, so FORBEARANCE times as long by the wall counts, too.
    """

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._wall_s = time.monotonic()
        self._cpu_s = self._used_s()

    def seconds(self) -> float:
        passed_s = time.monotonic() - self._wall_s
        return max(passed_s / FORBEARANCE, min(passed_s, self._used_s() - self._cpu_s))

    def _used_s(self) -> float:
        try:
            fields = self._stat.read_text().rpartition(")")[2].split()
        except OSError:  # no Linux, or no process any more
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Judge:
    """Watches one server by a client of its own, `asked`."""

    def __init__(self, server: ServerProcess, patience_s: float, most_memory: int) -> None:
        self.server = server
        self.patience_s = patience_s
        self._most_memory = most_memory
        self._watcher = Connection("127.0.0.1", server.port, patience_s * FORBEARANCE)
        self._read_lines = 0
        self.base_memory = self.memory()
        self.peak_memory = self.base_memory

    def asked(self, *words: bytes | str) -> Value:
        """The watcher's answer. Failure if it does not come in time."""
        waits = Stopwatch(self.server.pid)
        try:
            answer = self._watcher.ask(*words)
        except TimeoutError:
            raise Failure(f"another client is not answered at all: {words[0]!r:.40}") from None
        except Closed:
            raise self.ended("another client's connection was closed") from None
        if waits.seconds() > self.patience_s:
            raise Failure(f"another client was not answered within {self.patience_s} s")
        return answer

    def ended(self, otherwise: str) -> Failure:
        """What a closed connection means: the process may have died of it."""
        ends = time.monotonic() + self.patience_s
        while self.server.is_alive and time.monotonic() < ends:
            select.select([], [], [], 0.05)
        if self.server.is_alive:
            return Failure(otherwise)
        said = " | ".join(self.server.lines[-4:])[-400:]
        return Failure(f"the process died, exit code {self.server.wait()}: {said}")

    def look(self) -> None:
        """Failure if the memory's bound was passed, or the server met an error of its own."""
        used = self.memory()
        self.peak_memory = max(self.peak_memory, used)
        if used - self.base_memory > self._most_memory:
            grown, base = (used - self.base_memory) // MEGABYTE, self.base_memory // MEGABYTE
            raise Failure(f"{grown} MB at most were used, beyond {base} MB at the start")
        self.look_at_log()

    def look_at_log(self) -> None:
        """Failure if the server met an error of its own."""
        lines = self.server.lines[self._read_lines :]
        self._read_lines += len(lines)
        if any(word in line for line in lines for word in INTERNAL):
            raise Failure("an internal error: " + " | ".join(lines)[-1500:])

    def memory(self) -> int:
        """The most memory that the process ever used, in bytes; 0 where the system does not tell."""
        try:
            status = Path(f"/proc/{self.server.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def close(self) -> None:
        self._watcher.close()
