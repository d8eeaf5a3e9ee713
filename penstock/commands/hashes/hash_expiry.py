"""Times of expiry of a hash's fields: set, read and removed (common/part_expiry.py).

Tests: transcripts hash_field_expiry; cases commands/test_hash_expiry; law against_redis/test_hashes_beside_redis.
"""

from typing import Final

from penstock.commands.common import part_expiry
from penstock.commands.hashes import valkey_fields
from penstock.commands.hashes.hash_access import FIELDS, hash_at, read_hash
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command

PER_FIELD: Final = "O(N) where N is the number of specified fields"


# -- setting ---------------------------------------------------------------------------------------------------------


@command(
    "HEXPIRE",
    "key seconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, in seconds from now.",
)
def hexpire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"EXPIRE", ctx.now_ms)


@command(
    "HPEXPIRE",
    "key milliseconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, in milliseconds from now.",
)
def hpexpire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"PEXPIRE", ctx.now_ms)


@command(
    "HEXPIREAT",
    "key unix-time-seconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, as a unix time in seconds.",
)
def hexpireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"EXPIREAT", 0)


@command(
    "HPEXPIREAT",
    "key unix-time-milliseconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, as a unix time in milliseconds.",
)
def hpexpireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"PEXPIREAT", 0)


def _expire(ctx: Context, args: list[bytes], rest: bytes, base_ms: int) -> bytes:
    key = args[1]
    if ctx.speaks_valkey():
        when_ms, fields, condition = valkey_fields.read_expire(
            args, FIELDS.name(rest).lower(), base_ms, not rest.startswith(b"P")
        )
        found = hash_at(ctx, key)
        answer = part_expiry.expire_read(ctx, key, FIELDS, found, when_ms, fields, condition)
    else:
        found = hash_at(ctx, key)
        answer = part_expiry.expire(ctx, args, FIELDS, found, rest, base_ms)
    if found is not None:
        found.keep_times()  # Redis converts the hash, whatever the conditions say
    return answer


# -- reading ---------------------------------------------------------------------------------------------------------


@command(
    "HTTL",
    "key fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    tips="nondeterministic_output",
    complexity=PER_FIELD,
    summary="Returns in how many seconds fields expire; -1: never, -2: no such field.",
)
def httl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, ctx.now_ms, in_seconds=True)


@command(
    "HPTTL",
    "key fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    tips="nondeterministic_output",
    complexity=PER_FIELD,
    summary="Returns in how many milliseconds fields expire; -1: never, -2: no such field.",
)
def hpttl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, ctx.now_ms, in_seconds=False)


@command(
    "HEXPIRETIME",
    "key fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    complexity=PER_FIELD,
    summary="Returns the unix time in seconds at which fields expire; -1: never, -2: no such field.",
)
def hexpiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, 0, in_seconds=True)


@command(
    "HPEXPIRETIME",
    "key fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    complexity=PER_FIELD,
    summary="Returns the unix time in milliseconds at which fields expire; -1: never, -2: no such field.",
)
def hpexpiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, 0, in_seconds=False)


def _remaining(ctx: Context, args: list[bytes], since_ms: int, in_seconds: bool) -> bytes:
    valkey_fields.check_three(ctx, args, refusals.SYNTAX)
    return part_expiry.remaining(ctx, args, FIELDS, read_hash(ctx, args[1]), since_ms, in_seconds)


# -- removing --------------------------------------------------------------------------------------------------------


@command(
    "HPERSIST",
    "key fields:FIELDS (numfields field [field ...])",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Removes the times of expiry of fields.",
)
def hpersist(ctx: Context, args: list[bytes]) -> bytes:
    valkey_fields.check_three(ctx, args)
    return part_expiry.persist(ctx, args, FIELDS, hash_at(ctx, args[1]))
