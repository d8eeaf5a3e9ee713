"""The append-only log: a buffer of units, the file they go to, and how a rewrite moves on to the next files.

A unit is what must be replayed as a whole: bytes, to this module. A crash may leave part of a unit at the end of the
last file, never anywhere else.
"""

import errno
from contextlib import suppress
from typing import Final

from penstock.storage.aof.disk import File
from penstock.storage.aof.log_directory import LogDirectory
from penstock.storage.aof.manifest import Manifest

# Named moments (Disk.reach)
WRITE: Final = "write"  # about to write
WRITTEN: Final = "written"
SYNC: Final = "sync"  # about to sync
SYNCED: Final = "synced"
INCREMENT_CREATED: Final = "increment-created"  # not in the manifest yet
INCREMENT_OPENED: Final = "increment-opened"
BASE_RENAMED: Final = "base-renamed"  # not in the manifest yet
BASE_IN_FORCE: Final = "base-in-force"

NOT_HELD: Final = -1


class Sync:
    """One fdatasync: `run` may be called in a thread, everything else in the loop's.

    is_unsure: the system was asked, and its answer is not known (or was a failure): a later sync proves nothing.
    """

    __slots__ = ("_file", "_log", "is_unsure", "upto")

    def __init__(self, log: "AppendLog", file: File, upto: int) -> None:
        self._log = log
        self._file = file
        self.upto = upto  # units that will be safe
        self.is_unsure = False

    def run(self) -> None:
        disk = self._log.directory.disk
        disk.reach(SYNC)
        self.is_unsure = True
        self._file.sync()
        self.is_unsure = False
        disk.reach(SYNCED)


class Swap:
    """A fresh base takes its place. `run` may be called in a thread, while units go on into the last increment.

    Nothing else may change the manifest meanwhile. `fresh` is a new increment, where the log is to go on with one.
    """

    __slots__ = ("_directory", "_manifest", "_starts_anew", "_temporary", "base_size", "fresh")

    def __init__(self, directory: LogDirectory, manifest: Manifest, temporary: str, starts_anew: bool) -> None:
        self._directory = directory
        self._manifest = manifest
        self._temporary = temporary
        self._starts_anew = starts_anew
        self.fresh: File | None = None
        self.base_size = 0

    def run(self) -> None:
        """OSError where it fails; everything is as before then."""
        directory, manifest = self._directory, self._manifest
        assert manifest.base is not None, "a swap is for a base"
        base_path = directory.path_of(manifest.base)
        fresh = directory.create(manifest.increments[0]) if self._starts_anew else None
        try:
            directory.disk.rename(self._temporary, base_path)
            directory.disk.reach(BASE_RENAMED)
            self.base_size = directory.disk.size(base_path)
            directory.save(manifest)
        except OSError:
            if fresh is not None:
                fresh.close()
            raise
        self.fresh = fresh


class AppendLog:
    """Takes units, writes them, syncs them.

    Units are counted from the server's start: `appended` were given, `written` of them are in a file, `synced` are
    safe from a loss of power. `size` bytes of the current file are whole units.

    While the log is *held* nothing is written: the file is not to be trusted (a sync failed) or there is none yet,
    and only a finished rewrite ends that. The first `_in_base` of the buffered units are then part of the new base.

    Invariants: synced <= written <= appended; `_units` are those from `written` to `appended`; `buffered` is their
    size; `torn` says that the file may have part of a unit after `size`, now or after a loss of power.
    """

    __slots__ = (
        "_earlier_size", "_in_base", "_units", "appended", "base_size", "buffered", "directory", "file", "grown_from",
        "held", "size", "synced", "torn", "written",
    )  # fmt: skip

    def __init__(self, directory: LogDirectory) -> None:
        self.directory = directory
        self.file: File | None = None
        self._units: list[bytes] = []
        self.buffered = 0
        self.appended = 0
        self.written = 0
        self.synced = 0
        self.size = 0
        self.base_size = 0
        self._earlier_size = 0  # of increments before the current one
        self.grown_from = 0  # bytes of all files at the start or after the last rewrite
        self.torn = False
        self.held = True
        self._in_base = NOT_HELD

    @property
    def total_size(self) -> int:
        """Bytes of all files that make up the log."""
        return self.base_size + self._earlier_size + self.size

    # -- the start --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open for writing after everything was loaded: the last increment, or a new one. OSError where it fails."""
        directory = self.directory
        disk = directory.disk
        manifest = directory.manifest.copy()
        if manifest.base is None and not manifest.increments:
            manifest.base = directory.next_base()
            directory.create(manifest.base).close()
        if manifest.increments:
            self.file = disk.append_to(directory.path_of(manifest.increments[-1]))
        else:
            manifest.increments.append(directory.next_increment())
            self.file = directory.create(manifest.increments[-1])
            directory.save(manifest)
        sizes = [disk.size(directory.path_of(increment)) for increment in manifest.increments]
        self.size = sizes[-1]
        self._earlier_size = sum(sizes[:-1])
        self.base_size = 0 if manifest.base is None else disk.size(directory.path_of(manifest.base))
        self.grown_from = self.total_size
        self.held = False

    def cut(self, path: str, size: int) -> None:
        """Before the start: shorten the last file to its whole units, for good."""
        file = self.directory.disk.append_to(path)
        try:
            file.truncate(size)
            file.sync()
        finally:
            file.close()

    # -- units ------------------------------------------------------------------------------------------------------

    def append(self, unit: bytes) -> None:
        self._units.append(unit)
        self.buffered += len(unit)
        self.appended += 1

    def annotate(self, line: bytes) -> None:
        """Put a line that loaders pass over before the buffered units; there must be one."""
        self._units[0] = line + self._units[0]
        self.buffered += len(line)

    def write(self) -> None:
        """Write what is buffered, with one call if the disk takes it all; nothing while held.

        After an OSError the units that were not written whole are still buffered, and the file is cut back to the
        last whole one.
        """
        if not self._units or self.held:
            return
        file = self.file
        assert file is not None, "a log that is not held has a file"
        chunk = self._units[0] if len(self._units) == 1 else b"".join(self._units)
        disk = self.directory.disk
        disk.reach(WRITE)
        done = 0
        try:
            if self.torn:
                self._cut_back(file)
            while done < len(chunk):
                taken = file.write(chunk[done:] if done else chunk)
                if taken <= 0:
                    raise OSError(errno.EIO, "a write took nothing")
                done += taken
        except OSError:
            self._keep_whole(done)
            raise
        self._count_written(len(self._units), done)
        disk.reach(WRITTEN)

    def _keep_whole(self, done: int) -> None:
        """A write broke off after `done` bytes."""
        whole = units = 0
        for unit in self._units:
            if whole + len(unit) > done:
                break
            whole += len(unit)
            units += 1
        self._count_written(units, whole)
        if done > whole:
            assert self.file is not None, "it was just written to"
            self.torn = True
            with suppress(OSError):  # a loader would cut it too; here the next write makes sure
                self.file.truncate(self.size)

    def _cut_back(self, file: File) -> None:
        """Take away part of a unit for good, before anything is written in its place.

        Without the sync, a loss of power could leave the new bytes with the rest of the old ones behind them.
        """
        file.truncate(self.size)
        try:
            file.sync()
        except OSError:
            self.hold()
            raise
        self.torn = False

    def _count_written(self, units: int, size: int) -> None:
        del self._units[:units]
        self.written += units
        self.buffered -= size
        self.size += size

    def begin_sync(self) -> Sync | None:
        """The sync that makes safe what is written now; None where nothing needs one."""
        if self.file is None or self.held or self.synced == self.written:
            return None
        return Sync(self, self.file, self.written)

    def end_sync(self, sync: Sync) -> None:
        """A sync has worked."""
        self.synced = max(self.synced, sync.upto)

    def sync(self) -> None:
        """Make safe what is written, now."""
        sync = self.begin_sync()
        if sync is not None:
            sync.run()
            self.end_sync(sync)

    def hold(self) -> None:
        """The files are not to be gone on with.

        A sync failed: what it should have saved may be lost, though a later sync would claim success. Or it is not
        known which manifest is in force.
        """
        self.held = True

    # -- rewriting --------------------------------------------------------------------------------------------------

    def begin_rewrite(self) -> None:
        """From here on units go to a new increment; what came before is in the files before it.

        Held: they stay in memory, and what came before will be in the base. OSError where it cannot be done; the log
        is held then if a restart may find either manifest: what went on into the old increment might get a torn tail
        before an increment that the new manifest names, and that no loader would take for a crash's.
        """
        if self.held:
            self._in_base = len(self._units)
            return
        self.write()
        self.sync()
        assert not self.torn, "what was just written is whole"
        directory = self.directory
        manifest = directory.manifest.copy()
        manifest.increments.append(directory.next_increment())
        file = directory.create(manifest.increments[-1])
        try:
            directory.disk.reach(INCREMENT_CREATED)
            directory.save(manifest)
        except OSError:
            file.close()
            if directory.unsure:
                self.hold()
            raise
        self._move_on(file)
        directory.disk.reach(INCREMENT_OPENED)

    def _move_on(self, file: File) -> None:
        if self.file is not None:
            with suppress(OSError):  # its last sync decided; closing a file that failed may report that once more
                self.file.close()
        self.file = file
        self._earlier_size += self.size
        self.size = 0
        self.torn = False

    def abandon_rewrite(self) -> None:
        """It failed: all files stay, and the next try starts from here."""
        self._in_base = NOT_HELD

    def finish_rewrite(self, temporary: str) -> None:
        """A base was written and synced at `temporary`: it takes the place of everything before `begin_rewrite`.

        OSError where that fails; everything is as before then. A log that came to be held since `begin_rewrite` stays
        so: the base does not have what came after that.
        """
        swap = self.swap(temporary)
        swap.run()
        self.end_swap(swap)

    def swap(self, temporary: str) -> "Swap":
        """What `finish_rewrite` does on the disk, to be run; `end_swap` takes note of it."""
        directory = self.directory
        manifest = directory.manifest.copy()
        starts_anew = self._in_base != NOT_HELD
        for file in manifest.files() if starts_anew else manifest.files()[:-1]:
            manifest.retire(file)
        if starts_anew:
            manifest.increments = [directory.next_increment()]
        else:
            del manifest.increments[:-1]
        manifest.base = directory.next_base()
        return Swap(directory, manifest, temporary, starts_anew)

    def end_swap(self, swap: "Swap") -> None:
        """A swap has been run, and worked."""
        if swap.fresh is not None:
            self._move_on(swap.fresh)
            self._end_hold()
        self._earlier_size = 0
        self.base_size = swap.base_size
        self.grown_from = self.total_size
        self.directory.disk.reach(BASE_IN_FORCE)

    def _end_hold(self) -> None:
        """The new base has the first units; the others are for the new increment."""
        in_base = self._units[: self._in_base]
        del self._units[: self._in_base]
        self.buffered -= sum(map(len, in_base))
        self.written += len(in_base)
        self.synced = self.written
        self._in_base = NOT_HELD
        self.held = False

    def close(self) -> None:
        """Let go of the file and the directory; what is buffered is not written."""
        if self.file is not None:
            self.file.close()
            self.file = None
        self.held = True
        self.directory.close()
