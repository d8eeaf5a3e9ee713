"""Times of expiry of a hash's fields: set, read and removed.

Absolute times are logged, so that a replay does not depend on the clock. The replies are Redis's numbers, one for each
field.

Tests: transcripts hash_field_expiry; cases commands/test_hash_expiry; law against_redis/test_hashes_beside_redis.
"""

from typing import Final

from penstock.commands.hashes import field_effects
from penstock.commands.hashes.hash_access import hash_at, read_hash
from penstock.commands.hashes.hash_field_arguments import counted, fields_at_three, moment, repeated, unknown
from penstock.engine.context import Context
from penstock.engine.field_expiry import notify_changed, remove_if_empty
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash

NO_FIELD: Final = b":-2\r\n"
NO_EXPIRY: Final = b":-1\r\n"
NOT_MET: Final = reply.ZERO  # the condition does not hold
SET: Final = reply.ONE
DELETED: Final = b":2\r\n"  # the time is in the past
CONDITIONS: Final = (b"NX", b"XX", b"GT", b"LT")
PER_FIELD: Final = "O(N) where N is the number of specified fields"


# -- setting ---------------------------------------------------------------------------------------------------------


@command(
    "HEXPIRE",
    "key seconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, in seconds from now.",
)
def hexpire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"hexpire", ctx.now_ms, in_seconds=True)


@command(
    "HPEXPIRE",
    "key milliseconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, in milliseconds from now.",
)
def hpexpire(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"hpexpire", ctx.now_ms, in_seconds=False)


@command(
    "HEXPIREAT",
    "key unix-time-seconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, as a unix time in seconds.",
)
def hexpireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"hexpireat", 0, in_seconds=True)


@command(
    "HPEXPIREAT",
    "key unix-time-milliseconds condition:[NX|XX|GT|LT] fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Sets the times of expiry of fields, as a unix time in milliseconds.",
)
def hpexpireat(ctx: Context, args: list[bytes]) -> bytes:
    return _expire(ctx, args, b"hpexpireat", 0, in_seconds=False)


def _expire(ctx: Context, args: list[bytes], name: bytes, base_ms: int, in_seconds: bool) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    when_ms = moment(args[2], base_ms, in_seconds, name)
    fields, condition = _read_expire(args)
    if found is None:
        return reply.array([NO_FIELD] * len(fields))
    found.keep_times()
    replies: list[bytes] = []
    changed: list[bytes] = []
    passed = has_passed(ctx, when_ms)
    for field in fields:
        if not found.has(field):
            replies.append(NO_FIELD)
        elif not _condition_holds(condition, found.expires.get(field), when_ms):
            replies.append(NOT_MET)
        else:
            replies.append(DELETED if passed else SET)
            changed.append(field)
            if passed:
                found.remove((field,))
            else:
                found.expire_at(field, when_ms)
    if changed and passed:
        notify_deleted(ctx, key, found, changed, changed)
    elif changed:
        notify_changed(ctx, key, found, b"hexpire", len(changed))
        field_effects.log_expiry(ctx, key, when_ms, condition, changed)
    return reply.array(replies)


def has_passed(ctx: Context, when_ms: int) -> bool:
    """Whether a field with this time of expiry is deleted at once; not in a replay, where the log has the HDEL."""
    return when_ms <= ctx.now_ms and not ctx.session.privileged


def notify_deleted(ctx: Context, key: bytes, found: Hash, removed: list[bytes], logged: list[bytes]) -> None:
    """Send the events for removed fields and log an HDEL; the key is removed with the last field."""
    notify_changed(ctx, key, found, b"hdel", len(removed))
    ctx.log(b"HDEL", key, *logged)
    remove_if_empty(ctx, key, found)


def _read_expire(args: list[bytes]) -> tuple[list[bytes], bytes]:
    """Read FIELDS and the condition, in any order."""
    fields: list[bytes] = []
    conditions: set[bytes] = set()
    at = 3
    while at < len(args):
        option = args[at].upper()
        if option == b"FIELDS":
            if fields:
                raise repeated()
            if at + 2 >= len(args):
                raise ReplyError(b"ERR FIELDS requires at least numfields and one field argument")
            fields = counted(args, at + 1, 1, b"ERR Parameter `numFields` should be greater than 0")
            at += 1 + len(fields)
        elif option not in CONDITIONS:
            raise unknown(args[at])
        else:
            conditions.add(option)
        at += 1
    if not fields:
        raise ReplyError(b"ERR missing FIELDS argument")
    if len(conditions) > 1:
        raise ReplyError(b"ERR Multiple condition flags specified")
    return fields, conditions.pop() if conditions else b""


def _condition_holds(condition: bytes, old_ms: int | None, when_ms: int) -> bool:
    """Whether the new time may replace the old one. No old time counts as later than any."""
    if not condition:
        return True
    if old_ms is None:
        return condition in (b"NX", b"LT")
    if condition == b"GT":
        return when_ms > old_ms
    if condition == b"LT":
        return when_ms < old_ms
    return condition == b"XX"


# -- reading ---------------------------------------------------------------------------------------------------------


@command(
    "HTTL",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    tips="nondeterministic_output",
    complexity=PER_FIELD,
    summary="Returns in how many seconds fields expire; -1: never, -2: no such field.",
)
def httl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, ctx.now_ms, in_seconds=True)


@command(
    "HPTTL",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    tips="nondeterministic_output",
    complexity=PER_FIELD,
    summary="Returns in how many milliseconds fields expire; -1: never, -2: no such field.",
)
def hpttl(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, ctx.now_ms, in_seconds=False)


@command(
    "HEXPIRETIME",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    complexity=PER_FIELD,
    summary="Returns the unix time in seconds at which fields expire; -1: never, -2: no such field.",
)
def hexpiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, 0, in_seconds=True)


@command(
    "HPEXPIRETIME",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="readonly fast",
    keys="1 RO access",
    complexity=PER_FIELD,
    summary="Returns the unix time in milliseconds at which fields expire; -1: never, -2: no such field.",
)
def hpexpiretime(ctx: Context, args: list[bytes]) -> bytes:
    return _remaining(ctx, args, 0, in_seconds=False)


def _remaining(ctx: Context, args: list[bytes], since_ms: int, in_seconds: bool) -> bytes:
    """The replies for fields. Unlike a key's, seconds are rounded up (Redis 8.6.3)."""
    found = read_hash(ctx, args[1])
    replies: list[bytes] = []
    for field in fields_at_three(args):
        if found is None or not found.has(field):
            replies.append(NO_FIELD)
            continue
        when_ms = found.expires.get(field)
        if when_ms is None:
            replies.append(NO_EXPIRY)
        else:
            remaining_ms = max(when_ms - since_ms, 0)
            replies.append(reply.integer((remaining_ms + 999) // 1000 if in_seconds else remaining_ms))
    return reply.array(replies)


# -- removing --------------------------------------------------------------------------------------------------------


@command(
    "HPERSIST",
    "key fields:FIELDS (numfields field [field ...])",
    group="hash",
    since="7.4.0",
    flags="write fast",
    keys="1 RW update",
    complexity=PER_FIELD,
    summary="Removes the times of expiry of fields.",
)
def hpersist(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = hash_at(ctx, key)
    fields = fields_at_three(args)
    if found is None:
        return reply.array([NO_FIELD] * len(fields))
    replies: list[bytes] = []
    for field in fields:
        if not found.has(field):
            replies.append(NO_FIELD)
        else:
            replies.append(SET if found.persist(field) else NO_EXPIRY)
    if SET in replies:
        notify_changed(ctx, key, found, b"hpersist", replies.count(SET))
        if ctx.effects.compat.field_expiry:
            ctx.log_request(args)
    return reply.array(replies)
