"""The policy of a group for requests that deliver or release pending entries: XCLAIM, XAUTOCLAIM, XNACK, histories.

Their handlers ask here whether an entry may be delivered, and report here that an attempt has ended. A group without a
policy, or with one that is not applied now, has no Attempts.
"""

from penstock.engine.context import Context
from penstock.engine.policies import dead_letters, keys, leases, limits, settling
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import RELEASED, PendingSlot
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream


class Attempts:
    """The policy of one group, for one request."""

    __slots__ = ("_ctx", "_group", "_key", "_most", "_policy", "_room", "_stream", "counts_attempts", "may_move")

    def __init__(self, ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy) -> None:
        self._ctx = ctx
        self._key = key
        self._stream = stream
        self._group = group
        self._policy = policy
        self._most = limits.most_now(policy, ctx.now_ms)
        self._room = limits.room(group, policy)
        self.may_move = policy.settings.dead_letter is not None or policy.settings.expires
        self.counts_attempts = True  # False: exhausted entries stay, as nothing is delivered or the count is set

    def may_hand_out(self, found: PendingSlot) -> bool:
        """Whether limits let one more pending entry be handed out; then the caller hands it out. O(1)."""
        needs_room = found[0].owners[found[1]] == RELEASED
        if not self._most or (needs_room and not self._room):
            return False
        self._most -= 1
        self._room -= needs_room
        return True

    def note_delivered(self, count: int) -> None:
        """An XAUTOCLAIM has handed out so many entries."""
        if self._policy.settings.has_limits:
            settling.limits_used(self._ctx, self._key, self._stream, self._group, self._policy, count)

    def must_wait(self, found: PendingSlot) -> bool:
        """Whether a released entry is still held, or an entry waits for others of its value. O(1)."""
        order = keys.order_of(self._stream, self._group, self._policy)
        return leases.must_wait(self._policy, order, found[0].id_at(found[1]), self._ctx.now_ms)

    def is_over(self, found: PendingSlot, count: int) -> bool:
        """Whether a live entry with this delivery count is exhausted or expired: it must not be delivered again.

        What a position set back made new has its attempts before it.
        """
        if not found[0].segment.is_live(found[1]):
            return False
        is_exhausted = self.counts_attempts and dead_letters.is_exhausted(self._policy, count)
        is_exhausted = is_exhausted and not self._group.is_new_again(found)
        return is_exhausted or self.is_expired(found[0].segment, found[1])

    def is_expired(self, segment: Segment, slot: int) -> bool:
        """Whether a live entry has expired, pending or not."""
        return dead_letters.is_expired(self._policy, segment, slot, self._ctx.now_ms)

    def move_to_dead_letters(self, found: PendingSlot, count: int) -> bool:
        """Move an exhausted or expired entry to the dead letters, if possible; returns whether it moved."""
        return dead_letters.move(self._ctx, self._key, self._stream, self._group, self._policy, found, count)

    def move_forced(self, found: PendingSlot, count: int) -> bool:
        """As `move_to_dead_letters` if that count is too high: for an entry that FORCE made pending, new or not."""
        if not dead_letters.is_exhausted(self._policy, count) and not self.is_expired(found[0].segment, found[1]):
            return False
        if dead_letters.set_aside(self._ctx, self._key, self._stream, self._group, self._policy, found, count):
            return True
        self.keep(found)
        return False

    def keep(self, found: PendingSlot) -> None:
        """An entry that could not move is about to be released."""
        dead_letters.keep_attempt(self._ctx, self._key, self._group, self._policy, found)

    def move_all(self, slots: list[PendingSlot]) -> None:
        """Move exhausted and expired entries, each with its own count, to the dead letters; then `finish`."""
        if slots:
            dead_letters.move_all(self._ctx, self._key, self._stream, self._group, self._policy, slots)
            self.finish()

    def finish(self) -> None:
        """The end of a request that has moved entries to the dead letters, or tried to."""
        settling.moved_to_dead_letters(self._ctx, self._key, self._stream, self._group)


def attempts_of(ctx: Context, key: bytes, stream: Stream, group: Group) -> Attempts | None:
    """The attempts of a group; None if it has no policy, or policies are not applied now."""
    policy = group.policy
    if policy is None or not leases.are_kept(ctx):
        return None
    return Attempts(ctx, key, stream, group, policy)
