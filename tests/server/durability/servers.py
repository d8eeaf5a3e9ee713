"""An engine with a log and one client: on a disk in memory with a clock that tests turn, and on the real disk."""

import errno
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.clock import ManualClock, SystemClock
from penstock.commands.server.info_sections import fields_of
from penstock.config.settings import Settings
from penstock.server.turns.log_writer import AofWriter
from penstock.storage.aof.append_log import LEAST_ROOM
from penstock.storage.aof.disk import SystemDisk
from tests.support.clock import NOW_MS
from tests.support.deferred_log import DeferredRewriteChild, DeferredThreads
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.memory_disk import MemoryDisk

MISCONF = b"MISCONF Errors writing to the AOF file: "
ROOT = "/tmp"  # in memory; the settings want a directory that exists
DIRECTORY = ROOT + "/appendonlydir"
INCREMENT = DIRECTORY + "/appendonly.aof.1.incr.aof"
LARGE = b"v" * (LEAST_ROOM // 4)


class Server:
    """An engine with a log on a disk in memory, one client, and a clock that tests turn."""

    def __init__(self, disk: MemoryDisk | None = None, root: str = ROOT, now_ms: int = NOW_MS, **settings: str) -> None:
        self.clock = ManualClock(now_ms)
        self.settings = Settings()
        pairs = {"dir": root, "appendfsync": "always", "enable-debug-command": "yes"} | settings
        for name, value in pairs.items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.disk = MemoryDisk() if disk is None else disk
        self.threads = DeferredThreads()
        self.said: list[Any] = []
        self.engine = make_engine(self.clock, settings=self.settings)
        self.rewriting = DeferredRewriteChild(self.disk, self.engine)
        self.durability = AofWriter(
            self.settings, self.engine, self.said.append, self.disk, self.threads, self.rewriting
        )
        for _ in self.durability.loading():
            pass
        self.client = Dialogue(self.engine)
        self.turns: list[str] = []  # of each turn: "sent", or "unknown" where those that tell of changes are not

    def turn(self, *lines: str) -> Any:
        """Requests that arrive together, and the turn's end; the last reply, whether it was sent or not."""
        answer = self.client(*lines)
        self.durability.end_of_turn(lambda is_kept: self.turns.append("sent" if is_kept else "unknown"))
        return answer

    def fill(self, key: str) -> None:
        """Turns that take so much of the room that more is reserved, or the last is refused."""
        for _ in range(3):
            self.client.words(b"SET", key.encode(), LARGE)
            self.turn()

    def later(self, ms: int) -> None:
        self.clock.advance(ms)
        self.durability.cron()

    def finish_rewriting(self) -> None:
        """The child gets to its end, and the threads that swap files and delete old ones."""
        self.durability.cron()
        self.rewriting.write()
        for _ in range(3):
            self.durability.cron()
            self.threads.run()
        self.durability.cron()

    def again(self, power: bool = False, chance: random.Random | None = None) -> "Server":
        """The server after it was killed, or after the power was lost."""
        return Server(self.disk.lose_power(chance) if power else self.disk.restart())


class RealServer:
    """A server's engine and log on the real disk."""

    def __init__(self, root: Path, disk: "DelegatingDisk | None" = None, **settings: str) -> None:
        self.settings = Settings()
        for name, value in ({"dir": str(root)} | settings).items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.said: list[Any] = []
        self.engine = make_engine(SystemClock(), settings=self.settings)
        self.durability = AofWriter.open(self.settings, self.engine, self.said.append, disk)
        self.client = Dialogue(self.engine)
        self.answered = 0

    def turn(self, *lines: str) -> bytes | int:
        answer = self.client(*lines)
        self.durability.end_of_turn(self._answer)
        return answer

    def until_ready(self) -> None:
        """Time passes until writers are served again."""
        deadline = time.monotonic() + 20
        while self.engine.conditions.trouble is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # a process of its own writes the base
            self.durability.cron()

    def _answer(self, is_kept: bool) -> None:
        self.answered += 1

    def until_reported(self) -> dict[str, str]:
        """Time passes until the child has told how far it is: INFO's fields then."""
        deadline = time.monotonic() + 20
        while not self.engine.persistence.progress.copied and time.monotonic() < deadline:
            time.sleep(0.01)
            self.durability.cron()
        return dict(fields_of(self.engine.persistence.info()))

    def until_rewritten(self) -> int:
        """Turn after turn while a child writes the base; how many there were."""
        deadline = time.monotonic() + 20
        turns = 0
        while self.engine.persistence.child and time.monotonic() < deadline:
            turns += 1
            self.turn(f"XADD meanwhile {turns}-0 f v", "INCR counted")
            self.durability.cron()
        return turns


class DelegatingDisk:
    """The system's, but for what a subclass does itself."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(SystemDisk(), name)


class FlakyDisk(DelegatingDisk):
    """Fails once at each of the named moments that `fails` lists."""

    def __init__(self) -> None:
        self.fails: list[Any] = []

    def reach(self, point: str) -> None:
        if point in self.fails:
            self.fails.remove(point)
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class HaltingDisk(DelegatingDisk):
    """Waits at a named moment until there is a file."""

    def __init__(self, point: str, file: Path) -> None:
        self._point = point
        self._file = file

    def reach(self, point: str) -> None:
        while point == self._point and not self._file.exists():
            time.sleep(0.01)
