"""INCREX: counting within bounds, and setting a time of expiry with it. (Redis 8.8, documentation.)

Tests: cases commands/test_commands_since_8_8.
"""

from typing import Final

from penstock.commands.common.overwriting import create, delete_past
from penstock.commands.keys.expiry import invalid_expire, moment, set_expiry
from penstock.engine import arguments, numbers, refusals
from penstock.engine.arguments import MAX_INT64, MIN_INT64
from penstock.engine.context import Context
from penstock.engine.numbers import INFINITE, LongDouble
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.string_forms import unconverted_string

BY: Final = (b"BYINT", b"BYFLOAT")
EXPIRATIONS: Final = (b"EX", b"PX", b"EXAT", b"PXAT")
FLAGS: Final = (b"SATURATE", b"ENX", b"PERSIST", b"NX", b"XX")
VALUED: Final = (*BY, b"LBOUND", b"UBOUND", *EXPIRATIONS)


class Options:
    """The options after the key: values by option, and flags. Each option may be given once."""

    __slots__ = ("expiration", "flags", "values", "when_ms")

    def __init__(self, ctx: Context, args: list[bytes]) -> None:
        self.values: dict[bytes, bytes] = {}
        self.flags: set[bytes] = set()
        at = 2
        while at < len(args):
            option = args[at].upper()
            if option in VALUED and option not in self.values and at + 1 < len(args):
                self.values[option] = args[at + 1]
                at += 2
            elif option in FLAGS and option not in self.flags and not ctx.hides(option):
                self.flags.add(option)
                at += 1
            else:
                raise refusals.syntax()
        given = [option for option in EXPIRATIONS if option in self.values]
        if all(by in self.values for by in BY) or len(given) > 1 or self.flags.issuperset((b"NX", b"XX")):
            raise refusals.syntax()
        if b"PERSIST" in self.flags and (given or b"ENX" in self.flags):
            raise refusals.syntax()
        if b"ENX" in self.flags and not given:
            raise ReplyError(b"ERR ENX flag requires an expiration")
        self.expiration = given[0] if given else b""
        self.when_ms = self._moment(ctx) if given else 0

    def _moment(self, ctx: Context) -> int:
        """The unix time in ms at which the key is to expire."""
        number = arguments.integer(self.values[self.expiration])
        if number <= 0:
            raise invalid_expire(b"increx")
        base_ms = 0 if self.expiration.endswith(b"AT") else ctx.now_ms
        return moment(number, base_ms, self.expiration.startswith(b"EX"), b"increx")

    def allows(self, is_new: bool) -> bool:
        """Whether NX (only a new key) or XX (only an old one) holds; they are Valkey's."""
        return (b"XX" if is_new else b"NX") not in self.flags

    def saturates(self) -> bool:
        return b"SATURATE" in self.flags


@command(
    "INCREX key increment:[BYINT integer|BYFLOAT float:double] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] [ENX] "
    "existence:[NX@valkey-9.2.0|XX@valkey-9.2.0]",
    "8.8.0 write denyoom fast | keys 1 RW access update",
    "Adds to the number at a key as long as it stays within bounds, and sets when the key expires.",
)
def increx(ctx: Context, args: list[bytes]) -> bytes:
    """Logged as the SET of what came out, which any Redis knows and which needs no clock."""
    options = Options(ctx, args)
    if b"BYFLOAT" in options.values:
        return _count_float(ctx, args[1], options)
    return _count_integer(ctx, args[1], options)


def _count_integer(ctx: Context, key: bytes, options: Options) -> bytes:
    values = options.values
    increment = arguments.integer_or(values.get(b"BYINT", b"1"), b"ERR Increment is not an integer or out of range")
    text = b"ERR %b is not an integer or out of range"
    lower = arguments.integer_or(values[b"LBOUND"], text % b"LBOUND") if b"LBOUND" in values else MIN_INT64
    upper = arguments.integer_or(values[b"UBOUND"], text % b"UBOUND") if b"UBOUND" in values else MAX_INT64
    if lower > upper:
        raise _crossed()
    held = ctx.string(key)
    old = 0 if held is None else arguments.integer(held)
    new = old + increment
    is_allowed = options.allows(held is None)
    if not (is_allowed and lower <= new <= upper):
        if not (is_allowed and options.saturates()):
            return b"*2\r\n" + reply.integer(old) + reply.ZERO
        new = min(max(new, lower), upper)
        if not MIN_INT64 <= new - old <= MAX_INT64:
            raise ReplyError(b"ERR applied increment would overflow")
    _keep(ctx, key, held is None, b"%d" % new, options, b"incrby")
    return b"*2\r\n" + reply.integer(new) + reply.integer(new - old)


def _crossed() -> ReplyError:
    return ReplyError(b"ERR LBOUND can't be greater than UBOUND")


# -- with decimals ---------------------------------------------------------------------------------------------------


class FloatBound:
    """A bound: a finite number, or an infinite one with `sign` 1 or -1."""

    __slots__ = ("number", "sign")

    def __init__(self, word: bytes, name: bytes) -> None:
        self.number = numbers.long_double(word, b"ERR %b is not a valid float" % name)
        self.sign = _sign_of_infinite(word)

    def is_above(self, number: LongDouble) -> bool:
        return self.sign > 0 if self.number is None else number < self.number

    def is_below(self, number: LongDouble) -> bool:
        return self.sign < 0 if self.number is None else self.number < number


def _sign_of_infinite(word: bytes) -> int:
    """1 or -1; 0 of a finite number."""
    found = INFINITE.fullmatch(word)
    if found is None:
        return 0
    return -1 if found[1] == b"-" else 1


def _are_crossed(lower: FloatBound, upper: FloatBound) -> bool:
    if lower.number is not None:
        return upper.is_below(lower.number)
    return lower.sign > 0 and (upper.number is not None or upper.sign < 0)


def _count_float(ctx: Context, key: bytes, options: Options) -> bytes:
    values = options.values
    increment = numbers.long_double(values[b"BYFLOAT"], b"ERR Increment is not a valid float")
    if increment is None:
        raise ReplyError(b"ERR BYFLOAT increment cannot be Infinity")
    lower = FloatBound(values.get(b"LBOUND", b"-inf"), b"LBOUND")
    upper = FloatBound(values.get(b"UBOUND", b"inf"), b"UBOUND")
    if _are_crossed(lower, upper):
        raise _crossed()
    held = ctx.string(key)
    old = numbers.long_double(b"0" if held is None else held)
    if old is None:
        raise ReplyError(b"ERR value cannot be Infinity")
    new = numbers.long_double_sum(old, increment)
    is_allowed = options.allows(held is None)
    if not is_allowed or new is None or lower.is_above(new) or upper.is_below(new):
        if not (is_allowed and options.saturates()):
            return b"*2\r\n" + _float_reply(old, ctx.resp3) + reply.double(b"0", ctx.resp3)
        # A result that is too large for a long double is beyond the bound on its side, if there is one.
        is_too_small = lower.is_above(new) if new is not None else increment.made < 0
        new = lower.number if is_too_small else upper.number
        applied = None if new is None else numbers.long_double_difference(new, old)
        if new is None or applied is None:
            raise ReplyError(b"ERR applied increment would be Infinity")
        increment = applied
    text = unconverted_string(numbers.long_double_text(new))
    _keep(ctx, key, held is None, text, options, b"incrbyfloat")
    return b"*2\r\n" + _float_reply(new, ctx.resp3) + _float_reply(increment, ctx.resp3)


def _float_reply(number: LongDouble, resp3: bool) -> bytes:
    return reply.double(numbers.long_double_text(number), resp3)


# -- keeping ---------------------------------------------------------------------------------------------------------


def _keep(ctx: Context, key: bytes, is_new: bool, text: bytes, options: Options, event: bytes) -> None:
    """Store the new number with its expiry time; with one in the past, delete the key."""
    sets_expiry = bool(options.expiration) and not (b"ENX" in options.flags and key in ctx.db.expires)
    if sets_expiry and options.when_ms <= ctx.now_ms and not ctx.keeps_past():
        delete_past(ctx, key)
        return
    if is_new:
        create(ctx, key, text)
    else:
        ctx.put(key, text)
    ctx.event("$", event, key)
    ctx.dirty += 1
    if sets_expiry:
        set_expiry(ctx, key, options.when_ms)
        ctx.log(b"SET", key, text, b"PXAT", b"%d" % options.when_ms)
    elif b"PERSIST" in options.flags:
        if ctx.db.persist(key):
            ctx.event("g", b"persist", key)
        ctx.log(b"SET", key, text)
    else:
        ctx.log(b"SET", key, text, b"KEEPTTL")
