"""Stream entries as bytes: encoded once, when they are added, in the form that every read sends."""

from typing import Final

from librt.strings import BytesWriter

from penstock.protocol import reply

_ANY_WORD: Final = b"$%d\r\n%b\r\n"  # for a size and its bytes


def encode(entry_id: bytes, words: list[bytes], first: int = 0) -> bytes:
    """An entry as a reply, its fields and values being the words from `first` on: [id, [field, value, ...]].

    >>> encode(b"1-0", [b"f", b"v"])
    b'*2\\r\\n$3\\r\\n1-0\\r\\n*2\\r\\n$1\\r\\nf\\r\\n$1\\r\\nv\\r\\n'
    """
    encoded = BytesWriter()
    encoded.write(b"*2\r\n")
    reply.write_word(encoded, entry_id)
    encoded.write(reply.array_header(len(words) - first))
    for at in range(first, len(words)):
        reply.write_word(encoded, words[at])
    return encoded.getvalue()


def encode_columns(entry_ids: list[bytes], fields: list[bytes], columns: list[list[bytes]]) -> list[bytes]:
    """As `encode`, for entries with the same fields: `columns` has the values of each field.

    >>> encode_columns([b"1-0"], [b"f"], [[b"v"]]) == [encode(b"1-0", [b"f", b"v"])]
    True
    """
    shape = b"*2\r\n" + _ANY_WORD + reply.array_header(2 * len(fields))
    shape += b"".join([reply.bulk(field).replace(b"%", b"%%") + _ANY_WORD for field in fields])
    words = [part for column in (entry_ids, *columns) for part in (map(len, column), column)]
    return [shape % row for row in zip(*words, strict=True)]


def with_delivery(entry: bytes, idle_ms: int, count: int) -> bytes:
    """The four-element form of XREADGROUP CLAIM: [id, [field, value, ...], idle-ms, deliveries before]."""
    return b"*4%b%b%b" % (entry[2:], reply.integer(idle_ms), reply.integer(count))


def deleted(entry_id: bytes, resp3: bool) -> bytes:
    """A deleted entry in a read of the history: [id, null array]."""
    return b"*2\r\n%b%b" % (reply.bulk(entry_id), reply.null_array(resp3))


def fields_of(entry: bytes) -> list[bytes]:
    """The fields and values of an encoded entry, in turn.

    >>> fields_of(encode(b"1-0", [b"f", b"v"]))
    [b'f', b'v']
    """
    parts = entry.split(b"\r\n")
    count = int(parts[3][1:])
    if len(parts) == 2 * count + 5:
        return parts[5::2]
    at = sum(map(len, parts[:4])) + 8
    fields: list[bytes] = []
    for _ in range(count):
        start = entry.index(b"\r\n", at) + 2
        stop = start + int(entry[at + 1 : start - 2])
        fields.append(entry[start:stop])
        at = stop + 2
    return fields
