"""Times of expiry of keys: set, read and removed.

A key expires when the time is past its time of expiry. Absolute times are logged, so that a replay does not depend on
the clock.

Tests: transcripts expiry; cases commands/test_expiry; law commands/test_random_requests.
"""

from typing import Final

from penstock.commands.common.overwriting import delete_past
from penstock.engine import arguments, refusals
from penstock.engine.arguments import MAX_INT64
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

MOST_SECONDS: Final = MAX_INT64 // 1000
NEAR_MS: Final = 2**61  # added to any clock's time it fits; larger numbers are objects in compiled code
NO_KEY: Final = b":-2\r\n"
NO_EXPIRY: Final = b":-1\r\n"
CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
NO_CONDITIONS: Final[frozenset[bytes]] = frozenset()
OPTIONS_HISTORY: Final = (("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`."),)


# -- setting ---------------------------------------------------------------------------------------------------------


@command(
    "EXPIRE key seconds condition:[NX|XX|GT|LT]@7.0.0",
    "1.0.0 write fast | keys 1 RW update",
    "Sets a key's time of expiry, in seconds from now.",
    history=OPTIONS_HISTORY,
)
def expire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"expire", ctx.now_ms, in_seconds=True)


@command(
    "PEXPIRE key milliseconds condition:[NX|XX|GT|LT]@7.0.0",
    "2.6.0 write fast | keys 1 RW update",
    "Sets a key's time of expiry, in milliseconds from now.",
    history=OPTIONS_HISTORY,
)
def pexpire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"pexpire", ctx.now_ms, in_seconds=False)


@command(
    "EXPIREAT key unix-time-seconds condition:[NX|XX|GT|LT]@7.0.0",
    "1.2.0 write fast | keys 1 RW update",
    "Sets a key's time of expiry, as a unix time in seconds.",
    history=OPTIONS_HISTORY,
)
def expireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"expireat", 0, in_seconds=True)


@command(
    "PEXPIREAT key unix-time-milliseconds condition:[NX|XX|GT|LT]@7.0.0",
    "2.6.0 write fast | keys 1 RW update",
    "Sets a key's time of expiry, as a unix time in milliseconds.",
    history=OPTIONS_HISTORY,
)
def pexpireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"pexpireat", 0, in_seconds=False)


def _expire(ctx: Context, args: list[bytes], name: bytes, base_ms: int, in_seconds: bool) -> bytes:
    key = args[1]
    conditions = read_conditions(args[3:]) if len(args) > 3 else NO_CONDITIONS
    number = arguments.integer(args[2])
    when_ms = moment(number, base_ms, in_seconds, name)
    if not ctx.has(key):
        return reply.ZERO
    if conditions and not _condition_holds(conditions, ctx.db.expires.get(key), when_ms):
        return reply.ZERO
    if when_ms <= ctx.now_ms and not ctx.keeps_past():
        delete_past(ctx, key)
        return reply.ONE
    set_expiry(ctx, key, when_ms)
    if name == b"pexpireat":
        ctx.log_request(args)
    elif ctx.effects.log is not None:
        ctx.log(b"PEXPIREAT", key, b"%d" % when_ms, *args[3:])
    ctx.dirty += 1
    return reply.ONE


def read_conditions(options: list[bytes]) -> frozenset[bytes]:
    conditions: set[bytes] = set()
    for option in options:
        condition = option.upper()
        if condition not in CONDITIONS:
            raise ReplyError(b"ERR Unsupported option %b" % refusals.c_string(option))
        conditions.add(condition)
    if b"NX" in conditions and len(conditions) > 1:
        raise ReplyError(b"ERR NX and XX, GT or LT options at the same time are not compatible")
    if b"GT" in conditions and b"LT" in conditions:
        raise ReplyError(b"ERR GT and LT options at the same time are not compatible")
    return frozenset(conditions)


def _condition_holds(conditions: frozenset[bytes], old_ms: int | None, when_ms: int) -> bool:
    """Whether the new time may replace the old one. No old time counts as later than any."""
    if old_ms is None:
        return b"XX" not in conditions and b"GT" not in conditions
    if b"GT" in conditions:
        return when_ms > old_ms
    if b"LT" in conditions:
        return when_ms < old_ms
    return b"NX" not in conditions


def moment(number: int, base_ms: int, in_seconds: bool, name: bytes) -> int:
    """The unix time in ms that is `number` seconds or milliseconds after `base_ms`.

    ReplyError, for the command `name`, if it does not fit in 64 bits.
    """
    if in_seconds:
        if not -MOST_SECONDS <= number <= MOST_SECONDS:
            raise invalid_expire(name)
        number *= 1000
    if number > NEAR_MS and number > MAX_INT64 - base_ms:
        raise invalid_expire(name)
    return number + base_ms


def invalid_expire(name: bytes) -> ReplyError:
    return ReplyError(b"ERR invalid expire time in '%b' command" % name)


def set_expiry(ctx: Context, key: bytes, when_ms: int) -> None:
    """Set a key's time of expiry and send the event; the caller logs it."""
    ctx.db.expire_at(key, when_ms)
    notify_expiry(ctx, key)


def notify_expiry(ctx: Context, key: bytes) -> None:
    """A key's time of expiry was set: mark the key as changed, and send the event."""
    ctx.touch(key)
    ctx.event("g", b"expire", key)


# -- reading ---------------------------------------------------------------------------------------------------------


@command(
    "TTL key",
    "1.0.0 readonly fast | keys 1 RO access | traits only_looks | tips nondeterministic_output",
    "Returns in how many seconds a key expires; -1: never, -2: no such key.",
    history=(("2.8.0", "Added the -2 reply."),),
)
def ttl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args[1], ctx.now_ms, in_seconds=True)


@command(
    "PTTL key",
    "2.6.0 readonly fast | keys 1 RO access | traits only_looks | tips nondeterministic_output",
    "Returns in how many milliseconds a key expires; -1: never, -2: no such key.",
    history=(("2.8.0", "Added the -2 reply."),),
)
def pttl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args[1], ctx.now_ms, in_seconds=False)


@command(
    "EXPIRETIME key",
    "7.0.0 readonly fast | keys 1 RO access | traits only_looks",
    "Returns the unix time in seconds at which a key expires; -1: never, -2: no such key.",
)
def expiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args[1], 0, in_seconds=True)


@command(
    "PEXPIRETIME key",
    "7.0.0 readonly fast | keys 1 RO access | traits only_looks",
    "Returns the unix time in milliseconds at which a key expires; -1: never, -2: no such key.",
)
def pexpiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args[1], 0, in_seconds=False)


def _remaining(ctx: Context, key: bytes, since_ms: int, in_seconds: bool) -> bytes:
    if ctx.read(key) is None:
        return NO_KEY
    when_ms = ctx.db.expires.get(key)
    if when_ms is None:
        return NO_EXPIRY
    remaining_ms = max(when_ms - since_ms, 0)
    return reply.integer((remaining_ms + 500) // 1000 if in_seconds else remaining_ms)


# -- removing --------------------------------------------------------------------------------------------------------


@command("PERSIST key", "2.2.0 write fast | keys 1 RW update", "Removes a key's time of expiry.")
def persist(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if not ctx.has(key) or not take_expiry(ctx, key):
        return reply.ZERO
    ctx.log_request(args)
    return reply.ONE


def take_expiry(ctx: Context, key: bytes) -> bool:
    """Remove a key's time of expiry and send the event; returns whether it had one. The caller logs it."""
    if not ctx.db.persist(key):
        return False
    ctx.touch(key)
    ctx.event("g", b"persist", key)
    ctx.dirty += 1
    return True
