"""Hash commands for fields: set, read, remove, count.

Tests: transcripts hashes; cases commands/test_hashes; law against_redis/test_hashes_beside_redis; model
storage/test_packed_hashes.
"""

from penstock.commands.common.repeated_values import require_fitting
from penstock.commands.hashes.hash_access import (
    hash_at,
    hash_or_new,
    hash_with,
    note_size,
    read_fields,
    read_hash,
    read_shown,
)
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.part_expiry import notify_changed, remove_if_empty
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

# -- setting ---------------------------------------------------------------------------------------------------------


@command(
    "HSET key data:(field value) [field value ...]",
    "2.0.0 write denyoom fast | keys 1 RW update",
    "Sets fields of a hash, which is created if it does not exist; returns how many fields are new.",
    "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the "
    "command is called with multiple field/value pairs.",
    history=(("4.0.0", "Accepts multiple `field` and `value` arguments."),),
)
def hset(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(_set(ctx, args, b"hset"))


@command(
    "HMSET key data:(field value) [field value ...]",
    "2.0.0 write denyoom fast | keys 1 RW update",
    "Sets fields of a hash, which is created if it does not exist.",
    "O(N) where N is the number of fields being set.",
    deprecated=("4.0.0", "`HSET` with multiple field-value pairs"),
)
def hmset(ctx: Context, args: list[bytes]) -> bytes:
    _set(ctx, args, b"hmset")
    return reply.OK


def _set(ctx: Context, args: list[bytes], name: bytes) -> int:
    """Set fields and remove their times of expiry; returns how many are new."""
    if len(args) % 2:
        raise refusals.arity(name)
    key = args[1]
    found = hash_or_new(ctx, key)
    words = args[2:]
    new = found.put_all(words)
    if found.due is not None:
        for field in words[::2]:
            found.persist(field)
    note_size(ctx, found, words)
    notify_changed(ctx, key, found, b"hset", words[::2] if ctx.key_events.of_parts else (), len(words) // 2)
    ctx.log_request(args)
    return new


@command(
    "HSETNX key field value",
    "2.0.0 write denyoom fast | keys 1 RW insert",
    "Sets a field of a hash, unless the field exists.",
)
def hsetnx(ctx: Context, args: list[bytes]) -> bytes:
    _, key, field, value = args
    found = hash_with(ctx, key, [field])
    if found is not None and found.has(field):
        return reply.ZERO
    found = hash_or_new(ctx, key)
    found.put(field, value)
    note_size(ctx, found, args[2:])
    notify_changed(ctx, key, found, b"hset", (field,), 1)
    ctx.log_request(args)
    return reply.ONE


# -- reading ---------------------------------------------------------------------------------------------------------


@command("HGET key field", "2.0.0 readonly fast | keys 1 RO access", "Returns the value of a field.")
def hget(ctx: Context, args: list[bytes]) -> bytes:
    found = read_fields(ctx, args[1], [args[2]])
    value = None if found is None else found.get(args[2])
    return reply.null(ctx.resp3) if value is None else reply.bulk(value)


@command(
    "HMGET key field [field ...]",
    "2.0.0 readonly fast | keys 1 RO access",
    "Returns the values of several fields; null for a missing field.",
    "O(N) where N is the number of fields being requested.",
)
def hmget(ctx: Context, args: list[bytes]) -> bytes:
    return reply.array(values_of(read_fields(ctx, args[1], args[2:]), args[2:], ctx.resp3))


def values_of(found: Hash | None, fields: list[bytes], resp3: bool) -> list[bytes]:
    """The values of fields as replies; null for a missing field or hash."""
    if found is None:
        return [reply.null(resp3)] * len(fields)
    values = [found.get(field) for field in fields]
    require_fitting(sum([len(value) for value in values if value is not None]))
    return [reply.null(resp3) if value is None else reply.bulk(value) for value in values]


@command(
    "HGETALL key",
    "2.0.0 readonly | keys 1 RO access | tips nondeterministic_output_order",
    "Returns all fields and their values.",
    "O(N) where N is the size of the hash.",
)
def hgetall(ctx: Context, args: list[bytes]) -> bytes:
    found = read_shown(ctx, args[1])
    words = [] if found is None else found.words()
    return reply.map_header(len(words) // 2, ctx.resp3) + reply.words(words)


@command(
    "HKEYS key",
    "2.0.0 readonly | keys 1 RO access | tips nondeterministic_output_order",
    "Returns the fields of a hash.",
    "O(N) where N is the size of the hash.",
)
def hkeys(ctx: Context, args: list[bytes]) -> bytes:
    found = read_shown(ctx, args[1])
    return reply.bulks([] if found is None else list(found.names()))


@command(
    "HVALS key",
    "2.0.0 readonly | keys 1 RO access | tips nondeterministic_output_order",
    "Returns the values of a hash.",
    "O(N) where N is the size of the hash.",
)
def hvals(ctx: Context, args: list[bytes]) -> bytes:
    found = read_shown(ctx, args[1])
    return reply.bulks([] if found is None else list(found.values()))


@command("HLEN key", "2.0.0 readonly fast | keys 1 RO", "Returns the number of fields of a hash.")
def hlen(ctx: Context, args: list[bytes]) -> bytes:
    """Counts expired fields that were not yet removed, too (Redis 8.6.3)."""
    found = read_hash(ctx, args[1])
    return reply.integer(0 if found is None else len(found))


@command("HSTRLEN key field", "3.2.0 readonly fast | keys 1 RO", "Returns the length of a field's value in bytes.")
def hstrlen(ctx: Context, args: list[bytes]) -> bytes:
    found = read_fields(ctx, args[1], [args[2]])
    return reply.integer(0 if found is None else len(found.get(args[2]) or b""))


@command("HEXISTS key field", "2.0.0 readonly fast | keys 1 RO", "Returns whether a hash has a field.")
def hexists(ctx: Context, args: list[bytes]) -> bytes:
    found = read_fields(ctx, args[1], [args[2]])
    return reply.ONE if found is not None and found.has(args[2]) else reply.ZERO


# -- removing --------------------------------------------------------------------------------------------------------


@command(
    "HDEL key field [field ...]",
    "2.0.0 write fast | keys 1 RW delete",
    "Removes fields and returns how many existed; the key is removed with the last one.",
    "O(N) where N is the number of fields to be removed.",
    history=(("2.4.0", "Accepts multiple `field` arguments."),),
)
def hdel(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    removed = [] if found is None else found.take_out(args[2:])
    if removed and found is not None:
        notify_changed(ctx, key, found, b"hdel", removed, len(removed))
        remove_if_empty(ctx, key, found)
        ctx.log_request(args)
    return reply.integer(len(removed))
