"""Bytes of the server as text for the page: names that come back unchanged, and requests as redis-cli has them.

A *token* is bytes, percent-encoded: JavaScript's decodeURIComponent makes the text of it if the bytes are UTF-8, and
its encodeURIComponent makes tokens.
"""

from string import ascii_letters, digits, punctuation
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

import hiredis

from penstock.config import quoting

PLAIN: Final = (ascii_letters + digits + punctuation + " ").replace("%", "")
BARE: Final = frozenset((ascii_letters + digits + "!#$%&()*+,-./:;<=>?@[]^_`{|}~").encode())
STATUSES: Final = (b"OK", b"QUEUED")  # hiredis does not tell them from strings
LINES: Final = 40  # of a reply that is shown
SHORT: Final = 200  # bytes of a value in a list
LONG: Final = 65536  # bytes of a value that is shown alone


def token(name: bytes) -> str:
    """Bytes as a token.

    >>> token(b"caf\\xc3\\xa9 100%")
    'caf%C3%A9 100%25'
    """
    return quote_from_bytes(name, PLAIN)


def of_token(text: str) -> bytes:
    """The bytes of a token; other text is taken as UTF-8."""
    return unquote_to_bytes(text)


def shortened(value: bytes, most: int) -> dict[str, object]:
    """The beginning of a value, and its size where that is not all of it."""
    if len(value) <= most:
        return {"text": token(value)}
    return {"text": token(value[:most]), "size": len(value)}


def request_line(words: list[bytes]) -> str:
    """A request that redis-cli, or a shell-like parser, splits into the same words.

    >>> request_line([b"XADD", b"my orders", b"*", b"note", b"5% \\xff"])
    'XADD "my orders" * note "5% \\\\xff"'
    """
    return " ".join(word.decode() if word and BARE.issuperset(word) else quoting.quoted(word) for word in words)


def reply_lines(reply: Any) -> list[str]:
    """A reply as redis-cli prints it, at most LINES lines."""
    lines = _lines(reply)
    return lines if len(lines) <= LINES else [*lines[:LINES], f"... {len(lines) - LINES} more lines"]


def _lines(reply: Any) -> list[str]:
    if isinstance(reply, hiredis.ReplyError):
        return [f"(error) {reply}"]
    if isinstance(reply, int):
        return [f"(integer) {reply}"]
    if isinstance(reply, bytes):
        return [reply.decode() if reply in STATUSES else quoting.quoted(reply)]
    if not isinstance(reply, list):
        return ["(nil)"]
    if not reply:
        return ["(empty array)"]
    lines = []
    for number, one in enumerate(reply, 1):
        head = f"{number}) "
        for at, line in enumerate(_lines(one)):
            lines.append((" " * len(head) if at else head) + line)
    return lines
