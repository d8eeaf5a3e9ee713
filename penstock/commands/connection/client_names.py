"""What a client may call itself: CLIENT SETNAME, CLIENT SETINFO, HELLO SETNAME."""

from penstock.engine.refusals import c_string
from penstock.errors import ReplyError


def is_plain(text: bytes) -> bool:
    """Whether there is nothing in a text but what is between ! and ~ in ASCII, up to a NUL (Redis 8.6.3)."""
    return all(0x21 <= byte <= 0x7E for byte in c_string(text))


def name_of_client(text: bytes) -> bytes:
    """A name for a connection; the empty one takes its name away."""
    if not is_plain(text):
        raise ReplyError(b"ERR Client names cannot contain spaces, newlines or special characters.")
    return text


def attribute_of_client(option: bytes, text: bytes) -> bytes:
    """A value for lib-name or lib-ver; `option` as typed, for the refusal."""
    if not is_plain(text):
        raise ReplyError(b"ERR %b cannot contain spaces, newlines or special characters." % option)
    return text
