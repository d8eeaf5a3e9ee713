"""Requests of a log as Arrow columns, split at all line ends at once with numpy.

Every length header is compared with the length of the line after it; if all agree the split is right, because each word
ends where the next header begins. A value that holds a line end fails that check: then there are no columns, and the
rows come from `protocol/log_reader` (the oracle: tests/pipeline/aof/test_log_columns.py). `LogBlocks` takes the one or
the other, block by block.
"""

from collections.abc import Container, Iterator
from operator import itemgetter
from typing import Any, Final

import numpy
import pyarrow

from penstock.pipeline.connector.source.entry_pages import CR, STAR, are_headers, numbers
from penstock.protocol import private_lines
from penstock.protocol.log_reader import ANNOTATION, Bytes, Damage, LogBlock, LogReader

LF: Final = 10
HASH: Final = ANNOTATION[0]
COLUMN_BYTES: Final = 256 * 1024  # with all that is made of it, it fits into a processor's cache
STRICT_BLOCKS: Final = 16  # read by the strict reader after a block that could not be had as columns


class LogColumns:
    """Whole requests at the start of a text. Line i of the text is token 2 i of `tokens`.

    `heads` are the lines of the requests' headers, `counts` the words of each, `starts` where each begins in the text.
    `annotations` are lines that are none, each with the number of the request after it. `offset` is where the text
    begins in its file, `taken` how many bytes of it the requests are.
    """

    __slots__ = ("_names", "annotations", "counts", "heads", "offset", "starts", "taken", "tokens")

    def __init__(self, text: bytes, offset: int, lines: tuple[Any, Any], heads: Any, counts: Any) -> None:
        starts, ends = lines
        bounds: Any = numpy.empty(2 * len(starts), numpy.int32)
        bounds[0::2] = starts
        bounds[1::2] = ends
        self.tokens = pyarrow.Array.from_buffers(
            pyarrow.binary(), len(bounds) - 1, [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(text)]
        )
        self.heads = heads
        self.counts = counts
        self.starts = starts[self.heads]
        self.annotations: list[tuple[int, bytes]] = []
        self.offset = offset
        self.taken = 0
        self._names: tuple[list[bytes], Any] | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def word(self, number: Any) -> Any:
        """One word of each request, counted from 0 (the name): a binary array; null where there is no such word.

        `number` is an array, or the same for all.
        """
        lacking = (number >= self.counts) | (number < 0)
        places = 2 * (self.heads + 2 + 2 * number)
        if not lacking.any():
            return self.tokens.take(pyarrow.array(places))
        return self.tokens.take(pyarrow.array(numpy.where(lacking, 0, places), mask=lacking))

    def names(self) -> tuple[list[bytes], Any]:
        """The names that there are, as they are written, and which of them each request has."""
        if self._names is None:
            found = self.word(0).dictionary_encode()
            self._names = found.dictionary.to_pylist(), found.indices.to_numpy()
        return self._names

    def changes(self, names: Container[bytes]) -> Iterator[tuple[int, list[bytes], bytes]]:
        """The requests of these names (in upper case) and the annotations, in order, which are few.

        Each as the number of the request, or of that behind the annotation; its first two words, or none; its line.
        """
        known, numbers = self.names()
        wanted = numpy.array([name.upper() in names for name in known])
        rows = numpy.flatnonzero(wanted.take(numbers)).tolist() if wanted.any() else []
        places = [(row, 0, line) for row, line in self.annotations] + [(row, 1, b"") for row in rows]
        for row, is_request, line in sorted(places, key=itemgetter(0, 1)):  # annotations in a row stay as they stand
            yield row, self._first_words(row) if is_request else [], line

    def _first_words(self, row: int) -> list[bytes]:
        first = int(self.heads[row]) + 2
        return [self.tokens[2 * (first + 2 * at)].as_py() for at in range(min(2, int(self.counts[row])))]

    def words_after_name(self) -> tuple[Any, Any]:
        """Offsets of each request's words in the second array, which has all words but the names."""
        offsets, lines = _every_second(self.heads + 4, self.counts - 1)
        return offsets, self.tokens.take(pyarrow.array(2 * lines))


class LogBlocks:
    """A file's whole requests between two offsets, block by block; a request must begin at `start`.

    After one that cannot be had as columns the next ones come from the strict reader, too. Once `next_block` has given
    None, `offset` is where the whole requests end, and `damage` and `is_cut_off` are those of a LogReader.
    """

    __slots__ = ("_block_bytes", "_end", "_read", "_strict", "damage", "is_cut_off", "offset")

    def __init__(self, read: Bytes, start: int, end: int, block_bytes: int = COLUMN_BYTES) -> None:
        self._read = read
        self._end = end
        self._block_bytes = block_bytes
        self._strict = 0
        self.offset = start
        self.damage: Damage | None = None
        self.is_cut_off = False

    def next_block(self) -> LogColumns | LogBlock | None:
        """The next requests, one at least; None at the end."""
        if self.offset >= self._end:
            return None
        if not self._strict:
            columns = log_columns(self._read(self.offset, min(self._block_bytes, self._end - self.offset)), self.offset)
            if columns is not None:
                self.offset += columns.taken
                return columns
        self._strict = (self._strict or STRICT_BLOCKS) - 1
        reader = LogReader(self._read, self.offset, self._end)
        block = reader.next_block()
        self.offset = reader.offset
        if block is None:
            self.damage, self.is_cut_off = reader.damage, reader.is_cut_off
        return block


def log_columns(text: bytes, offset: int = 0) -> LogColumns | None:
    """The whole requests at the start of a text that begins with one; None if in doubt, or if there is none.

    `offset` is the text's place in its file.
    """
    codes = numpy.frombuffer(text, numpy.uint8)
    ends = numpy.flatnonzero((codes[:-1] == CR) & (codes[1:] == LF))
    if not len(ends):
        return None
    starts = numpy.empty_like(ends)
    starts[0] = 0
    numpy.add(ends[:-1], 2, out=starts[1:])
    first = codes.take(starts)
    found = _chain(codes, starts, ends, first)
    if found is None:
        return None
    requests, counts, annotations, line = found
    if not len(requests):
        return None
    columns = LogColumns(text, offset, (starts, ends), requests, counts)
    _, headers = _every_second(requests + 1, counts)
    words = headers + 1
    if not are_headers(codes, starts.take(headers), ends.take(words) - starts.take(words)):
        return None
    columns.annotations = [(number, text[starts[at] : ends[at]]) for number, at in annotations]
    if any(b"\n" in line or line.startswith(private_lines.BEGINNING) for _, line in columns.annotations):
        return None  # one that ends without CR, or a request
    columns.taken = int(ends[line - 1]) + 2
    return columns


def _chain(codes: Any, starts: Any, ends: Any, first: Any) -> tuple[Any, Any, list[tuple[int, int]], int] | None:
    """The lines of the requests' headers, the words of each, the annotations, and the first line that is not taken."""
    stars = numpy.flatnonzero(first == STAR)
    begin, lengths = starts.take(stars) + 1, ends.take(stars) - starts.take(stars)
    digits = codes.take(begin)
    counted = (digits > 48) & (digits <= 57) & (lengths > 1) & (lengths < 9)  # a count has no leading zero here
    if not counted.all():
        stars, begin = stars[counted], begin[counted]
    known = numbers(codes, begin, ends.take(stars))
    if known is None:
        return None  # a value like `*1x`: the strict reader knows what it is
    hashes = numpy.flatnonzero(first == HASH)
    units, steps = stars, 2 * known + 1
    if len(hashes):
        units = numpy.concatenate([stars, hashes])
        order = numpy.argsort(units)
        units, steps = units[order], numpy.concatenate([steps, numpy.ones_like(hashes)])[order]
    if not len(units) or units[0]:
        return None
    if not (units[1:] == units[:-1] + steps[:-1]).all():  # a value begins like a header, or a line is neither
        units, steps = _followed(units.tolist(), steps.tolist())
    behind = int(units[-1] + steps[-1])
    if behind > len(starts):  # the last request is not there to its end
        behind = int(units[-1])
        units, steps = units[:-1], steps[:-1]
    elif behind < len(starts):
        return None
    is_request = steps > 1
    before = numpy.cumsum(is_request)
    others = numpy.flatnonzero(~is_request)
    annotations = list(zip(before[others].tolist(), units[others].tolist(), strict=True))
    return units[is_request], (steps[is_request] - 1) // 2, annotations, behind


def _followed(units: list[int], steps: list[int]) -> tuple[Any, Any]:
    """Of lines that look like a header or an annotation, those that are reached from the first one."""
    reached, lengths = [], []
    due = 0
    for line, step in zip(units, steps, strict=True):
        if line == due:
            reached.append(line)
            lengths.append(step)
            due = line + step
    return numpy.array(reached, numpy.int64), numpy.array(lengths, numpy.int64)


def _every_second(first: Any, counts: Any) -> tuple[Any, Any]:
    """Of each request every second line, from its own first one on, as many as counted; and where each one's begin."""
    offsets: Any = numpy.zeros(len(first) + 1, numpy.int64)
    numpy.cumsum(counts, out=offsets[1:])
    within = numpy.arange(offsets[-1]) - numpy.repeat(offsets[:-1], counts)
    return offsets, numpy.repeat(first, counts) + 2 * within
