"""HGETDEL, HGETEX and HSETEX: read, remove or set fields together with their times of expiry.

Tests: transcripts hash_field_expiry, hashes; cases commands/test_hashes; law against_redis/test_hashes_beside_redis.
"""

from penstock.commands.common.live_parts import expired_among, live, shows
from penstock.commands.common.part_expiry import (
    Options,
    has_passed,
    log_expiry,
    log_persist,
    notify_deleted,
    notify_past,
    read_options,
    set_times,
)
from penstock.commands.hashes import field_effects, valkey_fields
from penstock.commands.hashes.hash_access import FIELDS, hash_at, hash_or_new, note_size
from penstock.commands.hashes.hash_fields import values_of
from penstock.engine.context import Context
from penstock.engine.part_expiry import expire_parts, notify_changed, remove_if_empty, take_out_expired
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash


@command(
    "HGETDEL key fields:FIELDS (numfields field [field ...])",
    "8.0.0 write fast | keys 1 RW access delete",
    "Returns the values of fields and removes them; the key is removed with the last field.",
    FIELDS.complexity(),
)
def hgetdel(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    valkey_fields.check_three(ctx, args)
    found = hash_at(ctx, key)
    fields = FIELDS.at_three(args)
    if found is not None:
        found = live(ctx, key, found, fields)
    if found is None:
        return reply.array([reply.null(ctx.resp3)] * len(fields))
    replies, removed = _take(ctx, found, fields)
    if removed:
        notify_deleted(ctx, key, found, removed, fields)
    return reply.array(replies)


@command(
    "HGETEX key "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] "
    "fields:FIELDS (numfields field [field ...])",
    "8.0.0 write fast | keys 1 RW access update # RW and UPDATE because it changes the TTL",
    "Returns the values of fields, and sets or removes their times of expiry.",
    FIELDS.complexity(),
)
def hgetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    options = valkey_fields.read_options(ctx, args, b"hgetex", 1) if ctx.speaks_valkey() else None
    found = hash_at(ctx, key)
    if options is None:
        options = read_options(ctx, args, b"hgetex", FIELDS, b"PERSIST", 1)
    if found is not None:
        found = live(ctx, key, found, options.parts)
    if found is not None and (options.expires or options.persists):
        found.keep_times()
    if found is not None and options.expires and has_passed(ctx, options.when_ms):
        replies, removed = _take(ctx, found, options.parts)
        if removed:
            notify_past(ctx, key, found, removed)
        return reply.array(replies)
    replies = values_of(found, options.parts, ctx.resp3)
    if found is None or not (options.expires or options.persists):
        return reply.array(replies)
    there = [field for field in options.parts if found.has(field)]
    if options.persists:
        changed = [field for field in there if found.persist(field)]
        if changed:
            notify_changed(ctx, key, found, b"hpersist", changed, len(changed))
            log_persist(ctx, key, found, FIELDS, options.parts)
    elif there:
        set_times(found, there, options.when_ms)
        notify_changed(ctx, key, found, b"hexpire", there, len(there))
        log_expiry(ctx, key, found, FIELDS, options.when_ms, b"", options.parts)
    return reply.array(replies)


def _take(ctx: Context, found: Hash, fields: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Remove fields; returns their values as replies, and the fields that existed.

    A repeated field has no value any more.
    """
    replies: list[bytes] = []
    removed: list[bytes] = []
    for field in fields:
        replies += values_of(found, [field], ctx.resp3)
        removed += found.take_out((field,))
    return replies, removed


@command(
    "HSETEX key key-condition:[NX@valkey-9.1.0|XX@valkey-9.1.0] condition:[FNX|FXX] "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] "
    "fields:FIELDS (numfields data:(field value) [field value ...])",
    "8.0.0 write denyoom fast | keys 1 RW update",
    "Sets fields of a hash and their times of expiry; options require that all or none exist.",
    "O(N) where N is the number of fields being set.",
)
def hsetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if ctx.speaks_valkey():
        options = valkey_fields.read_options(ctx, args, b"hsetex", 2)
    else:
        options = read_options(ctx, args, b"hsetex", FIELDS, b"KEEPTTL", 2)
    found = hash_at(ctx, key)
    fields = options.parts[::2]
    if options.on_key and (options.on_key == b"NX") == (found is not None):
        return reply.ZERO
    if options.existence and not _condition_holds(ctx, key, found, options):
        return reply.ZERO
    found = hash_or_new(ctx, key)
    for field, value in zip(fields, options.parts[1::2], strict=True):
        found.put(field, value)
        if not options.keeps:
            found.persist(field)
    note_size(ctx, found, options.parts)
    if options.expires:
        found.keep_times()
    notify_changed(ctx, key, found, b"hset", fields, len(fields))
    if options.expires and has_passed(ctx, options.when_ms):
        removed = found.take_out(fields)
        notify_past(ctx, key, found, removed)
        return reply.ONE
    if options.expires:
        set_times(found, fields, options.when_ms)
        notify_changed(ctx, key, found, b"hexpire", fields, 0)
    field_effects.log_setting(ctx, key, found, options.absolute, options.parts)
    return reply.ONE


def _condition_holds(ctx: Context, key: bytes, found: Hash | None, options: Options) -> bool:
    """Whether all fields exist, or none. Expired ones that were looked at are removed."""
    wanted = options.existence == b"FXX"
    if found is None:
        return not wanted
    looked_at: list[bytes] = []
    holds = True
    for field in options.parts[::2]:
        looked_at.append(field)
        if shows(ctx, found, field) != wanted:
            holds = False
            break
    expired = expired_among(ctx, found, looked_at)
    if expired and holds:
        # Logged without the condition: an HDEL of the last field would remove the key and its time where it is loaded.
        take_out_expired(ctx, key, found, expired)
        times = [b"PXAT", b"%d" % options.when_ms] if options.expires else []
        count = b"%d" % (len(options.parts) // 2)
        options.absolute = [b"HSETEX", key, *times, FIELDS.keyword, count, *options.parts]
    elif expired:
        expire_parts(ctx, key, found, expired)
        remove_if_empty(ctx, key, found)
    return holds
