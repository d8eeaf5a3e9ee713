"""Parses requests word by word in Python: every rule and error text of Redis, at any split of the bytes.

The fast parsers (request_reader.py) leave everything but ordinary requests to it. It is the oracle of their tests.
"""

import re
from typing import Final

from penstock.errors import ProtocolError
from penstock.protocol import inline
from penstock.protocol.limits import UNAUTHENTICATED_MAX_BULK, UNAUTHENTICATED_MAX_COUNT, Limits

LONGEST_LINE: Final = 65536

_STAR: Final = ord("*")
_DOLLAR: Final = ord("$")
_NUL: Final = 0
_UNKNOWN: Final = -1
_INTEGER: Final = re.compile(rb"-?[1-9][0-9]{0,18}|0")
_LARGEST: Final = 2**63 - 1
_SIZES: Final = {b"%d" % size: size for size in range(1024)}
_FLAT: Final = bytes.maketrans(b"\r\n", b"  ")

# How a browser's request begins, if a page makes it connect to this port: the connection is closed without a reply.
WEB_INITIALS: Final = frozenset((b"PO", b"Po", b"pO", b"po", b"HO", b"Ho", b"hO", b"ho"))
_WEB_WORDS: Final = frozenset((b"post", b"host:"))


def is_web(name: bytes) -> bool:
    """Whether a first word is HTTP's `POST` or `Host:`, in any case and up to a NUL (Redis 8.6.3)."""
    return name.partition(b"\0")[0].lower() in _WEB_WORDS


class StrictParser:
    """Bytes in, requests out. `feed` never fails; `next` raises ProtocolError, and raises it again at every later call.

    Between two calls: `_text[_at:]` is unread; `_missing` words of the request in `_words` are to come (0: between
    requests); `_bulk_left` bytes, line end included, are to come of the word in `_bulk` (0: at a header).
    Memory is used as bytes come, never reserved because a header announces them.
    """

    __slots__ = ("_at", "_bulk", "_bulk_left", "_failure", "_missing", "_text", "_words", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._text = b""
        self._at = 0
        self._words: list[bytes] = []
        self._missing = 0
        self._bulk = bytearray()
        self._bulk_left = 0
        self._failure: bytes | None = None

    @property
    def unread(self) -> int:
        """Bytes fed that are not yet part of a whole word."""
        return len(self._text) - self._at + len(self._bulk)

    @property
    def is_amid(self) -> bool:
        """Whether there are unread bytes, or words of an unfinished request."""
        return self._missing > 0 or self._at < len(self._text)

    def feed(self, data: bytes) -> None:
        if self._failure is None:
            # At most an unfinished line (64 KiB), or requests that have not been taken yet.
            self._text = self._text[self._at :] + data if self._at < len(self._text) else data
            self._at = 0

    def give_back(self) -> int:
        """Drop the unread bytes behind the last request; how many they were."""
        assert self._missing == 0, "a request is unfinished: its bytes cannot be told apart from the next one's"
        size = len(self._text) - self._at
        self._text = b""
        self._at = 0
        return size

    def next(self) -> list[bytes] | None:
        """The next whole request, or None: more bytes are needed."""
        if self._failure is not None:
            raise ProtocolError(self._failure)
        try:
            request = self._request()
            if request is not None and request[0][:2] in WEB_INITIALS and is_web(request[0]):
                raise ProtocolError(b"")
        except ProtocolError as error:
            self._failure = error.text
            self._text = b""
            self._at = 0
            raise
        return request

    def _request(self) -> list[bytes] | None:
        while True:
            if self._missing:
                return self._gathered()
            if self._at == len(self._text):
                return None
            if self._text[self._at] != _STAR:
                words = self._line()
                if words is None:
                    return None
                if words:
                    return words
            elif not self._begin():
                return None

    def _line(self) -> list[bytes] | None:
        """An inline request, empty for a blank line; None while its line end is missing."""
        end = self._line_end(b"\n", True, b"too big inline request")
        if end == _UNKNOWN:
            return None
        words = inline.split(self._text[self._at : end].removesuffix(b"\r"))
        self._at = end + 1
        return words

    def _begin(self) -> bool:
        """Read the `*` line; False while its line end is missing. A count of 0 or less is an empty request."""
        end = self._line_end(b"\r", True, b"too big mbulk count string")
        if end == _UNKNOWN or end + 1 == len(self._text):
            return False
        count = _integer(self._text[self._at + 1 : end])
        if count is None or count > self.limits.max_count:
            raise ProtocolError(b"invalid multibulk length")
        if count > UNAUTHENTICATED_MAX_COUNT and not self.limits.authenticated:
            raise ProtocolError(b"unauthenticated multibulk length")
        self._at = end + 2
        self._missing = max(count, 0)
        self._words = []
        return True

    def _gathered(self) -> list[bytes] | None:
        """The request, if its last word is complete."""
        while self._missing:
            if self._bulk_left == 0 and not self._bulk_header():
                return None
            end = self._at + self._bulk_left
            if self._bulk or end > len(self._text):
                if not self._fill(end):
                    return None
            else:
                self._words.append(self._text[self._at : end - 2])
                self._at = end
            self._bulk_left = 0
            self._missing -= 1
        words = self._words
        self._words = []
        return words

    def _bulk_header(self) -> bool:
        """Read a `$` line; False while its line end is missing. The line's end is sought before its first letter is
        looked at, as Redis does."""
        text = self._text
        at = self._at
        end = self._line_end(b"\r", False, b"too big bulk count string")
        if end == _UNKNOWN or end + 1 == len(text):
            return False
        if text[at] != _DOLLAR:
            raise ProtocolError(b"expected '$', got '%b'" % text[at : at + 1].translate(_FLAT))
        digits = text[at + 1 : end]
        length = _SIZES.get(digits, _UNKNOWN)
        if length == _UNKNOWN:
            number = _integer(digits)
            if number is None or number < 0 or number > self.limits.max_bulk_len:
                raise ProtocolError(b"invalid bulk length")
            length = number
        elif length > self.limits.max_bulk_len:
            raise ProtocolError(b"invalid bulk length")
        if length > UNAUTHENTICATED_MAX_BULK and not self.limits.authenticated:
            raise ProtocolError(b"unauthenticated bulk length")
        self._at = end + 2
        # The two bytes behind a word are skipped unchecked (Redis 8.6.3).
        self._bulk_left = length + 2
        return True

    def _fill(self, end: int) -> bool:
        """Move the bytes of a long or split word into `_bulk`; True if the word is complete."""
        part = self._text[self._at : end]
        self._bulk += part
        self._at += len(part)
        self._bulk_left -= len(part)
        if self._bulk_left:
            return False
        del self._bulk[-2:]
        self._words.append(bytes(self._bulk))
        self._bulk = bytearray()
        return True

    def _line_end(self, mark: bytes, nul_hides: bool, too_long: bytes) -> int:
        """Where the line that begins here ends, or _UNKNOWN; a line longer than 64 KiB is refused.

        A NUL hides an inline line's end and a `*` line's (Redis 8.6.3 seeks them as a C string): such a line never
        ends, and is refused when it gets too long.
        """
        start = self._at
        end = self._text.find(mark, start, start + LONGEST_LINE + 1)
        if end >= 0 and not (nul_hides and self._text.find(_NUL, start, end) >= 0):
            return end
        if len(self._text) - start > LONGEST_LINE:
            raise ProtocolError(too_long)
        return _UNKNOWN


def _integer(digits: bytes) -> int | None:
    """A 64-bit integer written as Redis writes it: no sign but a minus, no leading zero, no space."""
    if _INTEGER.fullmatch(digits) is None:
        return None
    number = int(digits)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None
