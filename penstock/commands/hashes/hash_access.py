"""The hash at a key, without the fields that have expired."""

from typing import Final

from penstock.commands.common.live_parts import live
from penstock.commands.common.overwriting import create
from penstock.commands.common.part_arguments import PartWords
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.keyspace import Value
from penstock.storage.types.hashes import Hash

FIELDS: Final = PartWords(b"H", b"FIELDS", (b"FNX", b"FXX"))


def hash_at(ctx: Context, key: bytes) -> Hash | None:
    """The hash at a key, for a command that may change it; None if there is no key.

    ReplyError WRONGTYPE for another type.
    """
    return _shown(ctx, key, ctx.value(key))


def read_hash(ctx: Context, key: bytes) -> Hash | None:
    """As `hash_at`, for a command that only reads: counts a hit or a miss."""
    return _shown(ctx, key, ctx.read(key))


def hash_or_new(ctx: Context, key: bytes) -> Hash:
    """As `hash_at`, but creates a missing key; the caller must then add a field."""
    found = hash_at(ctx, key)
    if found is None:
        found = Hash()
        create(ctx, key, found)
    return found


def note_size(ctx: Context, found: Hash, words: list[bytes]) -> None:
    """Take note whether Redis keeps the hash as a large one, now that these fields and values were set."""
    if not found.is_large:
        found.outgrow(words, ctx.form_limits.hash_fields, ctx.form_limits.hash_bytes)


def _shown(ctx: Context, key: bytes, value: Value | None) -> Hash | None:
    if value is None:
        return None
    if not isinstance(value, Hash):
        raise refusals.wrong_type()
    return value if value.due is None else live(ctx, key, value)
