"""The note that an import leaves in its directory, so that the same command goes on, or begins anew.

While it runs, the note says that the directory is of no use. Once everything has come, it says how far the source's
stream was, and how large the log's files were: a server on the directory may change them later.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

from penstock.engine.replication.replication import Replication
from penstock.errors import UsageError
from penstock.storage.aof.disk import Disk
from penstock.storage.aof.log_directory import write_all

NAME: Final = "penstock-import.json"
NOWHERE: Final = ""  # replication_id of an import that is not whole


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Where to go on: the history, the offset, and the database of its stream. sizes: of the log's files, by name."""

    replication_id: str
    offset: int
    db_index: int
    sizes: dict[str, int]

    @property
    def is_whole(self) -> bool:
        return self.replication_id != NOWHERE


BEGUN: Final = ImportNote(NOWHERE, 0, 0, {})


def read(disk: Disk, directory: str) -> ImportNote | None:
    """The note, if there is one; UsageError where it is damaged."""
    path = f"{directory}/{NAME}"
    if not disk.exists(path):
        return None
    try:
        note = ImportNote(**json.loads(disk.read(path, 0, disk.size(path))))
        sound = isinstance(note.replication_id, str) and isinstance(note.offset + note.db_index, int)
    except (OSError, TypeError, ValueError) as problem:
        raise UsageError(f"{path} cannot be read: {problem}") from None
    if not sound:
        raise UsageError(f"{path} cannot be read: it is no note of an import")
    return note


def write(disk: Disk, directory: str, note: ImportNote) -> None:
    """Put a note in place of another one: after a loss of power, one of them is there. UsageError where that fails."""
    path = f"{directory}/{NAME}"
    try:
        file = disk.create(f"{path}.new")
        try:
            write_all(file, json.dumps(asdict(note)).encode() + b"\n")
            file.sync()
        finally:
            file.close()
        disk.rename(f"{path}.new", path)
        disk.sync_directory(directory)
    except OSError as failure:
        raise UsageError(f"{directory} cannot be written: {failure.strerror}") from None


def of(replication: Replication, disk: Disk, log: str) -> ImportNote:
    """The note of a server that has ended; `BEGUN` where its master's stream cannot go on, amid a transaction."""
    if replication.is_amid:
        return BEGUN
    return ImportNote(replication.id, replication.offset, replication.stream_db, sizes_of(disk, log))


def sizes_of(disk: Disk, log: str) -> dict[str, int]:
    return {name: disk.size(f"{log}/{name}") for name in sorted(disk.names(log))}
