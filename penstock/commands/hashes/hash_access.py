"""The hash at a key, with the fields that have expired and still lie there, or without (common/live_parts.py)."""

from typing import Final

from penstock.commands.common.live_parts import live, read_live, shown
from penstock.commands.common.overwriting import create
from penstock.commands.common.part_arguments import PartWords
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.keyspace import Value
from penstock.storage.types.hashes import Hash

FIELDS: Final = PartWords(b"H", b"FIELDS", (b"FNX", b"FXX"))


def hash_at(ctx: Context, key: bytes) -> Hash | None:
    """The hash at a key, with its expired fields; None if there is no key. ReplyError WRONGTYPE for another type."""
    return _as_hash(ctx.value(key))


def read_hash(ctx: Context, key: bytes) -> Hash | None:
    """As `hash_at`, for a command that only reads: counts a hit or a miss."""
    return _as_hash(ctx.read(key))


def read_shown(ctx: Context, key: bytes) -> Hash | None:
    """As `read_hash`, without the expired fields."""
    found = read_hash(ctx, key)
    return found if found is None or found.due is None else shown(ctx, found)


def read_fields(ctx: Context, key: bytes, fields: list[bytes]) -> Hash | None:
    """As `read_hash`, after those of the fields that have expired were removed."""
    found = read_hash(ctx, key)
    return found if found is None or found.due is None else read_live(ctx, key, found, fields)


def hash_with(ctx: Context, key: bytes, fields: list[bytes]) -> Hash | None:
    """As `hash_at`, after those of the fields that have expired were removed."""
    found = hash_at(ctx, key)
    return found if found is None or found.due is None else live(ctx, key, found, fields)


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


def _as_hash(value: Value | None) -> Hash | None:
    if value is None or isinstance(value, Hash):
        return value
    raise refusals.wrong_type()
