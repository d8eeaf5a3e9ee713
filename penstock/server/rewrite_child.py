"""The child process that writes a fresh base while the server goes on: a fork has the keyspace as it was.

By a pipe it tells how far it is, and what went wrong. The server reads that when it looks after the child.
"""

import gc
import os
import signal
from pathlib import Path
from typing import Final

from penstock.clock import SystemClock
from penstock.config.settings import Settings
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.aof.rewrite_progress import PACKED_BYTES, Progress, unpacked
from penstock.storage.aof.disk import Disk, File
from penstock.storage.aof.log_directory import write_all
from penstock.storage.keyspace import Keyspace

SYNC_BYTES: Final = 4 * 1024 * 1024  # the base is synced as it goes, so that no sync is long
HIGHEST_FD: Final = 1 << 20
LONGEST_REASON: Final = 4096  # bytes
PIPE_BYTES: Final = 65536
# Of the child: a tenth of the server's share where both want one processor. SCHED_IDLE would give way at once; but
# where other programs keep all processors busy, the base would never be written and the log grow for ever.
NICENESS: Final = 10

# A message in the pipe: a letter, then a Progress, or the reason until the end.
HOW_FAR: Final = b"p"
FAILURE: Final = b"f"

REPORT_EVERY_US: Final = 100_000
MEASURE_EVERY_US: Final = 1_000_000  # the system walks all of the child's pages for it

# Named moments (Disk.reach), in the child
BASE_STARTED: Final = "base-started"
BASE_WRITTEN: Final = "base-written"
BASE_SYNCED: Final = "base-synced"


class RewriteChild:
    """One child at a time. It is told to stop by its pid only. `progress` is what it, or the last one, said last."""

    __slots__ = ("_came", "_pipe", "disk", "keyspace", "pid", "progress", "settings")

    def __init__(self, disk: Disk, keyspace: Keyspace, settings: Settings) -> None:
        self.disk = disk
        self.keyspace = keyspace
        self.settings = settings
        self.pid = 0
        self.progress = Progress()
        self._pipe = -1
        self._came = b""  # through the pipe, not read yet

    def start(self, directory: str, now_ms: int) -> None:
        """Fork the child, which writes `temporary`'s file in `directory`. OSError where there can be none."""
        reading, writing = os.pipe()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if pid == 0:
            self._be_the_child(f"{directory}/temp-rewriteaof-bg-{os.getpid()}.aof", now_ms, parent, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        self.pid = pid
        self.progress = Progress()
        self._pipe = reading
        self._came = b""

    def poll(self) -> str | None:
        """None while the child runs; then what went wrong, or "" for a base that is written and synced."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return self._end(status)
        self._listen()
        return None

    def kill(self) -> None:
        """Stop the child, and wait for its end."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self._end(status)

    def _listen(self) -> None:
        """Take in what the child has said since."""
        try:
            self._came += os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return
        size = 1 + PACKED_BYTES
        while self._came.startswith(HOW_FAR) and len(self._came) >= size:
            self.progress = unpacked(self._came[1:size])
            self._came = self._came[size:]

    def _end(self, status: int) -> str:
        self.pid = 0
        self._listen()
        os.close(self._pipe)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        if self._came.startswith(FAILURE):
            return self._came[1:].decode("utf-8", "replace")
        return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}"

    # -- in the child -----------------------------------------------------------------------------------------------

    def _be_the_child(self, path: str, now_ms: int, parent: int, pipe: int) -> None:
        """Write the base and leave. Nothing of the parent's may be touched: not its loop, sockets, exit handlers."""
        code = 1
        try:
            gc.disable()  # a collection would write to every page that is shared
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.closerange(3, pipe)  # clients that the parent hangs up on must see it, the lock must end with it
            os.closerange(pipe + 1, HIGHEST_FD)
            os.set_blocking(pipe, False)
            os.nice(NICENESS)
            self._write(path, now_ms, parent, Reporter(pipe))
            code = 0
        except OSError as failure:
            say(pipe, FAILURE + f"{failure.strerror} ({path})".encode()[:LONGEST_REASON])
        except BaseException as failure:
            say(pipe, FAILURE + repr(failure).encode()[:LONGEST_REASON])
        finally:
            os._exit(code)

    def _write(self, path: str, now_ms: int, parent: int, reporter: "Reporter") -> None:
        disk = self.disk
        file = disk.create(path)
        disk.reach(BASE_STARTED)
        progress = reporter.progress
        progress.expect(self.keyspace)
        unsynced = 0
        for chunk in base_lines(self.keyspace, self.settings, now_ms, progress=progress):
            write_all(file, chunk)
            progress.written += len(chunk)
            unsynced += len(chunk)
            if unsynced >= SYNC_BYTES and self.settings.yes("aof-rewrite-incremental-fsync"):
                file.sync()
                unsynced = 0
            if os.getppid() != parent:
                return  # nobody waits for this base any more
            reporter.report()
        self._end_file(file)
        reporter.report(at_end=True)

    def _end_file(self, file: File) -> None:
        self.disk.reach(BASE_WRITTEN)
        file.sync()
        self.disk.reach(BASE_SYNCED)


class Reporter:
    """Tells through the pipe how far the child is, not too often."""

    __slots__ = ("_clock", "_measured_us", "_pipe", "_reported_us", "progress")

    def __init__(self, pipe: int) -> None:
        self.progress = Progress()
        self._pipe = pipe
        self._clock = SystemClock()
        self._reported_us = self._measured_us = 0

    def report(self, at_end: bool = False) -> None:
        now_us = self._clock.now_us()
        if not at_end and 0 <= now_us - self._reported_us < REPORT_EVERY_US:
            return
        self._reported_us = now_us
        if at_end or not 0 <= now_us - self._measured_us < MEASURE_EVERY_US:
            self._measured_us = now_us
            self.progress.copied = private_bytes()
        say(self._pipe, HOW_FAR + self.progress.packed())


def say(pipe: int, message: bytes) -> None:
    """A message that finds the pipe full is left out: the server is behind, and will get a later one."""
    try:
        os.write(pipe, message)
    except BlockingIOError:
        return


def private_bytes() -> int:
    """The memory that this process shares with nobody and has to keep; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_Dirty:"))
