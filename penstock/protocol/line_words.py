"""Cuts requests into words at line ends: how the uncompiled build reads clients' ordinary requests, and the log's.

In Python a split takes little longer than the words that it makes, and slices of lines are compared faster than bytes.
A word is known by its header, which says how long its line is. Where that fails (line ends within words, words of more
than 4 KiB) the bytes are cut one by one, as the compiled build does (native_words.py), which is the oracle.
"""

from typing import Final

from penstock.protocol import native_words

LINE_END: Final = b"\r\n"
LONGEST: Final = 4095  # bytes of a word, and of a single request
HEADERS: Final = {size: b"$%d" % size for size in range(LONGEST + 1)}  # of words, by their lengths
COUNTS: Final = {b"*%d" % count: count for count in range(1, 1000)}


def cut_requests(data: bytes, at: int, stop_at: int, requests: list[list[bytes]]) -> int:
    """As native_words.cut_requests, by lines as far as the offset `stop_at`."""
    block = data[at:stop_at]
    lines = block.split(LINE_END)
    end = len(lines) - 1
    place = 0
    while place < end:
        count = COUNTS.get(lines[place], 0)
        stop = place + 2 * count + 1
        request = lines[place + 2 : stop : 2]
        if not count or stop > end or not are_whole(lines[place + 1 : stop : 2], request):
            break
        requests.append(request)
        place = stop
    if place == end:
        return at + offset(block, lines, place)
    return native_words.cut_requests(data, at + offset(block, lines, place), requests)


def offset(block: bytes, lines: list[bytes], place: int) -> int:
    """Where a line begins in a block. O(lines behind it)."""
    behind = lines[place:]
    return len(block) - sum(map(len, behind)) - len(LINE_END) * (len(behind) - 1)


def are_whole(headers: list[bytes], words: list[bytes]) -> bool:
    """Whether words are as long as their headers say; no word may be longer than 4 KiB."""
    return headers == list(map(HEADERS.get, map(len, words)))
