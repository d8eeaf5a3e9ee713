"""The refusals that every floor shares: what a client is told, and what stops a start."""


class ReplyError(Exception):
    """A request is refused; `text` is the error line without its dash, e.g. b"ERR syntax error".

    The first word is the error's code. CR and LF in it become spaces on the wire (protocol/reply.py).
    """

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


class ProtocolError(Exception):
    """The bytes are no request: `text` follows `ERR Protocol error: `, and the connection closes.

    An empty text closes without a word, as Redis does for some inputs (Redis 8.6.3).
    """

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.text = text


class UsageError(Exception):
    """A command line, a configuration file or a data directory cannot be used; the text is for a person."""
