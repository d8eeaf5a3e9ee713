"""Intersections, unions and differences of sets."""

from typing import Final

from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.sets.set_members import read_set
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sets import Set

PER_MEMBER: Final = "O(N) where N is the total number of elements in all given sets."
PER_SMALLEST: Final = "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets."


def _read_sets(ctx: Context, keys: list[bytes]) -> list[set[bytes]]:
    """The members of the set at each key; they must not be changed.

    Empty if there is no key; WRONGTYPE for another type.
    """
    found = [read_set(ctx, key) for key in keys]
    return [set() if one is None else one.members for one in found]


def _inter(sets: list[set[bytes]]) -> set[bytes]:
    first, *others = sorted(sets, key=len)
    return first.intersection(*others)


def _union(sets: list[set[bytes]]) -> set[bytes]:
    return set().union(*sets)


def _diff(sets: list[set[bytes]]) -> set[bytes]:
    return sets[0].difference(*sets[1:])


def _shown(ctx: Context, members: set[bytes]) -> bytes:
    return reply.set_of([reply.bulk(member) for member in members], ctx.resp3)


def _store(ctx: Context, args: list[bytes], members: set[bytes], event: bytes) -> bytes:
    """Store the result at the destination key, replacing any value; an empty result deletes the key."""
    key = args[1]
    if members:
        overwrite(ctx, key, Set(members))
        ctx.event("s", event, key)
        ctx.dirty += 1
        ctx.log_request(args)
    elif delete(ctx, key):
        ctx.log_request(args)
    return reply.integer(len(members))


# -- intersections ---------------------------------------------------------------------------------------------------


@command(
    "SINTER",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_SMALLEST,
    summary="Returns the members that are in all sets.",
)
def sinter(ctx: Context, args: list[bytes]) -> bytes:
    return _shown(ctx, _inter(_read_sets(ctx, args[1:])))


@command(
    "SINTERSTORE",
    "destination:key key [key ...]",
    group="set",
    since="1.0.0",
    flags="write denyoom",
    keys="1 OW update; 2..-1 RO access",
    complexity=PER_SMALLEST,
    summary="Stores the members that are in all sets, and returns their number.",
)
def sinterstore(ctx: Context, args: list[bytes]) -> bytes:
    return _store(ctx, args, _inter(_read_sets(ctx, args[2:])), b"sinterstore")


@command(
    "SINTERCARD",
    "numkeys key [key ...] [LIMIT limit]",
    group="set",
    since="7.0.0",
    flags="readonly movablekeys",
    keys="numkeys@1 RO access",
    complexity=PER_SMALLEST,
    summary="Counts the members that are in all sets, up to a limit.",
)
def sintercard(ctx: Context, args: list[bytes]) -> bytes:
    count = int(args[1]) if arguments.is_integer(args[1]) else 0
    if count < 1:
        raise ReplyError(b"ERR numkeys should be greater than 0")
    if count > len(args) - 2:
        raise ReplyError(b"ERR Number of keys can't be greater than number of args")
    limit = 0
    for at in range(2 + count, len(args), 2):
        if args[at].upper() != b"LIMIT" or at + 1 == len(args):
            raise refusals.syntax()
        limit = int(args[at + 1]) if arguments.is_integer(args[at + 1]) else -1
        if limit < 0:
            raise ReplyError(b"ERR LIMIT can't be negative")
    shared = len(_inter(_read_sets(ctx, args[2 : 2 + count])))
    return reply.integer(min(shared, limit) if limit else shared)


# -- unions ----------------------------------------------------------------------------------------------------------


@command(
    "SUNION",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_MEMBER,
    summary="Returns the members that are in any of the sets.",
)
def sunion(ctx: Context, args: list[bytes]) -> bytes:
    return _shown(ctx, _union(_read_sets(ctx, args[1:])))


@command(
    "SUNIONSTORE",
    "destination:key key [key ...]",
    group="set",
    since="1.0.0",
    flags="write denyoom",
    keys="1 OW update; 2..-1 RO access",
    complexity=PER_MEMBER,
    summary="Stores the members that are in any of the sets, and returns their number.",
)
def sunionstore(ctx: Context, args: list[bytes]) -> bytes:
    return _store(ctx, args, _union(_read_sets(ctx, args[2:])), b"sunionstore")


# -- differences -----------------------------------------------------------------------------------------------------


@command(
    "SDIFF",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_MEMBER,
    summary="Returns the members of the first set that are in none of the others.",
)
def sdiff(ctx: Context, args: list[bytes]) -> bytes:
    return _shown(ctx, _diff(_read_sets(ctx, args[1:])))


@command(
    "SDIFFSTORE",
    "destination:key key [key ...]",
    group="set",
    since="1.0.0",
    flags="write denyoom",
    keys="1 OW update; 2..-1 RO access",
    complexity=PER_MEMBER,
    summary="Stores the members of the first set that are in none of the others, and returns their number.",
)
def sdiffstore(ctx: Context, args: list[bytes]) -> bytes:
    return _store(ctx, args, _diff(_read_sets(ctx, args[2:])), b"sdiffstore")
