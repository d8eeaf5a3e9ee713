"""Parses a log's bytes into requests with their offsets.

hiredis parses; each request is then packed again and compared with the bytes it came from. If they differ, the strict
parser in plain Python takes over, which knows the offset of everything. So neither damage nor a reply among the
requests is ever taken for a request.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

import hiredis

from penstock.pipeline.errors import PipelineError

BLOCK_BYTES: Final = 64 * 1024  # hiredis copies unparsed bytes on each feed, so it is fed in parts
READ_BYTES: Final = 1024 * 1024
LONGEST_HEADER: Final = 32  # bytes of `*<n>` or `$<n>`
ANNOTATION: Final = b"#"

Request = list[bytes]


class Unfinished(Exception):
    """The bytes end within a request that is well-formed so far."""


class Damage(Exception):
    """The bytes at `offset` are not a request; `expected` says what should be there, for error messages."""

    def __init__(self, offset: int, expected: str) -> None:
        super().__init__(f"expected {expected} at byte {offset}")
        self.offset = offset
        self.expected = expected


class DamagedLog(PipelineError):
    """A file of the log cannot be read as requests; the text names file, offset and what would help."""


class RequestRun:
    """Consecutive requests and their offsets, or one annotation line (`#...`): `annotation` is b"" if there is none."""

    __slots__ = ("annotation", "offsets", "requests")

    def __init__(self, requests: list[Request], offsets: list[int], annotation: bytes = b"") -> None:
        self.requests = requests
        self.offsets = offsets
        self.annotation = annotation


def runs(file: BinaryIO, start: int, end: int) -> Iterator[RequestRun]:
    """The requests and annotations between two offsets; a request must begin at `start`.

    Unfinished if the last request goes beyond `end`; Damage, with the offset in the file, if bytes are not a request.
    """
    file.seek(start)
    block = b""
    base = start  # the file's offset of block[0]
    at = 0  # what has been parsed of the block
    left = end - start
    while True:
        run, taken = _parse_fast(block, at, base)
        if not taken:
            try:
                run, taken = _parse_strict(block, at, base)
            except Unfinished:
                if not left:
                    if at < len(block):
                        raise
                    return
                unparsed = len(block) - at  # a value longer than the block: read twice as much each time
                more = file.read(min(left, max(READ_BYTES, unparsed)))
                if not more:
                    raise Unfinished from None
                left -= len(more)
                block, base, at = block[at:] + more, base + at, 0
                continue
        at += taken
        yield run


def _parse_fast(block: bytes, at: int, base: int) -> tuple[RequestRun, int]:
    """Whole requests from `at` on, up to BLOCK_BYTES, and the bytes they take; 0 if hiredis and the bytes disagree."""
    piece = block[at : at + BLOCK_BYTES]
    reader = hiredis.Reader(notEnoughData=None)
    reader.feed(piece)
    requests: list[Request] = []
    try:
        while type(request := reader.gets()) is list:
            requests.append(request)
    except hiredis.ProtocolError:
        pass  # _parse_strict examines it when its turn comes
    try:
        packed = [hiredis.pack_command(tuple(request)) for request in requests]  # type: ignore[arg-type]  # see entries
    except TypeError:
        return RequestRun([], []), 0  # lists within lists, nulls
    whole = b"".join(packed)
    if [] in requests or not piece.startswith(whole):
        return RequestRun([], []), 0
    offsets = []
    offset = base + at
    for request in packed:
        offsets.append(offset)
        offset += len(request)
    return RequestRun(requests, offsets), len(whole)


def _parse_strict(block: bytes, at: int, base: int) -> tuple[RequestRun, int]:
    """Requests up to BLOCK_BYTES, at least one; or one annotation."""
    run = RequestRun([], [])
    place = at
    while place - at < BLOCK_BYTES:
        try:
            words, behind = next_request(block, place)
        except Unfinished:
            if place == at:
                raise
            break
        except Damage as damage:
            if place == at:
                raise Damage(base + damage.offset, damage.expected) from None
            break
        if not words:
            if place == at:
                return RequestRun([], [], block[place:behind]), behind - place
            break
        run.requests.append(words)
        run.offsets.append(base + place)
        place = behind
    return run, place - at


def next_request(block: bytes, at: int) -> tuple[Request, int]:
    """The request at an offset, and the offset after it; no words for an annotation line.

    Unfinished if the block ends too early, Damage if it is not a request.
    """
    if block[at : at + 1] == ANNOTATION:
        end = block.find(b"\n", at)
        if end < 0:
            raise Unfinished
        return [], end + 1
    count, place = header(block, at, b"*", "a request (`*` and the number of its words)")
    if count < 1:
        raise Damage(at, "a request of one word at least")
    words: Request = []
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


def header(block: bytes, at: int, kind: bytes, expected: str) -> tuple[int, int]:
    """The number in a header line, and the offset after the line."""
    if at >= len(block):
        raise Unfinished
    end = block.find(b"\r\n", at, at + LONGEST_HEADER)
    line = block[at : at + LONGEST_HEADER if end < 0 else end]
    digits = line[1:] if end >= 0 else line[1:].removesuffix(b"\r")
    if line[:1] != kind or (digits and not digits.isdigit()):
        raise Damage(at, expected)
    if end >= 0 and digits:
        return int(digits), end + 2
    if end >= 0 or len(line) >= LONGEST_HEADER:
        raise Damage(at, expected)
    raise Unfinished
