"""Reads a log's bytes as requests with their offsets: for the loading server, `check-log` and the pipeline.

Ordinary requests are parsed fast, everything else is read by `next_request`, in plain Python, which knows offsets.
The compiled build parses as it parses a client's requests (native_words.py), the uncompiled one by hiredis. What that
reads is used only if it is lists of byte strings and nothing else, with as many line ends as they need, up to a place
where another request or an annotation (`#...`) begins: so a damaged length or a reply among the requests is never taken
for a request. A private line (`#penstock ...`, private_lines.py) is a request; any other annotation has no words.
"""

from collections.abc import Callable
from itertools import chain
from typing import Final, TypeAlias

import hiredis

from penstock.native.build import IS_COMPILED
from penstock.native.resp_sizes import request_bytes
from penstock.protocol import native_words, private_lines

BLOCK_BYTES: Final = 64 * 1024  # hiredis is slower, the more bytes it has at once
LONGEST_HEADER: Final = 32  # bytes of `*<n>` or `$<n>`
ANNOTATION: Final = b"#"
STAMP: Final = b"#TS:"  # the annotation that servers write: unix seconds
_ZEROS_BYTES: Final = 1024 * 1024

Request: TypeAlias = list[bytes]
Bytes: TypeAlias = Callable[[int, int], bytes]  # (offset, most): a file's bytes; fewer only at its end


class Unfinished(Exception):
    """The bytes end inside a request, which is correct so far."""


class Damage(Exception):
    """The bytes at `offset` are no request; `expected` says what should stand there, for a person."""

    def __init__(self, offset: int, expected: str) -> None:
        super().__init__(f"expected {expected} at byte {offset}")
        self.offset = offset
        self.expected = expected


class LogBlock:
    """Whole requests at the start of `text`, which stands at byte `offset` of its file; an annotation has no words.

    `taken`: the bytes that they take. `damage`: what is wrong behind them, its offset counted from the block's start;
    None if there is only too little. Offsets are found when they are asked for.
    """

    __slots__ = ("damage", "offset", "requests", "taken", "text")

    def __init__(self, text: bytes, offset: int) -> None:
        self.text = text
        self.offset = offset
        self.requests: list[Request] = []
        self.taken = 0
        self.damage: Damage | None = None

    def offsets(self) -> list[int]:
        """Where each request begins in the file. O(words)."""
        text, base = self.text, self.offset
        at = 0
        found = []
        for request in self.requests:
            found.append(base + at)
            at = next_request(text, at)[1] if text.startswith(ANNOTATION, at) else at + request_bytes(request)
        if at == self.taken:
            return found
        at = 0  # lengths with leading zeros: packed anew they are shorter
        for place in range(len(self.requests)):
            found[place] = base + at
            _, at = next_request(text, at)
        return found


class LogReader:
    """A file's whole requests between two offsets, block by block; a request must begin at `start`.

    Once `next_block` has given None: `offset` is where the whole requests end. `damage` is what is wrong there, with
    its offset in the file. If it is None and `offset` is less than `end`, the bytes end within a request.
    """

    __slots__ = ("_end", "_length", "_read", "damage", "offset")

    def __init__(self, read: Bytes, start: int, end: int) -> None:
        self._read = read
        self._end = end
        self._length = BLOCK_BYTES
        self.offset = start
        self.damage: Damage | None = None

    def next_block(self) -> LogBlock | None:
        """The next requests, one at least; None at the end."""
        while self.offset < self._end and self.damage is None:
            wanted = min(self._length, self._end - self.offset)
            text = self._read(self.offset, wanted)
            block = whole_requests(text, self.offset)
            if block.damage is not None:
                self.damage = Damage(self.offset + block.damage.offset, block.damage.expected)
            if block.taken:
                self.offset += block.taken
                self._length = BLOCK_BYTES
                return block
            if len(text) < wanted or self.offset + wanted >= self._end:
                break
            self._length *= 2  # one request is larger than the block
        return None

    @property
    def is_cut_off(self) -> bool:
        """At the end: whether the bytes end within a request that is well-formed so far."""
        return self.damage is None and self.offset < self._end


def whole_requests(text: bytes, offset: int = 0) -> LogBlock:
    """The whole requests at the start of bytes that begin with one; `offset` is their place in the file."""
    block = LogBlock(text, offset)
    requests = block.requests
    last = text.rfind(b"\r\n*") + 2  # most probably, the last request begins here
    at = 0
    try:
        while at < len(text):
            if IS_COMPILED:
                at = native_words.cut_requests(text, at, requests)
                if at < len(text):
                    request, at = next_request(text, at)
                    requests.append(request)
                continue
            end = _segment_end(text, at, last)
            if not text.startswith(ANNOTATION, at) and end < len(text):
                quick = quick_requests(text[at:end])
                if quick is not None:
                    requests += quick
                    at = end
                    continue
            while at < end:
                request, at = next_request(text, at)
                requests.append(request)
    except Unfinished:
        pass
    except Damage as damage:
        block.damage = damage
    block.taken = at
    return block


def _segment_end(text: bytes, at: int, last: int) -> int:
    """The end of what is parsed at once: an annotation, or what precedes the next one or the last request."""
    if text.startswith(ANNOTATION, at):
        return text.find(b"\n", at) + 1 or len(text)
    if at + LONGEST_HEADER > last:
        return len(text)
    end = text.find(b"\r\n" + ANNOTATION, at, last) + 2  # perhaps in a word: then `next_request` reads on
    return last if end < 2 else end


def quick_requests(text: bytes) -> list[Request] | None:
    """The requests that bytes are made of, by hiredis; None if in doubt."""
    reader = hiredis.Reader()
    reader.feed(text)
    requests: list[Request] = []
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
    if left or set(map(type, requests)) != {list} or not all(requests):
        return None
    words = list(chain.from_iterable(requests))
    if set(map(type, words)) != {bytes}:
        return None
    # hiredis does not check what ends a word, and reads simple strings (`+`) as words, too: line ends are missing then.
    # A word that has one could hide that: such requests are packed and compared.
    doubtful = text.count(b"\r\n") != 2 * len(words) + len(requests) or b"\r\n" in b"\0".join(words)
    # It reads a set (`~`) as an array, and a verbatim string (`=`) as a word without its first four bytes.
    doubtful = doubtful or b"\r\n=" in text or b"\r\n~" in text or not text.startswith(b"*")
    if doubtful and _packed(requests) != text:
        return None
    return requests


def _packed(requests: list[Request]) -> bytes:
    pack = hiredis.pack_command
    return b"".join([pack(tuple(request)) for request in requests])  # type: ignore[arg-type]  # its stub knows no bytes


def next_request(block: bytes, at: int) -> tuple[Request, int]:
    """The request at an offset and the offset behind it; no words for an annotation line.

    Unfinished if the block ends too early, Damage if there is no request.
    """
    if block.startswith(private_lines.BEGINNING, at):
        return _private_request(block, at)
    if block[at : at + 1] == ANNOTATION:
        end = block.find(b"\n", at)
        if end < 0:
            raise Unfinished
        return [], end + 1
    count, place = header(block, at, b"*", "a request (`*` and the number of its words)")
    if count < 1:
        raise Damage(at, "a request of one word at least")
    words: list[bytes] = []
    for _ in range(count):
        length, start = header(block, place, b"$", "a word (`$` and its length)")
        end = start + length
        ending = block[end : end + 2]
        if ending != b"\r\n":
            if b"\r\n".startswith(ending):
                raise Unfinished
            raise Damage(end, f"the end of a word of {length} bytes")
        words.append(block[start:end])
        place = end + 2
    return words, place


def _private_request(block: bytes, at: int) -> tuple[Request, int]:
    words, end = private_lines.unpacked(block, at)
    if end < 0:
        raise Unfinished
    if words is None:
        raise Damage(at, "a private line (`#penstock` and quoted words)")
    return words, end


def header(block: bytes, at: int, kind: bytes, expected: str) -> tuple[int, int]:
    """The number in a header line, and the offset behind the line; `kind` is `*` or `$`.

    Unfinished where the block ends too early; Damage, which says what was expected, where it is no such line.
    """
    if at >= len(block):
        raise Unfinished
    end = block.find(b"\r\n", at, at + LONGEST_HEADER)
    line = block[at : at + LONGEST_HEADER if end < 0 else end]
    if line[:1] != kind:
        raise Damage(at, expected)
    if end >= 0:
        if not line[1:].isdigit():
            raise Damage(at, expected)
        return int(line[1:]), end + 2
    digits = line[1:-1] if line.endswith(b"\r") else line[1:]
    if len(line) >= LONGEST_HEADER or (digits and not digits.isdigit()):
        raise Damage(at, expected)
    raise Unfinished


def only_zeros(read: Bytes, offset: int) -> bool:
    """Whether a file has only zeros from an offset on, as a power failure may leave after a write. O(bytes)."""
    while True:
        block = read(offset, _ZEROS_BYTES)
        if not block:
            return True
        if block.strip(b"\0"):
            return False
        offset += len(block)
