"""HGETDEL, HGETEX and HSETEX: read, remove or set fields together with their times of expiry.

Tests: transcripts hash_field_expiry, hashes; cases commands/test_hashes; law against_redis/test_hashes_beside_redis.
"""

from typing import Final

from penstock.commands.hashes import field_effects
from penstock.commands.hashes.hash_access import hash_at, hash_or_new, note_size
from penstock.commands.hashes.hash_expiry import PER_FIELD, has_passed, notify_deleted
from penstock.commands.hashes.hash_field_arguments import counted, fields_at_three, moment, repeated, unknown
from penstock.commands.hashes.hash_fields import values_of
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.field_expiry import notify_changed
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

EXPIRATIONS: Final = (b"EX", b"PX", b"EXAT", b"PXAT")
EXISTENCE: Final = (b"FNX", b"FXX")


class Options:
    """The options of HGETEX and HSETEX. Both commands parse the options of both, and refuse the other's at the end.

    `absolute` is the request as it is logged: with the time of expiry in place of a duration.
    """

    __slots__ = ("absolute", "existence", "expires", "fields", "keeps", "persists", "when_ms")

    def __init__(self, args: list[bytes]) -> None:
        self.absolute = list(args)
        self.existence = b""
        self.expires = False
        self.keeps = False
        self.persists = False
        self.when_ms = 0
        self.fields: list[bytes] = []  # for HSETEX: field, value, field, value


def _read(ctx: Context, args: list[bytes], name: bytes, keeping: bytes, words_each: int) -> Options:
    """Read the options. `keeping`: KEEPTTL or PERSIST, whichever the command has."""
    options = Options(args)
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == b"FIELDS":
            if options.fields:
                raise repeated()
            if at + 1 == len(args):
                raise refusals.arity(name)
            options.fields = counted(args, at + 1, words_each, b"ERR invalid number of fields")
            at += 1 + len(options.fields)
        elif option in EXPIRATIONS:
            if options.expires or options.keeps or options.persists:
                raise _only_one(keeping)
            at += 1
            _read_time(ctx, options, args, at, name)
        elif option == b"KEEPTTL":
            if options.expires or options.keeps:
                raise _only_one(keeping)
            options.keeps = True
        elif option == b"PERSIST":
            if options.expires or options.persists:
                raise _only_one(keeping)
            options.persists = True
        elif option in EXISTENCE:
            if options.existence:
                raise ReplyError(b"ERR Only one of FXX or FNX arguments can be specified")
            options.existence = option
        else:
            raise unknown(args[at])
        at += 1
    if not options.fields:
        raise ReplyError(b"ERR missing FIELDS argument")
    if options.persists if keeping == b"KEEPTTL" else options.keeps or options.existence:
        raise ReplyError(b"ERR unknown argument")
    return options


def _only_one(keeping: bytes) -> ReplyError:
    return ReplyError(b"ERR Only one of EX, PX, EXAT, PXAT or %b arguments can be specified" % keeping)


def _read_time(ctx: Context, options: Options, args: list[bytes], at: int, name: bytes) -> None:
    """Read the number after EX, PX, EXAT or PXAT."""
    if at == len(args):
        raise ReplyError(b"ERR missing expire time")
    option = args[at - 1].upper()
    base_ms = 0 if option.endswith(b"AT") else ctx.now_ms
    options.when_ms = moment(args[at], base_ms, option.startswith(b"EX"), name)
    options.expires = True
    options.absolute[at - 1 : at + 1] = [b"PXAT", b"%d" % options.when_ms]


@command(
    "HGETDEL",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="8.0.0",
    flags="write fast",
    keys="1 RW access delete",
    complexity=PER_FIELD,
    summary="Returns the values of fields and removes them; the key is removed with the last field.",
)
def hgetdel(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    fields = fields_at_three(args)
    if found is None:
        return reply.array([reply.null(ctx.resp3)] * len(fields))
    replies, removed = _take(ctx, found, fields)
    if removed:
        notify_deleted(ctx, key, found, removed, fields)
    return reply.array(replies)


@command(
    "HGETEX",
    "key "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] "
    "fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="8.0.0",
    flags="write fast",
    keys="1 RW access update # RW and UPDATE because it changes the TTL",
    complexity=PER_FIELD,
    summary="Returns the values of fields, and sets or removes their times of expiry.",
)
def hgetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    options = _read(ctx, args, b"hgetex", b"PERSIST", 1)
    if found is not None and (options.expires or options.persists):
        found.keep_times()
    if found is not None and options.expires and has_passed(ctx, options.when_ms):
        replies, removed = _take(ctx, found, options.fields)
        if removed:
            notify_deleted(ctx, key, found, removed, removed)
        return reply.array(replies)
    replies = values_of(found, options.fields, ctx.resp3)
    if found is None or not (options.expires or options.persists):
        return reply.array(replies)
    there = [field for field in options.fields if found.has(field)]
    if options.persists:
        changes = sum([found.persist(field) for field in there])
        if changes:
            notify_changed(ctx, key, found, b"hpersist", changes)
            field_effects.log_persist(ctx, key, options.fields)
    elif there:
        _let_expire(found, there, options.when_ms)
        notify_changed(ctx, key, found, b"hexpire", len(there))
        field_effects.log_expiry(ctx, key, options.when_ms, b"", options.fields)
    return reply.array(replies)


def _take(ctx: Context, found: Hash, fields: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Remove fields; returns their values as replies, and the fields that existed.

    A repeated field has no value any more.
    """
    replies: list[bytes] = []
    removed: list[bytes] = []
    for field in fields:
        replies += values_of(found, [field], ctx.resp3)
        removed += found.remove((field,))
    return replies, removed


def _let_expire(found: Hash, fields: list[bytes], when_ms: int) -> None:
    for field in fields:
        found.expire_at(field, when_ms)


@command(
    "HSETEX",
    "key condition:[FNX|FXX] "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] "
    "fields:FIELDS (numfields data:(field value) [field value ...])",
    group="hash",
    since="8.0.0",
    flags="write denyoom fast",
    keys="1 RW update",
    complexity="O(N) where N is the number of fields being set.",
    summary="Sets fields of a hash and their times of expiry; options require that all or none exist.",
)
def hsetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    options = _read(ctx, args, b"hsetex", b"KEEPTTL", 2)
    found = hash_at(ctx, key)
    fields = options.fields[::2]
    if options.existence == b"FXX" and (found is None or not all(found.has(field) for field in fields)):
        return reply.ZERO
    if options.existence == b"FNX" and found is not None and any(found.has(field) for field in fields):
        return reply.ZERO
    found = hash_or_new(ctx, key)
    for field, value in zip(fields, options.fields[1::2], strict=True):
        found.put(field, value)
        if not options.keeps:
            found.persist(field)
    note_size(ctx, found, options.fields)
    if options.expires:
        found.keep_times()
    notify_changed(ctx, key, found, b"hset", len(fields))
    if options.expires and has_passed(ctx, options.when_ms):
        removed = found.remove(fields)
        notify_deleted(ctx, key, found, removed, removed)
        return reply.ONE
    if options.expires:
        _let_expire(found, fields, options.when_ms)
        notify_changed(ctx, key, found, b"hexpire", 0)
    field_effects.log_setting(ctx, key, found, options.absolute, options.fields)
    return reply.ONE
