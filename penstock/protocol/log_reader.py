"""Reads a log's bytes as requests with their offsets: for the loading server, `check-log` and the pipeline.

Ordinary requests are cut as a client's are (native_words.py, or line_words.py in the uncompiled build), everything
else is read by `next_request`, in plain Python, which says what is damaged. A private line (`#penstock ...`,
private_lines.py) is a request; any other annotation (`#...`) has no words.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.native.build import IS_COMPILED
from penstock.native.resp_sizes import request_bytes
from penstock.protocol import native_words, private_lines

if not IS_COMPILED:
    from penstock.protocol import line_words  # its tables take half a megabyte

BLOCK_BYTES: Final = 64 * 1024
LONGEST_HEADER: Final = 32  # bytes of `*<n>` or `$<n>`
LEAST_WORD: Final = 6  # bytes of an empty word with its header
A_REQUEST: Final = "a request (`*` and the number of its words)"
A_WORD: Final = "a word (`$` and its length)"
ANNOTATION: Final = b"#"
_BEFORE_ANNOTATION: Final = b"\r\n" + ANNOTATION  # perhaps within a word
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
    at = 0
    try:
        while at < len(text):
            if IS_COMPILED:
                at = native_words.cut_requests(text, at, requests)
            elif not text.startswith(ANNOTATION, at):
                annotation = text.find(_BEFORE_ANNOTATION, at)
                stop = len(text) if annotation < 0 else annotation + 2
                at = line_words.cut_requests(text, at, stop, requests)
            if at < len(text):
                request, at = next_request(text, at)
                requests.append(request)
    except Unfinished:
        pass
    except Damage as damage:
        block.damage = damage
    block.taken = at
    return block


def next_request(block: bytes, at: int) -> tuple[Request, int]:
    """The request at an offset and the offset behind it; no words for an annotation line.

    Unfinished if the block ends too early, Damage if there is no request.
    """
    if block.startswith(ANNOTATION, at):
        return _comment(block, at)
    count, place = header(block, at, b"*", A_REQUEST)
    if count < 1:
        raise Damage(at, "a request of one word at least")
    words: list[bytes] = []
    for _ in range(count):
        length, start = header(block, place, b"$", A_WORD)
        end = start + length
        ending = block[end : end + 2]
        if ending != b"\r\n":
            if b"\r\n".startswith(ending):
                raise Unfinished
            raise Damage(end, f"the end of a word of {length} bytes")
        words.append(block[start:end])
        place = end + 2
    return words, place


def lacking(text: bytes) -> int:
    """How many bytes at least are still to come of the request that some bytes begin; 1 where that is not known.

    A reader that waits for so many before it looks again copies and parses a large request few times. O(words).

    >>> lacking(b"*2\\r\\n$3\\r\\nGET\\r\\n$100\\r\\n12345")
    97
    """
    left = 0
    try:
        count, place = header(text, 0, b"*", A_REQUEST)
        for left in range(count, 0, -1):
            length, start = header(text, place, b"$", A_WORD)
            place = start + length + 2
            if place > len(text):
                return place - len(text) + (left - 1) * LEAST_WORD
    except (Unfinished, Damage):
        pass  # what is damaged is said where it is read
    return max(1, left * LEAST_WORD - LONGEST_HEADER)


def _comment(block: bytes, at: int) -> tuple[Request, int]:
    """The request of a private line; no words of any other comment."""
    words: Request | None = []
    end = block.find(b"\n", at) + 1
    if block.startswith(private_lines.BEGINNING, at):
        words, end = private_lines.unpacked(block, at)
    if end < 1:
        raise Unfinished
    if words is None:
        raise Damage(at, "a private line (`#penstock` and quoted words)")
    # None is ever written: a power failure leaves them where a part of the file, and requests in it, reached no disk.
    if block.find(b"\0", at, end) >= 0:
        raise Damage(at, "a comment without zeros")
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
