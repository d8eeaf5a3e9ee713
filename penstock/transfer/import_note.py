"""The note that an import leaves in its directory, so that the same command goes on, or begins anew.

While it runs, the note says that the directory is of no use. Once everything has come, it says how far the source's
stream was, and how large the log's files were: a server on the directory may change them later.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from penstock.engine.replication.replication import Replication
from penstock.errors import UsageError

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


def read(directory: Path) -> ImportNote | None:
    """The note, if there is one; UsageError where it is damaged."""
    path = directory / NAME
    if not path.exists():
        return None
    try:
        note = ImportNote(**json.loads(path.read_text()))
        sound = isinstance(note.replication_id, str) and isinstance(note.offset + note.db_index, int)
    except (OSError, TypeError, ValueError) as problem:
        raise UsageError(f"{path} cannot be read: {problem}") from None
    if not sound:
        raise UsageError(f"{path} cannot be read: it is no note of an import")
    return note


def write(directory: Path, note: ImportNote) -> None:
    (directory / NAME).write_text(json.dumps(asdict(note)) + "\n")


def of(replication: Replication, log: Path) -> ImportNote:
    """The note of a server that has ended; `BEGUN` where its master's stream cannot go on, amid a transaction."""
    if replication.is_amid:
        return BEGUN
    return ImportNote(replication.id, replication.offset, replication.stream_db, sizes_of(log))


def sizes_of(log: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(log.iterdir())}
