"""How Valkey reads the requests about fields that expire: options first, then FIELDS with all words that are left.

Its refusals come before the key is looked at, and conditions are those of EXPIRE (Valkey 9.1.2).

Tests: cases commands/test_valkey_dialect.
"""

from typing import Final

from penstock.commands.common.part_arguments import LATEST_MS
from penstock.commands.common.part_expiry import EXPIRATIONS, Options
from penstock.commands.keys import expiry
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.errors import ReplyError

FIELDS: Final = b"FIELDS"
WRONG_COUNT: Final = b"ERR numfields should be greater than 0 and match the provided number of fields"


def check_three(ctx: Context, args: list[bytes], wrong_count: bytes = WRONG_COUNT) -> None:
    """Refuse a request whose third word is not FIELDS, or whose count is wrong: HTTL, HPERSIST, HGETDEL."""
    if ctx.speaks_valkey():
        if args[2].upper() != FIELDS:
            raise refusals.syntax()
        _counted(args, 2, 1, wrong_count)


def read_expire(args: list[bytes], name: bytes, base_ms: int, in_seconds: bool) -> tuple[int, list[bytes], bytes]:
    """The time in ms, the fields and the condition of HEXPIRE and its like: NX, XX, GT, LT, `XX LT` or empty."""
    at = _fields_at(args, 3)
    conditions = expiry.read_conditions(args[3:at])
    fields = _counted(args, at, 1, WRONG_COUNT)
    when_ms = _moment(args[2], base_ms, in_seconds, name)
    if b"GT" in conditions:
        return when_ms, fields, b"GT"  # no time of expiry is later than any: XX adds nothing
    return when_ms, fields, b" ".join(sorted(conditions, reverse=True))


def read_options(ctx: Context, args: list[bytes], name: bytes, words_each: int) -> Options:
    """The options of HGETEX (a word for each field) and of HSETEX (two)."""
    options = Options([])
    has_values = words_each == 2
    end = _fields_at(args, 2)
    expiration, time = b"", b""
    at = 2
    while at < end:
        option = args[at].upper()
        if option in (EXPIRATIONS + ((b"KEEPTTL",) if has_values else (b"PERSIST",))):
            if expiration not in (b"", option):
                raise refusals.syntax()
            expiration = option
            if option in EXPIRATIONS:
                at += 1
                if at == end:
                    raise refusals.syntax()
                time = args[at]
        elif has_values and option in (b"FNX", b"FXX") and options.existence in (b"", option):
            options.existence = option
        elif has_values and option in (b"NX", b"XX") and not ctx.hides(option) and options.on_key in (b"", option):
            options.on_key = option
        else:
            raise refusals.syntax()
        at += 1
    options.parts = _counted(args, end, words_each, WRONG_COUNT)
    options.keeps, options.persists = expiration == b"KEEPTTL", expiration == b"PERSIST"
    options.expires = expiration in EXPIRATIONS
    times: list[bytes] = []
    if options.expires:
        base_ms = 0 if expiration.endswith(b"AT") else ctx.now_ms
        options.when_ms = _moment(time, base_ms, expiration.startswith(b"EX"), name)
        times = [b"PXAT", b"%d" % options.when_ms]
    elif expiration:
        times = [expiration]
    options.absolute = [*args[:2], *([options.existence] if options.existence else []), *times, *args[end:]]
    return options


def _fields_at(args: list[bytes], start: int) -> int:
    """Where FIELDS stands."""
    for at in range(start, len(args)):
        if args[at].upper() == FIELDS:
            return at
    raise ReplyError(WRONG_COUNT)


def _counted(args: list[bytes], at: int, words_each: int, wrong: bytes) -> list[bytes]:
    """The words behind FIELDS at args[at] and its number: all that are left."""
    if at + 1 == len(args):
        raise ReplyError(wrong)
    count = arguments.integer(args[at + 1])
    words = args[at + 2 :]
    if count < 1 or count * words_each != len(words):
        raise ReplyError(wrong)
    return words


def _moment(word: bytes, base_ms: int, in_seconds: bool, name: bytes) -> int:
    """The time of expiry in ms; the latest that is stored for a later one, as for one in a file."""
    number = arguments.integer(word)
    if number < 0:
        raise expiry.invalid_expire(name)
    return min(expiry.moment(number, base_ms, in_seconds, name), LATEST_MS)
