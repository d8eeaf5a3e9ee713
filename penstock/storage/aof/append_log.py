"""The append-only log: a buffer of units, the file they are written to, and the change to new files after a rewrite.

A unit is the bytes of requests that must be replayed together. A crash may leave part of a unit at the end of the last
file, but nowhere else.

Example. Files: `base.1`, `incr.1`. A rewrite starts: `begin_rewrite` opens `incr.2`, and units go there while a child
process writes the new base. `finish_rewrite` makes it `base.2`, which replaces `base.1` and `incr.1`; those become
history, and the log is `base.2` + `incr.2`.
"""

import errno
from contextlib import suppress
from typing import Final

from penstock.storage.aof.disk import File, SystemDisk
from penstock.storage.aof.log_directory import LogDirectory, write_all
from penstock.storage.aof.manifest import Manifest

# Named moments (see Disk.reach)
WRITE: Final = "write"  # about to write
WRITTEN: Final = "written"
SYNC: Final = "sync"  # about to sync
SYNCED: Final = "synced"
RESERVE: Final = "reserve"  # about to reserve room ahead
INCREMENT_CREATED: Final = "increment-created"  # not in the manifest yet
INCREMENT_OPENED: Final = "increment-opened"
BASE_RENAMED: Final = "base-renamed"  # not in the manifest yet
BASE_IN_FORCE: Final = "base-in-force"

# Bytes reserved behind what is written, so that a full disk is known before a change is made. A turn may log more than
# that; then its write may fail.
LEAST_ROOM: Final = 1 << 20
MOST_ROOM: Final = 16 << 20
SHARE_OF_ROOM: Final = 16  # the room is a sixteenth of the file: the longer the file, the rarer the calls
TURNS_OF_ROOM: Final = 4  # or the size of so many turns
NEVER: Final = 1 << 62  # a file size: the file system reserves no room


class Sync:
    """One fdatasync. `run` may be called in a thread; everything else belongs to the event loop's thread.

    is_unsure: the sync was started and has not succeeded. If it failed, the data may be lost even if a later sync
    works.
    """

    __slots__ = ("_file", "_log", "is_unsure", "upto")

    def __init__(self, log: "AppendLog", file: File, upto: int) -> None:
        self._log = log
        self._file = file
        self.upto = upto  # this many units are safe after it
        self.is_unsure = False

    def run(self) -> None:
        """OSError if the sync fails; `is_unsure` then stays set."""
        disk = self._log.directory.disk
        disk.reach(SYNC)
        self.is_unsure = True
        self._file.sync()
        self.is_unsure = False
        disk.reach(SYNCED)


class Swap:
    """Puts a new base file in place. `run` may be called in a thread, while units are written to the last increment.

    Nothing else may change the manifest meanwhile. `fresh` is the increment to write to, if the log was held: the file
    with the units that were set aside, or a new one.
    """

    __slots__ = ("_aside", "_directory", "_manifest", "_starts_anew", "_temporary", "base_size", "fresh")

    def __init__(
        self, directory: LogDirectory, manifest: Manifest, temporary: str, starts_anew: bool, aside: File | None
    ) -> None:
        self._aside = aside
        self._directory = directory
        self._manifest = manifest
        self._temporary = temporary
        self._starts_anew = starts_anew
        self.fresh: File | None = None
        self.base_size = 0

    def run(self) -> None:
        """Rename the base and save the manifest. OSError if that fails; the old manifest then stays in force."""
        directory, manifest = self._directory, self._manifest
        manifest.base = directory.next_base(self._temporary)
        base_path = directory.path_of(manifest.base)
        fresh = directory.create(manifest.increments[0]) if self._starts_anew and self._aside is None else None
        try:
            directory.disk.rename(self._temporary, base_path)
            directory.disk.reach(BASE_RENAMED)
            self.base_size = directory.disk.size(base_path)
            if self._aside is not None:
                directory.disk.rename(directory.waiting_path, directory.path_of(manifest.increments[0]))
            directory.save(manifest)
        except OSError:
            if fresh is not None:
                fresh.close()
            if not directory.unsure:  # no manifest names these files, and the disk may be full
                with suppress(OSError):
                    directory.disk.remove(base_path)
                    if self._aside is not None:
                        directory.disk.remove(directory.path_of(manifest.increments[0]))
            raise
        self.fresh = fresh if self._aside is None else self._aside


class AppendLog:
    """Takes units, writes them, syncs them.

    Units are counted from the server's start: `appended` in all, of these `written` to a file, of these `synced`, that
    is, safe from a power failure. `size` is how many bytes of the current file are whole units.

    While `writes_held`, nothing is written: the file cannot be trusted (a sync failed), or there is no file yet.
    Only a finished rewrite ends this. `_in_base` units are not kept any more: a base that was begun after them has
    them, and so has each later one. `_units_aside` units, of `_size_aside` bytes, are in the file `_aside`, which
    becomes the increment behind the base that is being written: they need not wait in memory. `lacks_base`: the files
    do not have the data at all, because the log begins, or begins anew, with a base that is still to be written.

    Room is reserved up to `_room_end` of the file; more is to be reserved once `size` is `_reserve_at`.

    Invariants: synced <= written <= appended; `_in_base`, `_units_aside` and `_units` are the units from `written` to
    `appended`, in this order;
    `buffered` is the size of `_units` in bytes; `torn` is set if the file may have part of a unit after `size`, now or
    after a power failure.
    """

    __slots__ = (
        "_aside", "_earlier_size", "_in_base", "_is_watched", "_reserve_at", "_room_end", "_size_aside",
        "_starts_anew", "_units", "_units_aside", "appended", "base_size", "buffered", "directory", "file",
        "grown_from", "lacks_base", "size", "synced", "torn", "writes_held", "written",
    )  # fmt: skip

    def __init__(self, directory: LogDirectory) -> None:
        self.directory = directory
        self._is_watched = type(directory.disk) is not SystemDisk  # a test looks at the moments of each write
        self.file: File | None = None
        self._units: list[bytes] = []
        self.buffered = 0
        self.appended = 0
        self.written = 0
        self.synced = 0
        self.size = 0
        self.base_size = 0
        self._earlier_size = 0  # of increments before the current one
        self.grown_from = 0  # bytes of all files at the start or after the last rewrite: growth is measured from here
        self.torn = False
        self.writes_held = True
        self.lacks_base = True
        self._in_base = 0
        self._starts_anew = False  # the rewrite in progress began when the log was held
        self._aside: File | None = None
        self._units_aside = self._size_aside = 0
        self._room_end = self._reserve_at = 0

    @property
    def total_size(self) -> int:
        """Bytes of all files of the log."""
        return self.base_size + self._earlier_size + self.size

    # -- the start --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the last increment, or a new one, for writing; to be called after loading. OSError if that fails.

        What was loaded is synced: an earlier process may have been killed before it did that. Without it, what clients
        read now could be lost with the machine's power, and a rewrite would leave a file that is torn amid the log.
        Where a sync failed before, no sync does that: the log is held until there is a new base.
        """
        directory = self.directory
        disk = directory.disk
        manifest = directory.manifest.copy()
        if manifest.base is None and not manifest.increments:
            manifest.base = directory.next_base()
            directory.create(manifest.base).close()
        if manifest.increments:
            self.file = disk.append_to(directory.path_of(manifest.increments[-1]))
            self._sync_loaded(self.file)
            disk.sync_directory(directory.path)
        else:
            manifest.increments.append(directory.next_increment())
            self.file = directory.create(manifest.increments[-1])
            directory.save(manifest)
        sizes = [disk.size(directory.path_of(increment)) for increment in manifest.increments]
        self.size = sizes[-1]
        self._earlier_size = sum(sizes[:-1])
        self.base_size = 0 if manifest.base is None else disk.size(directory.path_of(manifest.base))
        self.grown_from = self.total_size
        self.writes_held = directory.is_distrusted
        self.lacks_base = False

    def _sync_loaded(self, file: File) -> None:
        try:
            file.sync()
        except OSError:
            self.directory.distrust()
            raise

    def cut(self, path: str, size: int) -> None:
        """Cut the last file back to its whole units and sync; to be called before `start`. OSError if that fails."""
        file = self.directory.disk.append_to(path)
        try:
            file.truncate(size)
            self._sync_loaded(file)
        finally:
            file.close()

    # -- units ------------------------------------------------------------------------------------------------------

    def append(self, unit: bytes) -> None:
        """Buffer one unit. O(1); `write` writes it."""
        self._units.append(unit)
        self.buffered += len(unit)
        self.appended += 1

    def annotate(self, line: bytes) -> None:
        """Put a comment line, which loaders skip, before the first buffered unit; there must be one."""
        self._units[0] = line + self._units[0]
        self.buffered += len(line)

    def write(self) -> None:
        """Write the buffered units, with one call if the disk takes all of it; does nothing while held. O(bytes).

        After an OSError the units that were not completely written are still buffered, and the file is cut back to the
        last whole unit.
        """
        if not self._units or self.writes_held:
            return
        file = self.file
        assert file is not None, "a log that is not held has a file"
        chunk = self._units[0] if len(self._units) == 1 else b"".join(self._units)
        if self._is_watched:
            self.directory.disk.reach(WRITE)
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
        if self._is_watched:
            self.directory.disk.reach(WRITTEN)

    def _keep_whole(self, done: int) -> None:
        """A write ended after `done` bytes: count the whole units, cut off the rest."""
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
            with suppress(OSError):  # if this fails, the next write cuts, or a loader does
                self._truncate(self.file)

    def _cut_back(self, file: File) -> None:
        """Cut off part of a unit and sync, before anything else is written after it.

        Without the sync, a power failure could leave the new bytes followed by the rest of the old ones.
        """
        self._truncate(file)
        try:
            file.sync()
        except OSError:
            self.hold()
            raise
        self.torn = False

    def _truncate(self, file: File) -> None:
        """Cut off what follows the last whole unit; the room that was reserved goes with it."""
        if self._reserve_at != NEVER:
            self._room_end = self._reserve_at = 0
        file.truncate(self.size)

    def _count_written(self, units: int, size: int) -> None:
        del self._units[:units]
        self.written += units
        self.buffered -= size
        self.size += size

    # -- room -------------------------------------------------------------------------------------------------------

    @property
    def needs_room(self) -> bool:
        """Whether `reserve` is to be called before anything else is appended."""
        return self.size >= self._reserve_at and not self.writes_held

    def reserve(self, last_write: int) -> bool:
        """Have the disk keep room behind what is written. False if the file system cannot do that.

        last_write: bytes of the last turn. OSError if there is no room: `needs_room` stays.
        """
        file = self.file
        assert file is not None, "a log that is not held has a file"
        self.directory.disk.reach(RESERVE)
        wanted = min(max(LEAST_ROOM, self.size // SHARE_OF_ROOM, TURNS_OF_ROOM * last_write), MOST_ROOM)
        if wanted > LEAST_ROOM:
            with suppress(OSError):  # less may do
                return self._reserve(file, wanted)
        try:
            return self._reserve(file, LEAST_ROOM)
        except OSError:
            self._keep_room(file)
            raise

    def _keep_room(self, file: File) -> None:
        """Give back what was got of the room for which the disk is too full: a new base may need it."""
        end, self._room_end = self._room_end, 0
        with suppress(OSError):
            file.truncate(self.size)
            if end > self.size and file.reserve(self.size, end - self.size):
                self._room_end = end

    def _reserve(self, file: File, room: int) -> bool:
        start, end = max(self._room_end, self.size), self.size + room
        if start < end:
            if not file.reserve(start, end - start):
                self._reserve_at = NEVER
                return False
            self._room_end = end
        self._reserve_at = self._room_end - room // 2
        return True

    def _give_back_room(self) -> None:
        """Give back what was reserved and not used; to be called before the file is closed."""
        if self.file is not None and self._room_end > self.size:
            with suppress(OSError):  # then the room stays reserved until the file is deleted
                self.file.truncate(self.size)
        self._room_end = self._reserve_at = 0

    # -- syncing ----------------------------------------------------------------------------------------------------

    def begin_sync(self) -> Sync | None:
        """A sync for all units written so far; None if they are synced already, or the log is held."""
        if self.file is None or self.writes_held or self.synced == self.written:
            return None
        return Sync(self, self.file, self.written)

    def end_sync(self, sync: Sync) -> None:
        """Note that a sync succeeded."""
        self.synced = max(self.synced, sync.upto)

    def sync(self) -> None:
        """Sync all units written so far, now. OSError if that fails."""
        if self.file is not None and not self.writes_held and self.synced < self.written:
            disk = self.directory.disk
            disk.reach(SYNC)
            self.file.sync()
            disk.reach(SYNCED)
            self.synced = self.written

    def hold(self) -> None:
        """Stop writing to these files.

        Either a sync failed, and what it should have saved may be lost, even if a later sync succeeds. Or it is not
        known which manifest a restart would find.
        """
        self.writes_held = True
        self.directory.distrust()

    def begin_anew(self) -> None:
        """Hold the log: all data are others now, and only a new base will have them."""
        self.writes_held = self.lacks_base = True

    # -- rewriting --------------------------------------------------------------------------------------------------

    def begin_rewrite(self) -> None:
        """Start a new increment: units from now on go there; the new base will replace all files before it.

        If writes are held: units wait for it, but for those of before, which the new base has. OSError
        if the increment cannot be started. If a restart might then find either manifest, the log becomes writes_held: a
        crash could otherwise leave a torn unit in the old increment, before an increment that the new manifest names,
        and no loader accepts that.
        """
        if self.writes_held:
            self._starts_anew = True
            self._leave_to_base()
            return
        self.write()
        self.sync()
        assert not self.torn, "what was just written is whole"
        self._give_back_room()  # first: on a full disk it is what the new files can have
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

    def set_aside(self) -> None:
        """While held: have the buffered units out of memory, because the base may take long.

        If a base is being written, they go to a file behind it. Else the next one has them. OSError if the file cannot
        be written: the base that is being written is of no use any more, and the caller abandons it.
        """
        if not self._starts_anew:
            self._leave_to_base()
            return
        aside = self._aside
        if aside is None:
            aside = self._aside = self.directory.disk.create(self.directory.waiting_path)
        write_all(aside, b"".join(self._units))
        self._units_aside += len(self._units)
        self._size_aside += self.buffered
        self._units = []
        self.buffered = 0

    def _leave_to_base(self) -> None:
        """A base that is begun later has all units of now."""
        self._in_base += self._units_aside + len(self._units)
        self._units = []
        self.buffered = 0
        self._forget_aside()

    def _forget_aside(self) -> None:
        aside, self._aside = self._aside, None
        self._units_aside = self._size_aside = 0
        if aside is not None:
            aside.close()
            with suppress(OSError):  # there is none any more, or the next start removes it
                self.directory.disk.remove(self.directory.waiting_path)

    def _move_on(self, file: File) -> None:
        self._give_back_room()
        if self.file is not None:
            with suppress(OSError):  # close may report again that an earlier sync failed
                self.file.close()
        self.file = file
        self._earlier_size += self.size
        self.size = 0
        self.torn = False

    def abandon_rewrite(self) -> None:
        """The rewrite failed: all files stay, and the next rewrite starts from them."""
        if self._starts_anew:
            self._starts_anew = False
            self._leave_to_base()

    def finish_rewrite(self, temporary: str) -> None:
        """A synced base file is at `temporary`: let it replace all files from before `begin_rewrite`.

        OSError if that fails; nothing has changed then. A log that became held after `begin_rewrite` stays held,
        because the base does not contain the units appended after it.
        """
        swap = self.swap(temporary)
        swap.run()
        self.end_swap(swap)

    def swap(self, temporary: str) -> "Swap":
        """The part of `finish_rewrite` that works on the disk; the caller runs it, then calls `end_swap`."""
        directory = self.directory
        manifest = directory.manifest.copy()
        starts_anew = self._starts_anew
        for file in manifest.files() if starts_anew else manifest.files()[:-1]:
            manifest.retire(file)
        if starts_anew:
            manifest.increments = [directory.next_increment()]
        else:
            del manifest.increments[:-1]
        return Swap(directory, manifest, temporary, starts_anew, self._aside)

    def end_swap(self, swap: "Swap") -> None:
        """Note that a swap was run and succeeded."""
        if swap.fresh is not None:
            self._move_on(swap.fresh)
            self._end_hold()
            self.directory.trust()
        self._earlier_size = 0
        self.base_size = swap.base_size
        self.grown_from = self.total_size
        self.directory.disk.reach(BASE_IN_FORCE)

    def _end_hold(self) -> None:
        """The first `_in_base` units are in the new base; the others are in the new increment, or to be written."""
        self.written += self._in_base
        self.synced = self.written
        self.written += self._units_aside
        self.size += self._size_aside
        self._in_base = self._units_aside = self._size_aside = 0
        self._aside = None
        self._starts_anew = False
        self.writes_held = self.lacks_base = False

    def close(self) -> None:
        """Close the file and unlock the directory; buffered units are not written."""
        self._give_back_room()
        self._forget_aside()
        if self.file is not None:
            self.file.close()
            self.file = None
        self.writes_held = True
        self.directory.close()
