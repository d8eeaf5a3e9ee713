"""Changing a part of a string: what APPEND, SETRANGE, SETBIT and BITFIELD share."""

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.types.large_strings import SHORTEST, LargeString


class Change:
    """A string that is about to be changed in part.

    `held` is to be read before, and may be changed once `extend` was called; `keep` puts it back. `length`: as it was.
    """

    __slots__ = ("_is_new", "_key", "_large", "_text", "buffer", "length")

    def __init__(self, ctx: Context, key: bytes) -> None:
        """WRONGTYPE where there is something else than a string."""
        value = ctx.value(key)
        if not (value is None or isinstance(value, bytes | LargeString)):
            raise refusals.wrong_type()
        self._key = key
        self._is_new = value is None
        self._large = value if isinstance(value, LargeString) else None
        self.buffer: bytes | bytearray
        if value is None:
            self.buffer = b""
        else:
            self.buffer = value.buffer if isinstance(value, LargeString) else value
        self.length = len(self.buffer)
        self._text = bytearray()

    @property
    def is_new(self) -> bool:
        """Whether there was no key."""
        return self._is_new

    def extend(self, length: int) -> bytearray:
        """The string to change, filled up with zero bytes to `length`.

        Of a large one that is the string itself: O(what is added), amortised. A short one is copied.
        """
        text = bytearray(self.buffer) if self._large is None else self._large.buffer
        if len(text) < length:
            text += bytes(length - len(text))
        self._text = text
        return text

    def keep(self, ctx: Context) -> None:
        """Make what `extend` gave the key's value; the time of expiry stays."""
        value: bytes | LargeString
        if self._large is not None:
            value = self._large
        else:
            value = bytes(self._text) if len(self._text) < SHORTEST else LargeString(self._text)
        if self._is_new:
            create(ctx, self._key, value)
        else:
            ctx.put(self._key, value)
