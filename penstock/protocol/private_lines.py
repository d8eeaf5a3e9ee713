r"""Lines of the log that only Penstock reads: what Redis has no word for, as comments that a Redis skips.

    #penstock PENSTOCK.POLICY orders GROUP shop ACKWAIT 30000

A request with its words quoted as in redis.conf. Redis reads comments with a buffer of 1,024 bytes: a longer line is
cut into several, of which all but the last end in ` \` and all but the first begin with `#` (Redis 8.6.3, Valkey 9.1.2:
both load such lines before, between and behind requests, and within MULTI).
"""

import re
from typing import Final

from penstock.config.quoting import quoted, split

BEGINNING: Final = b"#penstock "
LONGEST_LINE: Final = 1000  # bytes, with everything
_GOES_ON: Final = b" \\\r\n"
_PLAIN: Final = re.compile(rb"[\w.:/*@+=-]+")


def packed(words: list[bytes]) -> bytes:
    """A request as one private line, or as several.

    >>> packed([b"PENSTOCK.POLICY", b"my jobs", b"RESET"])
    b'#penstock PENSTOCK.POLICY "my jobs" RESET\\r\\n'
    """
    text = b" ".join([word if _PLAIN.fullmatch(word) else quoted(word).encode() for word in words])
    lines: list[bytes] = []
    opening, at = BEGINNING, 0
    while len(opening) + len(text) - at + 2 > LONGEST_LINE:
        stop = at + LONGEST_LINE - len(opening) - len(_GOES_ON)
        lines.append(opening + text[at:stop] + _GOES_ON)
        opening, at = b"#", stop
    lines.append(opening + text[at:] + b"\r\n")
    return b"".join(lines)


def unpacked(block: bytes, at: int) -> tuple[list[bytes] | None, int]:
    """The request of the private line at an offset, and the offset behind it; None if it is damaged.

    The offset is -1 if the block ends within the line.
    """
    parts: list[bytes] = []
    start = at + len(BEGINNING)
    while True:
        end = block.find(b"\n", start)
        if end < 0:
            return None, -1
        goes_on = block.endswith(_GOES_ON, start, end + 1)
        parts.append(block[start : end - 3 if goes_on else end].removesuffix(b"\r"))
        if not goes_on:
            return split(b"".join(parts)) or None, end + 1
        if end + 1 == len(block):
            return None, -1
        if not block.startswith(b"#", end + 1):
            return None, end + 1
        start = end + 2
