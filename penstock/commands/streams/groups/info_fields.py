"""The fields of XINFO's replies, written one behind the other."""

from typing import Final

from librt.strings import BytesWriter

from penstock.engine.context import Context
from penstock.protocol import reply

_NAMES: Final[dict[bytes, bytes]] = {}  # of fields, as bulk strings


class InfoFields:
    """Fields of one reply, without those that the compat-version hides.

    A list of pairs would be made only to be thrown away.
    """

    __slots__ = ("_count", "_ctx", "_hides", "_written")

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._hides = ctx.row is not None and bool(ctx.row.hidden)
        self._count = 0
        self._written = BytesWriter()

    def add(self, name: bytes, value: bytes) -> None:
        """Add a field; the value is encoded. O(bytes)."""
        if self._hides and not self._ctx.shown([(name, value)]):
            return
        self._count += 1
        word = _NAMES.get(name)
        if word is None:
            word = _NAMES[name] = reply.bulk(name)
        self._written.write(word)
        self._written.write(value)

    def add_number(self, name: bytes, number: int) -> None:
        """Add a field with an integer."""
        self.add(name, reply.integer(number))

    def add_all(self, fields: list[tuple[bytes, bytes]]) -> None:
        """Add several fields."""
        for name, value in fields:
            self.add(name, value)

    def as_map(self) -> bytes:
        """The reply: a map in RESP3, a flat array in RESP2."""
        return reply.map_header(self._count, self._ctx.resp3) + self._written.getvalue()
