"""A disk whose calls fail, and at any of whose calls the machine may stop."""

import errno
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.support.memory_disk import MemoryDisk, MemoryNode

if TYPE_CHECKING:
    from penstock.storage.aof.disk import File

NEVER: Final = 1 << 60
FAILING: Final = ("write", "sync", "rename", "sync_directory", "create", "reserve", "remove")


class Killed(BaseException):
    """The process is dead. No handler of the product may catch it."""


class WorldDisk(MemoryDisk):
    """A disk in memory for one life of a process; `as_left` gives the next life's.

    dies_at: the number of the call at which the process is killed.
    """

    def __init__(self, chance: random.Random, on_failure: Callable[[], None]) -> None:
        super().__init__()
        self._chance = chance
        self._on_failure = on_failure
        self.is_dead = False
        self.calls = 0
        self.dies_at = NEVER
        self.failing: dict[str, tuple[int, float]] = {}  # by name of the call: the error, how often

    def call(self, name: str) -> None:
        self._live()
        self.calls += 1
        if self.calls >= self.dies_at:
            self.is_dead = True
            raise Killed
        number, share = self.failing.get(name, (0, 0.0))
        try:
            if share and self._chance.random() < share:
                raise OSError(number, errno.errorcode[number])
            super().call(name)
        except OSError:
            self._on_failure()
            raise

    def take(self, node: MemoryNode, end: int) -> int:
        """As any disk; a write for which there is no room is a failure, too."""
        taken = super().take(node, end)
        if taken < end:
            self._on_failure()
        return taken

    def _live(self) -> None:
        if self.is_dead:
            raise Killed

    def reach(self, point: str) -> None:
        self._live()
        super().reach(point)

    def exists(self, path: str) -> bool:
        self._live()
        return super().exists(path)

    def size(self, path: str) -> int:
        self._live()
        return super().size(path)

    def names(self, path: str) -> list[str]:
        self._live()
        return super().names(path)

    def lock(self, path: str) -> "File | None":
        self._live()
        return super().lock(path)

    def heal(self) -> None:
        """No call fails any more, and there is room."""
        self.failing.clear()
        self.failures.clear()
        self.dies_at = NEVER
        self.room = None

    def as_left(self, loses_power: bool) -> "WorldDisk":
        """The disk as the next process finds it."""
        self.is_dead = True
        left = self.lose_power(self._chance) if loses_power else self.restart()
        after = WorldDisk(self._chance, self._on_failure)
        after.files, after.safe_files = left.files, left.safe_files
        after.directories, after.reserves = left.directories, left.reserves
        return after

    def copied(self) -> MemoryDisk:
        """What is in the files now, for a reader that changes nothing here."""
        copied = MemoryDisk()
        for path, node in self.files.items():
            copy = copied.files[path] = copied.safe_files[path] = MemoryNode()
            copy.seen = bytearray(node.seen)
            copy.safe = bytes(node.seen)
        copied.directories = set(self.directories)
        return copied
