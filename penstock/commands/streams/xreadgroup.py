"""XREADGROUP: reading as a consumer of a group, new entries, one's own history, or what others left idle."""

from typing import Final

from penstock.commands.streams import read_arguments, stream_arguments
from penstock.commands.streams.read_arguments import ReadWords
from penstock.commands.streams.xrange import entries_of
from penstock.commands.streams.xread import Budget, streams_reply
from penstock.engine import refusals
from penstock.engine.aof import group_effects
from penstock.engine.blocking import BlockedRequest
from penstock.engine.consumers import new_consumer
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import entries, reply
from penstock.storage.streams import ids
from penstock.storage.streams.group import COUNT_UP, Consumer, Group
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_list import PendingRun, PendingSlot, in_runs
from penstock.storage.streams.stream import SegmentRun, Stream

POLL_MS: Final = 100  # a CLAIM reader looks again no sooner than this where nothing is pending

_MEANINGLESS: Final = (
    b"ERR The %b ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by"
    b" specifying a proper ID, or use the > ID to get new messages. The %b ID would just return an empty result set."
)


class Place:
    """One stream of a call: where it is read, by which group. `after` is ids.MAX for `>`."""

    __slots__ = ("after", "group", "key", "stream")

    def __init__(self, key: bytes, stream: Stream, group: Group, after: StreamId) -> None:
        self.key = key
        self.stream = stream
        self.group = group
        self.after = after


@command(
    "XREADGROUP",
    "group-block:GROUP (group consumer) [COUNT count] [MAXCOUNT maxcount:integer@8.10.0] "
    "[MAXSIZE maxsize:integer@8.10.0] [BLOCK milliseconds] [CLAIM min-idle-time:integer] [NOACK] "
    "streams:STREAMS (key [key ...] id [id ...])",
    group="stream",
    since="5.0.0",
    flags="write blocking movablekeys",
    keys="STREAMS@4..half RO access",
    complexity=(
        "For each stream mentioned: O(M) with M being the number of elements returned. If M is "
        "constant (e.g. always asking for the first 10 elements with COUNT), you can consider it "
        "O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to "
        "serve the N clients blocked on the stream getting new data."
    ),
    summary="Reads as a consumer of a group: new entries, its own pending ones, or idle ones of others.",
)
def xreadgroup(ctx: Context, args: list[bytes]) -> bytes:
    asked = read_arguments.read_again(ctx, args)
    if asked.is_plain:
        answer = _read_plainly(ctx, asked)
        if answer:
            return answer
    places = [_place(ctx, key, word, asked) for key, word in zip(asked.keys, asked.ids, strict=True)]
    served: list[tuple[bytes, bytes]] = []
    budget = Budget(asked)
    claims = asked.claim_ms != read_arguments.NOT_GIVEN
    for place in places:
        most = budget.most(asked.count)
        if most <= 0:
            continue
        ctx.read(place.key)  # Redis looks twice, and both count
        consumer, is_new = _consumer(ctx, place, asked.consumer)
        if place.after != ids.MAX:
            claims = False  # for the streams behind it, too
            budget.open_stream(place.key)
            answer = _history(ctx, place, consumer, most, budget)
        elif claims:
            answer = _claim_and_read(ctx, place, consumer, asked, most, budget, is_new)
            is_new = is_new and not answer
        else:
            answer = _read_new(ctx, place, consumer, asked.no_ack, most, budget, is_new)
            is_new = False
        if is_new:
            ctx.log(b"XGROUP", b"CREATECONSUMER", place.key, place.group.name, consumer.name)
        if answer:
            served.append((place.key, answer))
    if served:
        return streams_reply(served, ctx.resp3)
    if asked.block_ms == read_arguments.NOT_GIVEN or not ctx.waits:
        return reply.null_array(ctx.resp3)
    _block(ctx, args, asked, places)
    return BLOCKED


def _read_plainly(ctx: Context, asked: ReadWords) -> bytes:
    """The commonest call: new entries of one stream for a consumer that is known. Where it is not that, empty."""
    place = known_place(ctx, asked)
    consumer = None if place is None else place.group.consumers.get(asked.consumer)
    if place is None or consumer is None:
        return b""
    runs = place.stream.unread(place.group, asked.count)
    if not runs:
        return b""
    ctx.engine.statistics.hits += 2  # Redis looks twice, and both count
    consumer.seen_ms = ctx.now_ms
    hand_out(ctx, place, consumer, runs, asked.no_ack)
    return streams_reply([(place.key, entries_of(runs))], ctx.resp3)


def known_place(ctx: Context, asked: ReadWords) -> Place | None:
    """Where a plain call reads, if stream and group are there; nothing is counted or refused."""
    key = asked.keys[0]
    stream = ctx.value(key)
    group = stream.groups.get(asked.group or b"") if isinstance(stream, Stream) else None
    return Place(key, stream, group, ids.MAX) if isinstance(stream, Stream) and group is not None else None


def _place(ctx: Context, key: bytes, word: bytes, asked: ReadWords) -> Place:
    """A stream's place, or the refusal; all are looked at before anything happens to any."""
    stream = ctx.read_stream(key)
    group = None if stream is None or asked.group is None else stream.groups.get(asked.group)
    if stream is None or group is None:
        raise ReplyError(
            b"NOGROUP No such key '%b' or consumer group '%b' in XREADGROUP with GROUP option"
            % (refusals.c_string(key), refusals.c_string(asked.group or b""))
        )
    if word == b">":
        return Place(key, stream, group, ids.MAX)
    if word in (b"$", b"+"):
        raise ReplyError(_MEANINGLESS % (word, word))
    return Place(key, stream, group, stream_arguments.stream_id(word))


def _consumer(ctx: Context, place: Place, name: bytes) -> tuple[Consumer, bool]:
    """The consumer, made where there is none; whether it is new. It was seen now, whatever it gets."""
    consumer = place.group.consumers.get(name)
    if consumer is None:
        return new_consumer(ctx, place.key, place.group, name), True
    consumer.seen_ms = ctx.now_ms
    return consumer, False


# -- new entries ------------------------------------------------------------------------------------------------------


def _new_runs(place: Place, most: int, budget: Budget) -> list[SegmentRun]:
    return budget.cut(place.stream.unread(place.group, most)) if most > 0 else []


def _read_new(
    ctx: Context, place: Place, consumer: Consumer, no_ack: bool, most: int, budget: Budget, is_new: bool
) -> bytes:
    """`>`: entries that the group has not handed out; empty where there are none."""
    budget.open_stream(place.key)
    runs = _new_runs(place, most, budget)
    if is_new and (no_ack or not runs):
        ctx.log(b"XGROUP", b"CREATECONSUMER", place.key, place.group.name, consumer.name)
    if not runs:
        return b""
    hand_out(ctx, place, consumer, runs, no_ack)
    return entries_of(runs)


def hand_out(ctx: Context, place: Place, consumer: Consumer, runs: list[SegmentRun], no_ack: bool) -> None:
    """The group moves on over new entries, which become pending unless NOACK."""
    group = place.group
    former_id = group.last_id
    place.stream.advance_group(group, runs)
    if not no_ack:
        group.deliver(runs, consumer, ctx.now_ms)
        consumer.active_ms = ctx.now_ms
        group_effects.log_new(ctx, place.key, group, consumer.name, runs, former_id)
    group_effects.log_position(ctx, place.key, group)
    ctx.dirty += 1


# -- history ----------------------------------------------------------------------------------------------------------


def _history(ctx: Context, place: Place, consumer: Consumer, most: int, budget: Budget) -> bytes:
    """The consumer's own pending entries after an id; [] where there are none. Times and counts change, unlogged."""
    parts: list[bytes] = []
    count = 0
    taken: list[PendingRun] = []
    for block, start, stop in place.group.owned(consumer, place.after + 1, most):
        if not budget.is_sized and block.segment.is_live_run(start, stop):
            parts.append(block.segment.entries(start, stop))
            count += stop - start
            taken.append((block, start, stop))
            continue
        live: list[PendingSlot] = []
        for slot in range(start, stop):
            shown = _shown(ctx, (block, slot))
            if budget.is_sized and not budget.take(shown):
                break
            parts.append(shown)
            count += 1
            if block.segment.is_live(slot):
                live.append((block, slot))
        taken += in_runs(live)
    place.group.give_all(taken, consumer, ctx.now_ms, COUNT_UP)
    if not budget.is_sized:
        budget.spend(count)
    return b"*%d\r\n" % count + b"".join(parts)


def _shown(ctx: Context, held: PendingSlot) -> bytes:
    """A pending entry in a history: the entry, or its id with a null where it is gone."""
    block, slot = held
    if block.segment.is_live(slot):
        return block.segment.entry(slot)
    return entries.deleted(ids.text(block.id_at(slot)), ctx.resp3)


# -- CLAIM ------------------------------------------------------------------------------------------------------------


def _claim_and_read(
    ctx: Context, place: Place, consumer: Consumer, asked: ReadWords, most: int, budget: Budget, is_new: bool
) -> bytes:
    """First what idled long enough, in time order, then new entries: all in the four-element form."""
    budget.open_stream(place.key)
    group = place.group
    parts: list[bytes] = []
    claimed: list[PendingSlot] = []
    for block, slot in group.claimable(asked.claim_ms, ctx.now_ms, most):
        idle_ms = max(ctx.now_ms - block.times[slot], 0)
        shown = entries.with_delivery(block.segment.entry(slot), idle_ms, block.counts[slot])
        if not budget.take(shown):
            break
        parts.append(shown)
        claimed.append((block, slot))
    claimed_runs = in_runs(claimed)
    group.give_all(claimed_runs, consumer, ctx.now_ms, COUNT_UP)
    if claimed:
        consumer.active_ms = ctx.now_ms
        ctx.dirty += len(claimed)
        group_effects.log_held(ctx, place.key, group, claimed_runs, group.last_id)
    runs = _new_runs(place, budget.most(most - len(claimed)), budget)
    for segment, start, stop in runs:
        parts += [entries.with_delivery(entry, 0, 0) for entry in segment.entry_list(start, stop)]
    if runs:
        if is_new and asked.no_ack and not claimed:
            ctx.log(b"XGROUP", b"CREATECONSUMER", place.key, group.name, consumer.name)
        hand_out(ctx, place, consumer, runs, asked.no_ack)
    return b"*%d\r\n" % len(parts) + b"".join(parts) if parts else b""


# -- waiting ----------------------------------------------------------------------------------------------------------


def _block(ctx: Context, args: list[bytes], asked: ReadWords, places: list[Place]) -> None:
    """Wait; a reader that was tried again stays blocked, with its first deadline."""
    blocked = ctx.attempt
    claimable_ms = 0
    if asked.claim_ms != read_arguments.NOT_GIVEN:
        claimable_ms = min(_next_claim_ms(place, asked.claim_ms, ctx.now_ms) for place in places)
    if blocked is not None:
        ctx.engine.blocking.claimable_at(blocked, claimable_ms)
        return
    deadline_ms = ctx.now_ms + asked.block_ms if asked.block_ms else 0
    assert ctx.row is not None, "a handler runs for a row"
    blocked = BlockedRequest(
        ctx.session, ctx.row, args, ctx.db_index, asked.keys, deadline_ms, reply.null_array(ctx.resp3)
    )
    blocked.group = asked.group
    blocked.consumer = asked.consumer
    blocked.claims = asked.claim_ms != read_arguments.NOT_GIVEN
    blocked.heeds_loss = True
    ctx.engine.block(blocked)
    ctx.engine.blocking.claimable_at(blocked, claimable_ms)


def _next_claim_ms(place: Place, min_idle_ms: int, now_ms: int) -> int:
    """When a pending entry of the group will have idled long enough, as far as can be known now."""
    oldest_ms = place.group.oldest_live_ms()
    if oldest_ms < 0:
        oldest_ms = now_ms  # what others deliver from now on is found when that moment comes
    return max(oldest_ms + min_idle_ms, now_ms + (POLL_MS if oldest_ms == now_ms else 0)) + 1
