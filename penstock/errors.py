"""The exceptions that all parts of the program share: error replies, protocol errors, and errors at the start."""

from typing import Final


class ReplyError(Exception):
    """A request is refused. `text` is the error line without its dash, e.g. b"ERR syntax error".

    The first word is the error's code. CR and LF in it become spaces on the wire, and go at its end
    (protocol/reply.py). is_counted: INFO has counted it already, for the request of a script that raised it.
    """

    def __init__(self, text: bytes, is_counted: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.is_counted = is_counted


class ProtocolError(Exception):
    """The bytes are not a request. `text` follows `ERR Protocol error: `, and the connection is closed.

    If the text is empty, the connection is closed without an error reply, as Redis does for some inputs (Redis 8.6.3).
    """

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


class UsageError(Exception):
    """A command line, a configuration file or a data directory cannot be used. The text is for the operator."""


def sentence_of(failure: Exception) -> str:
    """Why something failed, for a person: the file is named, and the system's number is left out."""
    if isinstance(failure, OSError) and failure.strerror and failure.filename:
        return f"cannot use {failure.filename}: {failure.strerror}"
    return str(failure)


LONGEST_SHOWN: Final = 1000  # characters


def shortened(text: str) -> str:
    """A word of a user, as a sentence shows it: of a huge one the beginning."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
