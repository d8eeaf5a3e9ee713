"""The log's directory: its files, how the log is found at the start, and how the manifest is replaced.

Redis 7's layout with several files, below `root`: `appendonlydir/appendonly.aof.1.base.aof`, `...1.incr.aof` and
`appendonly.aof.manifest`. A manifest is replaced as a whole: a new file is written and synced, renamed over the old
one, and the directory is synced.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from penstock.errors import UsageError
from penstock.storage.aof import manifest as manifests
from penstock.storage.aof.disk import Disk, File
from penstock.storage.aof.manifest import BASE, INCREMENT, LogFile, Manifest
from penstock.storage.rdb import rdb_format

LOCK_NAME: Final = "penstock.lock"
TEMPORARY_BASE: Final = "temp-rewriteaof-bg-"
WAITING: Final = "temp-waiting.aof"  # units behind a base that is being written, where no increment can take them
COPIED_BYTES: Final = 1024 * 1024  # of a snapshot, at a time

# Named moments (see Disk.reach)
MANIFEST_WRITTEN: Final = "manifest-written"  # to a temporary file, not synced
MANIFEST_SYNCED: Final = "manifest-synced"
MANIFEST_RENAMED: Final = "manifest-renamed"
HISTORY_REMOVED: Final = "history-removed"  # the files are deleted, the manifest still names them
SNAPSHOT_COPIED: Final = "snapshot-copied"  # there is no manifest yet
ADOPTED: Final = "adopted"  # a single-file log was moved into the directory; there is no manifest yet


class LogDirectory:
    """One log's files. Nothing is created or changed before `open`. Only one server at a time can open a directory.

    `unsure`: a new manifest was renamed into place, but syncing the directory failed. After a power failure either that
    manifest or `manifest` may be found. `_base_seq` and `_increment_seq` are the highest numbers that a saved manifest
    may name: no other file may take such a place, for it does not fit to the others of that manifest.
    """

    __slots__ = (
        "_base_seq", "_increment_seq", "_lock", "disk", "manifest", "name", "path", "root", "snapshot", "unsure",
    )  # fmt: skip

    def __init__(self, disk: Disk, root: str, directory_name: str, file_name: str, snapshot: str = "") -> None:
        """snapshot: the name of an RDB file in `root` that a log may begin with."""
        self.disk = disk
        self.root = root
        self.snapshot = snapshot
        self.path = f"{root}/{directory_name}"
        self.name = file_name
        self.manifest = Manifest()
        self.unsure = False
        self._base_seq = self._increment_seq = 0
        self._lock: File | None = None

    # -- the start --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Lock the directory and find the log in it. An old single-file log is moved into the directory.

        UsageError if the log cannot be used: another server uses it, it is damaged, or it is in a format that Penstock
        does not read.
        """
        disk = self.disk
        disk.make_directory(self.path)
        disk.sync_directory(self.root)
        self._lock = disk.lock(f"{self.path}/{LOCK_NAME}")
        if self._lock is None:
            raise UsageError(f"Another server is using the log in {self.path}: stop it, or choose another dir.")
        try:
            self._find()
        except (OSError, UsageError):
            self.close()
            raise

    def _find(self) -> None:
        disk = self.disk
        names = disk.names(self.path)
        if self._manifest_name() in names:
            self.manifest = self._read_manifest()
        single = f"{self.root}/{self.name}"
        if not self.manifest.files():
            self._refuse_orphans(names)
            if self.name in names or disk.exists(single):
                self._adopt(self.name in names, single)
        for file in self.manifest.files():
            path = f"{self.path}/{file.name}"
            if not disk.exists(path):
                raise UsageError(f"The log's file {path} is missing, but its manifest names it.")
        for name in names:
            if name.startswith(("temp-", TEMPORARY_BASE)):
                disk.remove(f"{self.path}/{name}")

    def _read_manifest(self) -> Manifest:
        path = f"{self.path}/{self._manifest_name()}"
        try:
            return manifests.parse(self.disk.read(path, 0, self.disk.size(path)))
        except UsageError as refusal:
            raise UsageError(f"{path}: {refusal}") from None

    def _refuse_orphans(self, names: list[str]) -> None:
        """Refuse a directory with data but without a manifest. (Redis starts empty and appends to the data.)"""
        pattern = re.compile(re.escape(self.name) + r"\.\d+\.(base|incr)\.(aof|rdb)")
        for name in names:
            if name == self._copied_name() and self.finds_snapshot():
                continue  # it was copied, and the server ended before the manifest was written
            if pattern.fullmatch(name) and self.disk.size(f"{self.path}/{name}"):
                raise UsageError(
                    f"{self.path} holds {name} but no {self._manifest_name()} that names it: restore the manifest,"
                    " or move the directory away to start empty."
                )

    def _adopt(self, moved: bool, single: str) -> None:
        """A log from before Redis 7, one file in `root`, becomes the base; it keeps its name.

        `save` writes the manifest later. If a crash comes before that, the file is already in the directory: `moved`.
        """
        inside = f"{self.path}/{self.name}"
        if moved and self.disk.exists(single):
            raise UsageError(f"There are two old logs, {single} and {inside}: move one of them away.")
        if not moved:
            self.disk.rename(single, inside)
            self.disk.sync_directory(self.path)
            self.disk.sync_directory(self.root)
            self.disk.reach(ADOPTED)
        self.manifest = Manifest()
        self.manifest.base = LogFile(self.name, 1, BASE)

    # -- beginning with a snapshot ----------------------------------------------------------------------------------

    @property
    def snapshot_path(self) -> str:
        """Where the snapshot is, or would be; "" where there is to be none."""
        return f"{self.root}/{self.snapshot}" if self.snapshot else ""

    def finds_snapshot(self) -> bool:
        """Whether there is no log, but a snapshot that one can begin with."""
        return not self.manifest.files() and bool(self.snapshot) and self.disk.exists(self.snapshot_path)

    def adopt_snapshot(self) -> Iterator[int]:
        """Copy the snapshot, which becomes the base; yields the bytes done.

        The manifest is written by `save`. After a crash before that the snapshot is found again, and the copy is
        known for one by its name.
        """
        disk = self.disk
        base = LogFile(self._copied_name(), 1, BASE)
        beside = f"{self.path}/temp-{base.name}"
        file = disk.create(beside)
        try:
            size = disk.size(self.snapshot_path)
            for offset in range(0, size, COPIED_BYTES):
                write_all(file, disk.read(self.snapshot_path, offset, COPIED_BYTES))
                yield offset
            file.sync()
        finally:
            file.close()
        disk.rename(beside, self.path_of(base))
        disk.sync_directory(self.path)
        disk.reach(SNAPSHOT_COPIED)
        self.manifest = Manifest()
        self.manifest.base = base

    def _copied_name(self) -> str:
        return f"{self.name}.1.base.rdb"

    # -- names ------------------------------------------------------------------------------------------------------

    def _manifest_name(self) -> str:
        return self.name + ".manifest"

    def path_of(self, file: LogFile) -> str:
        """The path of one of the log's files."""
        return f"{self.path}/{file.name}"

    def next_base(self, written: str = "") -> LogFile:
        """The next base file. written: where a rewrite has written it; an RDB file is named `.rdb`.

        OSError if that cannot be read.
        """
        seq = max(self._base_seq, 0 if self.manifest.base is None else self.manifest.base.seq) + 1
        is_rdb = bool(written) and self.disk.read(written, 0, len(rdb_format.MAGIC)) == rdb_format.MAGIC
        return LogFile(f"{self.name}.{seq}.base.{'rdb' if is_rdb else 'aof'}", seq, BASE)

    def next_increment(self) -> LogFile:
        """The increment that the next rewrite starts."""
        increments = self.manifest.increments
        seq = max(self._increment_seq, increments[-1].seq if increments else 0) + 1
        return LogFile(f"{self.name}.{seq}.incr.aof", seq, INCREMENT)

    def temporary_base(self, pid: int) -> str:
        """The path at which the child process `pid` writes a base."""
        return f"{self.path}/{TEMPORARY_BASE}{pid}.aof"

    @property
    def waiting_path(self) -> str:
        """Where units are that wait for a base."""
        return f"{self.path}/{WAITING}"

    # -- changing ---------------------------------------------------------------------------------------------------

    def create(self, file: LogFile) -> File:
        """Create an empty file and sync it.

        It is safe from a power failure once the directory is synced (`save` does that).
        """
        created = self.disk.create(self.path_of(file))
        created.sync()
        return created

    def save(self, manifest: Manifest) -> None:
        """Put another manifest in force. After an OSError, `manifest` is still the old one."""
        disk = self.disk
        disk.sync_directory(self.path)  # the files that the manifest names must be safe first
        temporary = f"{self.path}/temp-{self._manifest_name()}"
        file = disk.create(temporary)
        try:
            write_all(file, manifests.text_of(manifest))
            disk.reach(MANIFEST_WRITTEN)
            file.sync()
        finally:
            file.close()
        disk.reach(MANIFEST_SYNCED)
        if manifest.base is not None:
            self._base_seq = max(self._base_seq, manifest.base.seq)
        if manifest.increments:
            self._increment_seq = max(self._increment_seq, manifest.increments[-1].seq)
        disk.rename(temporary, f"{self.path}/{self._manifest_name()}")
        self.unsure = True
        disk.reach(MANIFEST_RENAMED)
        disk.sync_directory(self.path)
        self.unsure = False
        self.manifest = manifest

    def remove_history(self) -> None:
        """Delete the history files and remove them from the manifest, which nothing else may change meanwhile.

        May be called in a thread. OSError if that fails: the next rewrite deletes what is left.
        """
        for file in self.manifest.history:
            if self.disk.exists(self.path_of(file)):
                self.disk.remove(self.path_of(file))
        self.disk.reach(HISTORY_REMOVED)
        if self.manifest.history:
            manifest = self.manifest.copy()
            manifest.history = []
            self.save(manifest)

    # -- a sync that failed -----------------------------------------------------------------------------------------

    @property
    def is_distrusted(self) -> bool:
        """Whether a sync of its files failed, and no new base was put in force since then."""
        return self.disk.exists(self._mark)

    def distrust(self) -> None:
        """Leave a file that says so to a server that starts while the system still has the bytes in memory.

        The system may count them as written (Linux does), so a later sync that works does not write them. Not synced:
        with the machine's power the bytes are gone, too. Nothing is done where no file can be made.
        """
        with suppress(OSError):
            self.disk.create(self._mark).close()

    def trust(self) -> None:
        """A new base is in force, and new files. If the mark stays, the next start writes one base too many."""
        if self.is_distrusted:
            with suppress(OSError):
                self.disk.remove(self._mark)

    @property
    def _mark(self) -> str:
        return f"{self.path}/{self.name}.sync-failed"

    def close(self) -> None:
        """Unlock the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def write_all(file: File, chunk: bytes) -> None:
    """Write a whole chunk, with as many calls as it takes. OSError if a call writes nothing."""
    while chunk:
        taken = file.write(chunk)
        if taken <= 0:
            raise OSError(errno.EIO, "a write took nothing")
        chunk = chunk[taken:]
