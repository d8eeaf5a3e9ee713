"""XREADGROUP `>` in a group with a policy: first what may be delivered again, then new entries.

With CLAIM, its own min-idle-time takes the place of ACKWAIT, and the reply has four elements for each entry.
"""

from typing import Final

from penstock.commands.policies import chosen_read, keyed_read
from penstock.commands.streams.reading import read_arguments
from penstock.commands.streams.reading.group_delivery import ReadTarget, with_new
from penstock.commands.streams.reading.read_arguments import ReadArguments
from penstock.commands.streams.reading.xread import Budget
from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.engine.policies import dead_letters, keys, leases, limits, settling
from penstock.protocol import entries
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.pending_block import COUNT_UP, RELEASED, PendingSlot, in_runs

MOST_SKIPPED: Final = 1000  # dead letters and deleted entries that one read passes over; a tick processes the rest


def read(
    ctx: Context,
    target: ReadTarget,
    consumer: Consumer,
    options: ReadArguments,
    claims: bool,
    max_count: int,
    budget: Budget,
) -> bytes:
    """The entries as an array; b"" if there are none. A NOACK read gets new ones only: it acknowledges nothing."""
    group, policy = target.group, target.group.policy
    assert policy is not None, "the caller looked"
    most = max_count
    if policy.settings.has_limits:
        most = min(max_count, limits.most_now(policy, ctx.now_ms))
        policy.is_stopped = policy.is_stopped or not most
        if not most:
            return b""
    budget.open_stream(target.key)
    parts: list[bytes] = []
    if (claims or policy.settings.ack_wait_ms != NONE) and not options.no_ack:
        parts = _deliver_again(ctx, target, policy, consumer, options.claim_ms if claims else NONE, most, budget)
    room = limits.Room(group, limits.NO_LIMIT if options.no_ack else limits.room(group, policy), bool(parts))
    policy.is_short = policy.is_short or not room.left
    answer = _with_first(ctx, target, policy, consumer, options, claims, parts, most, room, budget)
    if policy.settings.has_limits and parts:
        settling.limits_used(ctx, target.key, target.stream, group, policy, len(parts))
    if policy.settings.expires:
        settling.apply_policies(ctx, target.key, target.stream)
    return answer


def _with_first(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    consumer: Consumer,
    options: ReadArguments,
    claims: bool,
    parts: list[bytes],
    max_count: int,
    room: limits.Room,
    budget: Budget,
) -> bytes:
    """Add first deliveries to `parts`, up to `max_count` entries in all: an array; b"" if it is empty."""
    most = max_count - len(parts)
    if policy.settings.chooses and not options.no_ack:
        shown = chosen_read.read_first(ctx, target, policy, consumer, most, room, budget)
    else:
        order = keys.order_of(target.stream, target.group, policy)
        leases.current_choice(target.stream, target.group, policy, ctx.now_ms)
        if order is None and not policy.settings.expires:
            most = len(parts) + room.most_of(target.stream, most)
            return with_new(ctx, target, consumer, parts, options.no_ack, most, budget, claims)
        shown = keyed_read.read_new(ctx, target, policy, order, consumer, options.no_ack, most, room, budget)
    parts += [entries.with_delivery(entry, 0, 0) for entry in shown] if claims else shown
    return b"*%d\r\n" % len(parts) + b"".join(parts) if parts else b""


def read_again_together(
    ctx: Context, target: ReadTarget, consumer: Consumer, options: ReadArguments, most: int
) -> list[bytes]:
    """Of what may be delivered again, as much as fills several reads, `most` entries; nothing if it fills one at best.

    Ends at what must not be handed out: a read that meets it is run by itself.
    """
    group, policy = target.group, target.group.policy
    assert policy is not None, "the caller looked"
    found = 0
    for ready in leases.ready_slots(target.stream, group, policy, leases.least_idle_ms(ctx, policy), ctx.now_ms):
        block, slot = ready
        if found >= most or not block.segment.is_live(slot) or group.is_new_again(ready):
            break
        if dead_letters.is_due(group, policy, ready, ctx.now_ms):
            break
        found += 1
    whole = found // options.count * options.count
    if whole < 2 * options.count:
        return []
    return _deliver_again(ctx, target, policy, consumer, NONE, whole, Budget(options, ctx.resp3))


class Redeliveries:
    """The entries that a read may deliver again, and the dead letters and deleted entries that it meets.

    room: how many more entries may have an owner then. lacks_room: an entry was held back for lack of it.
    """

    __slots__ = ("dead", "deleted", "lacks_room", "room", "shown", "taken")

    def __init__(self, room: int) -> None:
        self.room = room
        self.lacks_room = False
        self.shown: list[bytes] = []  # the entries, as the reply has them
        self.taken: list[PendingSlot] = []
        self.deleted: list[PendingSlot] = []
        self.dead: list[PendingSlot] = []  # dead letters


def next_redeliveries(
    ctx: Context, target: ReadTarget, policy: GroupPolicy, claim_ms: int, max_count: int, budget: Budget
) -> Redeliveries:
    """Find released entries that are ready, and entries idle for claim_ms (NONE: for longer than their lease).

    Changes only the budget.
    """
    group = target.group
    again = Redeliveries(limits.room(group, policy))
    min_idle_ms = leases.least_idle_ms(ctx, policy) if claim_ms == NONE else claim_ms
    walk = leases.ready_slots(target.stream, group, policy, min_idle_ms, ctx.now_ms)
    skipped = 0
    while (found := next(walk, None)) is not None:
        block, slot = found
        if len(again.taken) >= max_count or len(again.deleted) + len(again.dead) >= MOST_SKIPPED:
            break
        if not block.segment.is_live(slot):
            if policy.settings.ack_wait_ms != NONE:  # else CLAIM leaves it pending, as in Redis
                again.deleted.append((block, slot))
            continue
        if group.is_new_again(found) and (again.room or _needs_no_room(target, policy)):
            continue  # it may be handed out as new
        if dead_letters.is_due(group, policy, (block, slot), ctx.now_ms):
            again.dead.append((block, slot))
            continue
        if block.owners[slot] == RELEASED:
            if not again.room:
                again.lacks_room = True
                skipped += 1
                if skipped == MOST_SKIPPED:
                    walk = leases.ready_owned_slots(target.stream, group, policy, min_idle_ms, ctx.now_ms)
                continue
            again.room -= 1
        shown = block.segment.entry(slot)
        if claim_ms != NONE:
            shown = entries.with_delivery(shown, max(ctx.now_ms - block.times[slot], 0), block.counts[slot])
        if not budget.take(shown):
            break
        again.shown.append(shown)
        again.taken.append((block, slot))
    return again


def _needs_no_room(target: ReadTarget, policy: GroupPolicy) -> bool:
    """Whether the read hands out a new entry without room: the first one, if it is with a worker, and its turn."""
    stream, group = target.stream, target.group
    if policy.settings.chooses:
        return False
    order = keys.order_of(stream, group, policy)
    for segment, slot, _ in stream.unread(group, 1):
        entry_id = segment.id_at(slot)
        is_free = order is None or order.may_be_delivered(entry_id)
        return is_free and limits.Room(group, 0, False).admits(entry_id)
    return False


def _deliver_again(
    ctx: Context,
    target: ReadTarget,
    policy: GroupPolicy,
    consumer: Consumer,
    claim_ms: int,
    max_count: int,
    budget: Budget,
) -> list[bytes]:
    """Deliver the entries of `next_redeliveries`; exhausted and expired ones move to the dead letters."""
    group = target.group
    again = next_redeliveries(ctx, target, policy, claim_ms, max_count, budget)
    delivered_before = sum(block.counts[slot] > 0 for block, slot in again.taken)
    leases.drop_deleted(ctx, target.key, group, again.deleted)
    gone = len(again.deleted)
    if again.dead:
        gone += dead_letters.move_all(ctx, target.key, target.stream, group, policy, again.dead)
    if again.taken:
        runs = in_runs(again.taken)
        group.pel.give_all(runs, consumer, ctx.now_ms, COUNT_UP)
        consumer.active_ms = ctx.now_ms
        ctx.count_group_changes(target.key, len(again.taken))
        group_effects.log_held(ctx, target.key, group, runs)
        policy.redelivered += delivered_before
        ctx.policies.redelivered += delivered_before
        settling.delivered(ctx, target.key, target.stream, group, ctx.now_ms)
    policy.is_short = policy.is_short or again.lacks_room
    if gone and len(again.deleted) + len(again.dead) >= MOST_SKIPPED:
        ctx.blocking.serve_later(ctx.db_index, target.key)
    if again.dead:
        settling.moved_to_dead_letters(ctx, target.key, target.stream, group)
    return again.shown


assert read_arguments.NOT_GIVEN == NONE, "options.claim_ms may be passed on"
