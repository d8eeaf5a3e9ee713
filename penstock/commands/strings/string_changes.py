"""Changes a part of a string: shared by APPEND, SETRANGE, SETBIT and BITFIELD."""

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.types.large_strings import SHORTEST, LargeString
from penstock.storage.types.string_forms import raw_string


class Change:
    """A string, part of which is about to be changed.

    Read `buffer` before the change, change the result of `extend`, then call `keep`. `length` is the old length.
    """

    __slots__ = ("_is_new", "_key", "_large", "_text", "buffer", "length")

    def __init__(self, ctx: Context, key: bytes) -> None:
        """ReplyError WRONGTYPE if the value is not a string."""
        value = ctx.value(key)
        self._key = key
        self._is_new = value is None
        self._large: LargeString | None = None
        self.buffer: bytes | bytearray = b""
        if isinstance(value, bytes):
            self.buffer = value
        elif isinstance(value, LargeString):
            self._large = value
            self.buffer = value.buffer
        elif value is not None:
            raise refusals.wrong_type()
        self.length = len(self.buffer)
        self._text: bytes | bytearray = b""

    @property
    def is_new(self) -> bool:
        """Whether the key did not exist."""
        return self._is_new

    def extend(self, length: int) -> bytearray:
        """The string to change, extended by zero bytes to at least `length`.

        For a LargeString, it is the buffer itself: amortized O(bytes added). A shorter string is copied.
        """
        text = bytearray(self.buffer) if self._large is None else self._large.buffer
        if len(text) < length:
            text += bytes(length - len(text))
        self._text = text
        return text

    def append(self, tail: bytes) -> None:
        """Add at the end, before `keep`. One copy of a string, none of a LargeString."""
        if self._large is None:
            self._text = self.buffer + tail
        else:
            self._large.buffer.extend(tail)

    def keep_unchanged(self, ctx: Context) -> None:
        """The string was made ready to be changed, and was not: it is encoded as `raw` from now on, and no more."""
        if self._large is None:
            ctx.db.put(self._key, raw_string(self.buffer))

    def keep(self, ctx: Context) -> None:
        """Set the key to the changed string, which is encoded as `raw`; its time of expiry stays."""
        value: bytes | LargeString
        if self._large is not None:
            value = self._large
            value.recount(self.length, len(value))
        else:
            text = self._text
            if len(text) < SHORTEST:
                value = raw_string(text)
            else:
                value = LargeString(text if isinstance(text, bytearray) else bytearray(text))
        if self._is_new:
            create(ctx, self._key, value)
        else:
            ctx.put(self._key, value)
