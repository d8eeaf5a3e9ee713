"""Requests read byte by byte: what the compiled build does where Python itself is faster with splits and joins.

In C a byte costs a nanosecond and every object twenty; in Python it is the other way round. So cut.py and alike.py,
which say what is read, have it done here where they are compiled. Their own way is the oracle: what they read is read
here, too, and the same; a word with a line end in it, which they leave to the reader, is read here as well.

The 64-bit numbers are places in the data and sizes of words, which are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # the compiler's; Python does not look at it

_MOST_WORDS: Final = 999
_LARGEST_WORD: Final = 4095
_CR: Final = 13
_LF: Final = 10
_STAR: Final = 42
_ZERO: Final = 48
_DOLLAR: Final = 36


def one_request(data: bytes) -> list[bytes] | None:
    """The request that some bytes are, as cut.py has it."""
    words: list[bytes] = []
    end: i64 = len(data)
    return words if cut_request(data, 0, end, words) == end else None


def requests(data: bytes) -> list[list[bytes]]:
    """The requests that some bytes are, if all of them are whole and ordinary; else none."""
    found: list[list[bytes]] = []
    end: i64 = len(data)
    at: i64 = 0
    while at < end:
        words: list[bytes] = []
        at = cut_request(data, at, end, words)
        if at < 0:
            return []
        found.append(words)
    return found


def cut_request(data: bytes, at: i64, end: i64, words: list[bytes]) -> i64:
    """Cut out the words of the request at a place; where it ends, or -1 where no whole ordinary request is."""
    count: i64 = number_at(data, at, end, _STAR, _MOST_WORDS)
    if count < 1:
        return -1
    at += header_of(count)
    while count > 0:
        size: i64 = size_of_word(data, at, end)
        if size < 0:
            return -1
        at += header_of(size)
        words.append(data[at : at + size])
        at += size + 2
        count -= 1
    return at


def size_of_word(data: bytes, at: i64, end: i64) -> i64:
    """The size of the word whose header `$<size>` is at a place; -1 where no whole ordinary word is."""
    size: i64 = number_at(data, at, end, _DOLLAR, _LARGEST_WORD)
    if size < 0:
        return -1
    word_end: i64 = at + header_of(size) + size
    if word_end + 2 > end or data[word_end] != _CR or data[word_end + 1] != _LF:
        return -1
    return size


def number_at(data: bytes, at: i64, end: i64, mark: i64, largest: i64) -> i64:
    """The number of the header at a place: a mark, digits without a zero in front, a line end; -1 where none is."""
    if at + 4 > end or data[at] != mark:
        return -1
    start: i64 = at + 1
    at = start
    number: i64 = 0
    while at < end and data[at] != _CR:
        digit: i64 = data[at]
        digit -= _ZERO
        number = number * 10 + digit
        if digit < 0 or digit > 9 or number > largest:
            return -1
        at += 1
    if at == start or at + 2 > end or data[at + 1] != _LF or (data[start] == _ZERO and at > start + 1):
        return -1
    return number


def header_of(number: i64) -> i64:
    """How many bytes a header takes: its mark, the digits, the line end."""
    if number < 10:
        return 4
    if number < 100:
        return 5
    return 6 if number < 1000 else 7


def stands_at(part: bytes, data: bytes, at: i64, end: i64) -> bool:
    size: i64 = len(part)
    if at + size > end:
        return False
    place: i64 = 0
    while place < size:
        if data[at + place] != part[place]:
            return False
        place += 1
    return True


def cut_alike(
    data: bytes, head: bytes, behind: i64, names: list[bytes], columns: list[list[bytes]], tails: list[bytes]
) -> int:
    """Cut out the requests that begin with a head and have so many words behind it, the names among these the same.

    The lists are filled as those of `Alike` (alike.py). Their size together; 0 where they are fewer than two, or where
    one that begins alike comes behind them: it may not be whole, but of none that follows is that known.
    """
    end: i64 = len(data)
    head_size: i64 = len(head)
    at: i64 = 0
    fields: i64 = behind // 2 if behind > 1 else 1
    has_names: bool = behind > 1
    headed: list[bytes] = []  # names, each behind its header
    is_whole = True
    field: i64 = 0
    while field < fields:
        columns.append([])
        field += 1
    while stands_at(head, data, at, end):
        place: i64 = at + head_size
        field = 0
        while field < fields:
            if has_names:
                if tails:
                    if not stands_at(headed[field], data, place, end):
                        break
                    place += len(headed[field])
                else:
                    size: i64 = size_of_word(data, place, end)
                    if size < 0:
                        break
                    start: i64 = place
                    place += header_of(size)
                    names.append(data[place : place + size])
                    place += size + 2
                    headed.append(data[start:place])
            size = size_of_word(data, place, end)
            if size < 0:
                break
            place += header_of(size)
            columns[field].append(data[place : place + size])
            place += size + 2
            field += 1
        if field < fields:
            is_whole = False
            break
        tails.append(data[at + head_size : place])
        at = place
    count = len(tails)
    if count < 2 or (at < end and data.find(head, at + 1) >= 0):
        return 0
    if not is_whole:
        for column in columns:
            del column[count:]
    return at
