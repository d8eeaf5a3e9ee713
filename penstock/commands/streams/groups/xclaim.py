"""XCLAIM and XAUTOCLAIM: take over pending entries.

Tests: transcripts xclaim, xautoclaim; cases commands/test_redeliveries; law test_laws; model
storage/test_against_naive.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.aof import group_effects
from penstock.engine.consumers import new_consumer
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.policies.attempts import Attempts, attempts_of
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import (
    COUNT_UP,
    KEEP_COUNT,
    RELEASED,
    PendingRun,
    PendingSlot,
    total_of,
)
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

NOT_GIVEN: Final = -1
SCANNED_PER_COUNT: Final = 10  # XAUTOCLAIM scans at most this many pending entries for each that it may return
MOST_AUTOCLAIMED: Final = (2**63 - 1) // 16
DEFAULT_AUTOCLAIMED: Final = 100


def _consumer(ctx: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """The claiming consumer, with its seen time updated; created if it does not exist."""
    consumer = group.consumers.get(name)
    if consumer is None:
        return new_consumer(ctx, key, group, name)
    consumer.seen_ms = ctx.now_ms
    return consumer


def _has_idled(pending_slot: PendingSlot, min_idle_ms: int, now_ms: int) -> bool:
    """Whether an entry may be claimed: always if it is released, else if it is idle for min_idle_ms."""
    block, slot = pending_slot
    if not min_idle_ms or block.owners[slot] == RELEASED:
        return True
    return now_ms - block.times[slot] >= min_idle_ms


class ClaimArguments:
    """An XCLAIM's options. `delivered_ms` is the new delivery time of the entries."""

    __slots__ = ("delivered_ms", "force", "just_ids", "last_id", "min_idle_ms", "retry_count")

    def __init__(self, now_ms: int) -> None:
        self.min_idle_ms = 0
        self.delivered_ms = now_ms
        self.retry_count = NOT_GIVEN
        self.force = False
        self.just_ids = False
        self.last_id: StreamId = NOT_GIVEN


def _read_claim(ctx: Context, args: list[bytes]) -> tuple[ClaimArguments, IdColumns]:
    options = ClaimArguments(ctx.now_ms)
    options.min_idle_ms = max(arguments.integer_or(args[4], b"ERR Invalid min-idle-time argument for XCLAIM"), 0)
    wanted, at = _read_ids(args)
    delivered_ms = NOT_GIVEN
    while at < len(args):
        word = args[at].upper()
        has_value = at + 1 < len(args)
        if word == b"FORCE":
            options.force = True
        elif word == b"JUSTID":
            options.just_ids = True
        elif word == b"IDLE" and has_value:
            at += 1
            delivered_ms = ctx.now_ms - arguments.integer_or(args[at], b"ERR Invalid IDLE option argument for XCLAIM")
        elif word == b"TIME" and has_value:
            at += 1
            delivered_ms = arguments.integer_or(args[at], b"ERR Invalid TIME option argument for XCLAIM")
        elif word == b"RETRYCOUNT" and has_value:
            at += 1
            options.retry_count = arguments.integer_or(args[at], b"ERR Invalid RETRYCOUNT option argument for XCLAIM")
        elif word == b"LASTID" and has_value:
            at += 1
            options.last_id = stream_arguments.stream_id(args[at])
        else:
            raise ReplyError(b"ERR Unrecognized XCLAIM option '%b'" % refusals.c_string(args[at]))
        at += 1
    if 0 <= delivered_ms <= ctx.now_ms or (delivered_ms > ctx.now_ms and ctx.session.privileged):
        options.delivered_ms = delivered_ms  # the clock of the log's writer may be ahead of ours
    return options, wanted


def _read_ids(args: list[bytes]) -> tuple[IdColumns, int]:
    """The ids from args[5] on, and the index of the first word that is not an id."""
    at = len(args)
    if args[-1].isalpha() or args[-2].isalpha():  # each option, with or without a value, ends like this
        is_option = list(map(bytes.isalpha, args))
        at = is_option.index(True, 5) if True in is_option[5:] else len(args)
    try:
        return ids.parse_all(args[5:at]), at
    except ValueError:
        pass
    at = 5
    while at < len(args) and _is_id(args[at]):
        at += 1
    return ids.parse_all(args[5:at]), at


def _is_id(word: bytes) -> bool:
    try:
        ids.parse(word)
    except ValueError:
        return False
    return True


@command(
    "XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms:integer] [TIME unix-time-milliseconds] "
    "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    "5.0.0 write fast | keys 1 RW update | tips nondeterministic_output",
    "Makes a consumer the owner of pending entries.",
    "O(log N) with N being the number of messages in the PEL of the consumer group.",
)
def xclaim(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    stream = ctx.read_stream(key)
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        raise refusals.no_group(key, args[2])
    options, wanted = _read_claim(ctx, args)
    former_id = ids.ZERO if stream.policies is None else group.last_id
    raises_last_id = options.last_id != NOT_GIVEN and options.last_id > group.last_id
    if raises_last_id:
        group.last_id = options.last_id
        ctx.count_group_changes(key, 1)
    consumer = _consumer(ctx, key, group, args[3])
    settling.used(ctx, key, stream, group)
    attempts = attempts_of(ctx, key, stream, group)
    if attempts is not None:
        attempts.counts_attempts = options.retry_count < 0
        if not attempts.may_move or options.just_ids:
            attempts = None  # no entry can be exhausted or expired, or the claim is no delivery
    claimed = _claim_ids(ctx, key, stream, group, consumer, options, wanted, attempts)
    if claimed:
        _note_claimed(ctx, key, group, consumer, claimed)
    elif raises_last_id:  # no claimed entry is logged, which would log the last id, too
        group_effects.log_position(ctx, key, stream, group)
    answer = _shown(ctx, claimed, options.just_ids)
    if stream.policies is not None:
        if claimed:
            settling.delivered(ctx, key, stream, group, options.delivered_ms)
        if attempts is not None:
            attempts.finish()
        settling.group_moved(ctx, key, stream, group, former_id)
    return answer


def _claim_ids(
    ctx: Context,
    key: bytes,
    stream: Stream,
    group: Group,
    consumer: Consumer,
    options: ClaimArguments,
    wanted: IdColumns,
    attempts: Attempts | None,
) -> list[PendingRun]:
    """Give the entries with these ids to the consumer, as far as they may be claimed; returns them in order."""
    pel, delivered_ms, min_idle_ms = group.pel, options.delivered_ms, options.min_idle_ms
    count_change = options.retry_count if options.retry_count >= 0 else KEEP_COUNT if options.just_ids else COUNT_UP
    claimed: list[PendingRun] = []
    handed_over = at = 0  # how many of `claimed` already have the new owner; the next id
    while at < len(wanted):
        # An id may be repeated: its first claim must be carried out before the second is checked.
        if handed_over < len(claimed) and wanted.id_at(at) <= wanted.id_at(at - 1):
            pel.give_all(claimed[handed_over:], consumer, delivered_ms, count_change)
            handed_over = len(claimed)
        run = pel.by_id.pending_run(wanted, at)
        if attempts is not None and run is not None:
            run = (run[0], run[1], run[1] + 1)
            if _is_over(attempts, (run[0], run[1]), min_idle_ms, ctx.now_ms):
                if not any(run[0] is block and first <= run[1] < stop for block, first, stop in claimed):
                    attempts.move_to_dead_letters((run[0], run[1]), run[0].counts[run[1]])
                at += 1
                continue
        if run is not None and _is_claimable_run(run, min_idle_ms, ctx.now_ms):
            claimed.append(run)
            at += run[2] - run[1]
            continue
        if run is None:
            found = stream.find(wanted.id_at(at)) if options.force else None
            if found is not None and (attempts is None or not attempts.is_expired(found[0], found[1])):
                pel.give_all(claimed[handed_over:], consumer, delivered_ms, count_change)
                claimed.append(_force(group, found, consumer, options))
                handed_over = len(claimed)
        elif not run[0].segment.is_live(run[1]):
            _drop_deleted_pending(ctx, key, group, (run[0], run[1]))
        elif _has_idled((run[0], run[1]), min_idle_ms, ctx.now_ms):
            claimed.append((run[0], run[1], run[1] + 1))
        at += 1
    pel.give_all(claimed[handed_over:], consumer, delivered_ms, count_change)
    return claimed


def _is_over(attempts: Attempts, found: PendingSlot, min_idle_ms: int, now_ms: int) -> bool:
    """Whether a claim would deliver an entry that must not be delivered again."""
    return attempts.is_over(found, found[0].counts[found[1]]) and _has_idled(found, min_idle_ms, now_ms)


def _force(group: Group, found: tuple[Segment, int], consumer: Consumer, options: ClaimArguments) -> PendingRun:
    """FORCE: make a live entry pending that is not; its delivery count starts at 1, to which a claim adds one."""
    if options.retry_count >= 0:
        count = options.retry_count
    else:
        count = 1 if options.just_ids else 2
    segment, slot = found
    return group.pel.force(segment, slot, slot + 1, consumer, options.delivered_ms, count)


def _drop_deleted_pending(ctx: Context, key: bytes, group: Group, pending_slot: PendingSlot) -> None:
    group_effects.log_deleted_pending(ctx, key, group, pending_slot)
    group.pel.forget(*pending_slot)
    ctx.count_group_changes(key, 1)


def _is_claimable_run(run: PendingRun, min_idle_ms: int, now_ms: int) -> bool:
    """Whether all entries of a run may be claimed. After False, the caller must check them one by one."""
    block, start, stop = run
    if not block.segment.is_live_run(start, stop):
        return False
    return not min_idle_ms or now_ms - max(block.times[start:stop]) >= min_idle_ms


def _note_claimed(ctx: Context, key: bytes, group: Group, consumer: Consumer, claimed: list[PendingRun]) -> None:
    """Entries have a new owner, or their owner has them anew."""
    consumer.active_ms = ctx.now_ms
    ctx.count_group_changes(key, total_of(claimed))
    group_effects.log_held(ctx, key, group, claimed)


def _shown(ctx: Context, claimed: list[PendingRun], just_ids: bool) -> bytes:
    """Claimed entries as a reply. The log's loader and a link to a master read none."""
    if ctx.session.privileged:
        return reply.EMPTY_ARRAY
    if just_ids:
        texts = [text for block, start, stop in claimed for text in block.segment.id_texts(start, stop)]
        return reply.bulks(texts)
    parts = [reply.array_header(total_of(claimed))]
    for block, start, stop in claimed:
        parts.append(block.segment.entries(start, stop))
    return b"".join(parts)


@command(
    "XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]",
    "6.2.0 write fast | keys 1 RW delete | tips nondeterministic_output",
    "Claims idle pending entries in the order of their ids, from a cursor on.",
    "O(1) if COUNT is small.",
    history=(
        ("7.0.0", ("Added an element to the reply array, containing deleted entries the command cleared from the PEL")),
    ),
)
def xautoclaim(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    value = ctx.read(key)
    min_idle_ms = max(arguments.integer_or(args[4], b"ERR Invalid min-idle-time argument for XAUTOCLAIM"), 0)
    start = stream_arguments.range_start(args[5])
    max_count, just_ids = _read_autoclaim_options(args)
    if value is not None and not isinstance(value, Stream):
        raise refusals.wrong_type()
    group = None if value is None else value.groups.get(args[2])
    if value is None or group is None:
        raise refusals.no_group(key, args[2])
    consumer = _consumer(ctx, key, group, args[3])
    settling.used(ctx, key, value, group)
    claimed: list[PendingRun] = []
    deleted_pending: list[bytes] = []
    cursor = ids.ZERO
    left, scans_left = max_count, max_count * SCANNED_PER_COUNT
    attempts = attempts_of(ctx, key, value, group)
    if attempts is not None:
        attempts.counts_attempts = not just_ids
    dead: list[PendingSlot] = []
    for block, slot, stop in group.pel.by_id.walk_runs(start):
        together = attempts is None  # becomes False if not all entries of the run may be claimed
        while slot < stop and left and scans_left:
            count = min(stop - slot, left, scans_left)
            together = together and _is_claimable_run((block, slot, slot + count), min_idle_ms, ctx.now_ms)
            if together:
                claimed.append((block, slot, slot + count))
                left -= count
            else:
                count = 1
                if not block.segment.is_live(slot):
                    deleted_pending.append(block.id_text(slot))
                    _drop_deleted_pending(ctx, key, group, (block, slot))
                    left -= 1
                elif attempts is not None and attempts.must_wait((block, slot)):
                    pass
                elif attempts is not None and _is_over(attempts, (block, slot), min_idle_ms, ctx.now_ms):
                    dead.append((block, slot))
                elif _has_idled((block, slot), min_idle_ms, ctx.now_ms) and (
                    attempts is None or attempts.may_hand_out((block, slot))
                ):
                    claimed.append((block, slot, slot + 1))
                    left -= 1
            scans_left -= count
            slot += count
        if slot < stop:
            cursor = block.id_at(slot)
            break
    group.pel.give_all(claimed, consumer, ctx.now_ms, KEEP_COUNT if just_ids else COUNT_UP)
    if claimed:
        _note_claimed(ctx, key, group, consumer, claimed)
    if attempts is not None:
        if claimed:
            settling.delivered(ctx, key, value, group, ctx.now_ms)
            attempts.note_delivered(total_of(claimed))
        attempts.move_all(dead)
        if deleted_pending and not dead:
            attempts.finish()
    return reply.array([reply.bulk(ids.text(cursor)), _shown(ctx, claimed, just_ids), reply.bulks(deleted_pending)])


def _read_autoclaim_options(args: list[bytes]) -> tuple[int, bool]:
    max_count = DEFAULT_AUTOCLAIMED
    just_ids = False
    at = 6
    while at < len(args):
        word = args[at].upper()
        if word == b"COUNT" and at + 1 < len(args):
            at += 1
            max_count = arguments.integer_or(args[at], b"ERR COUNT must be > 0")
            if not 1 <= max_count <= MOST_AUTOCLAIMED:
                raise ReplyError(b"ERR COUNT must be > 0")
        elif word == b"JUSTID":
            just_ids = True
        else:
            raise refusals.syntax()
        at += 1
    return max_count, just_ids
