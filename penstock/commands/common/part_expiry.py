"""Times of expiry of a hash's fields and of a set's members: set, read and removed.

Absolute times are logged, so that a replay does not depend on the clock. The replies are Redis's numbers, one for each
part that is named.
"""

from collections.abc import Callable
from typing import Final

from penstock.commands.common.live_parts import expired_among, shows
from penstock.commands.common.part_arguments import PartWords, counted, moment, unknown
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.part_expiry import log_times, notify_changed, removal_of, remove_if_empty
from penstock.engine.table.command_table import Handler, command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.collection import Timed

NO_PART: Final = b":-2\r\n"
NO_EXPIRY: Final = b":-1\r\n"
NOT_MET: Final = reply.ZERO  # the condition does not hold
SET: Final = reply.ONE
DELETED: Final = b":2\r\n"  # the time is in the past
CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
EXPIRATIONS: Final = (b"EX", b"PX", b"EXAT", b"PXAT")
SETTING: Final = (  # the rest of the command's name, the time in its syntax, and in its summary
    (b"EXPIRE", "seconds", "in seconds from now"),
    (b"PEXPIRE", "milliseconds", "in milliseconds from now"),
    (b"EXPIREAT", "unix-time-seconds", "as a unix time in seconds"),
    (b"PEXPIREAT", "unix-time-milliseconds", "as a unix time in milliseconds"),
)
READING: Final = (  # the rest of the command's name, its tips, and what its summary says of the time
    (b"TTL", "nondeterministic_output", "in how many seconds"),
    (b"PTTL", "nondeterministic_output", "in how many milliseconds"),
    (b"EXPIRETIME", "", "the unix time in seconds at which"),
    (b"PEXPIRETIME", "", "the unix time in milliseconds at which"),
)


def declare_setting(words: PartWords, since: str, handler_of: Callable[[bytes], Handler]) -> None:
    """Declare HEXPIRE, HPEXPIRE, HEXPIREAT and HPEXPIREAT, for members SEXPIRE and so on.

    handler_of: makes the handler of a command, by the rest of its name.
    """
    for rest, time, when in SETTING:
        command(
            f"{words.name(rest).decode()} key {time} condition:[NX|XX|GT|LT] {words.syntax()}",
            f"{since} write fast | keys 1 RW update",
            f"Sets the times of expiry of {words.lower.decode()}, {when}.",
            words.complexity(),
        )(handler_of(rest))


def declare_reading(words: PartWords, since: str, handler_of: Callable[[bytes], Handler]) -> None:
    """Declare HTTL, HPTTL, HEXPIRETIME and HPEXPIRETIME, for members STTL and so on. handler_of: as above."""
    parts = words.lower.decode()
    for rest, tips, when in READING:
        command(
            f"{words.name(rest).decode()} key {words.syntax()}",
            f"{since} readonly fast | keys 1 RO access | tips {tips}",
            f"Returns {when} {parts} expire; -1: never, -2: no such {parts[:-1]}.",
            words.complexity(),
        )(handler_of(rest))


def expire(ctx: Context, args: list[bytes], words: PartWords, found: Timed | None, rest: bytes, base_ms: int) -> bytes:
    """Set the times of expiry of parts of a key's value. `rest`: of the command's name, as PEXPIREAT."""
    when_ms = moment(args[2], base_ms, not rest.startswith(b"P"), words.name(rest).lower())
    parts, condition = _read_expire(args, words)
    return expire_read(ctx, args[1], words, found, when_ms, parts, condition)


def expire_read(
    ctx: Context, key: bytes, words: PartWords, found: Timed | None, when_ms: int, parts: list[bytes], condition: bytes
) -> bytes:
    """As `expire`, of a request that was read. condition: NX, XX, GT, LT, `XX LT` or empty."""
    if found is None:
        return reply.array([NO_PART] * len(parts))
    replies: list[bytes] = []
    changed: list[bytes] = []
    passed = has_passed(ctx, when_ms)
    for part in parts:
        if not (found.has(part) if words.revives else shows(ctx, found, part)):
            replies.append(NO_PART)
        elif not _condition_holds(condition, found.expires.get(part), when_ms):
            replies.append(NOT_MET)
        else:
            replies.append(DELETED if passed else SET)
            changed.append(part)
            if passed:
                found.take_out((part,))
            else:
                found.expire_at(part, when_ms)
    if changed and passed:
        notify_past(ctx, key, found, changed)
    elif changed:
        notify_changed(ctx, key, found, words.event(b"expire"), changed, len(changed))
        log_expiry(ctx, key, found, words, when_ms, condition[-2:], changed)
    return reply.array(replies)


def has_passed(ctx: Context, when_ms: int) -> bool:
    """Whether a part with this time of expiry is deleted at once."""
    return when_ms <= ctx.now_ms and not ctx.keeps_past()


def notify_deleted(ctx: Context, key: bytes, found: Timed, removed: list[bytes], logged: list[bytes]) -> None:
    """Send the events for removed parts and log their removal; the key is removed with the last part."""
    _notify_removed(ctx, key, found, removal_of(found).lower(), removed, logged)


def notify_past(ctx: Context, key: bytes, found: Timed, removed: list[bytes]) -> None:
    """The same for parts that were given a time in the past.

    Redis publishes `hdel` of fields (8.6.3); in Valkey they have expired (9.1.2).
    """
    event = removal_of(found).lower()
    if ctx.speaks_valkey():
        event = b"hexpired"
        ctx.statistics.expired_subkeys += len(removed)
    _notify_removed(ctx, key, found, event, removed, removed)


def _notify_removed(
    ctx: Context, key: bytes, found: Timed, event: bytes, removed: list[bytes], logged: list[bytes]
) -> None:
    notify_changed(ctx, key, found, event, removed, len(removed))
    ctx.log(removal_of(found), key, *logged)
    remove_if_empty(ctx, key, found)


def _read_expire(args: list[bytes], words: PartWords) -> tuple[list[bytes], bytes]:
    """Read the parts and the condition, in any order."""
    parts: list[bytes] = []
    conditions: set[bytes] = set()
    at = 3
    while at < len(args):
        option = args[at].upper()
        if option == words.keyword:
            if parts:
                raise words.repeated()
            if at + 2 >= len(args):
                raise words.too_few()
            parts = counted(args, at + 1, 1, b"ERR Parameter `num%b` should be greater than 0" % words.number)
            at += 1 + len(parts)
        elif option not in CONDITIONS:
            raise unknown(args[at])
        else:
            conditions.add(option)
        at += 1
    if not parts:
        raise words.missing()
    if len(conditions) > 1:
        raise ReplyError(b"ERR Multiple condition flags specified")
    return parts, conditions.pop() if conditions else b""


def _condition_holds(condition: bytes, old_ms: int | None, when_ms: int) -> bool:
    """Whether the new time may replace the old one. No old time counts as later than any."""
    if not condition:
        return True
    if old_ms is None:
        return condition in (b"NX", b"LT")
    if condition == b"GT":
        return when_ms > old_ms
    if condition.endswith(b"LT"):
        return when_ms < old_ms
    return condition == b"XX"


def log_expiry(
    ctx: Context, key: bytes, found: Timed, words: PartWords, when_ms: int, condition: bytes, parts: list[bytes]
) -> None:
    """Log that parts got a time of expiry; `condition` is NX, XX, GT, LT or empty."""
    if ctx.effects.log is not None:
        named = [condition] if condition else []
        head = [words.name(b"PEXPIREAT"), key, b"%d" % when_ms]
        log_times(ctx, found, [*head, *named, words.keyword, b"%d" % len(parts), *parts])


def log_persist(ctx: Context, key: bytes, found: Timed, words: PartWords, parts: list[bytes]) -> None:
    """Log that parts lost their times of expiry."""
    log_times(ctx, found, [words.name(b"PERSIST"), key, words.keyword, b"%d" % len(parts), *parts])


class Options:
    """The options of HGETEX, HSETEX and SADDEX.

    `absolute` is the request as it is logged: with the time of expiry in place of a duration. on_key: NX, XX or empty,
    what must be true of the key (Valkey).
    """

    __slots__ = ("absolute", "existence", "expires", "keeps", "on_key", "parts", "persists", "when_ms")

    def __init__(self, args: list[bytes]) -> None:
        self.absolute = list(args)
        self.existence = b""
        self.expires = False
        self.keeps = False
        self.on_key = b""
        self.persists = False
        self.when_ms = 0
        self.parts: list[bytes] = []  # for HSETEX: field, value, field, value


def read_options(
    ctx: Context, args: list[bytes], name: bytes, words: PartWords, keeping: bytes, words_each: int
) -> Options:
    """Read the options. `keeping`: KEEPTTL or PERSIST, whichever the command has.

    HGETEX and HSETEX parse the options of both, and refuse the other's at the end.
    """
    options = Options(args)
    at = 2
    while at < len(args):
        option = args[at].upper()
        if option == words.keyword:
            if options.parts:
                raise words.repeated()
            if at + 1 == len(args):
                raise refusals.arity(name)
            options.parts = counted(args, at + 1, words_each, b"ERR invalid number of %b" % words.lower)
            at += 1 + len(options.parts)
        elif option in EXPIRATIONS:
            if options.expires or options.keeps or options.persists:
                raise _only_one(keeping)
            at += 1
            _read_time(ctx, options, args, at, name)
        elif option == b"KEEPTTL":
            if options.expires or options.keeps:
                raise _only_one(keeping)
            options.keeps = True
        elif option == b"PERSIST" and words.has_persist:
            if options.expires or options.persists:
                raise _only_one(keeping)
            options.persists = True
        elif option in words.existence:
            if options.existence:
                unless, only = words.existence
                raise ReplyError(b"ERR Only one of %b or %b arguments can be specified" % (only, unless))
            options.existence = option
        else:
            raise unknown(args[at])
        at += 1
    if not options.parts:
        raise words.missing()
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


# -- reading ---------------------------------------------------------------------------------------------------------


def remaining(ctx: Context, args: list[bytes], words: PartWords, found: Timed | None, rest: bytes) -> bytes:
    """The replies for parts. Unlike a key's, seconds are rounded up (Redis 8.6.3). `rest`: of the command's name."""
    since_ms, in_seconds = 0 if rest.endswith(b"EXPIRETIME") else ctx.now_ms, not rest.startswith(b"P")
    replies: list[bytes] = []
    for part in words.at_three(args):
        if found is None or not shows(ctx, found, part):
            replies.append(NO_PART)
            continue
        when_ms = found.expires.get(part)
        if when_ms is None:
            replies.append(NO_EXPIRY)
        else:
            remaining_ms = max(when_ms - since_ms, 0)
            replies.append(reply.integer((remaining_ms + 999) // 1000 if in_seconds else remaining_ms))
    return reply.array(replies)


def set_times(found: Timed, parts: list[bytes], when_ms: int) -> None:
    for part in parts:
        found.expire_at(part, when_ms)


# -- removing --------------------------------------------------------------------------------------------------------


def persist(ctx: Context, args: list[bytes], words: PartWords, found: Timed | None) -> bytes:
    parts = words.at_three(args)
    if found is None:
        return reply.array([NO_PART] * len(parts))
    replies: list[bytes] = []
    changed: list[bytes] = []
    for part in parts:
        if not shows(ctx, found, part):
            replies.append(NO_PART)
        elif found.persist(part):
            replies.append(SET)
            changed.append(part)
        else:
            replies.append(NO_EXPIRY)
    if changed:
        notify_changed(ctx, args[1], found, words.event(b"persist"), changed, len(changed))
        if expired_among(ctx, found, parts):
            log_persist(ctx, args[1], found, words, [part for part in parts if shows(ctx, found, part)])
        else:
            log_times(ctx, found, args)
    return reply.array(replies)
