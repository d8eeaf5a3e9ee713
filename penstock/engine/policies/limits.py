"""Limits: how many entries of a group may be handed out now (PAUSE, RATE, INFLIGHT).

Reads with `>` and XAUTOCLAIM ask before they deliver, and say how many they have (`settling.limits_used`). A limit that
time lifts is waited for with the group's leases; one that a command lifts is looked at after that command.
"""

from typing import Final

from penstock.engine.context import Context
from penstock.engine.policies import policy_lines
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.group_policy import FOREVER, GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import RELEASED
from penstock.storage.streams.stream import Stream

NO_LIMIT: Final = 2**63


def owned_count(group: Group) -> int:
    """How many pending entries have an owner, deleted ones included. O(1)."""
    return group.pel.count - group.pel.order.released


def most_now(policy: GroupPolicy, now_ms: int) -> int:
    """The most entries that all readers together may be handed now; NO_LIMIT without PAUSE and RATE. O(1) amortized."""
    settings = policy.settings
    if settings.paused_until_ms > now_ms:
        return 0
    if settings.rate == NONE:
        return NO_LIMIT
    policy.window.forget(now_ms, settings.rate_ms)
    return max(settings.rate - policy.window.count, 0)


def room(group: Group, policy: GroupPolicy) -> int:
    """How many more entries may be with workers; NO_LIMIT without INFLIGHT. O(1)."""
    if policy.settings.in_flight == NONE:
        return NO_LIMIT
    return max(policy.settings.in_flight - owned_count(group), 0)


class Room:
    """How many more entries may be with workers, for a read that goes over new ones; NO_LIMIT without INFLIGHT.

    What a position set back made new, and a consumer still has, needs none: it is with a worker already. has_again: the
    read has what is delivered again; then it ends where there is no room, or an entry might be in it twice.
    """

    __slots__ = ("_group", "_is_set_back", "left")

    def __init__(self, group: Group, left: int, has_again: bool) -> None:
        self.left = left
        self._group = group
        self._is_set_back = (
            left != NO_LIMIT
            and (left > 0 or not has_again)
            and group.pel.count > 0
            and group.is_new_again(group.pel.by_id.last())
        )

    def admits(self, entry_id: StreamId) -> bool:
        """Whether a new entry may be handed out. O(1); O(log b) after the position was set back."""
        return self.left > 0 or self._is_owned(entry_id)

    def take(self, entry_id: StreamId) -> None:
        """A new entry that is admitted will be handed out."""
        if self.left != NO_LIMIT and not self._is_owned(entry_id):
            self.left -= 1

    def most_of(self, stream: Stream, most: int) -> int:
        """How many new entries may be handed out in order of their ids, `most` at most."""
        if not self._is_set_back:
            return min(most, self.left)
        count = 0
        for segment, start, stop in stream.unread(self._group, most):
            for slot in range(start, stop):
                if not self.admits(segment.id_at(slot)):
                    return count
                self.take(segment.id_at(slot))
                count += 1
        return count

    def _is_owned(self, entry_id: StreamId) -> bool:
        found = self._group.pel.by_id.find(entry_id) if self._is_set_back else None
        return found is not None and found[0].owners[found[1]] != RELEASED


def note_delivered(ctx: Context, key: bytes, group: Group, policy: GroupPolicy, count: int) -> None:
    """Entries were handed out: RATE counts them, and the log has it."""
    if policy.settings.rate == NONE or not count:
        return
    policy.window.add(ctx.now_ms, count)
    policy_lines.log_rated(ctx, key, group, [policy.window.pairs[-1][0], count])


def lifted_ms(policy: GroupPolicy, now_ms: int) -> int:
    """When time lifts a limit that stops all reads; NEVER if none does. O(1) amortized."""
    settings = policy.settings
    if settings.paused_until_ms > now_ms:
        return NEVER if settings.paused_until_ms == FOREVER else settings.paused_until_ms
    if most_now(policy, now_ms):
        return NEVER
    return policy.window.pairs[0][0] + settings.rate_ms


def examine(ctx: Context, key: bytes, group: Group, policy: GroupPolicy) -> int:
    """A tick: end a pause that is over, and have readers try again; returns when to look again. O(1) amortized."""
    settings = policy.settings
    if not settings.has_limits:
        return NEVER
    if settings.paused_until_ms != NONE and settings.paused_until_ms <= ctx.now_ms:
        settings.paused_until_ms = NONE
        policy.is_stopped = True
    if policy.is_short or policy.is_stopped:
        wake_readers(ctx, key, group, policy)
    return lifted_ms(policy, ctx.now_ms)


def wake_readers(ctx: Context, key: bytes, group: Group, policy: GroupPolicy) -> None:
    """After a command or at a moment: readers that a limit stopped try again, if it does not any more. O(1)."""
    has_room = room(group, policy) > 0
    is_lifted = policy.is_stopped or (policy.is_short and has_room)  # a lease that is over needs no room
    if is_lifted and most_now(policy, ctx.now_ms):
        policy.is_stopped = False
        policy.is_short = policy.is_short and not has_room
        ctx.signal(key)
