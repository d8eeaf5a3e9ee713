"""Leases: in a group with ACKWAIT, entries that are not acknowledged in time are delivered again by a plain `>`.

The end of a lease changes nothing by itself: owner, count and position stay until a consumer gets the entry. Released
entries (XNACK, DELCONSUMER) may be held for a while first. There is one timer for a group, none for an entry.
"""

from collections.abc import Iterator
from typing import Final

from penstock.engine.aof import group_effects
from penstock.engine.aof.group_effects import Released
from penstock.engine.context import Context
from penstock.engine.policies import choosing, dead_letters, expiry, keys, limits, policy_lines, policy_notes, targets
from penstock.engine.policies.tick_budget import TickBudget
from penstock.storage.deadlines import LAST_MS, NEVER
from penstock.storage.policies.choice import Choice
from penstock.storage.policies.group_policy import BEFORE_ALL, GroupPolicy
from penstock.storage.policies.key_order import KeyOrder
from penstock.storage.policies.stream_policies import NONE
from penstock.storage.streams import ids
from penstock.storage.streams.entry_deletion import deleted_below
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending import claim_walk, lease_walk
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.lease_walk import BY_ID
from penstock.storage.streams.pending.pending_block import KEEP_COUNT, RELEASED, PendingBlock, PendingSlot
from penstock.storage.streams.stream import Stream

GRACE_MS: Final = 5000  # after a start, no lease ends for so long: workers that want to acknowledge reconnect first
RETRY_MS: Final = 1000  # dead letters that cannot be written are tried again
LOOKS_AT_ONCE: Final = 1000  # leases that are looked at before something is done, and before the clock is read
MOVES_AT_ONCE: Final = 100  # dead letters, likewise
NEVER_IDLE: Final = 2**63  # in ms: no owned entry idles for so long
LARGEST_SHIFT: Final = 62  # of the shortest delay, for the longest one


def are_kept(ctx: Context) -> bool:
    """Whether policies are applied now."""
    return ctx.policies.are_applied() and not ctx.session.privileged


def kept_policy(ctx: Context, group: Group) -> GroupPolicy | None:
    """The policy of a group, if policies are applied now."""
    policy = group.policy
    return policy if policy is not None and are_kept(ctx) else None


def is_leased(ctx: Context, group: Group) -> bool:
    policy = kept_policy(ctx, group)
    return policy is not None and policy.settings.ack_wait_ms != NONE


# -- what may be handed out -------------------------------------------------------------------------------------------


def ready_slots(
    stream: Stream, group: Group, policy: GroupPolicy, min_idle_ms: int, now_ms: int
) -> Iterator[PendingSlot]:
    """Entries that may be delivered again, in order: released ones that are ready, then those idle for min_idle_ms.

    Released entries that were deleted are included. Nothing may change during the walk.
    """
    yield from released_slots(stream, group, policy, now_ms)
    yield from ready_owned_slots(stream, group, policy, min_idle_ms, now_ms)


def finds_more(ctx: Context, stream: Stream, group: Group, policy: GroupPolicy, min_idle_ms: int) -> bool:
    """Whether the next read would find entries behind those that the last read found and moved to the dead letters.

    O(1), except for entries that wait for others of their value.
    """
    if not limits.most_now(policy, ctx.now_ms):
        return False
    slots = ready_slots if limits.room(group, policy) else ready_owned_slots  # a lease that is over needs no room
    return next(slots(stream, group, policy, min_idle_ms, ctx.now_ms), None) is not None


def current_choice(stream: Stream, group: Group, policy: GroupPolicy, now_ms: int) -> Choice | None:
    """The entries to choose from, with those released while the policy slept; None without PRIORITY and FAIR."""
    if not policy.settings.chooses:
        return None
    _note_unknown(stream, group, policy)
    return choosing.current(stream, group, policy, now_ms)


def released_slots(stream: Stream, group: Group, policy: GroupPolicy, now_ms: int) -> Iterator[PendingSlot]:
    """The released entries of `ready_slots`; without those never delivered if PRIORITY or FAIR chooses these."""
    order = _note_unknown(stream, group, policy)
    if policy.settings.chooses:
        choosing.current(stream, group, policy, now_ms)
    for ready_ms, _, entry_id in policy.order:
        if ready_ms > now_ms:
            break
        found = group.pel.by_id.find(entry_id)
        assert found is not None, "a released entry is pending"
        if order is None or order.may_be_delivered(entry_id):
            yield found


def ready_owned_slots(
    stream: Stream, group: Group, policy: GroupPolicy, min_idle_ms: int, now_ms: int
) -> Iterator[PendingSlot]:
    """`ready_slots`, as far as they have an owner."""
    order = keys.order_of(stream, group, policy)
    for time_ms, block, slot in claim_walk.live_in_time_order(group.pel.order):
        if now_ms - time_ms < min_idle_ms:
            break
        if order is None or order.may_be_delivered(block.id_at(slot)):
            yield block, slot


def must_wait(policy: GroupPolicy, order: KeyOrder | None, entry_id: StreamId, now_ms: int) -> bool:
    """Whether a released entry is still held, or an entry waits for others of its value. O(1)."""
    moment = policy.ready.get(entry_id)
    if moment is not None and moment[0] > now_ms:
        return True
    return order is not None and not order.may_be_delivered(entry_id)


def least_idle_ms(ctx: Context, policy: GroupPolicy) -> int:
    """How long an owned entry must have been idle for a read to deliver it again now."""
    return policy.settings.ack_wait_ms if leases_have_ended(ctx, policy) else NEVER_IDLE


def leases_have_ended(ctx: Context, policy: GroupPolicy) -> bool:
    """Whether a lease may end by now: not for a while after a start."""
    return ctx.now_ms >= _grace_until_ms(ctx, policy)


def oldest_claimable_ms(stream: Stream, group: Group, policy: GroupPolicy, now_ms: int) -> int:
    """As claim_walk.oldest_live_ms, without entries that are held or beyond a limit: 0 if a released one is ready."""
    has_room = limits.room(group, policy) > 0
    if has_room:
        ready = ready_slots(stream, group, policy, 0, now_ms)
    else:
        ready = ready_owned_slots(stream, group, policy, 0, now_ms)
    for block, slot in ready:
        if block.segment.is_live(slot):
            return block.times[slot]
    return claim_walk.NONE_LIVE


def _note_unknown(stream: Stream, group: Group, policy: GroupPolicy) -> KeyOrder | None:
    """Take note of entries that were released in a replay or while the policy slept: they are ready, or wait.

    Returns the pending entries by their values; None without KEY.
    """
    order = keys.order_of(stream, group, policy)
    if policy.known_count < group.pel.order.released:
        for block, slot in group.pel.order.in_nack_zone():
            entry_id = block.id_at(slot)
            if policy.is_known(entry_id):
                continue
            is_new = not block.counts[slot] and not policy.settings.chooses
            if order is not None and is_new and not order.may_be_delivered(entry_id):
                order.waiting.add(entry_id)
                expiry.note_released(policy, block, slot)
            else:
                _note_released(policy, block, slot, 0, True)
    return order


def _note_released(policy: GroupPolicy, block: PendingBlock, slot: int, ready_ms: int, is_ready: bool) -> None:
    """An entry has no owner, and is ready from a moment on; or it may be chosen, as it was never delivered."""
    choice = policy.choice
    if choice is not None and is_ready and not block.counts[slot] and block.segment.is_live(slot):
        choosing.add_waiting(policy, choice, block, slot)
    else:
        policy.release(block.id_at(slot), ready_ms)
    expiry.note_released(policy, block, slot)


def _grace_until_ms(ctx: Context, policy: GroupPolicy) -> int:
    loaded_ms = ctx.conditions.loaded_ms
    return loaded_ms + min(policy.settings.ack_wait_ms, GRACE_MS) if loaded_ms else 0


# -- giving back ------------------------------------------------------------------------------------------------------


def backoff_ms(ctx: Context, policy: GroupPolicy, count: int) -> int:
    """How long an entry that failed for the nth time is held."""
    settings = policy.settings
    if settings.backoff_min_ms == NONE:
        return 0
    shift = min(max(count - 1, 0), LARGEST_SHIFT)
    delay_ms = min(settings.backoff_max_ms, settings.backoff_min_ms << shift)
    if settings.jitter_percent > 0:
        delay_ms -= delay_ms * ctx.chance.randint(0, settings.jitter_percent * 100) // 10_000
    return delay_ms


def hold(ctx: Context, key: bytes, group: Group, policy: GroupPolicy, released: list[Released], until_ms: int) -> int:
    """Hold released entries until a time; if that is NONE, each for its backoff.

    Logs the holds. Returns when the first hold ends; NEVER if no entry is held.
    """
    first_ms = NEVER
    texts: list[bytes] = []
    former = (0, 0)
    for block, first, counts in released:
        for offset, count in enumerate(counts):
            ready_ms = ctx.now_ms + backoff_ms(ctx, policy, count) if until_ms == NONE else max(until_ms, ctx.now_ms)
            ready_ms = min(ready_ms, LAST_MS)
            entry_id = block.id_at(first + offset)
            _note_released(policy, block, first + offset, ready_ms, ready_ms <= ctx.now_ms)
            if ready_ms <= ctx.now_ms:
                continue
            first_ms = min(first_ms, ready_ms)
            if texts and (count, ready_ms) != former:
                policy_lines.log_hold(ctx, key, group, texts, *former)
                texts = []
            former = (count, ready_ms)
            texts.append(ids.text(entry_id))
    if texts:
        policy_lines.log_hold(ctx, key, group, texts, *former)
    return first_ms


def take_back(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy | None, consumer: Consumer
) -> list[Released]:
    """Release the live entries of a consumer, as by XNACK FAIL; those that are due move to the dead letters.

    Returns the released entries, for `hold`. policy: None if no policy of the group is applied now.
    """
    released: list[Released] = []
    for block, start, stop in group.pel.owned(consumer, ids.ZERO, consumer.pending):
        for slot in range(start, stop):
            count = block.counts[slot]
            if not block.segment.is_live(slot):
                continue
            if policy is not None and dead_letters.is_due(group, policy, (block, slot), ctx.now_ms):
                if dead_letters.move(ctx, key, stream, group, policy, (block, slot), count):
                    continue
                dead_letters.keep_attempt(ctx, key, group, policy, (block, slot))
            group.pel.release((block, slot, slot + 1), KEEP_COUNT)
            released.append((block, slot, block.counts[slot : slot + 1]))
    if released:
        group_effects.log_released(ctx, key, group, released)
        ctx.signal(key)
    return released


# -- what time brings -------------------------------------------------------------------------------------------------


def examine(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, budget: TickBudget) -> None:
    """Process the leases and holds that ended since the last call, and wake readers if entries are ready.

    At the end of its lease an exhausted or expired entry moves to the dead letters; a deleted one is dropped. O(1)
    amortized for each entry, as many as the tick's budget allows; entries that could not move are tried again later.
    """
    _note_unknown(stream, group, policy)
    policy.is_behind = False
    if policy.blocked:
        _try_again(ctx, key, stream, group, policy, budget)
    next_hold_ms = policy.next_hold_ms(policy.examined_holds_ms)
    if next_hold_ms != NONE and next_hold_ms <= ctx.now_ms:
        ctx.signal(key)
    policy.examined_holds_ms = ctx.now_ms
    if policy.settings.ack_wait_ms == NONE or not leases_have_ended(ctx, policy):
        return
    while not budget.is_over():
        if not _examine_some(ctx, key, stream, group, policy, budget):
            return
    policy.is_behind = True


def _examine_some(
    ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, budget: TickBudget
) -> bool:
    """Process the next leases that ended; returns whether there may be more.

    The walk continues after the last entry that stayed pending, also within one millisecond. While dead letters cannot
    be written, such entries stay, too: `_try_again` processes all of them again.
    """
    ended_ms = ctx.now_ms - policy.settings.ack_wait_ms
    deleted: list[PendingSlot] = []
    due: list[PendingSlot] = []
    looks, stays = 0, False
    for time_ms, rank, _, block, slot in lease_walk.owned_after(
        group.pel.order, _last_cell(group, policy), policy.examined_id
    ):
        if time_ms > ended_ms:
            break
        if looks >= LOOKS_AT_ONCE or len(deleted) + len(due) >= MOVES_AT_ONCE:
            ended_ms = time_ms - 1
            break
        looks += 1
        if rank == BY_ID:
            policy.examined_id = block.id_at(slot) + 1
        if not block.segment.is_live(slot):
            deleted.append((block, slot))
        elif not policy.blocked and dead_letters.is_due(group, policy, (block, slot), ctx.now_ms):
            due.append((block, slot))
        else:
            policy.last_examined, policy.last_examined_ms = block.id_at(slot), time_ms
            stays = True
    policy.examined_ms = max(policy.examined_ms, ended_ms)
    budget.looks -= looks
    budget.moves -= len(deleted) + len(due)
    if stays:
        ctx.signal(key)
    drop_deleted(ctx, key, group, deleted)
    dead_letters.move_all(ctx, key, stream, group, policy, due)
    return ended_ms < ctx.now_ms - policy.settings.ack_wait_ms


def _last_cell(group: Group, policy: GroupPolicy) -> lease_walk.Cell:
    """Behind which the leases that ended are still to be looked at. O(log b)."""
    found = None
    if policy.last_examined_ms > policy.examined_ms:
        found = lease_walk.cell_of(group.pel.order, policy.last_examined, policy.last_examined_ms)
    return lease_walk.end_of(policy.examined_ms) if found is None else found


def _try_again(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, budget: TickBudget) -> None:
    """Dead letters could not be written: if they can be now, all that may be due is looked at. Else O(1).

    Released ones are moved here, as many as the budget has; while there are more, it is tried again.
    """
    target = policy.settings.dead_letter
    was_blocked = policy.blocked
    policy.blocked = b"" if target is None else targets.problem_with(ctx, key, target)
    if policy.blocked:
        policy_notes.stuck(ctx, key, group.name, policy.blocked)
        return
    policy.examine_anew()
    dead = [found for found in group.pel.order.in_nack_zone() if dead_letters.is_due(group, policy, found, ctx.now_ms)]
    most = max(budget.moves, 0)
    if dead_letters.move_all(ctx, key, stream, group, policy, dead[:most]):
        ctx.signal(key)  # a read that met too many of them has not seen what is behind them
    budget.moves -= min(len(dead), most)
    if len(dead) > most:
        policy.blocked = was_blocked
        policy.is_behind = True


def drop_deleted(ctx: Context, key: bytes, group: Group, slots: list[PendingSlot]) -> None:
    """Pending entries that were deleted from the stream are acknowledged."""
    for block, slot in slots:
        ctx.log(b"XACK", key, group.name, block.id_text(slot))
        group.pel.forget(block, slot)
        ctx.count_group_changes(key, 1)


def drop_ended(ctx: Context, key: bytes, group: Group, policy: GroupPolicy, slots: list[PendingSlot]) -> None:
    """Of deleted pending entries, those whose lease has ended are acknowledged: no tick looks at them again."""
    ack_wait_ms = policy.settings.ack_wait_ms
    if ack_wait_ms != NONE and leases_have_ended(ctx, policy):
        ended = [
            (block, slot)
            for block, slot in slots
            if block.owners[slot] != RELEASED and ctx.now_ms - block.times[slot] >= ack_wait_ms
        ]
        drop_deleted(ctx, key, group, ended)


def drop_trimmed(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy) -> None:
    """`drop_ended` for the entries that were trimmed since the last call. O(log b), and O(1) for each."""
    below = deleted_below(stream)
    if policy.settings.ack_wait_ms != NONE and below > policy.trimmed_below:
        trimmed = group.pel.by_id.between(policy.trimmed_below, below)
        policy.trimmed_below = below
        drop_ended(ctx, key, group, policy, trimmed)


def next_ms(ctx: Context, stream: Stream, group: Group, policy: GroupPolicy) -> int:
    """When the next lease or hold ends; NEVER if none does. Costs as `lease_walk.owned_after` for one entry."""
    if policy.is_behind:
        return ctx.now_ms
    _note_unknown(stream, group, policy)
    hold_ms = policy.next_hold_ms(ctx.now_ms)
    due_ms = NEVER if hold_ms == NONE else hold_ms
    ack_wait_ms = policy.settings.ack_wait_ms
    if ack_wait_ms != NONE:
        after_ms = ctx.now_ms - ack_wait_ms if leases_have_ended(ctx, policy) else policy.examined_ms
        first = next(lease_walk.owned_after(group.pel.order, lease_walk.end_of(after_ms), policy.examined_id), None)
        if first is not None:
            due_ms = min(due_ms, max(first[0] + ack_wait_ms, _grace_until_ms(ctx, policy)))
    return min(due_ms, ctx.now_ms + RETRY_MS) if policy.blocked else due_ms


def set_back(policy: GroupPolicy, delivered_ms: int) -> None:
    """XCLAIM gave entries an earlier delivery time: their leases end earlier."""
    policy.examined_ms = min(policy.examined_ms, delivered_ms - 1)
    if delivered_ms <= policy.last_examined_ms:
        policy.last_examined_ms = BEFORE_ALL
