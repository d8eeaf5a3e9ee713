"""Replies to XRANGE as arrays of positions: where each id, name and value stands in the bytes. No object per entry.

A reply is split at all its line ends at once, with numpy. Then every length header is compared with the length of the
line after it; if all agree, the split is right, because each part ends where the next one begins. Where a value holds a
line end, its entry is found by a walk from entry to entry, its lines are joined, and all is checked again. What still
does not agree goes through hiredis, which is exact and slower (tests/pipeline/connector/test_entry_pages.py compares).
"""

from typing import Any, Final

import numpy
import pyarrow

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import parsed

STAR, DOLLAR, CR, LF, ZERO, DASH = b"*$\r\n0-"
LONGEST_NUMBER: Final = 18  # digits that an int64 surely holds
LARGEST_REPLY: Final = 2**31 - 1  # bytes; the places are 32 bits wide


class Page:
    """Entries of one or more replies, in order.

    `tokens` holds every piece of text; `id_at`, `name_at` and `value_at` say which of them are ids, names and values.
    Entry i has the fields `offsets[i]` to `offsets[i + 1]` of name_at and value_at; `width` is how many each has, if
    all have as many, or -1. `counts` is the entries of each reply. `same_names` has, as far as somebody looked, the
    name that a field has in all entries, or None.
    """

    __slots__ = ("counts", "id_at", "name_at", "offsets", "same_names", "tokens", "value_at", "width")

    def __init__(self, tokens: Any, id_at: Any, name_at: Any, value_at: Any, offsets: Any, counts: list[int]) -> None:
        self.tokens = tokens
        self.id_at = id_at
        self.name_at = name_at
        self.value_at = value_at
        self.offsets = offsets
        self.counts = counts
        self.width = _width(offsets)
        self.same_names: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self.id_at)

    def texts(self, at: Any) -> Any:
        """A binary array of some of the tokens; a masked place is null."""
        return self.tokens.take(pyarrow.array(at))

    def first_id(self, reply: int = 0) -> bytes:
        """The first id of a reply, which has one."""
        place: bytes = self.tokens[int(self.id_at[sum(self.counts[:reply])])].as_py()
        return place

    def last_id(self, reply: int = 0) -> bytes:
        place: bytes = self.tokens[int(self.id_at[sum(self.counts[: reply + 1]) - 1])].as_py()
        return place


def decode(replies: bytes, count: int = 1) -> Page:
    """The entries of `count` replies to XRANGE, which `replies` holds; ReplyError for the first that is a refusal."""
    if not count:
        return from_lists([])
    page = _by_columns(replies, count) if len(replies) <= LARGEST_REPLY else None
    if page is not None:
        return page
    lists = parsed(replies)
    for reply in lists:
        if isinstance(reply, ReplyError):
            raise reply
    assert len(lists) == count, "every request has its reply"
    return from_lists(lists)


def from_lists(replies: list[Any]) -> Page:
    """A page of parsed replies, each a list of [id, [name, value, ...]]; an entry whose fields are None is left out.

    (A deleted entry that is still pending: XREADGROUP of the history shows it so.)
    """
    texts: list[bytes] = []
    id_at: list[int] = []
    name_at: list[int] = []
    offsets = [0]
    counts = []
    for reply in replies:
        before = len(id_at)
        for entry_id, fields in reply or ():
            if fields is None:
                continue
            id_at.append(len(texts))
            texts.append(entry_id)
            name_at.extend(range(len(texts), len(texts) + len(fields), 2))
            texts.extend(fields)
            offsets.append(len(name_at))
        counts.append(len(id_at) - before)
    names = numpy.array(name_at, numpy.int64)
    ids_at = numpy.array(id_at, numpy.int64)
    tokens = pyarrow.array(texts, pyarrow.binary() if sum(map(len, texts)) < LARGEST_REPLY else pyarrow.large_binary())
    return Page(tokens, ids_at, names, names + 1, numpy.array(offsets, numpy.int32), counts)


# -- all at once ------------------------------------------------------------------------------------------------------


def _by_columns(replies: bytes, count: int) -> Page | None:
    """The page, or None if the reply is not made of entries, or a value in it looks too much like an entry."""
    text = numpy.frombuffer(replies, numpy.uint8)
    ends = numpy.flatnonzero(text == CR)
    if not len(ends) or ends[-1] != len(text) - 2:
        return None
    page = _page(_Lines(replies, text, _starts(ends), ends), count)
    if page is None:
        ends = ends[text.take(ends + 1) == LF]
        mended = _Lines(replies, text, _starts(ends), ends).mended(count)
        page = None if mended is None else _page(mended, count)
    return page


def _starts(ends: Any) -> Any:
    """Where lines begin that end there."""
    starts = numpy.empty_like(ends)
    starts[0] = 0
    numpy.add(ends[:-1], 2, out=starts[1:])
    return starts


def _page(lines: "_Lines", count: int) -> Page | None:
    """The page, verified; None if these lines are not `count` replies."""
    heads = lines.heads_of_a_grid(count)
    if heads is not None:
        page = lines.without(heads).grid(heads)
        if page is not None:
            return page
    heads = lines.heads_one_by_one(count)
    return None if heads is None else lines.without(heads).ragged(heads)


class _Heads:
    """The first lines of replies: where they are, and how many entries each announces.

    `width` is how many fields every entry has, as far as was looked; `rows` where entries begin once the heads are out.
    """

    __slots__ = ("at", "counts", "rows", "width")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.counts: list[int] = []
        self.rows: list[int] = []
        self.width = -1


class _Lines:
    """Replies cut at their line ends: line i is the bytes from starts[i] to ends[i].

    An entry is a line `*2`, the id's length, the id, a line `*<2 x fields>`, and four lines for each field.
    """

    __slots__ = ("ends", "replies", "starts", "text")

    def __init__(self, replies: bytes, text: Any, starts: Any, ends: Any) -> None:
        self.replies = replies
        self.text = text
        self.starts = starts
        self.ends = ends

    def without(self, heads: _Heads) -> "_Lines":
        """The entries' lines only."""
        if len(heads.at) == 1:
            return _Lines(self.replies, self.text, self.starts[1:], self.ends[1:])
        return _Lines(self.replies, self.text, numpy.delete(self.starts, heads.at), numpy.delete(self.ends, heads.at))

    def heads_of_a_grid(self, count: int) -> _Heads | None:
        """The heads of `count` replies if all entries have the same number of fields; None if they do not."""
        found = _Heads()
        at = 0
        for _ in range(count):
            entries = self._announced(at)
            if entries < 0:
                return None
            found.at.append(at)
            found.counts.append(entries)
            at += 1
            if entries:
                size = self._announced(at + 3)
                if size < 0 or size % 2 or (found.width >= 0 and size != 2 * found.width):
                    return None
                found.width = size // 2
                at += entries * (4 + 2 * size)
        return found if at == len(self.starts) and found.width >= 0 else None

    def heads_one_by_one(self, count: int) -> _Heads | None:
        """The heads, and where each entry begins, for any numbers of fields; None if the lines are not entries."""
        found = _Heads()
        sizes = self._all_announced()
        lines = len(sizes)
        at = 0
        for _ in range(count):
            entries = sizes[at] if at < lines else -1
            if entries < 0:
                return None
            found.at.append(at)
            found.counts.append(entries)
            at += 1
            before = len(found.at)
            for _ in range(entries):
                size = sizes[at + 3] if at + 3 < lines else -1
                if size < 0 or size % 2:
                    return None
                found.rows.append(at - before)
                at += 4 + 2 * size
        return found if at == lines else None

    def _all_announced(self) -> list[int]:
        """For each line the number in it, if it could be an array's head; else -1."""
        found: Any = numpy.full(len(self.starts), -1, numpy.int64)
        heads = numpy.flatnonzero(self.text.take(self.starts) == STAR)
        sizes = numbers(self.text, self.starts[heads] + 1, self.ends[heads])
        found[heads] = [self._announced(int(at)) for at in heads] if sizes is None else sizes
        announced: list[int] = found.tolist()
        return announced

    def mended(self, count: int) -> "_Lines | None":
        """The lines with those joined that are one value; None if these are not `count` replies.

        An entry is taken to have no line end within where an array's head follows its lines. `grid` and `ragged` find
        out where that was wrong.
        """
        broken: list[tuple[int, int]] = []  # first and last line of each value with line ends
        sizes = self._all_announced()
        lines = len(sizes)
        at = 0
        for _ in range(count):
            entries = sizes[at] if at < lines else -1
            if entries < 0:
                return None
            at += 1
            for _ in range(entries):
                size = sizes[at + 3] if at + 3 < lines else -1
                if size < 0:
                    return None
                behind = at + 4 + 2 * size
                if behind != lines and (behind > lines or sizes[behind] < 0):
                    behind = self._walk(at + 4, size, broken)
                    if behind < 0:
                        return None
                at = behind
        if at != lines:
            return None
        kept: Any = numpy.ones(lines, bool)
        ends = self.ends.copy()
        for first, last in broken:
            ends[first] = ends[last]
            kept[first + 1 : last + 1] = False
        return _Lines(self.replies, self.text, self.starts[kept], ends[kept])

    def _walk(self, at: int, words: int, broken: list[tuple[int, int]]) -> int:
        """The line behind so many words, by their lengths; -1 if these are no words. Notes those of several lines."""
        lines = len(self.starts)
        for _ in range(words):
            if at + 1 >= lines:
                return -1
            header = self.replies[self.starts[at] : self.ends[at]]
            if header[:1] != b"$" or not header[1:].isdigit():
                return -1
            first = last = at + 1
            end = int(self.starts[first]) + int(header[1:])
            while last < lines and self.ends[last] < end:
                last += 1
            if last == lines or self.ends[last] != end:
                return -1
            if last > first:
                broken.append((first, last))
            at = last + 1
        return at

    def _announced(self, at: int) -> int:
        """The number in a line that must be an array's head; -1 if it is not one."""
        if at >= len(self.starts):
            return -1
        line = self.replies[self.starts[at] : self.ends[at]]
        is_head = line[:1] == b"*" and line[1:].isdigit() and len(line) <= 1 + LONGEST_NUMBER
        return int(line[1:]) if is_head else -1

    def grid(self, heads: _Heads) -> Page | None:
        """The page, verified, if all entries have `heads.width` fields: a table with a row for each entry."""
        stride = 4 + 4 * heads.width
        starts, ends = self.starts.reshape(-1, stride), self.ends.reshape(-1, stride)
        pairs = self._numbers(STAR, starts[:, 0], ends[:, 0])
        sizes = self._numbers(STAR, starts[:, 3], ends[:, 3])
        if pairs is None or sizes is None or not (pairs == 2).all() or not (sizes == 2 * heads.width).all():
            return None
        for length, last in ((1, 2), (4, stride)):
            announced = self._numbers(DOLLAR, starts[:, length:last:2], ends[:, length:last:2])
            behind = slice(length + 1, last + 1, 2)
            if announced is None or not (announced == ends[:, behind] - starts[:, behind]).all():
                return None
        rows = numpy.arange(0, len(self.starts), stride)
        names = (rows[:, None] + numpy.arange(5, stride, 4)).ravel()
        offsets = numpy.arange(len(rows) + 1, dtype=numpy.int32) * numpy.int32(heads.width)
        return Page(self._tokens(), 2 * (rows + 2), 2 * names, 2 * names + 4, offsets, heads.counts)

    def ragged(self, heads: _Heads) -> Page | None:
        """The page, verified, if entries have different numbers of fields."""
        rows = numpy.array(heads.rows, numpy.int64)
        pairs = self._numbers(STAR, self.starts[rows], self.ends[rows])
        sizes = self._numbers(STAR, self.starts[rows + 3], self.ends[rows + 3])
        if pairs is None or sizes is None or not (pairs == 2).all():
            return None
        widths = sizes // 2
        offsets: Any = numpy.zeros(len(rows) + 1, numpy.int32)
        numpy.cumsum(widths, out=offsets[1:])
        # The name of field j of an entry stands 5 + 4 j lines behind the entry's first line.
        names: Any = numpy.repeat(rows + 5 - 4 * offsets[:-1].astype(numpy.int64), widths)
        names += 4 * numpy.arange(len(names))
        for texts in (rows + 2, names, names + 2):
            announced = self._numbers(DOLLAR, self.starts[texts - 1], self.ends[texts - 1])
            if announced is None or not (announced == self.ends[texts] - self.starts[texts]).all():
                return None
        return Page(self._tokens(), 2 * (rows + 2), 2 * names, 2 * names + 4, offsets, heads.counts)

    def _numbers(self, kind: int, begin: Any, end: Any) -> Any:
        """The numbers in lines that are to be `kind` and digits; None where one is not."""
        if not (self.text.take(begin) == kind).all():
            return None
        return numbers(self.text, begin + 1, end)

    def _tokens(self) -> Any:
        """An Arrow array over the reply without copying: lines at even positions, line ends at odd ones."""
        bounds: Any = numpy.empty(2 * len(self.starts), numpy.int32)
        bounds[0::2] = self.starts
        bounds[1::2] = self.ends
        buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(self.replies)]
        return pyarrow.Array.from_buffers(pyarrow.binary(), max(len(bounds) - 1, 0), buffers)


def numbers(text: Any, begin: Any, end: Any) -> Any:
    """The decimal numbers at these places of a text, as int64; None where one is no number, or too large a one.

    At least one byte must follow every number.
    """
    if not begin.size:
        return numpy.zeros(begin.shape, numpy.int64)
    widths = end - begin
    longest = int(widths.max())
    if int(widths.min()) < 1 or longest > LONGEST_NUMBER:
        return None
    digits = text.take(begin)
    digits -= ZERO  # in bytes, so that what is below '0' is far beyond 9
    if (digits > 9).any():
        return None
    found = digits.astype(numpy.int64)
    for place in range(1, longest):
        digits = text.take(begin + place, mode="clip")
        digits -= ZERO
        more = widths > place
        if (more & (digits > 9)).any():
            return None
        found = numpy.where(more, found * 10 + digits, found)
    return found


def _width(offsets: Any) -> int:
    widths = numpy.diff(offsets)
    return int(widths[0]) if len(widths) and (widths == widths[0]).all() else -1
