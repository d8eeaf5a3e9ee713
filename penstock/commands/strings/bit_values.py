"""What bit commands work on: strings, and native bitmaps (Redis 8.12, documentation)."""

from typing import TypeAlias

from penstock.commands.common.overwriting import create, notify_overwritten
from penstock.commands.strings.string_changes import Change
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.types import bitmaps
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.large_strings import LargeString

Bits: TypeAlias = bytes | bytearray | Bitmap


def read_bits(ctx: Context, key: bytes) -> Bits | None:
    """The bits at a key, which are not copied: do not keep the result. ReplyError WRONGTYPE for another type."""
    value = ctx.read(key)
    if value is None or isinstance(value, (bytes, Bitmap)):
        return value
    if isinstance(value, LargeString):
        return value.buffer
    raise refusals.wrong_type()


def part_of(bits: Bits, first: int, end: int) -> bytes | bytearray:
    """The bytes from `first` to `end`, fewer where the bits end before."""
    return bits.part(first, end) if isinstance(bits, Bitmap) else bits[first:end]


def makes_native(ctx: Context) -> bool:
    """Whether a request makes native bitmaps of strings. A log, or a master, says so by BITCONVERT."""
    return ctx.settings.yes("bitmap-default-roaring") and not ctx.session.privileged


def convert(ctx: Context, key: bytes) -> Bitmap:
    """Make the value at a key a native bitmap, if it is none; its time of expiry stays. Logged as BITCONVERT."""
    value = ctx.value(key)
    if isinstance(value, Bitmap):
        return value
    if value is None:
        bitmap = Bitmap()
        create(ctx, key, bitmap)
    else:
        if not isinstance(value, (bytes, LargeString)):
            raise refusals.wrong_type()
        bitmap = bitmaps.of_text(value if isinstance(value, bytes) else value.buffer)
        ctx.put(key, bitmap)
        notify_overwritten(ctx, key, value, bitmap)
    ctx.dirty += 1
    log_conversion(ctx, key)
    return bitmap


def log_conversion(ctx: Context, key: bytes) -> None:
    """Where an older Redis must be able to load the log, it keeps a string."""
    ctx.log_newer([b"BITCONVERT", key])


class BitChange:
    """The bits at a key, part of which is about to be changed: of a native bitmap, or of a string (`Change`).

    Read `part` before and after the change, change by `extend` and `write`, then call `keep`. `length` is the old one.
    """

    __slots__ = ("_bitmap", "_change", "_key", "_text", "is_new", "length")

    def __init__(self, ctx: Context, key: bytes) -> None:
        """Converts a string, or makes a bitmap, if `bitmap-default-roaring` says so. ReplyError WRONGTYPE."""
        found = ctx.value(key)
        self._key = key
        self.is_new = found is None
        self._bitmap = convert(ctx, key) if isinstance(found, Bitmap) or makes_native(ctx) else None
        self._change = Change(ctx, key) if self._bitmap is None else None
        self._text: bytes | bytearray = b"" if self._change is None else self._change.buffer
        self.length = len(self._text) if self._bitmap is None else len(self._bitmap)

    def part(self, first: int, end: int) -> bytes | bytearray:
        """The bytes from `first` to `end`, fewer where the bits end before."""
        return self._text[first:end] if self._bitmap is None else self._bitmap.part(first, end)

    def extend(self, length: int) -> bool:
        """Make ready to write up to a length; returns whether bytes were added."""
        if self._bitmap is not None:
            self._bitmap.extend(length)
        elif self._change is not None:
            self._text = self._change.extend(length)
        return length > self.length

    def write(self, first: int, part: bytes) -> None:
        """Replace the bytes from `first` on, after `extend`."""
        text = self._text
        if self._bitmap is not None:
            self._bitmap.write(first, part)
        elif isinstance(text, bytearray):
            text[first : first + len(part)] = part

    def keep(self, ctx: Context) -> None:
        """Set the key to what it is now; its time of expiry stays."""
        if self._bitmap is not None:
            ctx.put(self._key, self._bitmap)
        elif self._change is not None:
            self._change.keep(ctx)

    def keep_unchanged(self, ctx: Context) -> None:
        """Nothing was changed: a string is encoded as `raw` from now on."""
        if self._change is not None and not self.is_new:
            self._change.keep_unchanged(ctx)
