"""Sets taken together: what all of them have, what any of them has, what the others lack."""

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
    """The members at each key, to be looked at only; a missing key is an empty set. WRONGTYPE for anything else."""
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
    """Put what came out at the destination, whatever was there; nothing is kept of an empty set."""
    key = args[1]
    if members:
        overwrite(ctx, key, Set(members))
        ctx.event("s", event, key)
        ctx.dirty += 1
        ctx.log_request(args)
    elif delete(ctx, key):
        ctx.log_request(args)
    return reply.integer(len(members))


# -- what all have ---------------------------------------------------------------------------------------------------


@command(
    "SINTER",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_SMALLEST,
    summary="Lists the members that all the sets have.",
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
    summary="Stores the members that all the sets have, and counts them.",
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
    summary="Counts the members that all the sets have, up to a limit.",
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


# -- what any has ----------------------------------------------------------------------------------------------------


@command(
    "SUNION",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_MEMBER,
    summary="Lists the members that any of the sets has.",
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
    summary="Stores the members that any of the sets has, and counts them.",
)
def sunionstore(ctx: Context, args: list[bytes]) -> bytes:
    return _store(ctx, args, _union(_read_sets(ctx, args[2:])), b"sunionstore")


# -- what the others lack --------------------------------------------------------------------------------------------


@command(
    "SDIFF",
    "key [key ...]",
    group="set",
    since="1.0.0",
    flags="readonly",
    keys="1..-1 RO access",
    tips="nondeterministic_output_order",
    complexity=PER_MEMBER,
    summary="Lists the members of the first set that none of the others has.",
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
    summary="Stores the members of the first set that none of the others has, and counts them.",
)
def sdiffstore(ctx: Context, args: list[bytes]) -> bytes:
    return _store(ctx, args, _diff(_read_sets(ctx, args[2:])), b"sdiffstore")
