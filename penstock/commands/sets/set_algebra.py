"""Intersections, unions and differences of sets.

Tests: transcripts sets; cases commands/test_sets; law against_redis/test_types_beside_redis.
"""

from collections.abc import Callable
from typing import Final

from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.sets.set_members import limits, read_live_set
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sets import Form, Set

PER_MEMBER: Final = "O(N) where N is the total number of elements in all given sets."
PER_SMALLEST: Final = "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets."


def _read_sets(ctx: Context, keys: list[bytes]) -> list[Set]:
    """The set at each key; they must not be changed. Empty if there is no key; WRONGTYPE for another type."""
    found = [read_live_set(ctx, key) for key in keys]
    return [Set() if one is None else one for one in found]


def _inter(sets: list[Set]) -> list[bytes]:
    """In the order of the smallest set, as Redis has it; of equally small ones the first."""
    first, *others = sorted(sets, key=len)
    common = first.listed()
    for other in others:
        common = other.common(common)
    return common


def _form_of_inter(ctx: Context, sets: list[Set], count: int) -> Form:
    """The form in which an intersection of so many members begins (Redis 8.6.3).

    More integers than an intset may have become a hash table only where the smallest set is an intset.
    """
    is_intset = count <= limits(ctx).integers or min(sets, key=len).form is Form.INTSET
    return Form.INTSET if is_intset else Form.LISTPACK


def _union(sets: list[Set]) -> list[bytes]:
    members: dict[bytes, None] = {}
    for one in sets:
        members.update(one.members())
    return list(members)


def _diff(sets: list[Set]) -> list[bytes]:
    left = sets[0].listed()
    for other in sets[1:]:
        left = other.missing(left)
    return left


def _store(ctx: Context, args: list[bytes], members: list[bytes], event: bytes, form: Form) -> bytes:
    """Store the result at the destination key, replacing any value; an empty result deletes the key.

    form: in which the new set begins.
    """
    key = args[1]
    if members:
        overwrite(ctx, key, Set.made(members, limits(ctx), form))
        ctx.event("s", event, key)
        ctx.dirty += 1
        ctx.log_request(args)
    elif delete(ctx, key):
        ctx.log_request(args)
    return reply.integer(len(members))


def _read_counting(args: list[bytes], flag: bytes) -> tuple[list[bytes], int]:
    """The keys and the limit (0: none) of a command that counts; `flag`: a word that may stand among its options."""
    count = int(args[1]) if arguments.is_integer(args[1]) else 0
    if count < 1:
        raise ReplyError(b"ERR numkeys should be greater than 0")
    if count > len(args) - 2:
        raise ReplyError(b"ERR Number of keys can't be greater than number of args")
    limit = 0
    at = 2 + count
    while at < len(args):
        if flag and args[at].upper() == flag:
            at += 1
            continue
        if args[at].upper() != b"LIMIT" or at + 1 == len(args):
            raise refusals.syntax()
        limit = int(args[at + 1]) if arguments.is_integer(args[at + 1]) else -1
        if limit < 0:
            raise ReplyError(b"ERR LIMIT can't be negative")
        at += 2
    return args[2 : 2 + count], limit


# -- commands --------------------------------------------------------------------------------------------------------


def _declare(
    name: str, combined: Callable[[list[Set]], list[bytes]], complexity: str, what: str, counted_since: str, flag: bytes
) -> None:
    """Declare the commands that return, store and count a combination: SINTER, SINTERSTORE and SINTERCARD.

    what: the members, in the summaries. flag: a word that the counting one takes and that changes nothing; or empty.
    """
    event = name.lower().encode() + b"store"

    def returned(ctx: Context, args: list[bytes]) -> bytes:
        return reply.set_of_bulks(combined(_read_sets(ctx, args[1:])), ctx.resp3)

    def stored(ctx: Context, args: list[bytes]) -> bytes:
        sets = _read_sets(ctx, args[2:])
        members = combined(sets)
        form = _form_of_inter(ctx, sets, len(members)) if combined is _inter else Form.INTSET
        return _store(ctx, args, members, event, form)

    def counted(ctx: Context, args: list[bytes]) -> bytes:
        keys, most = _read_counting(args, flag)
        count = len(combined(_read_sets(ctx, keys)))
        return reply.integer(min(count, most) if most else count)

    command(
        f"{name} key [key ...]",
        "1.0.0 readonly | keys 1..-1 RO access | tips nondeterministic_output_order",
        f"Returns the {what}.",
        complexity,
    )(returned)
    command(
        f"{name}STORE destination:key key [key ...]",
        "1.0.0 write denyoom | keys 1 OW update; 2..-1 RO access",
        f"Stores the {what}, and returns their number.",
        complexity,
    )(stored)
    command(
        f"{name}CARD numkeys key [key ...] {f'[{flag.decode()}] ' if flag else ''}[LIMIT limit]",
        f"{counted_since} readonly movablekeys | keys numkeys@1 RO access",
        f"Counts the {what}, up to a limit.",
        complexity,
    )(counted)


_declare("SINTER", _inter, PER_SMALLEST, "members that are in all sets", "7.0.0", b"")
_declare("SUNION", _union, PER_MEMBER, "members that are in any of the sets", "8.10.0", b"APPROX")
_declare("SDIFF", _diff, PER_MEMBER, "members of the first set that are in none of the others", "8.10.0", b"")
