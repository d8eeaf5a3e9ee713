"""Parses the whole requests of a block with hiredis: how the uncompiled build reads ordinary input.

hiredis parses *replies*. A request is an array of bulk strings, which is a reply too; but hiredis also accepts what
Redis refuses: words of other types (`+PING`, `=8`, `:5`, `*1` inside), other aggregates (`>1`, `~1`, `|1`) and null
arrays; and it reserves memory by the announced count. So it gets whole requests only, and its result is compared with
the bytes before it is used (`_as_sent`). What it cannot parse is left to the strict parser.
"""

from itertools import chain
from typing import Final, cast

import hiredis

from penstock.protocol import reply

# Maps every digit to 0 and every type but `*` and `$` to +, so that one search finds them all.
_KINDS: Final = bytes.maketrans(b"0123456789=(>~|-:,#_%!", b"0000000000++++++++++++")
_ODD_TYPE: Final = b"\r\n+"
_ODD_WORDS: Final = (b"\r\n$1\r\n>\r\n", b"\r\n$1\r\n+\r\n", b"\r\n$1\r\n-\r\n")
_STAR_ALONE: Final = b"\r\n*"
_NEXT_REQUEST: Final = b"\r\n*0"
_HUGE_COUNT: Final = b"*00000"  # hiredis would reserve 80 KB and more for the words of such an array
_STAR: Final = ord("*")
_CR: Final = ord("\r")
_LISTS: Final = {list}
_PROBE: Final = b"*1\r\n$5\r\nprobe\r\n"
_PROBED: Final = [b"probe"]
_NOT_YET: Final = object()
_LONGEST_LONE: Final = 4095  # bytes of a block that lone_request reads; hiredis reads longer ones
_HEADERS: Final = [b"$%d" % size for size in range(_LONGEST_LONE + 1)]  # of words, by their lengths
_COUNTS: Final = {b"*%d\r\n" % count: count for count in range(1, 100)}


def lone_request(block: bytes) -> list[bytes] | None:
    """The request of a block that is exactly one request, split at its line ends; None if that is not certain.

    A client that waits for each reply sends such blocks. Splitting takes 1 us, hiredis and the check of its result 6 us
    (Python 3.11). If every word, from the first one on, is as long as its header says, then the line ends are those of
    the protocol, and no word contains one.

    >>> lone_request(b"*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n")
    [b'GET', b'k']
    """
    count = _COUNTS.get(block[:4], 0) or _COUNTS.get(block[:5], 0)
    if not count or len(block) > _LONGEST_LONE:
        return None
    lines = block.split(b"\r\n", 2 * count + 1)
    if len(lines) != 2 * count + 2 or lines[-1]:
        return None
    words = lines[2::2]
    at = 1
    for word in words:
        if lines[at] != _HEADERS[len(word)]:
            return None
        at += 2
    return words


class HiredisParser:
    """hiredis, with a check of its result. It gets at most 64 KiB at a time, because it moves its unread bytes."""

    __slots__ = ("_hiredis", "size")

    def __init__(self) -> None:
        self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)
        self.size = 0  # bytes of the requests that the last call returned

    def requests(self, block: bytes) -> list[list[bytes]] | None:
        """The whole requests at the start of a block, perhaps none; None if the strict parser must read the block."""
        self.size = 0
        kinds = block.translate(_KINDS)
        if kinds[0] != _STAR or kinds.find(_HUGE_COUNT) >= 0:
            return None
        if kinds.endswith(_STAR_ALONE):  # the next request's first byte: hiredis would keep it
            block, kinds = block[:-1], kinds[:-1]
        last_at = kinds.rfind(_NEXT_REQUEST) + 2
        try:
            found = self._read(block, kinds, last_at if last_at > 1 else 0)
        except (hiredis.ProtocolError, TypeError):  # the second: a map with an array as its key
            found = None
        if not found:
            self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)  # it may keep unread bytes
        return found

    def _read(self, block: bytes, kinds: bytes, last_at: int) -> list[list[bytes]] | None:
        """The requests of a block; the last one, whole or not, seems to begin at last_at."""
        reader = self._hiredis
        replies: list[object] = []
        if last_at:
            reader.feed(block, 0, last_at)
            replies = list(iter(reader.gets, _NOT_YET))
            reader.feed(_PROBE)
            if reader.gets() != _PROBED:
                return None  # hiredis was inside a request, which consumed the probe: no request begins at last_at
        reader.feed(block, last_at, len(block) - last_at)
        last: object = reader.gets()
        if last is _NOT_YET:
            self._hiredis = hiredis.Reader(notEnoughData=_NOT_YET)
            if not last_at:
                return []
            block, kinds = block[:last_at], kinds[:last_at]
        elif reader.has_data():
            return None
        else:
            replies.append(last)
        if set(map(type, replies)) != _LISTS:
            return None
        requests = cast(list[list[bytes]], replies)
        if not _as_sent(block, kinds, requests):
            return None
        self.size = len(block)
        return requests


def _as_sent(block: bytes, kinds: bytes, requests: list[list[bytes]]) -> bool:
    """Whether `block` is exactly these requests, in the form that Redis requires. (`kinds`: see _KINDS.)

    hiredis parsed them, found `*` first, and checked every number and the line end behind it. It did not look at the
    two bytes behind a word, and accepted other types. If no word has a CR, only headers and word ends have line ends.
    If there are as many as there should be, every word has its line end; then every header stands behind a line end,
    where a header of another type is found. If a word has a CR or begins like a header, the requests are packed and
    compared: three times the cost, and a third of the strict parser's.
    """
    words = list(chain.from_iterable(requests))
    try:
        text = b"".join(words)
    except TypeError:
        return False
    if not all(requests):
        return False
    if (
        _CR not in text
        and block.count(b"\r\n") == 2 * len(words) + len(requests)
        and _has_no_odd_type(block, kinds, words)
    ):
        return True
    return b"".join([reply.bulks(request) for request in requests]) == block


def _has_no_odd_type(block: bytes, kinds: bytes, words: list[bytes]) -> bool:
    """Whether every line that begins like a header of another type is a word that is common in stream commands.

    (Behind a word `$1` such a line could be a header.)
    """
    odd = kinds.count(_ODD_TYPE)
    if not odd:
        return True
    return odd == sum(map(block.count, _ODD_WORDS)) and b"$1" not in words
