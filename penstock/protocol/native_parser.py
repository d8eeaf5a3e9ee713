"""Parses requests byte by byte: how the compiled build reads ordinary input.

In C a byte costs a nanosecond and an object twenty; in Python a byte costs more than an object, so the uncompiled build
uses hiredis. Uncompiled, as in some tests, these loops give the same result, slowly.

The 64-bit numbers are offsets into the data and sizes of words, which are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.protocol.limits import BLOCK
from penstock.protocol.request_batch import NO_COLUMNS, OWN_WORDS, REQUESTS, RequestBatch, alike, layout, one
from penstock.protocol.strict_parser import WEB_INITIALS, is_web

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

IS_COMPILED: Final[bool] = __file__.endswith((".so", ".pyd"))  # whether this module was loaded as a compiled one

NONE: Final = -1  # instead of an offset or a size
_MOST_WORDS: Final = 999
_LARGEST_WORD: Final = BLOCK - 1  # the strict parser reads larger words, which proto-max-bulk-len may forbid
_CR: Final = 13
_LF: Final = 10
_STAR: Final = 42
_ZERO: Final = 48
_DOLLAR: Final = 36
_O: Final = 79  # the second letter of all WEB_INITIALS
_SMALL_O: Final = 111


def batches(data: bytes, at: i64, limit: i64, shapes: dict[bytes, int], found: list[RequestBatch]) -> i64:
    """Append the whole ordinary requests from an offset on, about `limit` of them, as batches; the offset behind them.

    It stops before a request that is not whole or not ordinary. request_batch.batches_of does the same from words.
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
        shape = shapes.get(name, 0) if stop < end else 0
        if shape == REQUESTS:
            several = [words]
            at = cut_alike(data, at, stop, several)
            found.append(alike(several))
            limit -= len(several)
            continue
        if shape:
            lengths = layout(words, shape)
            width: i64 = lengths[0]
            before: i64 = lengths[1]
            common: i64 = 0  # bytes that all of a batch begin with: in entries the first name, too
            if width > 0:
                has_name = before == width and len(words) > before + 1
                common = size_of_prefix(words, width + 1 if has_name else width)
            if common > 0 and data[stop : stop + common] == data[at : at + common]:
                batch, at = cut_batch(data, at, stop, common, words, width, before)
                found.append(batch)
                limit -= batch.count
                continue
        found.append(one(words))
        limit -= 1
        at = stop
    return at


def cut_alike(data: bytes, first: i64, at: i64, requests: list[list[bytes]]) -> i64:
    """Append the whole requests from an offset on with the name and the number of words of another; the offset behind.

    requests: that one, which begins at `first`.
    """
    end: i64 = len(data)
    start: i64 = size_of_prefix(requests[0], 1)
    head = data[first : first + start]
    while data[at : at + start] == head:
        words: list[bytes] = []
        stop: i64 = cut_request(data, at, end, words)
        if stop < 0:
            break
        requests.append(words)
        at = stop
    return at


def cut_request(data: bytes, at: i64, end: i64, words: list[bytes]) -> i64:
    """Append the words of the request at an offset; the offset behind it, or NONE if it is not whole or ordinary."""
    count: i64 = number_at(data, at, end, _STAR, _MOST_WORDS)
    if count < 1:
        return NONE
    at += header_of(count)
    while count > 0:
        size: i64 = size_of_word(data, at, end)
        if size < 0:
            return NONE
        at += header_of(size)
        words.append(data[at : at + size])
        at += size + 2
        count -= 1
    return at


def size_of_word(data: bytes, at: i64, end: i64) -> i64:
    """The size of the word whose header `$<size>` is at an offset; NONE if there is no whole ordinary word."""
    size: i64 = number_at(data, at, end, _DOLLAR, _LARGEST_WORD)
    if size < 0:
        return NONE
    word_end: i64 = at + header_of(size) + size
    if word_end + 2 > end or data[word_end] != _CR or data[word_end + 1] != _LF:
        return NONE
    return size


def number_at(data: bytes, at: i64, end: i64, mark: i64, largest: i64) -> i64:
    """The number of the header at an offset: a type, digits without a leading zero, a line end; or NONE."""
    if at + 4 > end or data[at] != mark:
        return NONE
    start: i64 = at + 1
    number: i64 = data[start]
    number -= _ZERO
    if 0 <= number <= 9 and number <= largest:  # one digit or two, which most headers have
        digit: i64 = data[start + 1]
        if digit == _CR:
            return number if data[start + 2] == _LF else NONE
        digit -= _ZERO
        if number > 0 and 0 <= digit <= 9 and at + 5 <= end and data[start + 2] == _CR:
            number = number * 10 + digit
            return number if data[start + 3] == _LF and number <= largest else NONE
    at = start
    number = 0
    while at < end:
        digit = data[at]
        digit -= _ZERO
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        if number > largest:
            return NONE
        at += 1
    if at == start or at + 2 > end or data[at] != _CR or data[at + 1] != _LF:
        return NONE
    return NONE if at > start + 1 and data[start] == _ZERO else number


def header_of(number: i64) -> i64:
    """Bytes of a header: type, digits, line end."""
    if number < 10:
        return 4
    if number < 100:
        return 5
    if number < 1000:
        return 6
    return 7 if number < 10000 else 8


def size_of_prefix(words: list[bytes], width: i64) -> i64:
    """Bytes of the first words of a request, its header included."""
    size: i64 = header_of(len(words))
    word: i64 = 0
    while word < width:
        length: i64 = len(words[word])
        size += header_of(length) + length + 2
        word += 1
    return size


def cut_batch(
    data: bytes, at: i64, stop: i64, common: i64, first: list[bytes], width: i64, before: i64
) -> tuple[RequestBatch, i64]:
    """The request at an offset and those behind it that begin with the same `common` bytes, have as many words, and
    equal names; and the offset behind them.

    first: the words of the first request, which ends at `stop`; the first `width` are the prefix. Its columns begin
    behind `before` words; if these are more, two words of each request's own stand between, and the batch's middle.
    """
    end: i64 = len(data)
    words: i64 = len(first)
    own: i64 = OWN_WORDS if before > width else 0
    step: i64 = 2 if words - before > 1 else 1
    names: list[bytes] = []
    columns: list[list[bytes]] = []
    own_columns: list[list[bytes]] = NO_COLUMNS if own == 0 else [[first[width]], [first[width + 1]]]
    tails = [data[at + size_of_prefix(first, before) : stop]]
    place: i64 = before
    while place < words:
        if step == 2:
            names.append(first[place])
        columns.append([first[place + step - 1]])
        place += step
    start: i64 = size_of_prefix(first, width)
    head = data[at : at + common]
    at = stop
    fields: i64 = len(columns)
    while data[at : at + common] == head:
        tail: i64 = at + start
        if own:
            tail = cut_own(data, tail, end, first, width, before, own_columns)
            if tail < 0:
                break
        place = tail if own else at + common
        field: i64 = 0
        while field < fields:
            if step == 2 and (field or own):
                name = names[field]
                size: i64 = size_of_word(data, place, end)
                if size != len(name):
                    break
                place += header_of(size)
                if not equals(data, place, name):
                    break
                place += size + 2
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


def cut_back(columns: list[list[bytes]], count: int) -> None:
    """Take away the words of a request that turned out to be another one."""
    for column in columns:
        if len(column) > count:
            column.pop()


def cut_own(
    data: bytes, at: i64, end: i64, first: list[bytes], width: i64, before: i64, columns: list[list[bytes]]
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
        if word < width + OWN_WORDS:
            columns[word - width].append(data[at : at + size])
        elif size != len(first[word]) or not equals(data, at, first[word]):
            return NONE
        at += size + 2
        word += 1
    return at


def equals(data: bytes, at: i64, word: bytes) -> bool:
    """Whether a word is at an offset; it must not reach beyond the data."""
    size: i64 = len(word)
    place: i64 = 0
    while place < size:
        if data[at + place] != word[place]:
            return False
        place += 1
    return True
