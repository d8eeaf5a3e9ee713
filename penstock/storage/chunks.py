"""Bytes joined to pieces that are worth a write."""

from collections.abc import Iterable, Iterator
from typing import Final

CHUNK_BYTES: Final = 64 * 1024


def in_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least CHUNK_BYTES, but for the last one, and what stands before a long part.

    A part that is as long by itself is a piece as it is: it may have 512 MB, and is not copied.
    """
    held: list[bytes] = []
    size = 0
    for part in parts:
        if len(part) >= CHUNK_BYTES:
            if held:
                yield b"".join(held)
                held, size = [], 0
            yield part
            continue
        held.append(part)
        size += len(part)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
