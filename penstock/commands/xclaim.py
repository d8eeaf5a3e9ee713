"""XCLAIM and XAUTOCLAIM: taking over pending entries."""

from itertools import islice
from typing import Final

from penstock.commands import group_effects, refusals, stream_words, words
from penstock.commands.context import Context
from penstock.commands.table import command
from penstock.commands.xgroup import new_consumer
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage import ids
from penstock.storage.groups import COUNT_ON, KEEP_COUNT, Consumer, Group, Held, in_runs
from penstock.storage.ids import StreamId
from penstock.storage.pending import RELEASED
from penstock.storage.segments import Segment
from penstock.storage.streams import Stream

NOT_GIVEN: Final = -1
SCANNED_PER_COUNT: Final = 10  # pending entries that XAUTOCLAIM looks at for each that it may return
MOST_AUTOCLAIMED: Final = (2**63 - 1) // 16
DEFAULT_AUTOCLAIMED: Final = 100


def _consumer(ctx: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """The claimer, made where there is none (which is not logged); it was seen now."""
    consumer = group.consumers.get(name)
    if consumer is None:
        return new_consumer(ctx, key, group, name)
    consumer.seen_ms = ctx.now_ms
    return consumer


def _has_idled(held: Held, min_idle_ms: int, now_ms: int) -> bool:
    """Whether an entry may be claimed: a released one always, an owned one after its time."""
    block, slot = held
    if not min_idle_ms or block.owners[slot] == RELEASED:
        return True
    return now_ms - block.times[slot] >= min_idle_ms


class ClaimWords:
    """An XCLAIM's options. `delivered_ms` is the delivery time that the entries get."""

    __slots__ = ("delivered_ms", "force", "just_ids", "last_id", "min_idle_ms", "retry_count", "texts")

    def __init__(self, now_ms: int) -> None:
        self.min_idle_ms = 0
        self.texts: list[bytes] = []
        self.delivered_ms = now_ms
        self.retry_count = NOT_GIVEN
        self.force = False
        self.just_ids = False
        self.last_id: StreamId = NOT_GIVEN


def _read_claim(ctx: Context, args: list[bytes]) -> tuple[ClaimWords, list[StreamId]]:
    asked = ClaimWords(ctx.now_ms)
    asked.min_idle_ms = max(words.integer_or(args[4], b"ERR Invalid min-idle-time argument for XCLAIM"), 0)
    entry_ids: list[StreamId] = []
    at = 5
    for at in range(5, len(args) + 1):
        if at == len(args):
            break
        try:
            entry_ids.append(ids.parse(args[at]))
        except ValueError:
            break
    delivered_ms = NOT_GIVEN
    while at < len(args):
        word = args[at].upper()
        has_value = at + 1 < len(args)
        if word == b"FORCE":
            asked.force = True
        elif word == b"JUSTID":
            asked.just_ids = True
        elif word == b"IDLE" and has_value:
            at += 1
            delivered_ms = ctx.now_ms - words.integer_or(args[at], b"ERR Invalid IDLE option argument for XCLAIM")
        elif word == b"TIME" and has_value:
            at += 1
            delivered_ms = words.integer_or(args[at], b"ERR Invalid TIME option argument for XCLAIM")
        elif word == b"RETRYCOUNT" and has_value:
            at += 1
            asked.retry_count = words.integer_or(args[at], b"ERR Invalid RETRYCOUNT option argument for XCLAIM")
        elif word == b"LASTID" and has_value:
            at += 1
            asked.last_id = stream_words.stream_id(args[at])
        else:
            raise ReplyError(b"ERR Unrecognized XCLAIM option '%b'" % refusals.c_string(args[at]))
        at += 1
    if 0 <= delivered_ms <= ctx.now_ms:
        asked.delivered_ms = delivered_ms
    return asked, entry_ids


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
    asked, entry_ids = _read_claim(ctx, args)
    moves_on = asked.last_id > group.last_id
    if moves_on:
        group.last_id = asked.last_id
        ctx.dirty += 1
    consumer = _consumer(ctx, key, group, args[3])
    counting = asked.retry_count if asked.retry_count >= 0 else KEEP_COUNT if asked.just_ids else COUNT_ON
    claimed: list[Held] = []
    given = dropped = 0  # how many of `claimed` have changed hands; how many ghosts went
    held: Held | None = None
    last_id = NOT_GIVEN
    for entry_id in entry_ids:
        if entry_id <= last_id and given < len(claimed):  # an id may come twice: the second time it has just moved
            group.give_all(in_runs(claimed[given:]), consumer, asked.delivered_ms, counting)
            given = len(claimed)
        last_id = entry_id
        held = group.find(entry_id) if held is None else group.find_next(held, entry_id)
        if held is None:
            found = stream.find(entry_id) if asked.force else None
            if found is not None:
                group.give_all(in_runs(claimed[given:]), consumer, asked.delivered_ms, counting)
                claimed.append(_force(group, found, consumer, asked))
                given = len(claimed)
        elif not held[0].segment.is_live(held[1]):
            _drop_ghost(ctx, key, group, held)
            dropped += 1
            held = None
        elif _has_idled(held, asked.min_idle_ms, ctx.now_ms):
            claimed.append(held)
    group.give_all(in_runs(claimed[given:]), consumer, asked.delivered_ms, counting)
    if claimed:
        consumer.active_ms = ctx.now_ms
        ctx.dirty += len(claimed)
        group_effects.log_held(ctx, key, group, claimed, group.last_id)
    elif moves_on and not dropped:
        group_effects.log_position(ctx, key, group)
    return _shown(claimed, asked.just_ids)


def _force(group: Group, found: tuple[Segment, int], consumer: Consumer, asked: ClaimWords) -> Held:
    """A live entry that is not pending becomes so with FORCE; a claim then counts on from 1."""
    if asked.retry_count >= 0:
        count = asked.retry_count
    else:
        count = 1 if asked.just_ids else 2
    return group.force(*found, consumer, asked.delivered_ms, count)


def _drop_ghost(ctx: Context, key: bytes, group: Group, held: Held) -> None:
    group_effects.log_ghost(ctx, key, group, held)
    group.forget(*held)
    ctx.dirty += 1


def _shown(claimed: list[Held], just_ids: bool) -> bytes:
    if just_ids:
        return reply.bulks([ids.text(block.id_at(slot)) for block, slot in claimed])
    entries = [block.segment.entries(start, stop) for block, start, stop in in_runs(claimed)]
    return b"*%d\r\n" % len(claimed) + b"".join(entries)


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
    summary="Claims pending entries that have idled, in order of ids, from a cursor on.",
)
def xautoclaim(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    value = ctx.read(key)
    min_idle_ms = max(words.integer_or(args[4], b"ERR Invalid min-idle-time argument for XAUTOCLAIM"), 0)
    start = stream_words.range_start(args[5])
    most, just_ids = _read_autoclaim_options(args)
    if value is not None and not isinstance(value, Stream):
        raise refusals.wrong_type()
    group = None if value is None else value.groups.get(args[2])
    if group is None:
        raise refusals.no_group(key, args[2])
    consumer = _consumer(ctx, key, group, args[3])
    scanned = list(islice(group.walk(start), most * SCANNED_PER_COUNT + 1))
    claimed: list[Held] = []
    ghosts: list[bytes] = []
    cursor = ids.ZERO
    for at, held in enumerate(scanned):
        if len(claimed) + len(ghosts) == most or at == most * SCANNED_PER_COUNT:
            cursor = held[0].id_at(held[1])
            break
        if not held[0].segment.is_live(held[1]):
            ghosts.append(ids.text(held[0].id_at(held[1])))
            _drop_ghost(ctx, key, group, held)
        elif _has_idled(held, min_idle_ms, ctx.now_ms):
            claimed.append(held)
    group.give_all(in_runs(claimed), consumer, ctx.now_ms, KEEP_COUNT if just_ids else COUNT_ON)
    if claimed:
        consumer.active_ms = ctx.now_ms
        ctx.dirty += len(claimed)
        group_effects.log_held(ctx, key, group, claimed, group.last_id)
    return reply.array([reply.bulk(ids.text(cursor)), _shown(claimed, just_ids), reply.bulks(ghosts)])


def _read_autoclaim_options(args: list[bytes]) -> tuple[int, bool]:
    most = DEFAULT_AUTOCLAIMED
    just_ids = False
    at = 6
    while at < len(args):
        word = args[at].upper()
        if word == b"COUNT" and at + 1 < len(args):
            at += 1
            most = words.integer_or(args[at], b"ERR COUNT must be > 0")
            if not 1 <= most <= MOST_AUTOCLAIMED:
                raise ReplyError(b"ERR COUNT must be > 0")
        elif word == b"JUSTID":
            just_ids = True
        else:
            raise refusals.syntax()
        at += 1
    return most, just_ids
