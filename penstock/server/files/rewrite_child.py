"""The child process that writes a new base file while the server goes on: a fork has the keyspace as it was.

It reports progress and errors through a pipe, which the server reads at each `poll`.
"""

import errno
import gc
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.clock import SystemClock
from penstock.config.settings import Settings
from penstock.engine.aof import base_file
from penstock.engine.aof.rewrite_progress import PACKED_BYTES, Progress, unpacked
from penstock.engine.rdb import key_delay
from penstock.errors import UsageError
from penstock.server.files.parent import Parent, ServerEndedError
from penstock.storage.aof.disk import Disk, File
from penstock.storage.aof.log_directory import TEMPORARY_BASE, write_all
from penstock.storage.keyspace import Keyspace

SYNC_BYTES: Final = 4 * 1024 * 1024  # the base is synced as it goes, so that no sync is long
HIGHEST_FD: Final = 1 << 20
LONGEST_REASON: Final = 4096  # bytes
PIPE_BYTES: Final = 65536
# Of the child: a tenth of the server's share if both want one processor. SCHED_IDLE would yield more; but while other
# programs keep all processors busy, the base would never be written, and the log would grow without end.
NICENESS: Final = 10

# A message in the pipe is a letter and a Progress, or a letter and the error's text up to the end.
HOW_FAR: Final = b"p"
FAILURE: Final = b"f"

REPORT_EVERY_US: Final = 100_000
MEASURE_EVERY_US: Final = 1_000_000  # expensive: the kernel goes through all pages of the child

# Named moments in the child, for fault injection (Disk.reach)
BASE_STARTED: Final = "base-started"
BASE_WRITTEN: Final = "base-written"
BASE_SYNCED: Final = "base-synced"


class RewriteChild:
    """Starts, polls and kills one child at a time. `progress` is the last report, of this child or the one before."""

    __slots__ = ("_came", "_pipe", "disk", "kept", "keyspace", "pid", "progress", "settings")

    def __init__(self, disk: Disk, keyspace: Keyspace, settings: Settings) -> None:
        self.disk = disk
        self.keyspace = keyspace
        self.settings = settings
        self.pid = 0
        self.progress = Progress()
        self.kept: tuple[int, ...] = ()  # descriptors that the child needs, besides the pipe
        self._pipe = -1
        self._came = b""  # received through the pipe, not parsed yet

    def start(self, directory: str, now_ms: int) -> None:
        """Fork the child, which writes the file of `path_of`. OSError if there can be none."""
        reading, writing = os.pipe()
        parent = Parent()
        try:
            pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if pid == 0:
            self._be_the_child(self.path_of(directory, os.getpid()), now_ms, parent, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        self.pid = pid
        self.progress = Progress()
        self._pipe = reading
        self._came = b""

    def poll(self) -> str | None:
        """None while the child runs; then what went wrong, or "" for a base that is written and synced."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return self._end(None)
        if pid:
            return self._end(status)
        self._listen()
        return None

    def kill(self) -> None:
        """Stop the child, and wait for its end."""
        status: int | None = None
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
        self._end(status)

    def _listen(self) -> None:
        """Read the child's reports since the last call."""
        try:
            self._came += os.read(self._pipe, PIPE_BYTES)
        except BlockingIOError:
            return
        size = 1 + PACKED_BYTES
        while self._came.startswith(HOW_FAR) and len(self._came) >= size:
            self.progress = unpacked(self._came[1:size])
            self._came = self._came[size:]

    def _end(self, status: int | None) -> str:
        """status: as waitpid has it; None where something else in this process has taken note of the child's end."""
        self.pid = 0
        self._listen()
        os.close(self._pipe)
        if status is None:
            return "it is not known how its process ended (another part of this process waits for all children)"
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        if self._came.startswith(FAILURE):
            return self._came[1:].decode("utf-8", "replace")
        return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}"

    # -- writing ----------------------------------------------------------------------------------------------------

    def path_of(self, directory: str, pid: int) -> str:
        """The file that the child of a pid writes."""
        return f"{directory}/{TEMPORARY_BASE}{pid}.aof"

    def chunks(self, now_ms: int, progress: Progress) -> Iterator[bytes]:
        """The file's bytes; `progress` counts what is done."""
        return base_file.chunks(self.keyspace, self.settings, now_ms, progress)

    def finish(self, path: str) -> None:
        """The file is written and synced; the server puts it in force."""

    # -- in the child -----------------------------------------------------------------------------------------------

    def _be_the_child(self, path: str, now_ms: int, parent: Parent, pipe: int) -> None:
        """Write the base and exit. The parent's loop, sockets and exit handlers must not be touched."""
        code = 1
        try:
            parent.bind()
            gc.disable()  # a collection would write to, and so copy, every shared page
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            close_all_but(pipe, *self.kept)  # or connections and the lock would outlive the parent's
            os.set_blocking(pipe, False)
            os.nice(NICENESS)
            self._write(path, now_ms, Reporter(pipe, parent))
            code = 0
        except ServerEndedError:
            with suppress(OSError):  # none was made yet
                self.disk.remove(path)
        except OSError as failure:
            say(pipe, FAILURE + f"{failure.strerror} ({path})".encode()[:LONGEST_REASON])
        except UsageError as refusal:
            say(pipe, FAILURE + str(refusal).encode()[:LONGEST_REASON])
        except BaseException as failure:
            say(pipe, FAILURE + repr(failure).encode()[:LONGEST_REASON])
        finally:
            os._exit(code)

    def _write(self, path: str, now_ms: int, reporter: "Reporter") -> None:
        disk = self.disk
        file = created(disk, path)
        disk.reach(BASE_STARTED)
        progress = reporter.progress
        progress.expect(self.keyspace)
        unsynced = 0
        chunks = self.chunks(now_ms, progress)
        for chunk in key_delay.delayed(chunks, progress, self.settings, SystemClock().sleep):
            write_all(file, chunk)
            progress.written += len(chunk)
            unsynced += len(chunk)
            if unsynced >= SYNC_BYTES and self.settings.yes("aof-rewrite-incremental-fsync"):
                file.sync()
                unsynced = 0
            reporter.report()
        self._end_file(file)
        reporter.parent.check()
        self.finish(path)
        reporter.report(at_end=True)

    def _end_file(self, file: File) -> None:
        self.disk.reach(BASE_WRITTEN)
        file.sync()
        self.disk.reach(BASE_SYNCED)


class Reporter:
    """Reports the child's progress to its parent through the pipe, at most ten times a second."""

    __slots__ = ("_clock", "_measured_us", "_pipe", "_reported_us", "parent", "progress")

    def __init__(self, pipe: int, parent: Parent) -> None:
        self.progress = Progress()
        self.parent = parent
        self._pipe = pipe
        self._clock = SystemClock()
        self._reported_us = self._measured_us = 0

    def report(self, at_end: bool = False) -> None:
        """To be called after each piece that was written. ServerEndedError if the server has ended."""
        self.parent.check()
        now_us = self._clock.monotonic_us()
        if not at_end and 0 <= now_us - self._reported_us < REPORT_EVERY_US:
            return
        self._reported_us = now_us
        if at_end or not 0 <= now_us - self._measured_us < MEASURE_EVERY_US:
            self._measured_us = now_us
            self.progress.copied = private_bytes()
        say(self._pipe, HOW_FAR + self.progress.packed())


def created(disk: Disk, path: str) -> File:
    """A new file, locked while it is written: one that is not locked was left by a process that was killed."""
    file = disk.lock(path)
    if file is None:
        raise OSError(errno.EBUSY, "another process writes it", path)
    file.truncate(0)
    return file


def close_all_but(*kept: int) -> None:
    """Close every descriptor but these and the standard ones."""
    low = 3
    for one in sorted(kept):
        os.closerange(low, one)
        low = one + 1
    os.closerange(low, HIGHEST_FD)


def say(pipe: int, message: bytes) -> None:
    """Send a message; if the pipe is full it is dropped, and the server gets a later one."""
    try:
        os.write(pipe, message)
    except BlockingIOError:
        return


def private_bytes() -> int:
    """Bytes of this process's private, modified memory; 0 if the system does not say."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_Dirty:"))
