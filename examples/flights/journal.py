"""A process's journal: a file to which it appends what it did, so that it can be judged after its death."""

import os
from collections.abc import Iterator
from pathlib import Path

Line = tuple[str, ...]


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


def read_journal(path: Path) -> Iterator[Line]:
    """The lines, without a last one that was cut off.

    The first word says how many follow it, so that a piece of a line is never taken for one.
    """
    with path.open(encoding="utf-8") as file:
        for text in file:
            words = tuple(text.split())
            if text.endswith("\n") and words and len(words) == WORDS.get(words[0], -1):
                yield words


# What the lines say. An asked or replied time is `time.monotonic_ns()`, which is one clock for the whole machine.
#   sent       id serial                                   the server answered an XADD
#   found      id serial                                   the stream had it after the connection was lost
#   lost       reason                                      the connection was lost
#   processed  id serial deliveries source asked_ns        the work is done; the acknowledgement comes after it
#   refused    id serial deliveries source asked_ns        the XNACK comes after it
#   acked      id replied_ns                               the server answered the XACK
WORDS = {"sent": 3, "found": 3, "lost": 2, "processed": 6, "refused": 6, "acked": 3}
