"""RDB files are saved: at once (SAVE, a shutdown) or by a child process (BGSAVE, save points).

A file is written beside the old one, synced, renamed, and the directory synced: one of the two is always whole. With
save points and no log, a save that failed refuses writers until one has worked (stop-writes-on-bgsave-error). Beside a
log writers are served: the log keeps every change. Two servers never save into one file: the first that does, or that
starts with save points, locks it for the life of its process. A child holds the lock with its server: where it outlives
the server, no other server has a save confirmed that the child could still replace.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.engine import Engine
from penstock.engine.rdb import key_delay, rdb_saving
from penstock.engine.rdb.save_state import CANNOT_SAVE, SaveState
from penstock.errors import UsageError
from penstock.server.files.rewrite_child import RewriteChild, created
from penstock.storage.aof.disk import Disk, File, SystemFile
from penstock.storage.aof.log_directory import write_all
from penstock.storage.rdb.rdb_format import HEADER_BYTES
from penstock.storage.rdb.rdb_writer import RdbWriter

TEMPORARY: Final = "temp-{}.rdb"
LOCK: Final = ".{}.lock"  # beside the file, by its name
RETRY_S: Final = 5  # after a save that failed
ORPHANS_TAKE_S: Final = 5.0  # at most: the system frees the memory of an earlier server's child before its lock
LOOK_EVERY_S: Final = 0.05
LEFTOVER: Final = re.compile(r"temp-(sync-|master-)?\d+\.rdb")  # of `TEMPORARY`, for replicas, and from a master

# Named moments (Disk.reach)
SNAPSHOT_SYNCED: Final = "snapshot-synced"  # beside the old one
SNAPSHOT_RENAMED: Final = "snapshot-renamed"


def put_in_place(disk: Disk, temporary: str, path: str) -> None:
    """A file that is written and synced replaces the old one, for good."""
    disk.reach(SNAPSHOT_SYNCED)
    disk.rename(temporary, path)
    disk.reach(SNAPSHOT_RENAMED)
    disk.sync_directory(path.rpartition("/")[0])


class SaveChild(RewriteChild):
    """The child that writes an RDB file; it puts it in place itself."""

    __slots__ = ()

    def path_of(self, directory: str, pid: int) -> str:
        return f"{directory}/{TEMPORARY.format(pid)}"

    def chunks(self, now_ms: int, progress: Progress) -> Iterator[bytes]:
        return rdb_saving.counted(rdb_saving.snapshot_of(self.keyspace, self.settings, now_ms), progress)

    def finish(self, path: str) -> None:
        put_in_place(self.disk, path, f"{path.rpartition('/')[0]}/{self.settings.text('dbfilename')}")


class Snapshots:
    """The RDB file of one server. `report` takes lines for a person."""

    __slots__ = ("_disk", "_engine", "_lock", "_locked", "_report", "_settings", "_state", "child")

    def __init__(self, settings: Settings, engine: Engine, disk: Disk, report: Callable[[str], None]) -> None:
        self._settings = settings
        self._engine = engine
        self._disk = disk
        self._report = report
        self._lock: File | None = None
        self._locked = ""  # the file that it is for
        self._state: SaveState = engine.persistence.saves
        self._state.save = self.save
        self._state.begin = self.begin
        self.child = SaveChild(disk, engine.keyspace, settings)

    def _now_ms(self) -> int:
        return self._engine.clock.now_us() // 1000

    @property
    def _path(self) -> str:
        return f"{self._settings.text('dir')}/{self._settings.text('dbfilename')}"

    # -- the lock ---------------------------------------------------------------------------------------------------

    def claim(self) -> Iterator[None]:
        """At the start, with save points: lock the file. UsageError if another server saves into it.

        Yields while it waits for the end of an earlier server's child. Where nothing can be written, the first save
        will say so.
        """
        waited_s = 0.0
        while self._state.points():
            try:
                self._hold()
            except OSError:
                return
            except UsageError:
                if waited_s >= ORPHANS_TAKE_S:
                    raise
            else:
                return
            self._engine.clock.sleep(LOOK_EVERY_S)
            waited_s += LOOK_EVERY_S
            yield

    def remove_leftovers(self) -> None:
        """At the start: remove the unfinished files of processes that were killed. A file in progress is locked."""
        folder = self._settings.text("dir")
        for name in self._disk.names(folder):
            if LEFTOVER.fullmatch(name):
                with suppress(OSError):
                    unfinished = self._disk.lock(f"{folder}/{name}")
                    if unfinished is not None:
                        self._disk.remove(f"{folder}/{name}")
                        unfinished.close()

    def _hold(self) -> None:
        """Lock the file that the settings name now. UsageError if another server has it, OSError as `Disk.lock`."""
        path = self._path
        if path == self._locked:
            return
        folder, _, name = path.rpartition("/")
        lock = self._disk.lock(f"{folder}/{LOCK.format(name)}")
        if lock is None:
            raise UsageError(f"Another server saves into {path}: stop it, or choose another dir or dbfilename.")
        self.release()
        self._lock, self._locked = lock, path

    def release(self) -> None:
        """At the end: another server may have the file."""
        if self._lock is not None:
            self._lock.close()
            self._lock, self._locked = None, ""

    # -- at once ----------------------------------------------------------------------------------------------------

    def save(self) -> str:
        """Write the file now, while all clients wait; why that failed, or ""."""
        self.stop()
        now_ms = self._now_ms()
        self._state.began()
        temporary = f"{self._settings.text('dir')}/{TEMPORARY.format(os.getpid())}"
        snapshot = rdb_saving.snapshot_of(self._engine.keyspace, self._settings, now_ms)
        problem = ""
        try:
            self._hold()
            self._write(snapshot, temporary)
            put_in_place(self._disk, temporary, self._path)
        except (OSError, UsageError) as failure:
            problem = str(failure)
            with suppress(OSError):
                self._disk.remove(temporary)
        self._ended(problem, in_background=False)
        return problem

    def _write(self, snapshot: RdbWriter, path: str) -> None:
        file = created(self._disk, path)
        try:
            progress = Progress()
            chunks = rdb_saving.counted(snapshot, progress)
            for chunk in key_delay.delayed(chunks, progress, self._settings, self._engine.clock.sleep):
                write_all(file, chunk)
            file.sync()
        finally:
            file.close()

    def _ended(self, problem: str, in_background: bool) -> None:
        self._state.ended(not problem, in_background)
        self.apply_failure()
        if problem:
            self._report(f"The RDB file could not be saved: {problem}.")
            return
        how = "Background saving terminated with success" if in_background else "DB saved on disk"
        path, seconds = self._locked, self._state.seconds_since_begin()  # the settings may name another by now
        try:
            size, head = self._disk.size(path), self._disk.read(path, 0, HEADER_BYTES)
        except OSError:
            self._report(f"{how}: {path}, which is not there any more, in {seconds} seconds")
            return
        self._report(f"{how}: {path}, {size} bytes in {seconds} seconds")
        note = rdb_saving.note_of(head, self._settings)
        if note:
            self._report(note)

    def apply_failure(self) -> None:
        """Refuse writers, or let them write again, by what became of the last save."""
        refuses = not self._state.works and bool(self._state.points()) and self._engine.persistence.log is None
        if refuses and self._settings.yes("stop-writes-on-bgsave-error"):
            self._engine.conditions.trouble = CANNOT_SAVE
        elif self._engine.conditions.trouble == CANNOT_SAVE:
            self._engine.conditions.trouble = None

    # -- by a child -------------------------------------------------------------------------------------------------

    def begin(self) -> str:
        """Have a child write the file; why there can be none, or ""."""
        now_ms = self._now_ms()
        self._state.began()
        try:
            self._hold()
            self.child.kept = (self._lock.fd,) if isinstance(self._lock, SystemFile) else ()
            self.child.start(self._settings.text("dir"), now_ms)
        except (OSError, UsageError) as failure:
            self._ended(str(failure), in_background=True)
            return str(failure)
        self._engine.persistence.forks += 1
        self._report(f"Background saving started by pid {self.child.pid}")
        return ""

    def look_after(self) -> None:
        """To be called ten times a second: take note of a child's end, begin a save that is due."""
        pid = self.child.pid
        if pid:
            problem = self.child.poll()
            self._engine.persistence.heard(self.child.progress)
            if problem is not None:
                self._state.copied_bytes = self._engine.persistence.most_copied
                self._engine.persistence.forget_progress()
                if problem:
                    self._remove(pid)
                self._ended(problem, in_background=True)
        elif self._is_free() and self._is_due():
            self.begin()

    def _is_free(self) -> bool:
        """Whether nothing stands in the way of a child: no loading, no script, no rewriting of the log."""
        engine = self._engine
        return not (engine.conditions.loading or engine.conditions.busy or engine.persistence.child)

    def _is_due(self) -> bool:
        state = self._state
        if state.scheduled:
            return True
        changes = state.changes()
        if not changes or (not state.works and state.seconds_since_begin() <= RETRY_S):
            return False
        since_s = state.seconds_since_save()
        return any(changes >= most and since_s > seconds for seconds, most in state.points())

    def stop(self) -> None:
        """End the child, if one runs; the file that it was writing goes."""
        pid = self.child.pid
        if pid:
            self.child.kill()
            self._state.stopped()
            self._remove(pid)

    def _remove(self, pid: int) -> None:
        """Remove the unfinished file of a child."""
        with suppress(OSError):
            self._disk.remove(self.child.path_of(self._settings.text("dir"), pid))
