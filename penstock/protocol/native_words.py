"""Cuts requests into words byte by byte: how the compiled build reads clients' ordinary requests, and the log's.

In C a byte costs a nanosecond and an object twenty; in Python a byte costs more than an object, so the uncompiled build
splits at line ends (line_words.py). Uncompiled, these loops give the same result, slowly.

The 64-bit numbers are offsets into the data and sizes of words, which are bounded. `a if b else c` makes objects of
them: it stands nowhere here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i16_le, read_i32_le

from penstock.protocol.limits import BLOCK

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

NONE: Final = -1  # instead of an offset or a size
_MOST_WORDS: Final = 999
_LARGEST_WORD: Final = BLOCK - 1  # the strict parser reads larger words, which proto-max-bulk-len may forbid
_CR: Final = 13
_LF: Final = 10
_STAR: Final = 42
_ZERO: Final = 48
_DOLLAR: Final = 36
_LINE_END: Final = 0x0A0D  # CR, LF as a little-endian number
_WITHOUT_ONE: Final = 0xFFFF00FF  # the four bytes of a header with one digit, without the digit
_WITHOUT_TWO: Final = 0xFF0000FF  # the first four of one with two digits, without the digits


def cut_requests(data: bytes, at: i64, requests: list[list[bytes]]) -> i64:
    """Append the words of the whole ordinary requests from an offset on; the offset behind them."""
    end: i64 = len(data)
    while at < end:
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
    return cut_words(data, at + header_of(count), end, count, words)


def cut_words(data: bytes, at: i64, end: i64, count: i64, words: list[bytes]) -> i64:
    """Append so many words of a request from an offset on; the offset behind them, or NONE as `cut_request`."""
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
    """The size of the word with its header `$<size>` at an offset; NONE if there is no whole ordinary word."""
    size: i64 = number_at(data, at, end, _DOLLAR, _LARGEST_WORD)
    if size < 0:
        return NONE
    word_end: i64 = at + header_of(size) + size
    if word_end + 2 > end or read_i16_le(data, word_end) != _LINE_END:
        return NONE
    return size


def number_at(data: bytes, at: i64, end: i64, mark: i64, largest: i64) -> i64:
    """The number of the header at an offset: a type, digits without a leading zero, a line end; or NONE.

    largest: 99 or more.
    """
    if at + 4 > end:
        return NONE
    header: i64 = int(read_i32_le(data, at))
    number: i64 = ((header >> 8) & 0xFF) - _ZERO
    if header & _WITHOUT_ONE == mark | _LINE_END << 16:  # one digit or two, which most headers have
        if 0 <= number <= 9:
            return number
        return NONE
    digit: i64 = ((header >> 16) & 0xFF) - _ZERO
    if header & _WITHOUT_TWO == mark | _CR << 24 and 0 < number <= 9 and 0 <= digit <= 9:
        if at + 4 < end and data[at + 4] == _LF:
            return number * 10 + digit
        return NONE
    if header & 0xFF != mark:
        return NONE
    start: i64 = at + 1
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
    if at > start + 1 and data[start] == _ZERO:
        return NONE
    return number


def header_of(number: i64) -> i64:
    """Bytes of a header: type, digits, line end."""
    if number < 10:
        return 4
    if number < 100:
        return 5
    if number < 1000:
        return 6
    if number < 10000:
        return 7
    return 8


def size_of_prefix(words: list[bytes], width: i64) -> i64:
    """Bytes of the first words of a request, its header included."""
    size: i64 = header_of(len(words))
    word: i64 = 0
    while word < width:
        length: i64 = len(words[word])
        size += header_of(length) + length + 2
        word += 1
    return size
