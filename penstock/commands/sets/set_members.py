"""Set commands for members: add, remove, test, list, move.

Tests: transcripts sets; cases commands/test_sets; law against_redis/test_types_beside_redis; model
storage/test_packed_sets, storage/test_parts_beside_naive.
"""

from collections.abc import Iterable
from typing import Final

from penstock.commands.common import collection_scan
from penstock.commands.common.live_parts import has_expired, live, read_live, shown, shows
from penstock.commands.common.overwriting import create
from penstock.commands.common.part_arguments import PartWords
from penstock.commands.common.scan_cursor import read_cursor
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.part_expiry import notify_changed, remove_if_empty
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.keyspace import Value
from penstock.storage.types.sets import Form, Set, SetLimits

MEMBERS: Final = PartWords(b"S", b"MEMBERS", (b"MNX", b"MXX"))


def set_at(ctx: Context, key: bytes) -> Set | None:
    """The set at a key, with its expired members; None if there is no key. ReplyError WRONGTYPE for another type."""
    return as_set(ctx.value(key))


def set_with(ctx: Context, key: bytes, members: Iterable[bytes]) -> Set | None:
    """As `set_at`, after those of the members that have expired were removed."""
    return _with(ctx, key, set_at(ctx, key), members)


def _with(ctx: Context, key: bytes, found: Set | None, members: Iterable[bytes]) -> Set | None:
    return found if found is None or found.due is None else live(ctx, key, found, members)


def read_set(ctx: Context, key: bytes) -> Set | None:
    """As `set_at`, for a command that only reads: counts a hit or a miss."""
    return as_set(ctx.read(key))


def read_live_set(ctx: Context, key: bytes) -> Set | None:
    """As `read_set`, after all expired members were removed.

    Also for what is stored elsewhere: the log has the request, and its replay sees members until their removal.
    """
    found = read_set(ctx, key)
    return found if found is None or found.due is None else read_live(ctx, key, found, found.expires)


def read_members(ctx: Context, key: bytes, members: list[bytes]) -> Set | None:
    """As `read_set`, after those of the members that have expired were removed."""
    found = read_set(ctx, key)
    return found if found is None or found.due is None else read_live(ctx, key, found, members)


def as_set(value: Value | None) -> Set | None:
    if value is None or isinstance(value, Set):
        return value
    raise refusals.wrong_type()


def limits(ctx: Context) -> SetLimits:
    """Up to which size sets are small here."""
    return ctx.form_limits.sets


def add_members(ctx: Context, key: bytes, found: Set | None, members: list[bytes]) -> int:
    """Add members to a set, which is created if it is None; returns how many are new. The caller logs it."""
    if found is None:
        found = Set.made(members, limits(ctx))
        create(ctx, key, found)
        added = len(found)
    else:
        limit = limits(ctx)
        found.expect(len(members), limit)
        added = found.add(members, limit)
    if added:
        ctx.touch(key)
        ctx.event("s", b"sadd", key)
        ctx.dirty += added
    return added


def notify_removed(ctx: Context, key: bytes, found: Set, event: bytes, count: int) -> None:
    """Send the events for removed members; the key is removed with the last member. The caller logs it."""
    notify_changed(ctx, key, found, event, (), count)
    remove_if_empty(ctx, key, found)


# -- changing --------------------------------------------------------------------------------------------------------


@command(
    "SADD key member [member ...]",
    "1.0.0 write denyoom fast | keys 1 RW insert",
    "Adds members to a set, which is created if it does not exist; returns how many are new.",
    "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
    history=(("2.4.0", "Accepts multiple `member` arguments."),),
)
def sadd(ctx: Context, args: list[bytes]) -> bytes:
    added = add_members(ctx, args[1], set_with(ctx, args[1], args[2:]), args[2:])
    if added:
        ctx.log_request(args)
    return reply.integer(added)


@command(
    "SREM key member [member ...]",
    "1.0.0 write fast | keys 1 RW delete",
    "Removes members and returns how many existed; the key is removed with the last one.",
    "O(N) where N is the number of members to be removed.",
    history=(("2.4.0", "Accepts multiple `member` arguments."),),
)
def srem(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    found = set_with(ctx, key, args[2:])
    removed = 0 if found is None else found.remove(args[2:])
    if removed and found is not None:
        notify_removed(ctx, key, found, b"srem", removed)
        ctx.log_request(args)
    return reply.integer(removed)


@command(
    "SMOVE source:key destination:key member",
    "1.0.0 write fast | keys 1 RW access delete; 2 RW insert",
    "Moves a member from one set to another.",
)
def smove(ctx: Context, args: list[bytes]) -> bytes:
    _, source, destination, member = args
    value = ctx.value(source)
    if value is None:
        return reply.ZERO
    target = ctx.value(destination)
    other = as_set(target)
    found = _with(ctx, source, as_set(value), [member])
    if found is None:
        return reply.ZERO
    if found is other:
        return reply.ONE if found.has(member) else reply.ZERO
    if not found.remove([member]):
        return reply.ZERO
    notify_removed(ctx, source, found, b"srem", 1)
    other = _with(ctx, destination, other, [member])
    add_members(ctx, destination, other, [member])
    ctx.log_request(args)
    return reply.ONE


# -- reading ---------------------------------------------------------------------------------------------------------


@command("SCARD key", "1.0.0 readonly fast | keys 1 RO", "Returns the number of members in a set.")
def scard(ctx: Context, args: list[bytes]) -> bytes:
    """Counts members that have expired and are still there (Redis 8.12, the feature's author's branch)."""
    found = read_set(ctx, args[1])
    return reply.integer(0 if found is None else len(found))


@command("SISMEMBER key member", "1.0.0 readonly fast | keys 1 RO", "Returns whether a set has a member.")
def sismember(ctx: Context, args: list[bytes]) -> bytes:
    found = read_members(ctx, args[1], [args[2]])
    return reply.ONE if found is not None and found.has(args[2]) else reply.ZERO


@command(
    "SMISMEMBER key member [member ...]",
    "6.2.0 readonly fast | keys 1 RO access",
    "Returns for several members whether a set has them.",
    "O(N) where N is the number of elements being checked for membership",
)
def smismember(ctx: Context, args: list[bytes]) -> bytes:
    found = read_members(ctx, args[1], args[2:])
    if found is None:
        return reply.array([reply.ZERO] * (len(args) - 2))
    return reply.array([reply.ONE if found.has(member) else reply.ZERO for member in args[2:]])


@command(
    "SMEMBERS key",
    "1.0.0 readonly | keys 1 RO access | tips nondeterministic_output_order",
    "Returns all members of a set.",
    "O(N) where N is the set cardinality.",
)
def smembers(ctx: Context, args: list[bytes]) -> bytes:
    found = read_set(ctx, args[1])
    if found is not None:
        found = shown(ctx, found)
    return reply.set_of_bulks([] if found is None else found.listed(), ctx.resp3)


@command(
    "SSCAN key cursor [MATCH pattern] [COUNT count]",
    "2.8.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Iterates over the members of a set, some in each call.",
    "O(1) for every call. O(N) for a complete iteration, including enough command calls for "
    "the cursor to return back to 0. N is the number of elements inside the collection.",
)
def sscan(ctx: Context, args: list[bytes]) -> bytes:
    cursor = read_cursor(args[2])
    found = read_set(ctx, args[1])
    if found is None:
        return collection_scan.answer(0, [])
    scan = collection_scan.read_options(ctx, args, cursor)
    if found.form is not Form.HASHTABLE:
        found = shown(ctx, found)
        return collection_scan.answer(0, [] if found is None else scan.matching(found.listed()))
    table = found.table()
    members, following, table.scan_order = scan.step(table.in_order())
    if has_expired(ctx, found):
        members = [member for member in members if shows(ctx, found, member)]
    return collection_scan.answer(following, members)
