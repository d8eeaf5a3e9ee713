"""XCLAIM and XAUTOCLAIM: take over pending entries."""

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


class Claim:
    """What an XCLAIM or XAUTOCLAIM asks for, and the pending entries that it takes, in order, by runs.

    delivered_ms: the new delivery time. count_change: as PendingList.give_all has it. attempts: what the group's policy
    says of the entries, if it is asked. The entries of `claimed` have the new owner after `hand_over`.
    """

    __slots__ = (
        "_handed_over", "attempts", "claimed", "consumer", "count_change", "ctx", "delivered_ms", "force", "group",
        "just_ids", "key", "last_id", "min_idle_ms", "retry_count", "stream",
    )  # fmt: skip

    consumer: Consumer  # not set before `begin`

    def __init__(self, ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
        self.ctx = ctx
        self.key = key
        self.stream = stream
        self.group = group
        self.min_idle_ms = 0
        self.delivered_ms = ctx.now_ms
        self.retry_count = NOT_GIVEN
        self.force = False
        self.just_ids = False
        self.last_id: StreamId = NOT_GIVEN
        self.count_change = COUNT_UP
        self.attempts: Attempts | None = None
        self.claimed: list[PendingRun] = []
        self._handed_over = 0  # how many runs of `claimed` have the new owner

    def begin(self, name: bytes) -> None:
        """All words are read: the consumer is seen, and created if it does not exist."""
        consumer = self.group.consumers.get(name)
        if consumer is None:
            consumer = new_consumer(self.ctx, self.key, self.group, name)
        consumer.seen_ms = self.ctx.now_ms
        self.consumer = consumer
        if self.retry_count >= 0:
            self.count_change = self.retry_count
        elif self.just_ids:
            self.count_change = KEEP_COUNT
        self.attempts = attempts_of(self.ctx, self.key, self.stream, self.group)

    def may_take_run(self, run: PendingRun) -> bool:
        """Whether all entries of a run may be claimed. After False, the caller must check them one by one."""
        block, start, stop = run
        if not block.segment.is_live_run(start, stop):
            return False
        return not self.min_idle_ms or self.ctx.now_ms - max(block.times[start:stop]) >= self.min_idle_ms

    def has_idled(self, pending_slot: PendingSlot) -> bool:
        """Whether an entry may be claimed: always if it is released, else if it is idle for min_idle_ms."""
        block, slot = pending_slot
        if not self.min_idle_ms or block.owners[slot] == RELEASED:
            return True
        return self.ctx.now_ms - block.times[slot] >= self.min_idle_ms

    def is_over(self, pending_slot: PendingSlot) -> bool:
        """Whether an entry would be claimed, and delivered, but must not be delivered again."""
        if self.attempts is None or self.count_change != COUNT_UP:
            return False
        count = pending_slot[0].counts[pending_slot[1]]
        return self.attempts.is_over(pending_slot, count) and self.has_idled(pending_slot)

    def drop_deleted_pending(self, pending_slot: PendingSlot) -> None:
        """The entry is not in the stream any more."""
        group_effects.log_deleted_pending(self.ctx, self.key, self.group, pending_slot)
        self.group.pel.forget(*pending_slot)
        self.ctx.dirty += 1

    def hand_over(self) -> None:
        """Give the runs that were taken to the consumer."""
        self.group.pel.give_all(self.claimed[self._handed_over :], self.consumer, self.delivered_ms, self.count_change)
        self._handed_over = len(self.claimed)

    def force_pending(self, segment: Segment, slot: int) -> None:
        """FORCE: make a live entry pending that is not; its delivery count starts at 1, to which a claim adds one."""
        self.hand_over()
        count = self.retry_count
        if count < 0:
            count = 1 if self.just_ids else 2
        run = self.group.pel.force(segment, slot, slot + 1, self.consumer, self.delivered_ms, count)
        self.claimed.append(run)
        self._handed_over += 1

    def end(self) -> bool:
        """Hand over what was taken, and log it; whether it was anything."""
        self.hand_over()
        if not self.claimed:
            return False
        self.consumer.active_ms = self.ctx.now_ms
        self.ctx.dirty += total_of(self.claimed)
        group_effects.log_held(self.ctx, self.key, self.group, self.claimed)
        return True

    def shown(self) -> bytes:
        """What was claimed, as a reply. The log's loader and a link to a master read none."""
        if self.ctx.session.privileged:
            return reply.EMPTY_ARRAY
        if self.just_ids:
            texts = [text for block, start, stop in self.claimed for text in block.segment.id_texts(start, stop)]
            return reply.bulks(texts)
        parts = [reply.array_header(total_of(self.claimed))]
        for block, start, stop in self.claimed:
            parts.append(block.segment.entries(start, stop))
        return b"".join(parts)


def _read_claim(claim: Claim, args: list[bytes]) -> IdColumns:
    """Read an XCLAIM's options; returns its ids."""
    now_ms = claim.ctx.now_ms
    claim.min_idle_ms = max(arguments.integer_or(args[4], b"ERR Invalid min-idle-time argument for XCLAIM"), 0)
    wanted, at = _read_ids(args)
    delivered_ms = NOT_GIVEN
    while at < len(args):
        word = args[at].upper()
        has_value = at + 1 < len(args)
        if word == b"FORCE":
            claim.force = True
        elif word == b"JUSTID":
            claim.just_ids = True
        elif word == b"IDLE" and has_value:
            at += 1
            delivered_ms = now_ms - arguments.integer_or(args[at], b"ERR Invalid IDLE option argument for XCLAIM")
        elif word == b"TIME" and has_value:
            at += 1
            delivered_ms = arguments.integer_or(args[at], b"ERR Invalid TIME option argument for XCLAIM")
        elif word == b"RETRYCOUNT" and has_value:
            at += 1
            claim.retry_count = arguments.integer_or(args[at], b"ERR Invalid RETRYCOUNT option argument for XCLAIM")
        elif word == b"LASTID" and has_value:
            at += 1
            claim.last_id = stream_arguments.stream_id(args[at])
        else:
            raise ReplyError(b"ERR Unrecognized XCLAIM option '%b'" % refusals.c_string(args[at]))
        at += 1
    if 0 <= delivered_ms <= now_ms or (delivered_ms > now_ms and claim.ctx.session.privileged):
        claim.delivered_ms = delivered_ms  # the clock of the log's writer may be ahead of ours
    return wanted


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
    "XCLAIM",
    "key group consumer min-idle-time id [id ...] [IDLE ms:integer] [TIME unix-time-milliseconds] "
    "[RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    group="stream",
    since="5.0.0",
    flags="write fast",
    keys="1 RW update",
    tips="nondeterministic_output",
    complexity="O(log N) with N being the number of messages in the PEL of the consumer group.",
    summary="Makes a consumer the owner of pending entries.",
)
def xclaim(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    stream = ctx.read_stream(key)
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        raise refusals.no_group(key, args[2])
    claim = Claim(ctx, key, stream, group)
    wanted = _read_claim(claim, args)
    former_id = ids.ZERO if stream.policies is None else group.last_id
    raises_last_id = claim.last_id != NOT_GIVEN and claim.last_id > group.last_id
    if raises_last_id:
        group.last_id = claim.last_id
        ctx.dirty += 1
    claim.begin(args[3])
    attempts = claim.attempts
    if attempts is not None and (not attempts.can_bury or claim.count_change != COUNT_UP):
        attempts = claim.attempts = None  # nothing is over, or the claim is no delivery
    _claim_ids(claim, wanted)
    if not claim.end() and raises_last_id:  # what was dropped, or moved to the dead letters, does not show it
        group_effects.log_position(ctx, key, group)
    answer = claim.shown()
    if stream.policies is not None:
        if claim.claimed:
            settling.delivered(ctx, key, stream, group, claim.delivered_ms)
        if attempts is not None:
            attempts.settle()
        settling.group_moved(ctx, key, stream, group, former_id)
    return answer


def _claim_ids(claim: Claim, wanted: IdColumns) -> None:
    """Take the entries with these ids."""
    by_id, attempts = claim.group.pel.by_id, claim.attempts
    at, count = 0, len(wanted)
    while at < count:
        # An id may be repeated: its first claim must be carried out before the second is checked.
        if at and wanted.id_at(at) <= wanted.id_at(at - 1):
            claim.hand_over()
        run = by_id.pending_run(wanted, at)
        if attempts is not None and run is not None:
            block, slot, _ = run
            run = block, slot, slot + 1
            if claim.is_over((block, slot)):
                attempts.bury((block, slot), block.counts[slot])
                at += 1
                continue
        if run is not None and claim.may_take_run(run):
            claim.claimed.append(run)
            at += run[2] - run[1]
            continue
        if run is None:
            found = claim.stream.find(wanted.id_at(at)) if claim.force else None
            if found is not None:
                claim.force_pending(*found)
        elif not run[0].segment.is_live(run[1]):
            claim.drop_deleted_pending((run[0], run[1]))
        elif claim.has_idled((run[0], run[1])):
            claim.claimed.append((run[0], run[1], run[1] + 1))
        at += 1


@command(
    "XAUTOCLAIM",
    "key group consumer min-idle-time start [COUNT count] [JUSTID]",
    group="stream",
    since="6.2.0",
    flags="write fast",
    keys="1 RW delete",
    tips="nondeterministic_output",
    complexity="O(1) if COUNT is small.",
    history=(
        ("7.0.0", ("Added an element to the reply array, containing deleted entries the command cleared from the PEL")),
    ),
    summary="Claims idle pending entries in the order of their ids, from a cursor on.",
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
    claim = Claim(ctx, key, value, group)
    claim.min_idle_ms, claim.just_ids = min_idle_ms, just_ids
    claim.begin(args[3])
    cursor, dead, deleted = _claim_from(claim, start, max_count)
    if claim.end():
        settling.delivered(ctx, key, value, group, ctx.now_ms)
    attempts = claim.attempts
    if attempts is not None:
        attempts.bury_all(dead)
    return reply.array([reply.bulk(ids.text(cursor)), claim.shown(), reply.bulks(deleted)])


def _claim_from(claim: Claim, start: StreamId, max_count: int) -> tuple[StreamId, list[PendingSlot], list[bytes]]:
    """Take entries in the order of their ids, and drop the deleted ones.

    Returns the next cursor, the entries that must not be delivered again, and the texts of the deleted ones.
    """
    attempts = claim.attempts
    deleted: list[bytes] = []
    dead: list[PendingSlot] = []
    left, scans_left = max_count, max_count * SCANNED_PER_COUNT
    for block, slot, stop in claim.group.pel.by_id.walk_runs(start):
        together = attempts is None  # becomes False if not all entries of the run may be claimed
        while slot < stop and left and scans_left:
            count = min(stop - slot, left, scans_left)
            together = together and claim.may_take_run((block, slot, slot + count))
            if together:
                claim.claimed.append((block, slot, slot + count))
                left -= count
            else:
                count = 1
                if not block.segment.is_live(slot):
                    deleted.append(block.id_text(slot))
                    claim.drop_deleted_pending((block, slot))
                    left -= 1
                elif attempts is not None and attempts.is_kept_back((block, slot)):
                    pass
                elif claim.is_over((block, slot)):
                    dead.append((block, slot))
                elif claim.has_idled((block, slot)):
                    claim.claimed.append((block, slot, slot + 1))
                    left -= 1
            scans_left -= count
            slot += count
        if slot < stop:
            return block.id_at(slot), dead, deleted
    return ids.ZERO, dead, deleted


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
