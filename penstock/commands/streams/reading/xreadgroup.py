"""XREADGROUP: reads as a consumer of a group: new entries, its own pending entries, or idle ones of other consumers.

Tests: transcripts xreadgroup_claim, groups, policies_leases; cases commands/test_waiting; law test_laws,
against_redis/test_blocked_readers; model storage/test_against_naive.
"""

from typing import Final

from penstock.commands.policies import leased_read
from penstock.commands.streams import stream_arguments
from penstock.commands.streams.reading import read_arguments
from penstock.commands.streams.reading.group_delivery import ReadTarget, deliver_new, new_runs, target_of, with_new
from penstock.commands.streams.reading.read_arguments import ReadArguments
from penstock.commands.streams.reading.xread import Budget, streams_reply
from penstock.engine.aof import group_effects
from penstock.engine.consumers import new_consumer
from penstock.engine.context import BLOCKED, Context
from penstock.engine.policies import giving_back, leases, limits, settling
from penstock.engine.policies.attempts import attempts_of
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import entries, reply
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams import ids
from penstock.storage.streams.pending import claim_walk
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.pending_block import COUNT_UP, PendingRun, PendingSlot, in_runs
from penstock.storage.streams.stream import Stream

STOPPED_MS: Final = 86_400_000  # a CLAIM reader that a limit stops looks again at its end, or after this time
POLL_MS: Final = 100  # if nothing is pending, a blocked CLAIM reader looks again after this time

_MEANINGLESS: Final = (
    b"ERR The %b ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by"
    b" specifying a proper ID, or use the > ID to get new messages. The %b ID would just return an empty result set."
)


@command(
    "XREADGROUP group-block:GROUP (group consumer) [COUNT count] [MAXCOUNT maxcount:integer@8.10.0] "
    "[MAXSIZE maxsize:integer@8.10.0] [BLOCK milliseconds] [CLAIM min-idle-time:integer@~8.4.0] [NOACK] "
    "streams:STREAMS (key [key ...] id [id ...])",
    "5.0.0 write blocking movablekeys | "
    f"keys STREAMS@{read_arguments.GROUP_STREAMS_AT}..half {read_arguments.KEY_FLAGS}",
    "Reads as a consumer of a group: new entries, its own pending ones, or idle ones of others.",
    "For each stream mentioned: O(M) with M being the number of elements returned. If M is "
    "constant (e.g. always asking for the first 10 elements with COUNT), you can consider it "
    "O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to "
    "serve the N clients blocked on the stream getting new data.",
    find_keys=read_arguments.find_keys_by_group,
)
def xreadgroup(ctx: Context, args: list[bytes]) -> bytes:
    options = read_arguments.read_again(ctx, args)
    if options.is_plain:
        answer = _read_plainly(ctx, args, options)
        if answer:
            return answer
    targets = [_target(ctx, options.keys[at], options.ids[at], options) for at in range(len(options.keys))]
    served: list[tuple[bytes, bytes]] = []
    budget = Budget(options, ctx.resp3)
    claims = options.claim_ms != read_arguments.NOT_GIVEN
    for target in targets:
        max_count = budget.max_count(options.count)
        if max_count <= 0:
            continue
        ctx.read(target.key)  # Redis looks the key up twice and counts both as hits or misses
        consumer = _consumer(ctx, target, options.consumer)
        settling.used(ctx, target.key, target.stream, target.group)
        policy = target.group.policy
        if policy is not None and policy.settings.gives_back:
            giving_back.note_reader(ctx, target.key, target.group.name, policy, consumer.name)
        if target.after != ids.MAX:
            claims = False  # for the following streams, too
            budget.open_stream(target.key)
            answer = _history(ctx, target, consumer, max_count, budget)
        elif leases.kept_policy(ctx, target.group) is not None:
            answer = leased_read.read(ctx, target, consumer, options, claims, max_count, budget)
        elif claims:
            answer = _claim_and_read(ctx, target, consumer, options, max_count, budget)
        else:
            answer = _read_new(ctx, target, consumer, options.no_ack, max_count, budget)
        if answer:
            served.append((target.key, answer))
            budget.close_stream(answer)
    if served:
        return streams_reply(served, ctx.resp3)
    return _none_yet(ctx, args, options, targets)


def _read_plainly(ctx: Context, args: list[bytes], options: ReadArguments) -> bytes:
    """Fast path for the usual calls: an existing consumer reads new entries of one stream, if there are. Else b""."""
    target = known_target(ctx, options)
    consumer = None if target is None else target.group.consumers.get(options.consumer)
    if target is None or consumer is None or target.group.policy is not None:
        return b""
    ctx.statistics.hits += 2  # Redis looks the key up twice and counts both
    consumer.seen_ms = ctx.now_ms
    if target.stream.policies is not None:
        settling.used(ctx, target.key, target.stream, target.group)
    runs = target.stream.unread(target.group, options.count)
    if runs:
        return streams_reply([(target.key, deliver_new(ctx, target, consumer, runs, options.no_ack))], ctx.resp3)
    return _none_yet(ctx, args, options, [target])


def known_target(ctx: Context, options: ReadArguments) -> ReadTarget | None:
    """The target of a plain call, if stream and group exist; counts and refuses nothing."""
    key = options.keys[0]
    stream = ctx.value(key)
    group = stream.groups.get(options.group or b"") if isinstance(stream, Stream) else None
    return ReadTarget(key, stream, group, ids.MAX) if isinstance(stream, Stream) and group is not None else None


def _target(ctx: Context, key: bytes, word: bytes, options: ReadArguments) -> ReadTarget:
    """The target for one key and id, or a ReplyError. All targets are checked before anything changes."""
    target = target_of(ctx, key, options.group)
    if word in (b"$", b"+"):
        raise ReplyError(_MEANINGLESS % (word, word))
    if word != b">":
        target.after = stream_arguments.stream_id(word)
    return target


def _consumer(ctx: Context, target: ReadTarget, name: bytes) -> Consumer:
    """The consumer, with its seen time updated; it is created if it does not exist."""
    consumer = target.group.consumers.get(name)
    if consumer is None:
        return new_consumer(ctx, target.key, target.group, name)
    consumer.seen_ms = ctx.now_ms
    return consumer


# -- new entries ------------------------------------------------------------------------------------------------------


def _read_new(
    ctx: Context, target: ReadTarget, consumer: Consumer, no_ack: bool, max_count: int, budget: Budget
) -> bytes:
    """`>`: entries that the group has not delivered yet; b"" if there are none."""
    budget.open_stream(target.key)
    runs = new_runs(target, max_count, budget)
    if not runs:
        return reply.EMPTY_ARRAY if budget.is_cut else b""
    return deliver_new(ctx, target, consumer, runs, no_ack)


# -- history ----------------------------------------------------------------------------------------------------------


def _history(ctx: Context, target: ReadTarget, consumer: Consumer, max_count: int, budget: Budget) -> bytes:
    """The consumer's own pending entries after an id; an empty array if there are none.

    Changes delivery times and counts, which is not logged.
    """
    parts = [b""]  # for the header
    count = 0
    taken: list[PendingRun] = []
    attempts = attempts_of(ctx, target.key, target.stream, target.group)
    dead: list[PendingSlot] = []
    for run in target.group.pel.owned(consumer, target.after + 1, max_count):
        block, start, stop = run
        if attempts is None and not budget.is_sized and block.segment.is_live_run(start, stop):
            parts.append(block.segment.entries(start, stop))
            count += stop - start
            taken.append(run)
            continue
        live: list[PendingSlot] = []
        for slot in range(start, stop):
            if attempts is not None and attempts.is_over((block, slot), block.counts[slot]):
                dead.append((block, slot))
                continue
            shown = _shown(ctx, (block, slot))
            if budget.is_sized and not budget.take(shown):
                break
            parts.append(shown)
            count += 1
            if block.segment.is_live(slot):
                live.append((block, slot))
        taken += in_runs(live)
    target.group.pel.give_again(taken, consumer, ctx.now_ms)
    if attempts is not None:
        attempts.move_all(dead)
    if not budget.is_sized:
        budget.spend(count)
    parts[0] = reply.array_header(count)
    return b"".join(parts)


def _shown(ctx: Context, pending_slot: PendingSlot) -> bytes:
    """A pending entry in a history: the entry, or its id with null if it was deleted."""
    block, slot = pending_slot
    if block.segment.is_live(slot):
        return block.segment.entry(slot)
    return entries.deleted(block.id_text(slot), ctx.resp3)


# -- CLAIM ------------------------------------------------------------------------------------------------------------


def _claim_and_read(
    ctx: Context, target: ReadTarget, consumer: Consumer, options: ReadArguments, max_count: int, budget: Budget
) -> bytes:
    """First the entries that are idle for long enough, in delivery order, then new ones.

    The reply has each with its idle time and delivery count.
    """
    budget.open_stream(target.key)
    group = target.group
    parts: list[bytes] = []
    claimed: list[PendingSlot] = []
    for block, slot in claim_walk.claimable(group.pel.order, options.claim_ms, ctx.now_ms, max_count):
        idle_ms = max(ctx.now_ms - block.times[slot], 0)
        shown = entries.with_delivery(block.segment.entry(slot), idle_ms, block.counts[slot])
        if not budget.take(shown):
            break
        parts.append(shown)
        claimed.append((block, slot))
    claimed_runs = in_runs(claimed)
    group.pel.give_all(claimed_runs, consumer, ctx.now_ms, COUNT_UP)
    if claimed:
        consumer.active_ms = ctx.now_ms
        ctx.count_group_changes(target.key, len(claimed))
        group_effects.log_held(ctx, target.key, group, claimed_runs)
    return with_new(ctx, target, consumer, parts, options.no_ack, max_count, budget, True)


# -- waiting ----------------------------------------------------------------------------------------------------------


def _none_yet(ctx: Context, args: list[bytes], options: ReadArguments, targets: list[ReadTarget]) -> bytes:
    """There is nothing to read: null, or BLOCKED where the request may wait.

    A blocked request that is tried again stays blocked, with its first deadline.
    """
    if options.block_ms == read_arguments.NOT_GIVEN or not ctx.waits:
        return reply.null_array(ctx.resp3)
    blocked = ctx.attempt
    claimable_ms = 0
    if options.claim_ms != read_arguments.NOT_GIVEN:
        claimable_ms = min(_next_claim_ms(ctx, target, options) for target in targets)
    if blocked is not None:
        ctx.blocking.claimable_at(blocked, claimable_ms)
        return BLOCKED
    deadline_ms = ctx.now_ms + options.block_ms if options.block_ms else 0
    assert ctx.row is not None, "a handler runs for a row"
    blocked = BlockedRequest(
        ctx.session, ctx.row, args, ctx.db_index, options.keys, deadline_ms, reply.null_array(ctx.resp3)
    )
    blocked.group = options.group
    blocked.consumer = options.consumer
    blocked.claims = options.claim_ms != read_arguments.NOT_GIVEN
    if options.no_ack and targets[0].group.policy is not None:
        blocked.claims = True
    blocked.wakes_on_loss = True
    ctx.blocking.block(blocked)
    ctx.blocking.claimable_at(blocked, claimable_ms)
    for target in targets:
        policy = leases.kept_policy(ctx, target.group)
        if policy is not None and (policy.settings.expires or _may_find_more(ctx, target, options, policy)):
            ctx.signal(target.key)  # what expires is moved behind the read, which may free others
    return BLOCKED


def _may_find_more(ctx: Context, target: ReadTarget, options: ReadArguments, policy: GroupPolicy) -> bool:
    """Whether the read has freed entries for the next one: they were behind those that it moved."""
    if options.no_ack:
        return False
    claims = options.claim_ms != read_arguments.NOT_GIVEN
    min_idle_ms = options.claim_ms if claims else leases.least_idle_ms(ctx, policy)
    return leases.finds_more(ctx, target.stream, target.group, policy, min_idle_ms)


def _next_claim_ms(ctx: Context, target: ReadTarget, options: ReadArguments) -> int:
    """When a pending entry of the group will be idle for its min-idle-time, as far as is known now."""
    policy, min_idle_ms, now_ms = leases.kept_policy(ctx, target.group), options.claim_ms, ctx.now_ms
    if policy is None:
        oldest_ms = claim_walk.oldest_live_ms(target.group.pel.order)
    else:  # the end of a hold is waited for with the group
        if options.no_ack or not limits.most_now(policy, now_ms):
            return now_ms + STOPPED_MS  # new entries wake it; the end of a limit is waited for with the group, too
        oldest_ms = leases.oldest_claimable_ms(target.stream, target.group, policy, now_ms)
    if oldest_ms == claim_walk.NONE_LIVE:
        oldest_ms = now_ms  # an entry delivered later is found when the request is tried again
    due_ms = max(oldest_ms + min_idle_ms, now_ms + (POLL_MS if oldest_ms == now_ms else 0)) + 1
    is_stuck = due_ms == now_ms + 1 and policy is not None and policy.blocked != b""
    return now_ms + leases.RETRY_MS if is_stuck else due_ms
