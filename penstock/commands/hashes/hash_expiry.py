"""Times of expiry of a hash's fields: set, read and removed (common/part_expiry.py).

Tests: transcripts hash_field_expiry; cases commands/test_hash_expiry; law against_redis/test_hashes_beside_redis.
"""

from penstock.commands.common import part_expiry
from penstock.commands.hashes import valkey_fields
from penstock.commands.hashes.hash_access import FIELDS, hash_at, read_hash
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import Handler, command

# -- setting ---------------------------------------------------------------------------------------------------------


def _setting(rest: bytes) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        return _expire(ctx, args, rest, 0 if rest.endswith(b"AT") else ctx.now_ms)

    return handler


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


part_expiry.declare_setting(FIELDS, "7.4.0", _setting)

# -- reading ---------------------------------------------------------------------------------------------------------


def _reading(rest: bytes) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        valkey_fields.check_three(ctx, args, refusals.SYNTAX)
        return part_expiry.remaining(ctx, args, FIELDS, read_hash(ctx, args[1]), rest)

    return handler


part_expiry.declare_reading(FIELDS, "7.4.0", _reading)

# -- removing --------------------------------------------------------------------------------------------------------


@command(
    f"HPERSIST key {FIELDS.syntax()}",
    "7.4.0 write fast | keys 1 RW update",
    "Removes the times of expiry of fields.",
    FIELDS.complexity(),
)
def hpersist(ctx: Context, args: list[bytes]) -> bytes:
    valkey_fields.check_three(ctx, args)
    return part_expiry.persist(ctx, args, FIELDS, hash_at(ctx, args[1]))
