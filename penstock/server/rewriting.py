"""The child process that writes a fresh base while the server goes on: a fork has the keyspace as it was."""

import gc
import os
import signal
from typing import Final

from penstock.commands.rewrite import base_lines
from penstock.settings import Settings
from penstock.storage.disk import Disk
from penstock.storage.keyspace import Keyspace
from penstock.storage.logdirectory import write_all

SYNC_BYTES: Final = 4 * 1024 * 1024  # the base is synced as it goes, so that no sync is long
HIGHEST_FD: Final = 1 << 20
LONGEST_REASON: Final = 4096  # bytes

# Named moments (Disk.reach), in the child
BASE_STARTED: Final = "base-started"
BASE_WRITTEN: Final = "base-written"
BASE_SYNCED: Final = "base-synced"


class Rewriting:
    """One child at a time. It is told to stop by its pid only."""

    __slots__ = ("_pipe", "disk", "keyspace", "pid", "settings")

    def __init__(self, disk: Disk, keyspace: Keyspace, settings: Settings) -> None:
        self.disk = disk
        self.keyspace = keyspace
        self.settings = settings
        self.pid = 0
        self._pipe = -1

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
        self.pid = pid
        self._pipe = reading

    def poll(self) -> str | None:
        """None while the child runs; then what went wrong, or "" for a base that is written and synced."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return self._end(status) if pid else None

    def kill(self) -> None:
        """Stop the child, and wait for its end."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self._end(status)

    def _end(self, status: int) -> str:
        self.pid = 0
        reason = os.read(self._pipe, LONGEST_REASON).decode("utf-8", "replace")
        os.close(self._pipe)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        return reason or (f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}")

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
            self._write(path, now_ms, parent)
            code = 0
        except OSError as failure:
            os.write(pipe, f"{failure.strerror} ({path})".encode()[:LONGEST_REASON])
        except BaseException as failure:
            os.write(pipe, repr(failure).encode()[:LONGEST_REASON])
        finally:
            os._exit(code)

    def _write(self, path: str, now_ms: int, parent: int) -> None:
        disk = self.disk
        file = disk.create(path)
        disk.reach(BASE_STARTED)
        unsynced = 0
        for chunk in base_lines(self.keyspace, self.settings, now_ms):
            write_all(file, chunk)
            unsynced += len(chunk)
            if unsynced >= SYNC_BYTES and self.settings.yes("aof-rewrite-incremental-fsync"):
                file.sync()
                unsynced = 0
            if os.getppid() != parent:
                return  # nobody waits for this base any more
        disk.reach(BASE_WRITTEN)
        file.sync()
        disk.reach(BASE_SYNCED)
