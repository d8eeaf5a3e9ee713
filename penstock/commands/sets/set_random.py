"""SPOP and SRANDMEMBER: random members of a set, removed or only returned. The log names the removed members.

Tests: transcripts sets; cases commands/test_sets.
"""

from typing import Final

from penstock.commands.common.live_parts import live
from penstock.commands.common.random_count import random_names, read_count
from penstock.commands.common.repeated_values import repeated_bulks
from penstock.commands.sets.set_members import limits, notify_removed, read_live_set, set_at
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.sets import Set

MEMBERS_A_LINE: Final = 1000  # of the log
REBUILT_BELOW: Final = 5  # if so many times the rest is at most the count, Redis makes a new set of the rest


def _live(ctx: Context, key: bytes) -> Set | None:
    """The set at a key after its expired members were removed."""
    found = set_at(ctx, key)
    return found if found is None or found.due is None else live(ctx, key, found, found.expires)


@command(
    "SPOP key [count@3.2.0]",
    "1.0.0 write fast | keys 1 RW access delete | tips nondeterministic_output",
    "Removes and returns random members of a set.",
    "O(1) without the count argument, otherwise O(N) where N is its value; the first call is O(M) for M members.",
    history=(("3.2.0", "Added the `count` argument."),),
)
def spop(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if len(args) > 3:
        raise refusals.syntax()
    if len(args) == 3:
        return _spop_some(ctx, key, args[2])
    found = _live(ctx, key)
    if found is None:
        return reply.null(ctx.resp3)
    member = found.random_member(ctx.chance)
    found.remove([member])
    notify_removed(ctx, key, found, b"spop", 1)
    ctx.log(b"SREM", key, member)
    return reply.bulk(member)


def _spop_some(ctx: Context, key: bytes, word: bytes) -> bytes:
    count = arguments.not_negative(word)
    found = _live(ctx, key)
    if found is None or not count:
        return reply.set_of([], ctx.resp3)
    if count >= len(found):
        members = found.listed()
        ctx.log(b"DEL", key)
    else:
        members = random_names(found.members(), found.in_order, count, ctx.chance)
        for start in range(0, len(members), MEMBERS_A_LINE):
            ctx.log(b"SREM", key, *members[start : start + MEMBERS_A_LINE])
    found.remove(members)
    if len(found) * REBUILT_BELOW <= len(members):
        found.rebuild(limits(ctx))
    notify_removed(ctx, key, found, b"spop", len(members))
    return reply.set_of_bulks(members, ctx.resp3)


@command(
    "SRANDMEMBER key [count@2.6.0]",
    "1.0.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Returns random members of a set; with a negative count they may repeat.",
    "O(1) without the count argument, otherwise O(N) where N is its absolute value; the first call is O(M) for M "
    "members.",
    history=(("2.6.0", "Added the optional `count` argument."),),
)
def srandmember(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if len(args) > 3:
        raise refusals.syntax()
    if len(args) == 2:
        found = read_live_set(ctx, key)
        return reply.null(ctx.resp3) if found is None else reply.bulk(found.random_member(ctx.chance))
    count = read_count(args[2])
    found = read_live_set(ctx, key)
    if found is None or not count:
        return reply.EMPTY_ARRAY
    if count >= len(found):
        return reply.bulks(found.listed())
    names = random_names(found.members(), found.in_order, count, ctx.chance)
    return repeated_bulks(names) if count < 0 else reply.bulks(names)
