"""XACK and XNACK: acknowledge pending entries, or release them.

Tests: transcripts xnack, streams; cases commands/test_runs_of_ids; law test_laws; model storage/test_against_naive.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.aof import group_effects
from penstock.engine.aof.group_effects import Released
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.policies.attempts import Attempts, attempts_of
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import COUNT_DOWN, KEEP_COUNT, MAX_COUNT, PendingRun
from penstock.storage.streams.stream import Stream

MOST_IDS: Final = 2**31 - 1
NOT_GIVEN: Final = -1
MODES: Final = (b"SILENT", b"FAIL", b"FATAL")


@command(
    "XACK key group id [id ...]",
    "5.0.0 write fast | keys 1 RW update",
    "Acknowledges entries: removes them from the group's pending entries.",
    "O(1) for each message ID processed.",
)
def xack(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.read_stream(args[1])
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        return reply.ZERO  # Redis does not check the ids in this case
    if len(args) == 4:
        ms, seq = stream_arguments.id_halves(args[3])
        acknowledged = int(group.pel.acknowledge(ms, seq))
    else:
        acknowledged = group.pel.acknowledge_all(stream_arguments.id_columns(args[3:])).count(1)
    if acknowledged:
        ctx.count_group_changes(args[1], acknowledged)
        ctx.log_request(args)
        if stream.policies is not None:
            settling.acknowledged(ctx, args[1], stream, stream_arguments.stream_ids(args[3:]))
    return reply.integer(acknowledged)


class NackArguments:
    """An XNACK's options: the ids' texts, RETRYCOUNT (NOT_GIVEN: the mode decides), FORCE, until when they are held."""

    __slots__ = ("force", "retry_count", "texts", "until_ms")

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.retry_count = NOT_GIVEN
        self.force = False
        self.until_ms = NOT_GIVEN


@command(
    "XNACK key group mode:<SILENT|FAIL|FATAL> ids:IDS (numids id [id ...]) [RETRYCOUNT count] [FORCE]",
    "8.8.0 write fast | keys 1 RW update",
    "Releases pending entries, so that other consumers can claim them.",
    "O(1) for each message ID processed.",
)
def xnack(ctx: Context, args: list[bytes]) -> bytes:
    return nack(ctx, args, False)


def nack(ctx: Context, args: list[bytes], may_delay: bool) -> bytes:
    """XNACK, and PENSTOCK.XNACK, which may say how long the entries are held."""
    key = args[1]
    stream = ctx.read_stream(key)
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        raise refusals.no_group(key, args[2])
    mode = args[3].upper()
    if mode not in MODES:
        raise ReplyError(b"ERR mode must be SILENT, FAIL, or FATAL")
    options = _read_options(ctx, args, may_delay)
    count_change = _count_change(mode, options.retry_count)
    wanted = stream_arguments.id_columns(options.texts)
    by_id = group.pel.by_id
    released: list[Released] = []
    moved: set[StreamId] = set()
    attempts = attempts_of(ctx, key, stream, group)
    if attempts is not None:
        attempts.counts_attempts = mode != b"SILENT"
        if not attempts.may_move:
            attempts = None
    count = at = 0
    while at < len(wanted):
        run = by_id.pending_run(wanted, at)
        if attempts is not None and run is not None:
            run = (run[0], run[1], run[1] + 1)
            if _bury(attempts, run, count_change):
                moved.add(wanted.id_at(at))
                at += 1
                count += 1
                continue
        if (
            run is not None
            and ctx.session.privileged
            and options.until_ms != NOT_GIVEN
            and run[0].are_released(run[1], run[2])
        ):
            pass  # the log's line before this one released them; their order stays
        elif run is not None:
            group.pel.release(run, count_change)
        elif options.force and wanted.id_at(at) not in moved:
            run = _force(stream, group, wanted.id_at(at), max(count_change, 0))
            if attempts is not None and run is not None and mode == b"FATAL":
                run[0].counts[run[1]] = 0  # it was never delivered
                if attempts.move_forced((run[0], run[1]), run[0].next_count(run[1], count_change)):
                    moved.add(wanted.id_at(at))
                    at += 1
                    count += 1
                    continue
                run[0].counts[run[1]] = max(count_change, 0)
        if run is None:
            at += 1
            continue
        block, start, stop = run
        released.append((block, start, block.counts[start:stop]))
        at += stop - start
        count += stop - start
    if released:
        ctx.count_group_changes(key, count)
        group_effects.log_released(ctx, key, group, released)
        if stream.policies is not None or options.until_ms != NOT_GIVEN:
            settling.released(ctx, key, stream, group, released, options.until_ms, mode == b"FAIL")
        ctx.signal(key)
    if attempts is not None:
        attempts.finish()
    return reply.integer(count)


def _bury(attempts: Attempts, run: PendingRun, count_change: int) -> bool:
    """Move the entry of a run of one to the dead letters, if this failure was its last; whether it moved."""
    block, slot, _ = run
    count = block.next_count(slot, count_change)
    if not attempts.is_over((block, slot), count):
        return False
    if attempts.move_to_dead_letters((block, slot), count):
        return True
    attempts.keep((block, slot))
    return False


def _read_options(ctx: Context, args: list[bytes], may_delay: bool) -> NackArguments:
    options = NackArguments()
    at = 4
    while at < len(args):
        word = args[at].upper()
        if word == b"IDS" and at + 1 < len(args):
            options.texts, at = stream_arguments.numbered_ids(
                args,
                at + 1,
                b"ERR numids must be a positive integer",
                b"ERR number of IDs doesn't match numids",
                MOST_IDS,
            )
        elif word == b"RETRYCOUNT" and at + 1 < len(args):
            at += 1
            options.retry_count = _not_negative(word, args[at])
        elif may_delay and word in (b"DELAY", b"UNTIL") and at + 1 < len(args):
            at += 1
            options.until_ms = _not_negative(word, args[at]) + (ctx.now_ms if word == b"DELAY" else 0)
        elif word == b"FORCE":
            options.force = True
        else:
            raise ReplyError(b"ERR Unrecognized XNACK option '%b'" % refusals.c_string(args[at]))
        at += 1
    if not options.texts:
        raise ReplyError(b"ERR syntax error, expected IDS keyword")
    return options


def _not_negative(option: bytes, word: bytes) -> int:
    number = arguments.integer(word)
    if number < 0:
        raise ReplyError(b"ERR Invalid %b value, must be >= 0" % option)
    return number


def _count_change(mode: bytes, retry_count: int) -> int:
    """How the delivery counts change (see PendingList.release).

    SILENT: the delivery is not counted; FAIL: it stays counted; FATAL: the count becomes the maximum.
    """
    if retry_count != NOT_GIVEN:
        return retry_count
    if mode == b"SILENT":
        return COUNT_DOWN
    return MAX_COUNT if mode == b"FATAL" else KEEP_COUNT


def _force(stream: Stream, group: Group, entry_id: StreamId, count: int) -> PendingRun | None:
    """FORCE: release a live entry that is not pending; None if there is no such entry."""
    found = stream.find(entry_id)
    return None if found is None else group.pel.force_released(*found, count)
