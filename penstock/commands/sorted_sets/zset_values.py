"""Sorted sets at keys: look up, store, notify, reply."""

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter

from penstock.commands.common.overwriting import delete, overwrite
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.numbers import score_text
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import Pair, SortedSet

ZERO: Final = 0.0


def sorted_set(ctx: Context, key: bytes) -> SortedSet | None:
    """The sorted set at a key, for a command that changes it; None if there is no key. ReplyError WRONGTYPE for another
    type.
    """
    value = ctx.value(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise refusals.wrong_type()


def read_sorted_set(ctx: Context, key: bytes) -> SortedSet | None:
    """As `sorted_set`, for a command that only reads: counts a hit or a miss."""
    value = ctx.read(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise refusals.wrong_type()


# -- small and large -------------------------------------------------------------------------------------------------


class Limits:
    """The limits of Redis's encoding for small sets: number and length of members.

    That encoding loses the sign of -0.
    """

    __slots__ = ("entries", "length")

    def __init__(self, ctx: Context) -> None:
        self.entries = ctx.form_limits.zset_members
        self.length = ctx.form_limits.zset_bytes

    def exceeded_by(self, members: Sequence[bytes]) -> bool:
        return len(members) > self.entries or any(len(member) > self.length for member in members)

    def new_set(self, members: Sequence[bytes]) -> SortedSet:
        """An empty set for members that are to be added: the length of the first one decides, not that of others.

        For several members it is not packed: adding them one by one is quicker so. The caller packs it then.
        """
        made = SortedSet()
        made.is_large = len(members) > self.entries or len(members[0]) > self.length
        if len(members) > 1:
            made.unpack()
        return made

    def expect(self, zset: SortedSet, count: int) -> None:
        """Take note that a request names so many members, be they new or not: Redis makes room for all. O(1)."""
        if count > self.entries:
            zset.is_large = True

    def add(self, zset: SortedSet, member: bytes, score: float) -> float | None:
        """Add a member, or change its score unless that is equal; returns the one before, None for a new member.

        The set may become a large one.
        """
        if zset.is_large:
            return zset.put(member, score)
        old = zset.score(member)
        if old is None or old != score:
            self.put(zset, member, score, old)
        return old

    def put(self, zset: SortedSet, member: bytes, score: float, old: float | None) -> None:
        """Set a member's score; `old` is the present one, None for a new member. The set may become a large one."""
        if not zset.is_large:
            if old is None and (len(zset) >= self.entries or len(member) > self.length):
                zset.is_large = True
            else:
                score = score or ZERO
        zset.put_over(member, score, old)

    def set_of(self, pairs: Sequence[Pair], is_large: bool) -> SortedSet:
        """A set of pairs, added in this order. `is_large`: it is large from the start."""
        if not is_large:
            kept: list[Pair] = []
            for score, member in pairs:
                is_large = is_large or len(member) > self.length
                kept.append((score if is_large else score or ZERO, member))
            pairs = kept
        zset = SortedSet(pairs)
        zset.is_large = is_large
        return zset


# -- changing --------------------------------------------------------------------------------------------------------


def notify_removed(ctx: Context, key: bytes, zset: SortedSet, event: bytes, count: int) -> None:
    """Send the events for removed members; the key is removed with the last member. The caller logs it."""
    ctx.dirty += count
    ctx.event("z", event, key)
    if len(zset):
        ctx.touch(key)
    else:
        ctx.remove(key)
        ctx.event("g", b"del", key)


def store(ctx: Context, key: bytes, zset: SortedSet, event: bytes, args: list[bytes]) -> bytes:
    """Set a key to a sorted set, replacing any value; an empty set deletes the key. Returns its size as a reply.

    The request is logged as it was sent: it reads the same keys in a replay.
    """
    if not zset:
        if delete(ctx, key):
            ctx.log_request(args)
        return reply.ZERO
    overwrite(ctx, key, zset)
    ctx.event("z", event, key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(len(zset))


# -- replies ---------------------------------------------------------------------------------------------------------


def score_reply(score: float, resp3: bool) -> bytes:
    """A score: a double in RESP3, a bulk string in RESP2."""
    return reply.double(score_text(score), resp3)


def members_reply(pairs: list[Pair], with_scores: bool, resp3: bool) -> bytes:
    """Members, with scores if wanted: flat in RESP2, pairs in RESP3."""
    if not with_scores:
        return reply.bulks([member for _, member in pairs])
    if resp3:
        return nested_reply(pairs, resp3)
    found = BytesWriter()
    found.write(reply.array_header(2 * len(pairs)))
    for score, member in pairs:
        reply.write_word(found, member)
        reply.write_word(found, score_text(score))
    return found.getvalue()


def nested_reply(pairs: list[Pair], resp3: bool) -> bytes:
    """Members and scores as pairs, in RESP2, too (ZMPOP)."""
    return reply.array(
        [b"*2\r\n" + reply.bulk(member) + reply.double(score_text(score), resp3) for score, member in pairs]
    )
