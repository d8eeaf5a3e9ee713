"""Checks the names that a client gives itself: CLIENT SETNAME, CLIENT SETINFO, HELLO SETNAME."""

import re
from typing import Final

from penstock.engine.refusals import c_string
from penstock.errors import ReplyError

_PLAIN: Final = re.compile(rb"[!-~]*+")  # possessive: a name may be as long as any word


def is_plain(text: bytes) -> bool:
    """Whether a text, up to a NUL byte, has only the ASCII characters from ! to ~ (Redis 8.6.3)."""
    return _PLAIN.fullmatch(c_string(text)) is not None


def name_of_client(text: bytes) -> bytes:
    """A name for a connection, which may be empty; ReplyError if it has other characters."""
    if not is_plain(text):
        raise ReplyError(b"ERR Client names cannot contain spaces, newlines or special characters.")
    return text


def attribute_of_client(option: bytes, text: bytes) -> bytes:
    """A value for lib-name or lib-ver; ReplyError if it has other characters. `option` is the option as it was sent."""
    if not is_plain(text):
        raise ReplyError(b"ERR %b cannot contain spaces, newlines or special characters." % option)
    return text
