"""A process's journal: a file to which it appends what it did, so that it can be judged after its death.

penstock/pipeline/journals.py says what its lines mean, and reads them.
"""

import os
from pathlib import Path

from penstock.pipeline.journals import Line


class Journal:
    """Appends lines of words with one write each batch: what was written stays when the process is killed."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # a line that the last owner's death cut off

    def write(self, lines: list[Line]) -> None:
        if lines:
            os.write(self._file, "".join(" ".join(line) + "\n" for line in lines).encode())
