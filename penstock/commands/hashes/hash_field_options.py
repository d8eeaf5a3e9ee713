"""Fields read or set together with their times of expiry, or removed as they are read: HGETDEL, HGETEX, HSETEX."""

from typing import Final

from penstock.commands.hashes import field_effects
from penstock.commands.hashes.hash_access import hash_at, hash_made
from penstock.commands.hashes.hash_expiry import PER_FIELD, has_passed, notify_deleted
from penstock.commands.hashes.hash_field_arguments import counted, fields_at_three, moment, repeated, unknown
from penstock.commands.hashes.hash_fields import values_of
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.field_expiry import tell_changed
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

EXPIRATIONS: Final = (b"EX", b"PX", b"EXAT", b"PXAT")
EXISTENCE: Final = (b"FNX", b"FXX")


class Options:
    """What follows the key in HGETEX and HSETEX; both read the words of both, and refuse each other's in the end.

    `absolute` is the request as it is logged: with the time at which the fields expire in place of how long they last.
    """

    __slots__ = ("absolute", "existence", "expires", "fields", "keeps", "persists", "when_ms")

    def __init__(self, args: list[bytes]) -> None:
        self.absolute = list(args)
        self.existence = b""
        self.expires = False
        self.keeps = False
        self.persists = False
        self.when_ms = 0
        self.fields: list[bytes] = []  # of HSETEX: field, value, field, value


def _read(ctx: Context, args: list[bytes], name: bytes, keeping: bytes, words_each: int) -> Options:
    """`keeping`: which of KEEPTTL and PERSIST the command has."""
    read = Options(args)
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == b"FIELDS":
            if read.fields:
                raise repeated()
            if at + 1 == len(args):
                raise refusals.arity(name)
            read.fields = counted(args, at + 1, words_each, b"ERR invalid number of fields")
            at += 1 + len(read.fields)
        elif option in EXPIRATIONS:
            if read.expires or read.keeps or read.persists:
                raise _only_one(keeping)
            at += 1
            _read_time(ctx, read, args, at, name)
        elif option == b"KEEPTTL":
            if read.expires or read.keeps:
                raise _only_one(keeping)
            read.keeps = True
        elif option == b"PERSIST":
            if read.expires or read.persists:
                raise _only_one(keeping)
            read.persists = True
        elif option in EXISTENCE:
            if read.existence:
                raise ReplyError(b"ERR Only one of FXX or FNX arguments can be specified")
            read.existence = option
        else:
            raise unknown(args[at])
        at += 1
    if not read.fields:
        raise ReplyError(b"ERR missing FIELDS argument")
    if read.persists if keeping == b"KEEPTTL" else read.keeps or read.existence:
        raise ReplyError(b"ERR unknown argument")
    return read


def _only_one(keeping: bytes) -> ReplyError:
    return ReplyError(b"ERR Only one of EX, PX, EXAT, PXAT or %b arguments can be specified" % keeping)


def _read_time(ctx: Context, read: Options, args: list[bytes], at: int, name: bytes) -> None:
    """The number behind EX, PX, EXAT or PXAT."""
    if at == len(args):
        raise ReplyError(b"ERR missing expire time")
    option = args[at - 1].upper()
    base_ms = 0 if option.endswith(b"AT") else ctx.now_ms
    read.when_ms = moment(args[at], base_ms, option.startswith(b"EX"), name)
    read.expires = True
    read.absolute[at - 1 : at + 1] = [b"PXAT", b"%d" % read.when_ms]


@command(
    "HGETDEL",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="8.0.0",
    flags="write fast",
    keys="1 RW access delete",
    complexity=PER_FIELD,
    summary="Returns the values of fields and removes them; the key goes with the last field.",
)
def hgetdel(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    fields = fields_at_three(args)
    if found is None:
        return reply.array([reply.null(ctx.resp3)] * len(fields))
    answers, removed = _take(ctx, found, fields)
    if removed:
        notify_deleted(ctx, key, found, removed, fields)
    return reply.array(answers)


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
    summary="Returns the values of fields and sets their times of expiry or takes them away.",
)
def hgetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    read = _read(ctx, args, b"hgetex", b"PERSIST", 1)
    if found is not None and read.expires and has_passed(ctx, read.when_ms):
        answers, removed = _take(ctx, found, read.fields)
        if removed:
            notify_deleted(ctx, key, found, removed, removed)
        return reply.array(answers)
    answers = values_of(found, read.fields, ctx.resp3)
    if found is None or not (read.expires or read.persists):
        return reply.array(answers)
    there = [field for field in read.fields if field in found.fields]
    if read.persists:
        changes = sum([found.persist(field) for field in there])
        if changes:
            tell_changed(ctx, key, found, b"hpersist", changes)
            field_effects.log_persist(ctx, key, read.fields)
    elif there:
        _let_expire(found, there, read.when_ms)
        tell_changed(ctx, key, found, b"hexpire", len(there))
        field_effects.log_expiry(ctx, key, read.when_ms, b"", read.fields)
    return reply.array(answers)


def _take(ctx: Context, found: Hash, fields: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The values of fields, and those that were there, which are removed: what is named twice is gone then."""
    answers: list[bytes] = []
    removed: list[bytes] = []
    for field in fields:
        answers += values_of(found, [field], ctx.resp3)
        removed += found.remove((field,))
    return answers, removed


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
    summary="Sets fields of a hash, and their times of expiry, if all or none of them are there.",
)
def hsetex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    read = _read(ctx, args, b"hsetex", b"KEEPTTL", 2)
    found = hash_at(ctx, key)
    fields = read.fields[::2]
    if read.existence == b"FXX" and (found is None or not found.fields.keys() >= set(fields)):
        return reply.ZERO
    if read.existence == b"FNX" and found is not None and not found.fields.keys().isdisjoint(fields):
        return reply.ZERO
    found = hash_made(ctx, key)
    for field, value in zip(fields, read.fields[1::2], strict=True):
        found.put(field, value)
        if not read.keeps:
            found.persist(field)
    tell_changed(ctx, key, found, b"hset", len(fields))
    if read.expires and has_passed(ctx, read.when_ms):
        removed = found.remove(fields)
        notify_deleted(ctx, key, found, removed, removed)
        return reply.ONE
    if read.expires:
        _let_expire(found, fields, read.when_ms)
        tell_changed(ctx, key, found, b"hexpire", 0)
    field_effects.log_setting(ctx, key, found, read.absolute, read.fields)
    return reply.ONE
