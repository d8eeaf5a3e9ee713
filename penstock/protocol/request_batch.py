"""Requests of a pipeline that begin with the same words, cut out of the bytes in which they came.

A producer's pipeline is `XADD key * field value` again and again, a worker's `XACK key group id`. The bytes are cut
apart where the first words come again, and what is left at the line ends; so a few operations on lists do for
a hundred requests, and only the words that differ are made. What is not that plain is left to the reader
(requests.py), which reads the same from it.
"""

import re
from operator import add
from typing import Final

from penstock.protocol import native_parser
from penstock.protocol.lone_request import IS_COMPILED, SIZES

_COUNT: Final = re.compile(rb"\*([1-9][0-9]?)\r\n").match
_WORDS_IN_HEAD: Final = 3
_LONGEST_HEAD: Final = 6  # where a `*` is its last word: XADD key MAXLEN ~ length *
_LINE_END: Final = b"\r\n"


class Alike:
    """Requests of as many words each, that follow one another: the first words are the same in all, the `head`.

    Behind these are pairs of a word that is the same in all, in `names`, and one that may differ, in `columns`: a list
    for each place, with a word of each request. Or there is one word only, which may differ. `tails` are the bytes of
    each request behind its head; `size` is how many bytes all of them are.
    """

    __slots__ = ("columns", "head", "names", "size", "tails")

    def __init__(
        self, head: list[bytes], names: list[bytes], columns: list[list[bytes]], tails: list[bytes], size: int
    ) -> None:
        self.head = head
        self.names = names
        self.columns = columns
        self.tails = tails
        self.size = size

    def words(self) -> int:
        """How many words each request has."""
        return len(self.head) + len(self.names) + len(self.columns)

    def request(self, at: int) -> list[bytes]:
        """The words of one of them."""
        values = [column[at] for column in self.columns]
        if not self.names:
            return self.head + values
        return self.head + [word for pair in zip(self.names, values, strict=True) for word in pair]


class Shape:
    """How requests that are alike begin: `start` are the bytes of their head, `behind` words follow it.

    Where none follow, no requests that begin so are looked for: they are of another command.
    """

    __slots__ = ("behind", "head", "start")

    def __init__(self, start: bytes, head: list[bytes], behind: int) -> None:
        self.start = start
        self.head = head
        self.behind = behind


NO_SHAPE: Final = Shape(b"(none)", [], 0)


def shape_of(data: bytes, wanted: frozenset[bytes]) -> Shape:
    """The shape of the request that some bytes begin with, if it is of a command that is wanted."""
    match = _COUNT(data)
    if match is None:
        return NO_SHAPE
    count = int(match.group(1))
    words: list[bytes] = []
    ends: list[int] = []
    at = match.end()
    for _ in range(min(count, _LONGEST_HEAD)):
        end = _end_of_word(data, at)
        if end < 0:
            break
        words.append(data[data.index(b"\n", at) + 1 : end - 2])
        ends.append(end)
        if words[0] not in wanted:
            return Shape(data[:end], [], 0)
        at = end
    width = words.index(b"*", _WORDS_IN_HEAD - 1) + 1 if b"*" in words[_WORDS_IN_HEAD - 1 :] else _WORDS_IN_HEAD
    behind = count - width
    if len(words) < width or behind < 1 or (behind > 1 and behind & 1):
        return NO_SHAPE
    return Shape(data[: ends[width - 1]], words[:width], behind)


def alike(data: bytes, shape: Shape) -> Alike | None:
    """The requests of a shape that some bytes begin with, if there are several that are whole and ordinary.

    >>> request = b"*4\\r\\n$4\\r\\nXACK\\r\\n$1\\r\\ns\\r\\n$1\\r\\ng\\r\\n$3\\r\\n1-1\\r\\n"
    >>> found = alike(request * 2, shape_of(request, frozenset((b"XACK",))))
    >>> found.head, found.names, found.columns
    ([b'XACK', b's', b'g'], [], [[b'1-1', b'1-1']])
    """
    if not shape.behind:
        return None
    return alike_byte_by_byte(data, shape) if IS_COMPILED else alike_by_heads(data, shape)


def alike_byte_by_byte(data: bytes, shape: Shape) -> Alike | None:
    """As `alike`, in C's way (bytewise.py)."""
    names: list[bytes] = []
    columns: list[list[bytes]] = []
    tails: list[bytes] = []
    size = native_parser.cut_alike(data, shape.start, shape.behind, names, columns, tails)
    return Alike(shape.head, names, columns, tails, size) if size else None


def alike_by_heads(data: bytes, shape: Shape) -> Alike | None:
    """As `alike`, in Python's way."""
    tails = data.split(shape.start)
    if len(tails) < 3 or tails[0]:
        return None
    del tails[0]
    found = _taken_apart(shape, tails, len(data))
    if found is None:  # other requests may follow the last one, or it may not be whole
        size = len(data) - len(tails[-1])
        last = _cut(tails.pop(), shape.behind)
        if last:
            tails.append(last)
            size += len(last)
        else:
            size -= len(shape.start)
        found = _taken_apart(shape, tails, size) if len(tails) > 1 else None
    return found


def _end_of_word(data: bytes, at: int) -> int:
    """Where the word ends whose header is at a place; -1 where there is no ordinary word."""
    line_end = data.find(_LINE_END, at, at + 8)
    size = SIZES.get(data[at:line_end], -1) if line_end >= 0 else -1
    if size < 0:
        return -1
    end = line_end + size + 4
    return end if data[end - 2 : end] == _LINE_END else -1


def _cut(tail: bytes, behind: int) -> bytes:
    """The words of the last request, without what follows it; empty where it has not so many."""
    at = 0
    for _ in range(behind):
        at = _end_of_word(tail, at)
        if at < 0:
            return b""
    return tail[:at]


def _taken_apart(shape: Shape, tails: list[bytes], size: int) -> Alike | None:
    """The requests, if every tail is so many words, each just as long as its header says.

    A word that has a line end, or that has the head in it, makes one of the numbers differ.
    """
    behind, count = shape.behind, len(tails)
    lines = b"".join(tails).split(_LINE_END)
    if len(lines) != 2 * behind * count + 1:
        return None
    names: list[bytes] = []
    columns: list[list[bytes]] = []
    fixed = 4 * behind  # bytes of every tail: of line ends, and of the places where all words are equally long
    varying: list[int] = []
    for place in range(behind):
        headers = lines[2 * place : -1 : 2 * behind]
        words = lines[2 * place + 1 : -1 : 2 * behind]
        if behind > 1 and not place & 1:
            name, header = words[0], headers[0]
            if words.count(name) != count or headers.count(header) != count or SIZES.get(header, -1) != len(name):
                return None
            names.append(name)
            fixed += len(header) + len(name)
            continue
        columns.append(words)
        sizes = list(map(len, words))
        if headers.count(headers[0]) == count and sizes.count(sizes[0]) == count:
            if SIZES.get(headers[0], -1) != sizes[0]:
                return None
            fixed += len(headers[0]) + sizes[0]
        else:
            if list(map(SIZES.get, headers)) != sizes:
                return None
            both = map(add, map(len, headers), sizes)
            varying = list(map(add, varying, both) if varying else both)
    lengths = list(map(len, tails))
    if [fixed + length for length in varying] != lengths if varying else lengths.count(fixed) != count:
        return None
    return Alike(shape.head, names, columns, tails, size)
