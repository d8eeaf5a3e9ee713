"""A disk in memory, for tests: it forgets what was not synced, and fails where it is told to."""

import errno
import os
import random
from collections.abc import Callable

from penstock.storage.aof.disk import File

PAGE = 4096  # bytes
OUT_OF_MEMORY = -1  # among a disk's `failures`: not the disk's, but the process's


def _pages(start: int, end: int) -> range:
    """The pages that have the bytes from start to end."""
    return range(start // PAGE, (max(start, end - 1)) // PAGE + 1) if start < end else range(0)


class MemoryNode:
    """A file's bytes: as programs see them, and as they are after a loss of power.

    `changes` are the writes (offset, bytes) and truncations (size, None) since the last sync that worked. `taken` is
    what the file takes of the disk: its bytes, and the room that is reserved behind them. `dropped` are the places
    (start, end) of bytes whose sync failed: as Linux does, their pages count as clean from there on, so that no later
    sync writes them, but of a page that is written to again.
    """

    __slots__ = ("changes", "dropped", "safe", "seen", "taken")

    def __init__(self) -> None:
        self.seen = bytearray()
        self.taken = 0
        self.safe = b""
        self.changes: list[tuple[int, bytes | None]] = []
        self.dropped: list[tuple[int, int]] = []

    def drop_changes(self) -> None:
        """A sync failed."""
        self.dropped += [(at, at + len(chunk)) for at, chunk in self.changes if chunk is not None]
        self.changes.clear()

    def keep_changes(self) -> None:
        """A sync worked."""
        written = {page for at, chunk in self.changes if chunk for page in _pages(at, at + len(chunk))}
        before, safe = self.safe, bytearray(self.seen)
        left = []
        for start, end in self.dropped:
            for page in _pages(start, min(end, len(safe))):
                if page not in written:
                    first, last = max(start, page * PAGE), min(end, (page + 1) * PAGE, len(safe))
                    safe[first:last] = before[first:last].ljust(last - first, b"\0")
                    left.append((first, last))
        self.dropped = left
        self.safe = bytes(safe)
        self.changes.clear()

    def after_power_loss(self, chance: random.Random | None) -> bytes:
        """What a restart finds: the safe bytes, and of the rest whatever chance wrote out, in any order."""
        left = bytearray(self.safe)
        for offset, chunk in self.changes:
            if chance is None or chance.random() < 0.5:
                continue
            if chunk is None:
                del left[offset:]
                continue
            torn = chunk[: chance.randrange(len(chunk) + 1)]
            left.extend(bytes(max(0, offset - len(left))))
            left[offset : offset + len(torn)] = torn
        return bytes(left)


class MemoryFile:
    """An open file of a MemoryDisk."""

    __slots__ = ("disk", "node")

    def __init__(self, disk: "MemoryDisk", node: MemoryNode) -> None:
        self.disk = disk
        self.node = node

    def write(self, chunk: bytes) -> int:
        self.disk.call("write")
        taken = chunk[: self.disk.grant(self.node, len(chunk))]
        if chunk and not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.node.changes.append((len(self.node.seen), taken))
        self.node.seen += taken
        return len(taken)

    def sync(self) -> None:
        try:
            self.disk.call("sync")
        except OSError:
            self.node.drop_changes()
            raise
        self.node.keep_changes()

    def truncate(self, size: int) -> None:
        self.disk.call("truncate")
        self.disk.give_back(self.node, size)
        del self.node.seen[size:]
        self.node.changes.append((size, None))

    def reserve(self, offset: int, size: int) -> bool:
        """As ext4 does it: what there was is reserved, although it is not enough."""
        self.disk.call("reserve")
        if not self.disk.reserves:
            return False
        assert offset == max(len(self.node.seen), min(offset, self.node.taken)), "behind the file or what is reserved"
        if self.disk.take(self.node, offset + size) < offset + size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return True

    def close(self) -> None:
        self.disk.locks.discard(id(self.node))


class MemoryDisk:
    """Files by path. `room` is how many bytes it still takes (None: any number). `reserves`: it can reserve room.

    `failures[name]` is the list of what the next calls of that name do: an error number, or 0 to work. Names are
    those of the calls ("write", "sync", "rename", ...). `points` notes every named moment that was reached, and
    `on_reach` may do something about one.
    """

    def __init__(self) -> None:
        self.files: dict[str, MemoryNode] = {}
        self.safe_files: dict[str, MemoryNode] = {}
        self.directories: set[str] = set()
        self.locks: set[int] = set()
        self.room: int | None = None
        self.reserves = True
        self.shortest: int | None = None  # the most bytes one write takes
        self.failures: dict[str, list[int]] = {}
        self.points: list[str] = []
        self.on_reach: Callable[[str], None] | None = None

    # -- what tests do ----------------------------------------------------------------------------------------------

    def call(self, name: str) -> None:
        """A call is made: fail if a test wants it to."""
        planned = self.failures.get(name)
        if planned:
            number = planned.pop(0)
            if number == OUT_OF_MEMORY:
                raise MemoryError
            if number:
                raise OSError(number, os.strerror(number))

    def grant(self, node: MemoryNode, wanted: int) -> int:
        """How many bytes of a write are taken."""
        if self.shortest is not None:
            wanted = min(wanted, self.shortest)
        end = len(node.seen) + wanted
        return wanted - max(0, end - self.take(node, end))

    def take(self, node: MemoryNode, end: int) -> int:
        """Let a file take the disk up to `end`: up to where it has it now, which is less if the disk is full."""
        more = max(0, end - node.taken)
        if self.room is not None:
            more = min(more, self.room)
            self.room -= more
        node.taken += more
        return node.taken

    def give_back(self, node: MemoryNode, size: int) -> None:
        """A file takes no more than `size` from here on."""
        if self.room is not None:
            self.room += max(0, node.taken - size)
        node.taken = min(node.taken, size)

    def lose_power(self, chance: random.Random | None = None) -> "MemoryDisk":
        """The disk as a restart finds it. Without `chance`, everything that was not synced is gone."""
        after = MemoryDisk()
        names = dict(self.safe_files)
        if chance is not None:
            for path in sorted(set(self.files) | set(names)):
                if self.files.get(path) is not names.get(path) and chance.random() < 0.5:
                    if path in self.files:
                        names[path] = self.files[path]
                    else:
                        del names[path]
        for path, node in names.items():
            kept = after.files[path] = after.safe_files[path] = MemoryNode()
            kept.safe = node.after_power_loss(chance)
            kept.seen = bytearray(kept.safe)
            kept.taken = len(kept.seen)
        after.directories = set(self.directories)
        after.reserves = self.reserves
        return after

    def restart(self) -> "MemoryDisk":
        """The disk as another process finds it after this one was killed: nothing is lost, no lock is held."""
        after = MemoryDisk()
        after.files, after.safe_files, after.directories = self.files, self.safe_files, self.directories
        after.reserves = self.reserves
        return after

    # -- what the log does ------------------------------------------------------------------------------------------

    def reach(self, point: str) -> None:
        self.points.append(point)
        if self.on_reach is not None:
            self.on_reach(point)

    def create(self, path: str) -> File:
        self.call("create")
        node = self.files.get(path)
        if node is None:
            node = self.files[path] = MemoryNode()
        elif node.seen:
            self.give_back(node, 0)
            del node.seen[:]
            node.changes.append((0, None))
        return MemoryFile(self, node)

    def append_to(self, path: str) -> File:
        self.call("open")
        return MemoryFile(self, self._node(path))

    def read(self, path: str, offset: int, most: int) -> bytes:
        self.call("read")
        return bytes(self._node(path).seen[offset : offset + most])

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.directories

    def size(self, path: str) -> int:
        return len(self._node(path).seen)

    def names(self, path: str) -> list[str]:
        return sorted(name[len(path) + 1 :] for name in self.files if name.rpartition("/")[0] == path)

    def make_directory(self, path: str) -> None:
        self.directories.add(path)

    def rename(self, path: str, to: str) -> None:
        self.call("rename")
        if to in self.files:
            self.give_back(self.files[to], 0)
        self.files[to] = self._node(path)
        del self.files[path]

    def remove(self, path: str) -> None:
        self.call("remove")
        self.give_back(self._node(path), 0)
        del self.files[path]

    def sync_directory(self, path: str) -> None:
        self.call("sync_directory")
        for name in set(self.files) | set(self.safe_files):
            if name.rpartition("/")[0] != path:
                continue
            if name in self.files:
                self.safe_files[name] = self.files[name]
            else:
                del self.safe_files[name]

    def lock(self, path: str) -> File | None:
        node = self.files.setdefault(path, MemoryNode())
        if id(node) in self.locks:
            return None
        self.locks.add(id(node))
        return MemoryFile(self, node)

    def _node(self, path: str) -> MemoryNode:
        node = self.files.get(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node
