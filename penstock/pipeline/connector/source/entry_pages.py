"""Replies to XRANGE as arrays of positions: where each id, name and value stands in the bytes. No object per entry.

A reply is split at all its line ends at once, with numpy. Then every length header is compared with the length of the
line after it; if all agree, the split is right, because each part ends where the next one begins. Where a value holds a
line end, the lines of its entry are joined by their lengths, and all is checked again. What still does not agree goes
through hiredis, which is exact and slower (tests/pipeline/connector/test_entry_pages.py compares).
"""

from typing import Any, Final

import numpy
import pyarrow

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import parsed

STAR, DOLLAR, CR, LF, ZERO, DASH = b"*$\r\n0-"
LONGEST_NUMBER: Final = 18  # digits that an int64 surely holds
LARGEST_REPLY: Final = 2**31 - 1  # bytes; the places are 32 bits wide
SHORT: Final = 1024  # bytes; headers of shorter texts are compared with those of a table
BLOCK: Final = 1 << 18  # bytes searched for line ends at once
LARGE: Final = 2 << 20  # bytes of text: what memory it takes matters
WIDE: Final = 8  # bytes compared at once: `$1023`, a line end, and what follows


class Page:
    """Entries of one or more replies, in order.

    `tokens` holds every piece of text; `id_at`, `name_at` and `value_at` say which of them are ids, names and values.
    Entry i has the fields `offsets[i]` to `offsets[i + 1]` of name_at and value_at; `width` is how many each has, if
    all have as many, or -1. `counts` is the entries of each reply. `same_names` has, as far as it was looked for, the
    name that a field has in all entries, or None.
    """

    __slots__ = ("_fields", "counts", "id_at", "name_at", "offsets", "same_names", "tokens", "value_at", "width")

    def __init__(self, tokens: Any, id_at: Any, name_at: Any, value_at: Any, offsets: Any, counts: list[int]) -> None:
        self.tokens = tokens
        self.id_at = id_at
        self.name_at = name_at
        self.value_at = value_at
        self.offsets = offsets
        self.counts = counts
        self.width = _width(offsets)
        self.same_names: list[bytes | None] = []
        self._fields: tuple[list[bytes], Any, Any] | None = None

    def __len__(self) -> int:
        return len(self.id_at)

    def texts(self, at: Any, missing: Any = None) -> Any:
        """A binary array of some of the tokens, null where `missing`, a mask, is true."""
        _, bounds, text = self.tokens.buffers()
        if text is None or text.size < LARGE or self.tokens.type != pyarrow.binary():
            return self.tokens.take(pyarrow.array(at, mask=missing))
        # What `take` makes of much text grows while it is made, to three times its size. This costs 0.1 us a text more.
        places: Any = numpy.frombuffer(bounds, numpy.int32)
        begin, end = places[at], places[at + 1]
        if missing is not None:
            end[missing] = begin[missing]
        view = memoryview(text)
        offsets: Any = numpy.zeros(len(at) + 1, numpy.int32)
        numpy.cumsum(end - begin, out=offsets[1:])
        data = b"".join([view[one:behind] for one, behind in zip(begin.tolist(), end.tolist(), strict=True)])
        there = None if missing is None else pyarrow.array(~missing).buffers()[1]
        buffers = [there, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
        return pyarrow.Array.from_buffers(pyarrow.binary(), len(at), buffers)

    def places_of(self, name: bytes) -> tuple[Any, Any]:
        """The entries that have a field, and where it is in them, as arrays; twice where an entry has it twice.

        O(fields) the first time, whatever the name; then as fast as numpy compares small numbers.
        """
        if self._fields is None:
            names = self.texts(self.name_at).dictionary_encode()
            numbers = names.indices.to_numpy()
            entries: Any = numpy.repeat(numpy.arange(len(self)), numpy.diff(self.offsets))
            self._fields = names.dictionary.to_pylist(), numbers, entries
        known, numbers, entries = self._fields
        at = numpy.flatnonzero(numbers == known.index(name)) if name in known else numpy.zeros(0, numpy.int64)
        return entries[at], at

    def first_id(self, reply: int = 0) -> bytes:
        """The first id of a reply, which has one."""
        place: bytes = self.tokens[int(self.id_at[sum(self.counts[:reply])])].as_py()
        return place

    def last_id(self, reply: int = 0) -> bytes:
        place: bytes = self.tokens[int(self.id_at[sum(self.counts[: reply + 1]) - 1])].as_py()
        return place


def decode(replies: bytes | bytearray, count: int = 1) -> Page:
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
    """A page of parsed replies, each a list of [id, [name, value, ...]]; an entry with None as its fields is left out.

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


def _by_columns(replies: bytes | bytearray, count: int) -> Page | None:
    """The page, or None if the reply is not made of entries, or a value in it looks too much like an entry."""
    text = numpy.frombuffer(replies, numpy.uint8)
    ends = _places_of_line_ends(text)
    if not len(ends) or ends[-1] != len(text) - 2:
        return None
    lines = _Lines(replies, text, _starts(ends), ends)
    page = _page(lines, count)
    if page is None:
        whole = ends[text.take(ends + 1) == LF]
        if len(whole) < len(ends):
            lines = _Lines(replies, text, _starts(whole), whole)
        mended = lines.mended(count)
        page = None if mended is None else _page(mended, count)
    return page


def _places_of_line_ends(text: Any) -> Any:
    """Where line ends may begin. Block by block: a mask of the whole text would be as large as the text."""
    places: list[Any] = [at + numpy.flatnonzero(text[at : at + BLOCK] == CR) for at in range(0, len(text), BLOCK)]
    return numpy.concatenate(places) if places else numpy.zeros(0, numpy.int64)


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
    heads = lines.heads_of_entries(count)
    return None if heads is None else lines.without(heads).ragged(heads)


class _Heads:
    """The first lines of replies: where they are, and how many entries each announces.

    `width` is how many fields every entry has, as far as was looked; `rows` where entries begin once the heads are out
    (an array).
    """

    __slots__ = ("at", "counts", "rows", "width")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.counts: list[int] = []
        self.rows: Any = None
        self.width = -1


class _Found:
    """Arrays of the lines that may be heads of replies, and of those that may begin entries.

    words: for each entry the announced number of words of its fields.
    """

    __slots__ = ("counts", "entries", "heads", "words")

    def __init__(self, heads: Any, counts: Any, entries: Any, words: Any) -> None:
        self.heads = heads
        self.counts = counts
        self.entries = entries
        self.words = words


class _Lines:
    """Replies cut at their line ends: line i is the bytes from starts[i] to ends[i].

    An entry is a line `*2`, the id's length, the id, a line `*<2 x fields>`, and four lines for each field.
    """

    __slots__ = ("_found", "ends", "replies", "starts", "text")

    def __init__(self, replies: bytes | bytearray, text: Any, starts: Any, ends: Any) -> None:
        self._found: _Found | None = None
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

    def heads_of_entries(self, count: int) -> _Heads | None:
        """The heads, and where each entry begins, for any numbers of fields; None if the lines are not entries."""
        found = self._looked(count)
        if found is None:
            return None
        rows = found.entries - numpy.searchsorted(found.heads, found.entries)
        bounds: Any = numpy.append(rows, len(self.starts) - count)
        if (numpy.diff(bounds) != 4 + 2 * found.words).any() or bounds[0]:
            return None
        heads = _Heads()
        heads.at, heads.counts, heads.rows = found.heads.tolist(), found.counts.tolist(), rows
        return heads

    def _looked(self, count: int) -> _Found | None:
        """Find `count` replies of entries; None if their numbers of entries are not those that are announced."""
        if self._found is None:
            stars, sizes = self._all_announced()
            at = numpy.flatnonzero((sizes[:-1] == 2) & (numpy.diff(stars) == 3))
            others: Any = numpy.ones(len(stars), bool)
            others[at] = others[at + 1] = False
            self._found = _Found(stars[others], sizes[others], stars[at], sizes[at + 1])
        found = self._found
        if len(found.heads) != count or found.heads[0] or (found.words % 2).any():
            return None
        behind = numpy.searchsorted(found.entries, numpy.append(found.heads, len(self.starts)))
        return found if (numpy.diff(behind) == found.counts).all() else None

    def _all_announced(self) -> tuple[Any, Any]:
        """The lines that could be heads of arrays, and the numbers in them."""
        heads = numpy.flatnonzero(self.text.take(self.starts) == STAR)
        sizes = numbers(self.text, self.starts[heads] + 1, self.ends[heads])
        if sizes is None:
            sizes = numpy.array([self._announced(int(at)) for at in heads], numpy.int64)
            heads, sizes = heads[sizes >= 0], sizes[sizes >= 0]
        return heads, sizes

    def mended(self, count: int) -> "_Lines | None":
        """The lines with those joined that are one value; None if these are not `count` replies.

        An entry is taken to have no line end within where the next one, or a head, follows its lines. `grid` and
        `ragged` find out where that was wrong.
        """
        found = self._looked(count)
        if found is None:
            return None
        lines = len(self.starts)
        behind: Any = numpy.append(found.entries[1:], lines)
        heads = found.heads[found.heads > found.entries[0]] if len(found.entries) else found.heads[:0]
        lasts: Any = numpy.searchsorted(found.entries, heads) - 1
        behind[lasts[::-1]] = heads[::-1]  # backwards: of the heads behind an entry the first is what stays
        broken: list[tuple[int, int]] = []  # first and last line of each value with line ends
        for at in numpy.flatnonzero(behind - found.entries != 4 + 2 * found.words).tolist():
            if not self._walk(int(found.entries[at]) + 4, int(behind[at]), int(found.words[at]), broken):
                return None
        kept: Any = numpy.ones(lines, bool)
        ends = self.ends.copy()
        for first, last in broken:
            ends[first] = ends[last]
            kept[first + 1 : last + 1] = False
        return _Lines(self.replies, self.text, self.starts[kept], ends[kept])

    def _walk(self, begin: int, behind: int, words: int, broken: list[tuple[int, int]]) -> bool:
        """Whether these lines are so many words, by the words' lengths. Notes the words that have several lines."""
        starts, ends = self.starts[begin:behind].tolist(), self.ends[begin:behind].tolist()
        at, lines = 0, len(starts)
        for _ in range(words):
            if at + 1 >= lines:
                return False
            header = self.replies[starts[at] : ends[at]]
            if header[:1] != b"$" or not header[1:].isdigit():
                return False
            first = last = at + 1
            end = starts[first] + int(header[1:])
            while last < lines and ends[last] < end:
                last += 1
            if last == lines or ends[last] != end:
                return False
            if last > first:
                broken.append((begin + first, begin + last))
            at = last + 1
        return at == lines

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
            behind = slice(length + 1, last + 1, 2)
            if not are_headers(self.text, starts[:, length:last:2], ends[:, behind] - starts[:, behind]):
                return None
        rows = numpy.arange(0, len(self.starts), stride)
        names = (rows[:, None] + numpy.arange(5, stride, 4)).ravel()
        offsets = numpy.arange(len(rows) + 1, dtype=numpy.int32) * numpy.int32(heads.width)
        return Page(self._tokens(), 2 * (rows + 2), 2 * names, 2 * names + 4, offsets, heads.counts)

    def ragged(self, heads: _Heads) -> Page | None:
        """The page, verified, if entries have different numbers of fields."""
        rows = heads.rows
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
            if not are_headers(self.text, self.starts[texts - 1], self.ends[texts] - self.starts[texts]):
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


def _header_table() -> tuple[Any, Any]:
    """For each length below SHORT its header as a number, and a mask of as many bytes."""
    headers = [b"$%d\r\n" % length for length in range(SHORT)]
    return (
        numpy.array([int.from_bytes(header, "little") for header in headers], "<u8"),
        numpy.array([(1 << 8 * len(header)) - 1 for header in headers], "<u8"),
    )


_HEADERS, _MASKS = _header_table()


def are_headers(text: Any, begin: Any, lengths: Any) -> bool:
    """Whether at each of these places of a text stands `$`, the length given for it, and a line end.

    Eight bytes are compared at once. That costs a third of reading the numbers (2026-11-23).
    """
    if not begin.size:
        return True
    if int(lengths.min()) < 0 or len(text) < WIDE:
        return False
    wide: Any = numpy.ndarray((len(text) - WIDE + 1,), "<u8", text, strides=(1,))  # at every byte
    if int(lengths.max()) < SHORT and int(begin.max()) < len(wide):
        return bool(((wide[begin] & _MASKS.take(lengths)) == _HEADERS.take(lengths)).all())
    alone = (lengths >= SHORT) | (begin >= len(wide))
    for at, length in zip(begin[alone].tolist(), lengths[alone].tolist(), strict=True):
        header = b"$%d\r\n" % length
        if text[at : at + len(header)].tobytes() != header:
            return False
    found = wide[numpy.minimum(begin, len(wide) - 1)] & _MASKS.take(lengths, mode="clip")
    return bool(((found == _HEADERS.take(lengths, mode="clip")) | alone).all())


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
