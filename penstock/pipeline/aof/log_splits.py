"""Splits a log's file into parts for several tasks.

Each split is moved to a boundary between requests. The boundary is found by trying: an offset before the split that
looks like the start of a request is accepted if everything parses from there to PROOF bytes after the split. A long
value that is itself a log can deceive this, so each task verifies the start of the next one: the first task starts at
the file's beginning, which is right, and a task that ends exactly where the next one starts proves that start right. A
wrong split therefore makes the task before it fail; no request is ever read wrongly in silence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import BinaryIO, Final

from penstock.pipeline.aof.log_files import LogPart, opened
from penstock.protocol.log_reader import ANNOTATION, LONGEST_HEADER, Damage, Unfinished, header

SPLIT_BYTES: Final = 64 * 1024 * 1024
LOOK_BACK: Final = 256 * 1024  # bytes before a split that are searched: values up to that size cannot deceive
PROOF: Final = 64 * 1024  # bytes after a split that must parse
WINDOW: Final = 64 * 1024

_CANDIDATE: Final = re.compile(rb"\r\n(?=\*[1-9][0-9]{0,9}\r\n\$[0-9]{1,10}\r\n|#TS:[0-9])")
_LONGEST_CANDIDATE: Final = 32  # bytes that the pattern looks at


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a log's file that one task reads: `start` begins a request, and one ends at `end`.

    `number` is its place among all the splits of a read. `is_end`: it is the end of the log's last file. `db`, `ts`
    (unix microseconds) and `in_multi` are those of its first request; None if unknown.
    """

    part: LogPart
    number: int
    start: int
    end: int
    db: int | None = None
    ts: int | None = None
    in_multi: bool | None = None

    @property
    def is_end(self) -> bool:
        return self.part.is_last and self.end == self.part.size


def splits_of(parts: list[LogPart], split_bytes: int) -> list[Split]:
    """The splits of a log's files, in order; 0 bytes: each file in one piece."""
    found: list[Split] = []
    for part in parts:
        places = [0, part.size]
        if 0 < split_bytes < part.size:
            cuts = range(split_bytes, part.size, split_bytes)
            with opened(part.path) as file:
                places += [boundary(file, cut, part.size) for cut in cuts]
        places = sorted(set(places))
        for start, end in pairwise(places):
            known = (0, None, False) if start == 0 else (None, None, None)
            found.append(Split(part, len(found), start, end, *known))
    return found


def boundary(file: BinaryIO, cut: int, size: int) -> int:
    """The first boundary between requests at or after `cut`, most probably; `size` if there is none."""
    if cut <= 0 or cut >= size:
        return max(0, min(cut, size))
    walk = Walk(file, size)
    begin = max(0, cut - LOOK_BACK)
    torn: int | None = None  # the boundary found from a candidate with its last request beyond the end of the file
    passed: set[int] = (
        set()
    )  # offsets of requests parsed from earlier candidates: trying them again would give the same
    for candidate in chain([0] if begin == 0 else [], candidates(file, begin, size)):
        if candidate in passed:
            continue
        try:
            found = _proven(walk, candidate, cut, size, passed)
        except Unfinished as unfinished:
            torn = unfinished.args[0] if torn is None else torn
        else:
            if found is not None:
                return found
    return size if torn is None else torn


def _proven(walk: "Walk", candidate: int, cut: int, size: int, passed: set[int]) -> int | None:
    """The boundary at or after `cut`, if everything parses from the candidate to PROOF bytes after it.

    Unfinished, with the boundary, if the file ends within a request.
    """
    place, found = candidate, None
    try:
        while place < size and (found is None or place < found + PROOF):
            if found is None and place >= cut:
                found = place
            passed.add(place)
            place = walk.behind(place)
    except Unfinished:
        raise Unfinished(size if found is None else found) from None
    except Damage:
        return None
    return size if found is None else found


def candidates(file: BinaryIO, begin: int, size: int) -> Iterator[int]:
    """Every offset from `begin` on that looks like a request's beginning."""
    for at in range(begin, size, WINDOW):
        file.seek(at)
        window = file.read(min(WINDOW + _LONGEST_CANDIDATE, size - at))
        for match in _CANDIDATE.finditer(window):
            if match.start() < WINDOW:
                yield at + match.end()


class Walk:
    """Steps from request to request through a file; long values are skipped, only their ends are read."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._window = b""
        self._base = 0

    def behind(self, place: int) -> int:
        """The offset after the request or annotation at `place`; Unfinished or Damage as in protocol/log_reader."""
        if self._bytes(place, 1) == ANNOTATION:
            line = self._bytes(place, 1024)
            end = line.find(b"\n")
            if end < 0:
                raise Unfinished if place + len(line) >= self._size else Damage(place, "an annotation line")
            return place + end + 1
        count, place = self._header(place, b"*")
        if count < 1:
            raise Damage(place, "a request of one word at least")
        for _ in range(count):
            length, place = self._header(place, b"$")
            place += length
            ending = self._bytes(place, 2)
            if ending != b"\r\n":
                raise Unfinished if place + len(ending) >= self._size else Damage(place, "the end of a word")
            place += 2
        return place

    def _header(self, place: int, kind: bytes) -> tuple[int, int]:
        number, size = header(self._bytes(place, LONGEST_HEADER + 2), 0, kind, "a header")
        return number, place + size

    def _bytes(self, place: int, count: int) -> bytes:
        at = place - self._base
        if at < 0 or at + count > len(self._window):
            if place >= self._size:
                return b""
            self._file.seek(place)
            self._window = self._file.read(min(WINDOW, self._size - place))
            self._base, at = place, 0
        return self._window[at : at + count]
