"""Short strings with another encoding in Redis than SET would give to the same text.

Redis chooses the encoding of a string (int, embstr, raw) when it is made, and again when it is changed. Here a string
is always `bytes`; if the encoding does not follow from the text, the value is of a subclass that says it, so that other
strings need no mark. In everything else they are equal to the plain text. (Redis 8.6.3, by experiment.)
"""

from typing import Final

from penstock.storage.types.string_marks import RawString, UnconvertedString

LONGEST_EMBEDDED: Final = 41  # bytes of key and string together that Redis 8.6.3 keeps as "embstr"


def raw_string(text: bytes | bytearray) -> bytes:
    """A string that is encoded as `raw`. A long one needs no mark: it is raw in any case."""
    return RawString(text) if len(text) <= LONGEST_EMBEDDED else bytes(text)


def unconverted_string(text: bytes) -> bytes:
    """A string that is not encoded as `int`."""
    return UnconvertedString(text)


def under_other_key(value: bytes, key: bytes, other_key: bytes) -> bytes:
    """A string that RENAME or COPY gives another key: with a long key it was raw, and it stays raw."""
    if len(value) <= LONGEST_EMBEDDED < len(key) + len(value) and len(other_key) < len(key):
        return RawString(value)
    return value
