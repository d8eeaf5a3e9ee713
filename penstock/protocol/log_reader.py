"""Reads a log's bytes as requests: fast if they are whole, exactly if they are damaged.

hiredis parses. Its result is used only if it is lists of byte strings and nothing else, with as many line ends as they
need, up to a place where another request begins: so a damaged length or a reply among the requests is never taken for
a request. Everything else (an annotation line, a tail, damage) is read by a parser in Python, which knows offsets.
"""

from itertools import chain
from typing import Final

import hiredis

from penstock.protocol import reply

BLOCK_BYTES: Final = 64 * 1024  # hiredis is slower, the more bytes it has at once


_LONGEST_HEADER: Final = 32  # bytes of `*<n>` or `$<n>`


class Unfinished(Exception):
    """The bytes end inside a request, which is correct so far."""


class Damage(Exception):
    """The bytes at `offset` are no request; `expected` says what should stand there, for a person."""

    def __init__(self, offset: int, expected: str) -> None:
        super().__init__(f"expected {expected} at byte {offset}")
        self.offset = offset
        self.expected = expected


def quick_requests(block: bytes) -> tuple[list[list[bytes]], int] | None:
    """The whole requests at the start of a block that begins with one, and their size in bytes; None if uncertain.

    The last request is left out: only the start of the next one proves that a request is whole.
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
    except (hiredis.HiredisError, TypeError, ValueError):  # a RESP3 map may have keys that are not hashable
        return None
    if left or set(map(type, requests)) != {list}:
        return None
    words = list(chain.from_iterable(requests))
    if set(map(type, words)) != {bytes}:
        return None
    # hiredis does not check what ends a word. If words contain line ends, the requests are packed and compared.
    doubtful = whole.count(b"\r\n") != 2 * len(words) + len(requests)
    # It reads a set (`~`) as an array, and a verbatim string (`=`) as a word without its first four bytes.
    doubtful = doubtful or b"\r\n=" in whole or b"\r\n~" in whole or not whole.startswith(b"*")
    if doubtful and _packed(requests) != whole:
        return None
    return requests, cut


def _packed(requests: list[list[bytes]]) -> bytes:
    return b"".join([reply.bulks(request) for request in requests])


def next_request(block: bytes, at: int) -> tuple[list[bytes], int]:
    """The request at an offset and the offset behind it; no words for an annotation line.

    Unfinished if the block ends too early, Damage if there is no request.
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
