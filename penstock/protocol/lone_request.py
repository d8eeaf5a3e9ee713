"""One request cut apart: how a client that waits for each reply is mostly read.

It is cut at its line ends. Where every word is just as long as its header says, from the first one on, the line ends
between them are those of the protocol and none is in a word; so what is cut out is what any reader would read
(requests.py).
"""

from typing import Final

from penstock.protocol import native_parser

IS_COMPILED: Final[bool] = __file__.endswith((".so", ".pyd"))  # by what was loaded
SIZES: Final = {b"$%d" % size: size for size in range(4096)}  # headers of words; longer ones are left to the reader
_COUNTS: Final = {b"*%d\r\n" % count: count for count in range(1, 1000)}
_LINE_END: Final = b"\r\n"


def one_request(data: bytes) -> list[bytes] | None:
    """The request that some bytes are; None where they are not one that is whole, alone and ordinary.

    >>> one_request(b"*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n")
    [b'GET', b'k']
    """
    return native_parser.one_request(data) if IS_COMPILED else cut_at_line_ends(data)


def cut_at_line_ends(data: bytes) -> list[bytes] | None:
    """As `one_request`, in Python's way.

    >>> cut_at_line_ends(b"*2\\r\\n$3\\r\\nGET\\r\\n$4\\r\\na\\r\\nb\\r\\n")  # a line end in a word: left to the reader
    """
    count = _COUNTS.get(data[:4], 0) or _COUNTS.get(data[:5], 0) or _COUNTS.get(data[:6], 0)
    if not count:
        return None
    lines = data.split(_LINE_END, 2 * count + 1)
    if len(lines) != 2 * count + 2 or lines[-1]:
        return None
    words = lines[2::2]
    at = 1
    for word in words:
        if SIZES.get(lines[at], -1) != len(word):
            return None
        at += 2
    return words
