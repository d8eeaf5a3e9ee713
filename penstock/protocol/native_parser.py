"""Parses a client's requests into batches, byte by byte: how the compiled build reads ordinary input.

See native_words.py for the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.native.text_match import is_at
from penstock.protocol.native_words import (
    NONE,
    cut_request,
    cut_words,
    header_of,
    size_of_prefix,
    size_of_word,
)
from penstock.protocol.reply import bulk, bulks
from penstock.protocol.request_batch import (
    COLUMNS,
    ID_WORDS,
    MOST_POSITIONS,
    NO_COLUMNS,
    NO_WORDS,
    POSITIONS,
    PREFIX_WORDS,
    REQUESTS,
    RequestBatch,
    fit_columns,
    layout,
    one,
    same_shape,
)
from penstock.protocol.strict_parser import WEB_INITIALS, is_web

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

LONGEST_KEPT: Final = 1024  # bytes of a request, or of the beginning of one, that a connection keeps while it rests
_MULTI: Final = one([b"MULTI"])  # of all clients: a batch is never changed
_EXEC: Final = one([b"EXEC"])
_MULTI_TEXT: Final = bulks(_MULTI.prefix)
_EXEC_TEXT: Final = bulks(_EXEC.prefix)
_ONE: Final = 49
_CR: Final = 13
_O: Final = 79  # the second letter of all WEB_INITIALS
_SMALL_O: Final = 111
_ZERO: Final = 48
_NINE: Final = 57


class LoneRequests:
    """What requests that come alone, one after the other, leave for the next one.

    `batch` is the next one's, and is not kept longer: making and freeing one takes as long as parsing. `head` are
    the bytes, and `head_words` the words, with which two in a row began that batches would have as their prefix: the
    words of a producer's requests are the same but for the last ones. Empty: there were no such two.
    """

    __slots__ = ("_width", "batch", "head", "head_words")

    def __init__(self) -> None:
        self.batch = one(NO_WORDS)
        self.head = b""
        self.head_words = NO_WORDS
        self._width = 0  # words of the requests that begin so

    def cut(self, data: bytes, end: i64, words: list[bytes]) -> i64:
        """Append the words of a request that begins with `head`, which there must be; as cut_request, and NONE if it
        begins otherwise."""
        size: i64 = len(self.head)
        if size > end or not is_at(self.head, data, 0):
            return NONE
        words += self.head_words
        return cut_words(data, size, end, self._width - len(words), words)

    def note(self, words: list[bytes], data: bytes, shapes: dict[bytes, int]) -> None:
        """A request of more words than a prefix came alone: see whether the one before began with the same words."""
        former = self.batch.prefix
        if len(former) != len(words) or former[0] != words[0] or former[1] != words[1]:
            return
        shape = shapes.get(words[0], 0)
        if not shape & COLUMNS:
            return
        width, own, _ = layout(words, shape)
        if width and not own and size_of_prefix(words, width) <= LONGEST_KEPT:
            self.head, self.head_words, self._width = data[: size_of_prefix(words, width)], words[:width], len(words)


def batches(
    data: bytes, at: i64, limit: i64, shapes: dict[bytes, int], found: list[RequestBatch], lone: LoneRequests
) -> i64:
    """Append the whole ordinary requests from an offset on, about `limit` of them, as batches; the offset behind them.

    lone: has the batch that is appended if all the data are one request.

    It stops before a request that is not whole or not ordinary.
    """
    end: i64 = len(data)
    while at < end and limit > 0:
        if at + 2 < end and data[at + 1] == _ONE and data[at + 2] == _CR:
            bound = multi_or_exec_at(data, at, end)
            if bound is not None:
                found.append(bound)
                limit -= 1
                at += size_of_prefix(bound.prefix, 1)
                continue
        words: list[bytes] = []
        stop: i64 = NONE
        if at == 0 and lone.head:
            stop = lone.cut(data, end, words)
        has_same_head = stop > 0
        if not has_same_head:
            if words:
                words = []
            stop = cut_request(data, at, end, words)
            if stop < 0:
                break
        name = words[0]
        if len(name) > 1 and (name[1] == _O or name[1] == _SMALL_O) and name[:2] in WEB_INITIALS and is_web(name):
            break
        if stop == end and at == 0:
            if not has_same_head and len(words) > PREFIX_WORDS:
                lone.note(words, data, shapes)
            found.append(lone.batch.become(words, data))
            return end
        shape = shapes.get(name, 0) if stop < end else 0
        if shape & POSITIONS and 1 < len(words) <= MOST_POSITIONS:
            batch, at = cut_positions(data, stop, data[at : at + size_of_prefix(words, 1)], words)
            found.append(batch)
            limit -= batch.count
            continue
        if shape & COLUMNS:
            lengths = layout(words, shape)
            width: i64 = lengths[0]
            own: i64 = lengths[1]
            before: i64 = lengths[2]
            common: i64 = 0  # bytes that all of a batch begin with: in entries the first name, too
            if width > 0:
                has_name = own == 0 and len(words) > before + 1
                common = size_of_prefix(words, width + 1 if has_name else width)
            head = data[at : at + common]
            if common > 0 and stop + common <= end and is_at(head, data, stop):
                batch, batch_end = cut_batch(data, at, stop, head, words, width, own, before)
                if batch.count > 1:
                    found.append(batch)
                    limit -= batch.count
                    at = batch_end
                    continue
        if shape & REQUESTS:
            batch, at = cut_same_shape(data, at, stop, words, shape)
            found.append(batch)
            limit -= batch.count
            continue
        found.append(one(words))
        limit -= 1
        at = stop
    return at


def multi_or_exec_at(data: bytes, at: i64, end: i64) -> RequestBatch | None:
    """The MULTI or EXEC at an offset, in capitals, if it does not come alone; None for any other request.

    Making and freeing their words and batches takes as long as parsing three other requests.
    """
    size: i64 = len(_MULTI_TEXT)
    if at + size <= end and is_at(_MULTI_TEXT, data, at):
        return _MULTI if at or size < end else None
    size = len(_EXEC_TEXT)
    if at + size <= end and is_at(_EXEC_TEXT, data, at):
        return _EXEC if at or size < end else None
    return None


def cut_same_shape(data: bytes, start: i64, at: i64, first: list[bytes], shape: int) -> tuple[RequestBatch, i64]:
    """The request at an offset and those behind it that have its name and number of words, up to two that fit columns;
    and the offset behind them. Where others fit columns, each keeps its bytes.

    first: the words of the first request, which ends at `at`.
    """
    end: i64 = len(data)
    head = data[start : start + size_of_prefix(first, 1)]
    size: i64 = len(head)
    name = first[0]
    has_columns = shape & COLUMNS != 0
    several, texts = [first], NO_WORDS if not has_columns else [data[start:at]]
    last: i64 = NONE  # where the last of several begins, if it is not the first
    while at + size <= end and is_at(head, data, at):
        words = [name]
        stop: i64 = cut_words(data, at + size, end, len(first) - 1, words)
        if stop < 0:
            break
        if has_columns:
            if last > 0 and fit_columns(several[-1], words, shape):
                several.pop()
                texts.pop()
                at = last
                break
            texts.append(data[at:stop])
        several.append(words)
        last = at
        at = stop
    return same_shape(several, texts), at


def cut_batch(
    data: bytes, at: i64, stop: i64, head: bytes, first: list[bytes], width: i64, own: i64, before: i64
) -> tuple[RequestBatch, i64]:
    """The request at an offset and those behind it that begin with the same bytes, `head`, and fit one batch; and the
    offset behind them.

    first: the words of the first request, which ends at `stop`; width, own, before: its `layout`.
    """
    end: i64 = len(data)
    words: i64 = len(first)
    step: i64 = 2 if words - before > 1 else 1
    names: list[bytes] = []
    packed_names: list[bytes] = []
    columns: list[list[bytes]] = []
    own_columns: list[list[bytes]] = NO_COLUMNS if own == 0 else [[word] for word in first[width : width + own]]
    tails = [data[at + size_of_prefix(first, before) : stop]]
    place: i64 = before
    while place < words:
        if step == 2:
            names.append(first[place])
            packed_names.append(bulk(first[place]))
        columns.append([first[place + step - 1]])
        place += step
    start: i64 = size_of_prefix(first, width)
    common: i64 = len(head)
    at = stop
    fields: i64 = len(columns)
    while at + common <= end and is_at(head, data, at):
        tail: i64 = at + start
        if own:
            tail = cut_own(data, tail, end, first, width, own, before, own_columns)
            if tail < 0:
                break
        place = tail if own else at + common
        field: i64 = 0
        while field < fields:
            if step == 2 and (field or own):
                name = packed_names[field]
                size: i64 = len(name)
                if place + size > end or not is_at(name, data, place):
                    break
                place += size
            size = size_of_word(data, place, end)
            if size < 0:
                break
            place += header_of(size)
            columns[field].append(data[place : place + size])
            place += size + 2
            field += 1
        if field < fields:
            break
        tails.append(data[tail:place])
        at = place
    count = len(tails)
    if count == 1:
        return one(first), at
    cut_back(columns, count)
    cut_back(own_columns, count)
    middle = first[width + own : before]
    return RequestBatch(first[:width], names, columns, count, tails, None, own_columns, middle), at


def cut_positions(data: bytes, at: i64, head: bytes, first: list[bytes]) -> tuple[RequestBatch, i64]:
    """A request and those behind it that begin with the same bytes, `head`, to the end of their name: a column for each
    other word; and the offset behind them.

    first: the words of the first request, which ends at the offset.
    """
    end: i64 = len(data)
    size: i64 = len(head)
    columns = [[word] for word in first[1:]]
    count = 1
    while at + size <= end and is_at(head, data, at):
        place: i64 = at + size
        for column in columns:
            length: i64 = size_of_word(data, place, end)
            if length < 0:
                place = NONE
                break
            place += header_of(length)
            column.append(data[place : place + length])
            place += length + 2
        if place < 0:
            cut_back(columns, count)
            break
        count += 1
        at = place
    return RequestBatch(first[:1], NO_WORDS, columns, count) if count > 1 else one(first), at


def cut_back(columns: list[list[bytes]], count: int) -> None:
    """Take away the words of a request that turned out to be another one."""
    for column in columns:
        if len(column) > count:
            column.pop()


def cut_own(
    data: bytes, at: i64, end: i64, first: list[bytes], width: i64, own: i64, before: i64, columns: list[list[bytes]]
) -> i64:
    """Append to columns the words of a request's own that are at an offset; the offset behind them and the middle.

    NONE if they are not there, or the words of the middle are not those of the first request.
    """
    word: i64 = width
    while word < before:
        size: i64 = size_of_word(data, at, end)
        if size < 0:
            return NONE
        at += header_of(size)
        if word < width + own:
            if own == ID_WORDS and not _ZERO <= data[at] <= _NINE:  # as is_id; an empty word's line end is no digit
                return NONE
            columns[word - width].append(data[at : at + size])
        elif size != len(first[word]) or not is_at(first[word], data, at):
            return NONE
        at += size + 2
        word += 1
    return at
