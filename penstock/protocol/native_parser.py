"""Parses a client's requests into batches, byte by byte: how the compiled build reads ordinary input.

See native_words.py for the reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.native.text_match import is_at
from penstock.protocol.native_words import NONE, cut_request, cut_words, header_of, size_of_prefix, size_of_word
from penstock.protocol.reply import bulk
from penstock.protocol.request_batch import (
    COLUMNS,
    ID_WORDS,
    MOST_POSITIONS,
    NO_COLUMNS,
    NO_WORDS,
    POSITIONS,
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
_O: Final = 79  # the second letter of all WEB_INITIALS
_SMALL_O: Final = 111
_ZERO: Final = 48
_NINE: Final = 57


def batches(
    data: bytes, at: i64, limit: i64, shapes: dict[bytes, int], found: list[RequestBatch], single: RequestBatch
) -> i64:
    """Append the whole ordinary requests from an offset on, about `limit` of them, as batches; the offset behind them.

    single: appended, with these words, if all the data are one request; making and freeing a batch takes as long as
    parsing.

    It stops before a request that is not whole or not ordinary.
    """
    end: i64 = len(data)
    while at < end and limit > 0:
        words: list[bytes] = []
        stop: i64 = cut_request(data, at, end, words)
        if stop < 0:
            break
        name = words[0]
        if len(name) > 1 and (name[1] == _O or name[1] == _SMALL_O) and name[:2] in WEB_INITIALS and is_web(name):
            break
        if stop == end and at == 0:
            found.append(single.become(words, data))
            return end
        shape = shapes.get(name, 0) if stop < end else 0
        if shape & POSITIONS and 1 < len(words) <= MOST_POSITIONS:
            batch, at = cut_positions(data, stop, data[at : at + size_of_prefix(words, 1)], words)
            found.append(batch)
            limit -= batch.count
            continue
        if shape & COLUMNS:
            batch, batch_end = cut_columns(data, at, stop, words, shape)
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


def cut_columns(data: bytes, at: i64, stop: i64, words: list[bytes], shape: int) -> tuple[RequestBatch, i64]:
    """The request at an offset and those behind it that fit one batch with columns; and the offset behind them.

    words: of the first request, which ends at `stop`.
    """
    width, own, before = layout(words, shape)
    if width == 0:
        return one(words), stop
    # What all of a batch begin with: in entries the first name, too.
    has_name = own == 0 and len(words) > before + 1
    head = data[at : at + size_of_prefix(words, width + 1 if has_name else width)]
    if stop + len(head) > len(data) or not is_at(head, data, stop):
        return one(words), stop
    return cut_batch(data, at, stop, head, words, width, own, before)


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
