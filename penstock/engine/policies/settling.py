"""Applies the policies of a stream after a command's change, at the command's end and in its unit.

Handlers call these functions for streams that have policies. While the log is replayed, and with a named
`compat-version`, policies sleep: nothing is done.
"""

from penstock.engine.aof.group_effects import Released
from penstock.engine.context import Context
from penstock.engine.policies import expiry, forwarding, keys, leases, limits, policy_lines, reaping, retention
from penstock.engine.policies.tick_budget import TickBudget
from penstock.storage.deadlines import NEVER
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.policies.stream_policies import AT_ONCE, NONE, StreamPolicies
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.segment import SegmentRun
from penstock.storage.streams.stream import Stream


def policies_of(ctx: Context, key: bytes, stream: Stream) -> StreamPolicies:
    """The policies of a stream, made if it has none."""
    if stream.policies is None:
        stream.policies = StreamPolicies()
        ctx.policies.used = True
        ctx.db.note_policies(key, stream)
    return stream.policies


def drop_unused(ctx: Context, key: bytes, stream: Stream) -> None:
    """Forget the policies of a stream for which, as for its groups, nothing is set any more. O(groups)."""
    is_used = any(group.policy is not None for group in stream.groups.values())
    if stream.policies is not None and not stream.policies.settings.is_set and not is_used:
        stream.policies = None
        ctx.db.note_policies(key, stream)


def apply_policies(ctx: Context, key: bytes, stream: Stream, most_trimmed: int = retention.SLICE) -> None:
    """Apply the policies of a stream that changed, or is due. A tick trims less at a time."""
    policies = stream.policies
    if policies is None or not leases.are_kept(ctx):
        return
    if policies.settings.idle_group_ms != NONE and len(policies.used_ms) != len(stream.groups):
        retention.look_at_groups(ctx, key, stream, policies)
    _trim(ctx, key, stream, policies, most_trimmed)
    has_moved = False
    for group in stream.groups.values():
        policy = group.policy
        if policy is None:
            continue
        if policy.settings.expires:
            has_moved = expiry.run(ctx, key, stream, group, policy, expiry.MOST) > 0 or has_moved
            expires_ms = expiry.next_ms(ctx, stream, group, policy)
            policies.groups_due_ms = min(policies.groups_due_ms, expires_ms)
        leases.drop_trimmed(ctx, key, stream, group, policy)
        if policy.keys is not None:
            keys.make_next_ready(ctx, key, stream, group, policy, policy.keys)
        if policy.is_short or policy.is_stopped:
            limits.wake_readers(ctx, key, group, policy)
        if policy.choice is not None and policy.choice.has_shrunk:
            policy.choice.has_shrunk = False
            ctx.signal(key)
    if has_moved:
        _trim(ctx, key, stream, policies, most_trimmed)
    if retention.is_acked(policies):
        _pass_over_to_come(ctx, key, stream, policies)
    forwarding.note_new(ctx, key, stream, policies)
    note_due(ctx, key, stream)


def _trim(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, most: int) -> None:
    gone = retention.run(ctx, key, stream, policies, most)
    if gone:
        _forget_deleted(ctx, key, stream, gone)


def note_due(ctx: Context, key: bytes, stream: Stream) -> None:
    """Say when a tick must look at a stream next."""
    policies = stream.policies
    if policies is not None:
        own_ms = min(retention.next_ms(stream, policies), forwarding.next_ms(stream, policies))
        policies.due_ms = min(own_ms, policies.groups_due_ms, policies.idle_due_ms)
        ctx.db.note_policies(key, stream)


def look_at(ctx: Context, key: bytes, stream: Stream, budget: TickBudget) -> None:
    """A tick: do what is due in a stream and its groups; each is a unit of its own."""
    if stream.policies is not None and stream.policies.idle_due_ms <= ctx.now_ms:
        retention.look_at_groups(ctx, key, stream, stream.policies)
    apply_policies(ctx, key, stream, retention.SHORT_SLICE)
    ctx.effects.end_unit()
    policies = stream.policies
    if policies is not None:
        moved = forwarding.run(ctx, key, stream, policies, budget)
        if moved:
            _forget_deleted(ctx, key, stream, moved)
        ctx.effects.end_unit()
        _look_at_groups(ctx, key, stream, policies, budget)
        apply_policies(ctx, key, stream, retention.SHORT_SLICE)  # dead letters are acknowledged
    if stream.policies is not None and stream.policies.due_ms == AT_ONCE:
        stream.policies.due_ms = ctx.now_ms  # after those that became due before
        ctx.db.note_policies(key, stream)


def _look_at_groups(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies, budget: TickBudget) -> None:
    due_ms = NEVER
    for group in stream.groups_by_name():
        policy = group.policy
        if policy is None:
            continue
        leases.examine(ctx, key, stream, group, policy, budget)
        budget.moves -= expiry.run(ctx, key, stream, group, policy, max(budget.moves, 0))
        due_ms = min(due_ms, reaping.reap(ctx, key, group, policy), leases.next_ms(ctx, stream, group, policy))
        due_ms = min(due_ms, limits.examine(ctx, key, group, policy), expiry.next_ms(ctx, stream, group, policy))
        if not policy.settings.is_set and not policy.held_count(ctx.now_ms):
            group.set_policy(None)
        ctx.effects.end_unit()
    policies.groups_due_ms = due_ms
    drop_unused(ctx, key, stream)


# -- groups -----------------------------------------------------------------------------------------------------------


def group_policy_of(ctx: Context, key: bytes, stream: Stream, group: Group) -> GroupPolicy:
    """The policy of a group, made if it has none."""
    policies_of(ctx, key, stream)
    policy = group.policy
    if policy is None:
        policy = GroupPolicy()
        group.set_policy(policy)
    return policy


def wake(ctx: Context, key: bytes, stream: Stream, when_ms: int) -> None:
    """Have a tick look at the groups of a stream at a moment, if it would look later."""
    policies = stream.policies
    if policies is not None and when_ms < policies.groups_due_ms:
        policies.groups_due_ms = when_ms
        policies.due_ms = min(policies.due_ms, when_ms)
        ctx.db.note_policies(key, stream)


def used(ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
    """A request reads or claims for a group: for IDLEGROUP it is not idle any more, so it keeps entries again. O(1)."""
    policies = stream.policies
    if policies is not None and policies.note_use(group.name, ctx.now_ms):
        policies.start_sweep()
        note_due(ctx, key, stream)


def delivered(ctx: Context, key: bytes, stream: Stream, group: Group, delivered_ms: int) -> None:
    """Entries of a group have owners since a moment: their leases will end."""
    policy = leases.kept_policy(ctx, group)
    if policy is not None and policy.settings.ack_wait_ms != NONE:
        if delivered_ms < ctx.now_ms:
            leases.set_back(policy, delivered_ms)
        wake(ctx, key, stream, delivered_ms + policy.settings.ack_wait_ms)


def limits_used(ctx: Context, key: bytes, stream: Stream, group: Group, policy: GroupPolicy, count: int) -> None:
    """A read of a group with limits, or an XAUTOCLAIM, has handed out so many entries."""
    limits.note_delivered(ctx, key, group, policy, count)
    wake(ctx, key, stream, limits.lifted_ms(policy, ctx.now_ms))


def consumer_deleted(ctx: Context, key: bytes, stream: Stream, group: Group, consumer: Consumer) -> None:
    """A consumer is about to be deleted: in a group with ACKWAIT its entries are given back."""
    if leases.is_leased(ctx, group):
        give_back(ctx, key, stream, group, consumer)


def give_back(ctx: Context, key: bytes, stream: Stream, group: Group, consumer: Consumer) -> int:
    """The live entries of a consumer are given back, as by XNACK FAIL; how many. The caller applies policies."""
    policy = leases.kept_policy(ctx, group)
    entries = leases.take_back(ctx, key, stream, group, policy, consumer)
    if entries and policy is not None:
        wake(ctx, key, stream, leases.hold(ctx, key, group, policy, entries, NONE))
    if policy is not None and policy.blocked:
        wake(ctx, key, stream, ctx.now_ms + leases.RETRY_MS)
    return len(entries)


def moved_to_dead_letters(ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
    """A command moved entries of a group to the dead letters, or tried to: then a tick tries again."""
    if group.policy is not None and group.policy.blocked:
        wake(ctx, key, stream, ctx.now_ms + leases.RETRY_MS)
    apply_policies(ctx, key, stream)


def consumer_made(ctx: Context, key: bytes, group: Group) -> None:
    """A group with a policy has a new consumer, which may be reaped one day."""
    stream = ctx.db.values.get(key)
    policy = leases.kept_policy(ctx, group)
    if policy is not None and policy.settings.reap_ms != NONE and isinstance(stream, Stream):
        due_ms = ctx.now_ms + policy.settings.reap_ms
        policy.reap_due_ms = min(policy.reap_due_ms, due_ms)
        wake(ctx, key, stream, due_ms)


def released(
    ctx: Context, key: bytes, stream: Stream, group: Group, entries: list[Released], until_ms: int, is_failure: bool
) -> None:
    """Entries were released; they are held until until_ms, or, if that is NONE, for the group's BACKOFF."""
    is_replay = ctx.session.privileged
    if until_ms == NONE and (is_replay or leases.kept_policy(ctx, group) is None):
        return
    policy = group_policy_of(ctx, key, stream, group)
    if until_ms == NONE and not is_failure:
        until_ms = ctx.now_ms
    first_ms = leases.hold(ctx, key, group, policy, entries, until_ms)
    wake(ctx, key, stream, AT_ONCE if is_replay else min(first_ms, expiry.next_ms(ctx, stream, group, policy)))


# -- entries that a group needs no more -------------------------------------------------------------------------------


def acknowledged(ctx: Context, key: bytes, stream: Stream, entry_ids: list[StreamId]) -> None:
    """A group has these entries pending no more."""
    policies = stream.policies
    if policies is not None and leases.are_kept(ctx):
        retention.note_done(stream, policies, entry_ids)
        apply_policies(ctx, key, stream)


def read_without_ack(ctx: Context, key: bytes, stream: Stream, runs: list[SegmentRun]) -> None:
    """A group read entries with NOACK."""
    entry_ids = [segment.id_at(slot) for segment, start, stop in runs for slot in range(start, stop)]
    acknowledged(ctx, key, stream, entry_ids)


def deleted(ctx: Context, key: bytes, stream: Stream, entry_ids: list[StreamId]) -> None:
    """Entries were deleted by their ids."""
    if stream.policies is not None and leases.are_kept(ctx):
        _forget_deleted(ctx, key, stream, entry_ids)
        apply_policies(ctx, key, stream)


def taken(ctx: Context, key: bytes, stream: Stream, entry_ids: list[StreamId]) -> None:
    """Some of these entries were deleted by a group that acknowledged them; other groups may have them pending."""
    if leases.are_kept(ctx):
        _forget_deleted(ctx, key, stream, entry_ids)


def _forget_deleted(ctx: Context, key: bytes, stream: Stream, entry_ids: list[StreamId]) -> None:
    gone = [entry_id for entry_id in dict.fromkeys(entry_ids) if stream.find(entry_id) is None]
    keys.forget_deleted(stream, gone)
    for group in stream.groups.values():
        policy = group.policy
        if policy is not None:
            pending = [group.pel.by_id.find(entry_id) for entry_id in gone]
            leases.drop_ended(ctx, key, group, policy, [found for found in pending if found is not None])


def swept(ctx: Context, key: bytes, stream: Stream) -> None:
    """Check all entries, since any may be unneeded: a group or consumer was deleted, or a floor was removed."""
    policies = stream.policies
    if policies is not None and leases.are_kept(ctx):
        if retention.is_acked(policies):
            policies.start_sweep()
        apply_policies(ctx, key, stream)


# -- the floor --------------------------------------------------------------------------------------------------------


def group_created(ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
    """Keep the entries before the position of a stream's first group: it never reads them."""
    if len(stream.groups) == 1:
        group_moved(ctx, key, stream, group, ids.ZERO)
    elif stream.policies is not None and stream.policies.settings.idle_group_ms != NONE:
        apply_policies(ctx, key, stream)


def group_moved(ctx: Context, key: bytes, stream: Stream, group: Group, former_id: StreamId) -> None:
    """A group's position was set: entries that it skipped and no other group needs are kept."""
    policies = stream.policies
    if policies is None or ctx.session.privileged:  # replay: the log has the floors
        return
    position = group.last_id
    may_skip = retention.is_acked(policies) and position > max(former_id, policies.floor)
    if may_skip and retention.passes_over(stream, policies, former_id, position):
        policies.floor = position
        policy_lines.log_floor(ctx, key, position)
    if position < former_id and group.policy is not None:
        ctx.signal(key)  # there are new entries
    apply_policies(ctx, key, stream)


def _pass_over_to_come(ctx: Context, key: bytes, stream: Stream, policies: StreamPolicies) -> None:
    """With ACKED, entries to come below the positions of all groups are passed over, and stay. O(groups).

    XSETID may have set the last id back, or the groups that needed them are gone or idle.
    """
    positions = [group.last_id for name, group in stream.groups.items() if name not in policies.idle]
    lowest = min(positions, default=ids.ZERO)
    if lowest > max(stream.last_id, policies.floor) and retention.next_ms(stream, policies) != AT_ONCE:
        policies.floor = lowest
        policy_lines.log_floor(ctx, key, lowest)


def trimmed_by_hand(ctx: Context, key: bytes, stream: Stream) -> None:
    """XTRIM by a client deletes the entries below the floor, too."""
    policies = stream.policies
    if policies is None or ctx.session.privileged:
        return
    if policies.floor == ids.ZERO:
        apply_policies(ctx, key, stream)
        return
    policies.floor = ids.ZERO
    policy_lines.log_floor(ctx, key, ids.ZERO)
    swept(ctx, key, stream)
