"""Parses a client's requests into batches by their line ends: how the uncompiled build reads ordinary input.

See line_words.py for the reasons; native_parser.py is the oracle. A producer's hundred XADDs take 0.7 us each; hiredis
and a batcher of its words took 1.4 (November 2026, Python 3.11).

A request takes `2 * words + 1` lines, its period.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from penstock.protocol import native_parser
from penstock.protocol.limits import BLOCK
from penstock.protocol.line_words import COUNTS, HEADERS, LINE_END, LONGEST, are_whole, offset
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
    is_id,
    layout,
    same_shape,
)
from penstock.protocol.strict_parser import WEB_INITIALS, is_web

_FIRST_LINES: Final = {b"*%d\r\n" % count: count for count in range(1, 100)}


def single_request(data: bytes) -> list[bytes] | None:
    """The words of data that are exactly one ordinary request; None if that is not certain.

    A client that waits for each reply sends such data. It takes 0.5 us less than `batches`.

    >>> single_request(b"*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n")
    [b'GET', b'k']
    """
    count = _FIRST_LINES.get(data[:4], 0) or _FIRST_LINES.get(data[:5], 0)
    if not count or len(data) > LONGEST:
        return None
    lines = data.split(LINE_END, 2 * count + 1)
    if len(lines) != 2 * count + 2 or lines[-1]:
        return None
    words = lines[2::2]
    at = 1
    for word in words:
        if lines[at] != HEADERS[len(word)]:
            return None
        at += 2
    return None if words[0][:2] in WEB_INITIALS and is_web(words[0]) else words


def batches(
    data: bytes, at: int, limit: int, shapes: dict[bytes, int], found: list[RequestBatch], single: RequestBatch
) -> int:
    """As native_parser.batches, but it reads at most a BLOCK of the data."""
    block = data if at == 0 and len(data) <= BLOCK else data[at : at + BLOCK]
    lines = block.split(LINE_END)
    end = len(lines) - 1  # the last line has no line end
    counts = COUNTS
    pairs: list[bytes] = []  # each word behind its header, of the requests that no batch holds with others
    first, left, place = len(found), limit, 0
    while place < end and left > 0:
        star = lines[place]
        count = counts.get(star, 0)
        stop = place + 2 * count + 1
        if not count or stop > end:
            break
        request = lines[place + 2 : stop : 2]
        name = request[0]
        if name not in shapes and name[:2] in WEB_INITIALS and is_web(name):
            break
        if 2 * stop - place <= end and lines[stop + 2] == name and lines[stop] == star:
            batch = _of_several(lines, place, stop, end, shapes.get(name, 0))
            if batch is not None:
                found.append(batch)
                left -= batch.count
                place += (stop - place) * batch.count
                continue
        pairs += lines[place + 1 : stop]
        found.append(RequestBatch(request, NO_WORDS, NO_COLUMNS, 1))
        left -= 1
        place = stop
    if not are_whole(pairs[::2], pairs[1::2]):
        del found[first:]
        return native_parser.batches(data, at, limit, shapes, found, single)
    return at + offset(block, lines, place)


def _of_several(lines: list[bytes], place: int, second: int, end: int, shape: int) -> RequestBatch | None:
    """The batch that begins at a line, if more than one request is in it. second: where the next one begins, which has
    the same name and as many words."""
    period = second - place
    if shape & COLUMNS and period > 2 * PREFIX_WORDS and lines[second + 4] == lines[place + 4]:
        batch = _in_columns(lines, place, second, end, shape)
        if batch is not None:
            return batch
    if not shape & (POSITIONS | REQUESTS):
        return None
    stop = _end_of_name(lines, place, second, end, shape)
    if period <= 2 * MOST_POSITIONS + 1:
        columns = _columns(lines, range(place + 1, second, 2), stop, period)
        count = len(columns[0])
        if shape & POSITIONS and count > 1 and period > 3:
            return RequestBatch(lines[place + 2 : place + 3], NO_WORDS, columns[1:], count)
        requests = list(map(list, zip(*columns, strict=True)))
    else:
        requests = [lines[at + 2 : at + period : 2] for at in range(place, stop, period)]
        headers = list(chain.from_iterable([lines[at + 1 : at + period : 2] for at in range(place, stop, period)]))
        words = list(chain.from_iterable(requests))
        if not are_whole(headers, words):
            del requests[_whole_ones(headers, words) // len(requests[0]) :]
    return same_shape(requests) if len(requests) > 1 else None


def _end_of_name(lines: list[bytes], place: int, second: int, end: int, shape: int) -> int:
    """Where the requests end that have the name and the number of words of the one at a line, up to two that fit
    columns, if the shape has them."""
    period = second - place
    star, name = lines[place], lines[place + 2]
    has_columns = shape & COLUMNS != 0 and period > 2 * PREFIX_WORDS
    stop = second
    while stop + period <= end and lines[stop] == star and lines[stop + 2] == name:
        former = stop - period
        may_fit = has_columns and stop > second and lines[stop + 4] == lines[former + 4]
        if may_fit and fit_columns(lines[former + 2 : stop : 2], lines[stop + 2 : stop + period : 2], shape):
            return former
        stop += period
    return stop


def _in_columns(lines: list[bytes], place: int, second: int, end: int, shape: int) -> RequestBatch | None:
    """The batch with columns that begins at a line, if more than one request is in it."""
    words = lines[place + 2 : second : 2]
    width, own, before = layout(words, shape)
    if not width:
        return None
    period = second - place
    own_from, middle_from, columns_from = 2 * width + 1, 2 * (width + own) + 1, 2 * before + 1
    step = 4 if len(words) - before > 1 else 2
    # What all have in common: the prefix, the middle and the names, each with its header.
    prefix, middle = lines[place : place + own_from], lines[place + middle_from : place + columns_from]
    names = lines[place + columns_from + 1 : second : 4] if step == 4 else NO_WORDS
    headers = lines[place + columns_from : second : 4] if step == 4 else NO_WORDS
    stop = second
    while stop + period <= end and lines[stop : stop + own_from] == prefix:
        if own and lines[stop + middle_from : stop + columns_from] != middle:
            break
        if own == ID_WORDS and not is_id(lines[stop + own_from + 1]):
            break
        if names and lines[stop + columns_from + 1 : stop + period : 4] != names:
            break
        if names and lines[stop + columns_from : stop + period : 4] != headers:
            break
        stop += period
    if stop == second or not are_whole(lines[place + 1 : second : 2], words):
        return None
    starts = [*range(place + own_from, place + middle_from, 2), *range(place + columns_from + step - 2, second, step)]
    columns = _columns(lines, starts, stop, period)
    count = len(columns[0])
    own_columns, middle_words = columns[:own], words[width + own : before]
    return RequestBatch(words[:width], names, columns[own:], count, None, None, own_columns, middle_words)


def _columns(lines: list[bytes], starts: Sequence[int], stop: int, period: int) -> list[list[bytes]]:
    """For each start, where the header of a word is, that word of the request and of those behind it, up to one that is
    not whole in one of them."""
    columns: list[list[bytes]] = []
    count = (stop - starts[0] + period - 1) // period
    for start in starts:
        headers, words = lines[start:stop:period], lines[start + 1 : stop : period]
        if not are_whole(headers, words):
            count = min(count, _whole_ones(headers, words))
        columns.append(words)
    return columns if count == len(columns[0]) else [column[:count] for column in columns]


def _whole_ones(headers: list[bytes], words: list[bytes]) -> int:
    """How many words are as long as their headers say, up to one that is not."""
    for at, word in enumerate(words):
        if headers[at] != b"$%d" % len(word):
            return at
    return len(words)
