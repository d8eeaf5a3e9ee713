"""Reading a log's bytes as requests: quickly where all is well, exactly where it is not.

hiredis parses, and its answer is believed only if it is nothing but lists of byte strings, with as many line ends as
they need, up to a place where another request begins: so a damaged length or a reply among the requests is never
taken for a request. What does not pass (an annotation line, a tail, damage) goes through a parser in Python, which
knows the place of everything.
"""

from itertools import chain
from typing import Final

import hiredis

from penstock.protocol import reply

BLOCK_BYTES: Final = 64 * 1024  # hiredis gets slower the more it is fed at once


_LONGEST_HEADER: Final = 32  # bytes of `*<n>` or `$<n>`


class Unfinished(Exception):
    """The bytes end within a request; so far they fit."""


class Damage(Exception):
    """The bytes at `offset` are no request; `expected` says what should stand there, for a person."""

    def __init__(self, offset: int, expected: str) -> None:
        super().__init__(f"expected {expected} at byte {offset}")
        self.offset = offset
        self.expected = expected


def quick_requests(block: bytes) -> tuple[list[list[bytes]], int] | None:
    """Whole requests at the start of a block that begins with one, and the bytes they take; None if in doubt.

    The last request is left alone: where the next one begins is what proves a request whole.
    """
    cut = block.rfind(b"\r\n*") + 2
    if cut < 2:
        return None
    whole = block[:cut]
    reader = hiredis.Reader()
    reader.feed(whole)
    requests: list[list[bytes]] = []
    gets = reader.gets
    left = True
    try:
        request = gets()
        while request is not False:
            requests.append(request)
            left = reader.has_data()
            request = gets()
    except (hiredis.HiredisError, TypeError, ValueError):  # a map of RESP3 may have keys that Python cannot have
        return None
    if left or set(map(type, requests)) != {list}:
        return None
    words = list(chain.from_iterable(requests))
    if set(map(type, words)) != {bytes}:
        return None
    # hiredis does not look at what ends a word. Where words contain line ends, only packing them again can tell.
    doubtful = whole.count(b"\r\n") != 2 * len(words) + len(requests)
    # It takes a set (`~`) for an array, and a verbatim string (`=`) for a word, of which it leaves four bytes out.
    doubtful = doubtful or b"\r\n=" in whole or b"\r\n~" in whole or not whole.startswith(b"*")
    if doubtful and _packed(requests) != whole:
        return None
    return requests, cut


def _packed(requests: list[list[bytes]]) -> bytes:
    return b"".join([reply.bulks(request) for request in requests])


def next_request(block: bytes, at: int) -> tuple[list[bytes], int]:
    """The request at an offset and the offset behind it; no words for an annotation line.

    Unfinished where the block ends too early, Damage where it is no request.
    """
    if block[at : at + 1] == b"#":
        end = block.find(b"\n", at)
        if end < 0:
            raise Unfinished
        return [], end + 1
    count, place = _header(block, at, b"*", "a request (`*` and the number of its words)")
    if count < 1:
        raise Damage(at, "a request of one word at least")
    words: list[bytes] = []
    for _ in range(count):
        length, start = _header(block, place, b"$", "a word (`$` and its length)")
        end = start + length
        ending = block[end : end + 2]
        if ending != b"\r\n":
            if b"\r\n".startswith(ending):
                raise Unfinished
            raise Damage(end, f"the end of a word of {length} bytes")
        words.append(block[start:end])
        place = end + 2
    return words, place


def _header(block: bytes, at: int, kind: bytes, expected: str) -> tuple[int, int]:
    """The number in a header line, and the offset behind the line."""
    if at >= len(block):
        raise Unfinished
    end = block.find(b"\r\n", at, at + _LONGEST_HEADER)
    line = block[at : at + _LONGEST_HEADER if end < 0 else end]
    if line[:1] != kind:
        raise Damage(at, expected)
    if end >= 0:
        if not line[1:].isdigit():
            raise Damage(at, expected)
        return int(line[1:]), end + 2
    digits = line[1:-1] if line.endswith(b"\r") else line[1:]
    if len(line) >= _LONGEST_HEADER or (digits and not digits.isdigit()):
        raise Damage(at, expected)
    raise Unfinished
