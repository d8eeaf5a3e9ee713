"""ZMOVE, BZMOVE and ZMOVEMEMBER: members moved from one sorted set to another. (Redis 8.12, documentation.)

What is logged is what was done, as ZREM and ZADD, which any Redis knows.

Tests: transcripts zset_moves; cases commands/test_zset_moving; model commands/test_zset_moving_beside_naive.
"""

from typing import Final

from penstock.commands.common import timeouts
from penstock.commands.common.overwriting import create
from penstock.commands.sorted_sets.zset_bounds import score_range
from penstock.commands.sorted_sets.zset_popping import popped_pairs, wait
from penstock.commands.sorted_sets.zset_values import Limits, notify_removed, sorted_set
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.numbers import double_text
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import Pair, ScoreBound, SortedSet

MOVED_A_LINE: Final = 1000  # of the log
COMPLEXITY: Final = (
    "O(M*(log(N)+log(K))) with N and K being the numbers of elements in the sorted sets, and M that of those moved."
)
MOVE_KEYS: Final = "1 RW access delete; 2 RW insert"


class Selection:
    """Which members are to be moved. bounds: of their scores; None for those at an end, the lowest or the highest."""

    __slots__ = ("bounds", "count", "lowest")

    def __init__(self, where: bytes) -> None:
        self.lowest = where != b"MAX"
        self.bounds: tuple[ScoreBound, ScoreBound] | None = None
        self.count = 0

    def taken_from(self, zset: SortedSet) -> list[Pair]:
        """Remove and return the pairs."""
        if self.bounds is None:
            return popped_pairs(zset, self.lowest, self.count or 1)
        start, stop = zset.score_range(*self.bounds)
        return zset.pop_range(start, min(stop, start + self.count) if self.count else stop)


def _read_end(args: list[bytes]) -> Selection:
    where = args[3].upper()
    if where not in (b"MIN", b"MAX"):
        raise refusals.syntax()
    return Selection(where)


def _read_count(args: list[bytes], at: int, selection: Selection) -> None:
    """Read COUNT, which may be at args[at], and nothing else."""
    if at == len(args):
        return
    if at + 2 != len(args) or args[at].upper() != b"COUNT":
        raise refusals.syntax()
    selection.count = arguments.count(args[at + 1])


@command(
    "ZMOVE source:key destination:key where:<MIN|MAX|BYSCORE (score-min:double score-max:double)> [COUNT count]",
    f"8.12.0 write denyoom | keys {MOVE_KEYS}",
    "Moves members from an end, or from a range of scores, of one sorted set to another.",
    COMPLEXITY,
)
def zmove(ctx: Context, args: list[bytes]) -> bytes:
    if args[3].upper() == b"BYSCORE":
        if len(args) < 6:
            raise refusals.syntax()
        selection = Selection(b"BYSCORE")
        selection.bounds = score_range(ctx, args[4], args[5])
        _read_count(args, 6, selection)
    else:
        selection = _read_end(args)
        _read_count(args, 4, selection)
    answer = _move(ctx, args, selection)
    return reply.null_array(ctx.resp3) if answer is None else answer


@command(
    "BZMOVE source:key destination:key where:<MIN|MAX> timeout:double [COUNT count]",
    f"8.12.0 write denyoom blocking | keys {MOVE_KEYS}",
    "Moves members from an end of one sorted set to another; blocks until there is one to be moved.",
    COMPLEXITY,
)
def bzmove(ctx: Context, args: list[bytes]) -> bytes:
    selection = _read_end(args)
    _read_count(args, 5, selection)
    deadline_ms = timeouts.deadline_in_seconds(args[4], ctx.now_ms)
    answer = _move(ctx, args, selection)
    if answer is None and args[1] != args[2]:
        return wait(ctx, args, [args[1]], deadline_ms)
    return reply.null_array(ctx.resp3) if answer is None else answer


def _move(ctx: Context, args: list[bytes], selection: Selection) -> bytes | None:
    source, destination = args[1], args[2]
    zset = None if source == destination else sorted_set(ctx, source)
    if zset is None:
        return None
    target = sorted_set(ctx, destination)
    return _put(ctx, source, zset, destination, target, selection.taken_from(zset))


@command(
    "ZMOVEMEMBER source:key destination:key condition:[NX|XX] members:MEMBERS (num-members:integer member "
    "[member ...])",
    f"8.12.0 write denyoom | keys {MOVE_KEYS}",
    "Moves members from one sorted set to another, where all may be there, or only new ones, or only others.",
    COMPLEXITY,
)
def zmovemember(ctx: Context, args: list[bytes]) -> bytes:
    source, destination = args[1], args[2]
    condition, members = _read_members(args)
    zset = None if source == destination else sorted_set(ctx, source)
    if zset is None:
        return reply.null_array(ctx.resp3)
    target = sorted_set(ctx, destination)
    pairs: list[Pair] = []
    for member in dict.fromkeys(members):
        score = zset.score(member)
        is_there = target is not None and target.score(member) is not None
        if score is None or (is_there if condition == b"NX" else condition == b"XX" and not is_there):
            continue
        zset.remove(member)
        pairs.append((score, member))
    answer = _put(ctx, source, zset, destination, target, pairs)
    return reply.null_array(ctx.resp3) if answer is None else answer


def _read_members(args: list[bytes]) -> tuple[bytes, list[bytes]]:
    """The condition or an empty word, and the members."""
    condition = args[3].upper()
    at = 4 if condition in (b"NX", b"XX") else 3
    if args[at].upper() != b"MEMBERS":
        raise refusals.syntax()
    count = arguments.at_least(1, args[at + 1], b"ERR num-members should be greater than 0")
    if count != len(args) - at - 2:
        raise refusals.syntax()
    return condition if at == 4 else b"", args[at + 2 :]


# -- the move and its reply --------------------------------------------------------------------------------------------


def _put(
    ctx: Context, source: bytes, zset: SortedSet, destination: bytes, target: SortedSet | None, pairs: list[Pair]
) -> bytes | None:
    """Add what was taken out of a set to another; answers the members, None where there were none.

    That there are no scores in the reply, and the names of the events, are not documented.
    """
    if not pairs:
        return None
    notify_removed(ctx, source, zset, b"zrem", len(pairs))
    limits = Limits(ctx)
    members = [member for _, member in pairs]
    if target is None:
        target = limits.new_set(members)
        create(ctx, destination, target)
    else:
        limits.expect(target, len(members))
        ctx.touch(destination)
    for score, member in pairs:
        limits.add(target, member, score)
    if len(target) == len(pairs):
        target.pack()
    ctx.event("z", b"zadd", destination)
    for start in range(0, len(pairs), MOVED_A_LINE):
        some = pairs[start : start + MOVED_A_LINE]
        ctx.log(b"ZREM", source, *[member for _, member in some])
        ctx.log(b"ZADD", destination, *[word for score, member in some for word in (double_text(score), member)])
    return reply.bulks(members)
