"""A bound for replies that may hold the same value again and again, so that a short request asks for far too much.

MGET k k k ..., HMGET, SORT with GET, and random elements with a negative count. (Redis has no limit:
HMGET and SORT fill its memory, MGET keeps references.)
"""

from typing import Final

from penstock.errors import ReplyError
from penstock.protocol import reply

MOST_BYTES: Final = 1 << 30
JOINED: Final = 8192  # elements at a time: bytes.join takes 80 bytes for each
REFUSAL: Final = b"ERR the reply would be larger than 1 GB"


def require_fitting(size: int) -> None:
    """ReplyError where the values of a reply have too many bytes together."""
    if size > MOST_BYTES:
        raise ReplyError(REFUSAL)


def repeated(header: bytes, elements: list[bytes]) -> bytes:
    """Join an array's header and its elements, many of them the same object. ReplyError above MOST_BYTES."""
    if len(elements) * max(map(len, elements), default=0) > MOST_BYTES:
        require_fitting(sum(map(len, elements)))
    parts = [b"".join(elements[at : at + JOINED]) for at in range(0, len(elements), JOINED)]
    return header + b"".join(parts)


def repeated_pairs(names: list[bytes], drawn: list[bytes], values: list[bytes], resp3: bool) -> bytes:
    """Names that may repeat, each with its value: flat, or in RESP3 an array of pairs.

    drawn: each of the names once; values: theirs, encoded.
    """
    head = reply.array_header(2) if resp3 else b""
    encoded = {name: b"%b%b%b" % (head, reply.bulk(name), value) for name, value in zip(drawn, values, strict=True)}
    return repeated(reply.array_header(len(names) if resp3 else 2 * len(names)), [encoded[name] for name in names])


def repeated_bulks(texts: list[bytes]) -> bytes:
    """As reply.bulks, for texts many of which are equal: each is encoded once. 8 bytes for a text beside the reply."""
    encoded = {text: reply.bulk(text) for text in set(texts)}
    return repeated(reply.array_header(len(texts)), [encoded[text] for text in texts])
