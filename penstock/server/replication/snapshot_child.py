"""The child that writes a snapshot for replicas: into a file, or into a pipe that the server reads."""

import os
from collections.abc import Callable, Iterator
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.rdb import rdb_saving
from penstock.errors import UsageError
from penstock.server.files.rewrite_child import Reporter, RewriteChild
from penstock.storage.aof.disk import Disk
from penstock.storage.keyspace import Keyspace

HOLDS_NO_ARRAYS: Final = "there are arrays, which a Redis before 8.8 cannot hold (rdb-compat-version)"
TEMPORARY: Final = "temp-sync-{}.rdb"
NO_PIPE: Final = -1


class SnapshotChild(RewriteChild):
    """Writes a file, which the server removes.

    aux: what the snapshot says of the stream. field_times: whether hashes have the times of their fields.
    may_have_arrays: else a keyspace with arrays is refused, because a replica could not load it.
    """

    __slots__ = ("aux", "field_times", "may_have_arrays", "only_functions")

    def __init__(self, disk: Disk, keyspace: Keyspace, settings: Settings) -> None:
        super().__init__(disk, keyspace, settings)
        self.aux: list[tuple[bytes, bytes]] = []
        self.only_functions = False
        self.field_times = True
        self.may_have_arrays = True

    def path_of(self, directory: str, pid: int) -> str:
        return f"{directory}/{TEMPORARY.format(pid)}"

    def chunks(self, now_ms: int, progress: Progress) -> Iterator[bytes]:
        keyspace = self.keyspace
        if self.only_functions:
            keyspace = Keyspace(1)
            keyspace.libraries = self.keyspace.libraries
        if not self.may_have_arrays and rdb_saving.has_arrays(keyspace):
            raise UsageError(HOLDS_NO_ARRAYS)
        snapshot = rdb_saving.snapshot_of(keyspace, self.settings, now_ms, self.aux, self.field_times)
        return rdb_saving.counted(snapshot, progress)


class PipeChild(SnapshotChild):
    """Writes into a pipe. reading: its end for the server, which closes it."""

    __slots__ = ("_writing", "reading")

    def __init__(self, disk: Disk, keyspace: Keyspace, settings: Settings) -> None:
        super().__init__(disk, keyspace, settings)
        self.reading = self._writing = NO_PIPE

    def start(self, directory: str, now_ms: int) -> None:
        self.reading, self._writing = os.pipe()
        self.kept = (self._writing,)
        try:
            super().start(directory, now_ms)
        except OSError:
            os.close(self.reading)
            raise
        finally:
            os.close(self._writing)

    def _write(self, path: str, now_ms: int, reporter: Reporter) -> None:
        progress = reporter.progress
        progress.expect(self.keyspace)
        for chunk in self.chunks(now_ms, progress):
            left = memoryview(chunk)
            while left:
                left = left[os.write(self._writing, left) :]
            progress.written += len(chunk)
            reporter.report()
        reporter.report(at_end=True)


NewChild = Callable[[bool, Disk, Keyspace, Settings], SnapshotChild]
"""Makes a child; a PipeChild if the first argument is true."""


def new_child(without_file: bool, disk: Disk, keyspace: Keyspace, settings: Settings) -> SnapshotChild:
    kind = PipeChild if without_file else SnapshotChild
    return kind(disk, keyspace, settings)
