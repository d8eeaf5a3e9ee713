"""Bytes joined to pieces that are worth a write."""

from collections.abc import Iterable, Iterator
from typing import Final

CHUNK_BYTES: Final = 64 * 1024


def in_chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least CHUNK_BYTES, but for the last one."""
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
