"""SET with its options; GETSET, SETNX, SETEX, PSETEX, MSETEX and GETEX, which share them.

Tests: transcripts strings; cases commands/test_strings; law against_redis/test_types_beside_redis; model
storage/test_key_table.
"""

from typing import Final

from penstock.commands.common.overwriting import delete_past, overwrite
from penstock.commands.keys.expiry import invalid_expire, moment, set_expiry, take_expiry
from penstock.commands.strings.string_conditions import COMPARISONS, holds
from penstock.commands.strings.strings import read_string
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import text_of

EXPIRATIONS: Final = (b"EX", b"PX", b"EXAT", b"PXAT")
SET_OPTIONS: Final = OptionTable(
    {b"NX": 0, b"XX": 0, b"GET": 0, b"KEEPTTL": 0} | dict.fromkeys((*EXPIRATIONS, *COMPARISONS), 1)
)
MOST_KEYS: Final = 2**31 - 1  # in MSETEX
# What SET does with its key (Redis 8.6.3).
_SETS: Final = [KeyPlace(1, ["OW", "update"])]
_SETS_IF: Final = [KeyPlace(1, ["RW", "update"])]
_GETS_AND_SETS: Final = [KeyPlace(1, ["RW", "access", "update"])]


class Options:
    """The options after key and value in SET, or after the key in GETEX. A repeated option replaces the first."""

    __slots__ = ("comparison", "existence", "expiration", "gets", "keeps", "operand", "persists", "time")

    def __init__(self) -> None:
        self.existence = b""  # NX or XX
        self.comparison = b""  # one of COMPARISONS
        self.operand = b""
        self.gets = False
        self.keeps = False
        self.persists = False
        self.expiration = b""  # one of EXPIRATIONS
        self.time = b""

    def keeps_time(self) -> bool:
        """Whether the old time of expiry is not to be removed: it stays, or a new one replaces it."""
        return self.keeps or bool(self.expiration)

    def moment(self, ctx: Context, name: bytes) -> int:
        """The time of expiry in unix ms, for the errors of a command called `name`."""
        return moment_of(ctx, self.expiration, self.time, name)


def moment_of(ctx: Context, expiration: bytes, time: bytes, name: bytes) -> int:
    """The time of expiry in unix ms that one of EXPIRATIONS and its number give, for the errors of a command."""
    number = arguments.integer(time)
    if number <= 0:
        raise invalid_expire(name)
    base_ms = 0 if expiration.endswith(b"AT") else ctx.now_ms
    return moment(number, base_ms, expiration.startswith(b"EX"), name)


def _read_expiration(options: Options, args: list[bytes], at: int) -> bool:
    """Read EX, PX, EXAT or PXAT and its number at args[at]; False if there is another word."""
    option = args[at].upper()
    if option not in EXPIRATIONS or at + 1 == len(args) or options.expiration not in (b"", option):
        return False
    options.expiration, options.time = option, args[at + 1]
    return True


def _may_compare(options: Options, option: bytes) -> bool:
    return option in COMPARISONS and not options.existence and options.comparison in (b"", option)


def _read_set(ctx: Context, args: list[bytes]) -> Options:
    """Read SET's options, in any order. NX or XX beside a comparison is refused, as by Redis 8.10; 8.6.3 takes some."""
    options = Options()
    at = 3
    while at < len(args):
        option = args[at].upper()
        words = SET_OPTIONS.words(option, args, at)
        if not words:
            raise refusals.syntax()
        if option in EXPIRATIONS:
            if options.keeps or not _read_expiration(options, args, at):
                raise refusals.syntax()
        elif option in (b"NX", b"XX") and options.existence in (b"", option) and not options.comparison:
            options.existence = option
        elif option == b"GET":
            options.gets = True
        elif option == b"KEEPTTL" and not options.expiration:
            options.keeps = True
        elif _may_compare(options, option) and not ctx.hides(option):
            options.comparison, options.operand = option, args[at + 1]
        else:
            raise refusals.syntax()
        at += words
    return options


def _find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The key of SET, with the flags that its options give it."""
    if len(args) == 3:
        return _SETS
    options = {args[at].upper() for at in SET_OPTIONS.places(args, 3)}
    if b"GET" in options:
        return _GETS_AND_SETS
    return _SETS if options.isdisjoint(COMPARISONS) else _SETS_IF


@command(
    "SET key value "
    "condition:[NX|XX|IFEQ ifeq-value@8.4.0|IFNE ifne-value@8.4.0|IFDEQ ifdeq-digest:integer@8.4.0|IFDNE "
    "ifdne-digest:integer@8.4.0]@2.6.12 [GET@6.2.0] "
    "expiration:[EX seconds@2.6.12|PX milliseconds@2.6.12|EXAT unix-time-seconds@6.2.0|PXAT "
    "unix-time-milliseconds@6.2.0|KEEPTTL@6.0.0]",
    "1.0.0 write denyoom | keys 1 RW access update variable_flags # RW and ACCESS due to the optional `GET` argument",
    "Sets a key to a string, replacing any value; options give conditions and a time of expiry.",
    find_keys=_find_keys,
    history=(
        ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
        ("6.0.0", "Added the `KEEPTTL` option."),
        ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
        ("7.0.0", "Allowed the `NX` and `GET` options to be used together."),
        ("8.4.0", "Added 'IFEQ', 'IFNE', 'IFDEQ', 'IFDNE' options."),
    ),
)
def set_(ctx: Context, args: list[bytes]) -> bytes:
    key, value = args[1], args[2]
    if len(args) == 3:
        overwrite(ctx, key, value)
        _notify_set(ctx, key)
        ctx.log_request(args)
        return reply.OK
    options = _read_set(ctx, args)
    when_ms = options.moment(ctx, b"set") if options.expiration else 0
    answer, refused = reply.OK, reply.null(ctx.resp3)
    if options.gets:
        old = read_string(ctx, key)
        if old is not None:
            refused = reply.bulk(old)
        answer = refused
    if not _may_set(ctx, key, options):
        return refused
    overwrite(ctx, key, value, options.keeps_time())
    _notify_set(ctx, key)
    if options.expiration:
        set_expiry(ctx, key, when_ms)
    if ctx.effects.log is None:
        return answer
    if options.expiration in (b"EX", b"PX", b"EXAT"):
        ctx.log(b"SET", key, value, b"PXAT", b"%d" % when_ms)
    elif options.gets and not options.expiration:
        ctx.log_request(_without_get(args))
    else:
        ctx.log_request(args)
    return answer


def _may_set(ctx: Context, key: bytes, options: Options) -> bool:
    """Whether the condition holds: NX, XX or a comparison."""
    if not options.existence and not options.comparison:
        return True
    value = ctx.value(key)
    if options.existence:
        return (value is None) is (options.existence == b"NX")
    if value is None:
        return options.comparison in (b"IFNE", b"IFDNE")
    text = text_of(value)
    if text is None:
        raise refusals.wrong_type()
    return holds(options.comparison, options.operand, text)


def _without_get(args: list[bytes]) -> list[bytes]:
    """SET as it is logged, without GET. (With PXAT, Redis 8.6.3 logs GET, and so does Penstock.)"""
    gets = SET_OPTIONS.places_of(b"GET", args, 3)
    return [word for at, word in enumerate(args) if at not in gets]


def _notify_set(ctx: Context, key: bytes) -> None:
    ctx.event("$", b"set", key)
    ctx.dirty += 1


@command(
    "MSETEX numkeys data:(key value) [key value ...] condition:[NX|XX] "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
    "8.4.0 write denyoom movablekeys | keys numkeys@1/2 OW update | "
    "tips request_policy:multi_shard response_policy:all_succeeded",
    "Sets several keys to strings; options require that all or none exist, and give a time of expiry.",
    "O(N) where N is the number of keys to set.",
)
def msetex(ctx: Context, args: list[bytes]) -> bytes:
    numkeys = arguments.within(1, MOST_KEYS, args[1], b"ERR invalid numkeys value")
    options_at = 2 + 2 * numkeys
    if options_at > len(args):
        raise ReplyError(b"ERR wrong number of key-value pairs")
    options = _read_msetex(args, options_at)
    when_ms = options.moment(ctx, b"msetex") if options.expiration else 0
    keys, values = args[2:options_at:2], args[3:options_at:2]
    if options.existence and any(ctx.has(key) != (options.existence == b"XX") for key in keys):
        return reply.ZERO
    for key, value in zip(keys, values, strict=True):
        overwrite(ctx, key, value, options.keeps_time())
        if options.expiration:
            set_expiry(ctx, key, when_ms)
        _notify_set(ctx, key)
    ctx.log_request(_with_moment(args, options_at, when_ms) if options.expiration in (b"EX", b"PX") else args)
    return reply.ONE


def _with_moment(args: list[bytes], at: int, when_ms: int) -> list[bytes]:
    """MSETEX as it is logged: a relative time of expiry is replaced by an absolute one."""
    logged = args[:at]
    options = args[at:]
    relative = [place for place, word in enumerate(options) if word.upper() in (b"EX", b"PX")]
    for place, word in enumerate(options):
        if place == relative[-1]:
            logged += (b"PXAT", b"%d" % when_ms)
        elif place not in relative and place - 1 not in relative:
            logged.append(word)
    return logged


def _read_msetex(args: list[bytes], at: int) -> Options:
    options = Options()
    while at < len(args):
        option = args[at].upper()
        if option in (b"NX", b"XX") and options.existence in (b"", option):
            options.existence = option
        elif option == b"KEEPTTL" and not options.expiration:
            options.keeps = True
        elif not options.keeps and _read_expiration(options, args, at):
            at += 1
        else:
            raise refusals.syntax()
        at += 1
    return options


# -- before SET had options ------------------------------------------------------------------------------------------


@command(
    "GETSET key value",
    "1.0.0 write denyoom fast | keys 1 RW access update",
    "Sets a key to a string and returns the old one.",
    deprecated=("6.2.0", "`SET` with the `!GET` argument"),
)
def getset(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    old = read_string(ctx, key)
    overwrite(ctx, key, args[2])
    _notify_set(ctx, key)
    ctx.log(b"SET", key, args[2])
    return reply.null(ctx.resp3) if old is None else reply.bulk(old)


@command(
    "SETNX key value",
    "1.0.0 write denyoom fast | keys 1 OW insert",
    "Sets a key to a string unless it exists.",
    deprecated=("2.6.12", "`SET` with the `NX` argument"),
)
def setnx(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if ctx.value(key) is not None:
        return reply.ZERO
    overwrite(ctx, key, args[2])
    _notify_set(ctx, key)
    ctx.log_request(args)
    return reply.ONE


@command(
    "SETEX key seconds value",
    "2.0.0 write denyoom | keys 1 OW update",
    "Sets a key to a string that expires after a number of seconds.",
    deprecated=("2.6.12", "`SET` with the `EX` argument"),
)
def setex(ctx: Context, args: list[bytes]) -> bytes:
    return _set_for(ctx, args, b"EX", b"setex")


@command(
    "PSETEX key milliseconds value",
    "2.6.0 write denyoom | keys 1 OW update",
    "Sets a key to a string that expires after a number of milliseconds.",
    deprecated=("2.6.12", "`SET` with the `PX` argument"),
)
def psetex(ctx: Context, args: list[bytes]) -> bytes:
    return _set_for(ctx, args, b"PX", b"psetex")


def _set_for(ctx: Context, args: list[bytes], expiration: bytes, name: bytes) -> bytes:
    _, key, time, value = args
    options = Options()
    options.expiration, options.time = expiration, time
    when_ms = options.moment(ctx, name)
    overwrite(ctx, key, value, options.keeps_time())
    _notify_set(ctx, key)
    set_expiry(ctx, key, when_ms)
    if ctx.effects.log is not None:
        ctx.log(b"SET", key, value, b"PXAT", b"%d" % when_ms)
    return reply.OK


# -- reading and setting the time ------------------------------------------------------------------------------------


@command(
    "GETEX key expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]",
    "6.2.0 write fast | keys 1 RW access update # RW and UPDATE because it changes the TTL",
    "Returns the string at a key, and sets or removes its time of expiry.",
)
def getex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    options = _read_getex(args)
    value = read_string(ctx, key)
    if value is None:
        return reply.null(ctx.resp3)
    if options.expiration:
        when_ms = options.moment(ctx, b"getex")
        if when_ms <= ctx.now_ms and not ctx.keeps_past():
            delete_past(ctx, key)
        else:
            set_expiry(ctx, key, when_ms)
            ctx.dirty += 1
            ctx.log(b"PEXPIREAT", key, b"%d" % when_ms)
    elif options.persists and take_expiry(ctx, key):
        ctx.log(b"PERSIST", key)
    return reply.bulk(value)


def _read_getex(args: list[bytes]) -> Options:
    options = Options()
    at = 2
    while at < len(args):
        if args[at].upper() == b"PERSIST" and not options.expiration:
            options.persists = True
        elif not options.persists and _read_expiration(options, args, at):
            at += 1
        else:
            raise refusals.syntax()
        at += 1
    return options
