"""Replies as bytes, in RESP2 and RESP3 (Redis 8.6.3). Functions take `resp3: bool` if the two protocols differ."""

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter

OK: Final = b"+OK\r\n"
PONG: Final = b"+PONG\r\n"
QUEUED: Final = b"+QUEUED\r\n"
EMPTY_ARRAY: Final = b"*0\r\n"
EMPTY_BULK: Final = b"$0\r\n\r\n"
ZERO: Final = b":0\r\n"
ONE: Final = b":1\r\n"
NO_REPLY: Final = b""

_SMALL: Final = 1024
_INTEGERS: Final = [b":%d\r\n" % number for number in range(_SMALL)]
_BULK_HEADERS: Final = [b"$%d\r\n" % size for size in range(_SMALL)]
_ARRAY_HEADERS: Final = [b"*%d\r\n" % count for count in range(_SMALL)]
_LINE_END: Final = b"\r\n"
_NEXT_HEADERS: Final = [_LINE_END + header for header in _BULK_HEADERS]  # behind another bulk string
_FLAT: Final = bytes.maketrans(b"\r\n", b"  ")


def simple(text: bytes) -> bytes:
    return b"+%b\r\n" % text


def error(text: bytes) -> bytes:
    """`text` begins with the error's code: b"ERR syntax error". CR and LF become spaces, and go at its end."""
    return b"-%b\r\n" % flat(text.rstrip(_LINE_END))


def flat(text: bytes) -> bytes:
    """A text as part of one line: CR and LF are spaces."""
    return text.translate(_FLAT)


def integer(number: int) -> bytes:
    return _INTEGERS[number] if 0 <= number < _SMALL else b":%d\r\n" % number


def bulk(text: bytes) -> bytes:
    size = len(text)
    return b"%b%b\r\n" % (_BULK_HEADERS[size], text) if size < _SMALL else b"$%d\r\n%b\r\n" % (size, text)


def array_header(count: int) -> bytes:
    """The header of an array of so many replies."""
    return _ARRAY_HEADERS[count] if count < _SMALL else b"*%d\r\n" % count


def array(replies: Sequence[bytes]) -> bytes:
    """An array of encoded replies."""
    return array_header(len(replies)) + b"".join(replies)


def bulks(texts: list[bytes]) -> bytes:
    """An array of bulk strings; requests have this form too.

    >>> bulks([b"XLEN", b"s"])
    b'*2\\r\\n$4\\r\\nXLEN\\r\\n$1\\r\\ns\\r\\n'
    """
    return array_header(len(texts)) + words(texts)


def words(texts: list[bytes]) -> bytes:
    """Bulk strings one behind the other: an array without its header."""
    if not texts:
        return b""
    if len(texts) == 1:
        return bulk(texts[0])
    found = BytesWriter()
    headers = _BULK_HEADERS
    for text in texts:
        size = len(text)
        if size < _SMALL:
            found.write(headers[size])
        else:
            found.write(b"\r\n$%d\r\n" % size if len(found) else b"$%d\r\n" % size)
        found.write(text)
        headers = _NEXT_HEADERS
    found.write(_LINE_END)
    return found.getvalue()


def write_word(to: BytesWriter, text: bytes) -> None:
    """As `bulk`, behind what is there already."""
    size = len(text)
    to.write(_BULK_HEADERS[size] if size < _SMALL else b"$%d\r\n" % size)
    to.write(text)
    to.write(_LINE_END)


def null(resp3: bool) -> bytes:
    return b"_\r\n" if resp3 else b"$-1\r\n"


def null_array(resp3: bool) -> bytes:
    return b"_\r\n" if resp3 else b"*-1\r\n"


def map_header(count: int, resp3: bool) -> bytes:
    """The header of a map of so many pairs of replies; of an array of twice as many replies in RESP2."""
    return b"%%%d\r\n" % count if resp3 else array_header(2 * count)


def mapping(pairs: Sequence[tuple[bytes, bytes]], resp3: bool) -> bytes:
    """Pairs of encoded replies: a map in RESP3, a flat array in RESP2."""
    return map_header(len(pairs), resp3) + b"".join([key + value for key, value in pairs])


def fields(pairs: Sequence[tuple[bytes, bytes]], resp3: bool) -> bytes:
    """A map with keys given as bytes, not encoded: fields([(b"length", integer(3))], resp3)."""
    written = BytesWriter()
    written.write(map_header(len(pairs), resp3))
    for name, value in pairs:
        write_word(written, name)
        written.write(value)
    return written.getvalue()


def bulks_or_nulls(texts: Sequence[bytes | None], resp3: bool) -> bytes:
    """As `bulks`, with a null for each text that is missing."""
    written = BytesWriter()
    written.write(array_header(len(texts)))
    for text in texts:
        if text is None:
            written.write(null(resp3))
        else:
            write_word(written, text)
    return written.getvalue()


def set_of(replies: Sequence[bytes], resp3: bool) -> bytes:
    """A set in RESP3, an array in RESP2."""
    return (b"~%d\r\n%b" if resp3 else b"*%d\r\n%b") % (len(replies), b"".join(replies))


def set_of_bulks(texts: list[bytes], resp3: bool) -> bytes:
    """A set of bulk strings in RESP3, an array in RESP2."""
    return b"~%d\r\n%b" % (len(texts), words(texts)) if resp3 else bulks(texts)


def push(replies: Sequence[bytes], resp3: bool) -> bytes:
    """An out-of-band message: a push in RESP3, an array in RESP2."""
    return (b">%d\r\n%b" if resp3 else b"*%d\r\n%b") % (len(replies), b"".join(replies))


def verbatim(text: bytes, resp3: bool) -> bytes:
    """Plain text for a person (INFO, CLIENT LIST): `=...txt:` in RESP3, a bulk string in RESP2."""
    return b"=%d\r\ntxt:%b\r\n" % (len(text) + 4, text) if resp3 else bulk(text)


def boolean(value: bool, resp3: bool) -> bytes:
    return (b"#t\r\n" if value else b"#f\r\n") if resp3 else (ONE if value else ZERO)


def double(text: bytes, resp3: bool) -> bytes:
    """A floating point number that is text already: `,3.1` in RESP3, a bulk string in RESP2."""
    return b",%b\r\n" % text if resp3 else bulk(text)
