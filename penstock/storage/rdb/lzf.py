"""LZF, the compression of strings in RDB files and payloads, by the library python-neo-lzf (0.5 GB a second each way).

Three bytes stand for 264 at the most. The library checks what it reads; how much it allocates is checked here.
"""

from typing import Final

import lzf

from penstock.storage.rdb.errors import BadRdb

MOST_EXPANDED: Final = 88  # times its size
SAVES_AT_LEAST: Final = 5  # bytes, or a string stays as it is (Redis 8.6.3, DUMP)


def expanded(packed: bytes, size: int) -> bytes:
    """What was compressed, which must have `size` bytes. Nothing is allocated for a size that cannot be true."""
    if not 0 < size <= MOST_EXPANDED * len(packed):
        raise BadRdb("a compressed string has another size than it can have")
    try:
        text: bytes | None = lzf.decompress(packed, size)
    except ValueError:
        text = None
    if text is None or len(text) != size:
        raise BadRdb("a compressed string is damaged")
    return text


def compressed(text: bytes) -> bytes | None:
    """The text compressed; None where that saves too little.  O(n)."""
    if len(text) <= SAVES_AT_LEAST:
        return None
    packed: bytes | None = lzf.compress(text, len(text) - SAVES_AT_LEAST)
    return packed
