"""XSETID, XCFGSET and XIDMPRECORD: set a stream's counters, settings and idempotent ids.

Tests: transcripts xsetid, xadd_idempotent; law test_laws; model storage/test_idempotence.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.idempotence import LONGEST_S, MOST_IIDS
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.stream import Stream

NOT_GIVEN: Final = -1


def existing(ctx: Context, key: bytes) -> Stream:
    """The stream at a key; ReplyError `no such key` or WRONGTYPE."""
    value = ctx.value(key)
    if value is None:
        raise refusals.no_such_key()
    if not isinstance(value, Stream):
        raise refusals.wrong_type()
    return value


@command(
    "XSETID key last-id [ENTRIESADDED entries-added:integer@7.0.0] [MAXDELETEDID max-deleted-id@7.0.0]",
    "5.0.0 write denyoom fast | keys 1 RW update",
    "Sets a stream's last id, and its counters.",
    history=(("7.0.0", "Added the `entries_added` and `max_deleted_entry_id` arguments."),),
)
def xsetid(ctx: Context, args: list[bytes]) -> bytes:
    last_id = stream_arguments.stream_id(args[2])
    entries_added = max_deleted_id = NOT_GIVEN
    at = 3
    while at < len(args):
        word = args[at].upper()
        if word == b"ENTRIESADDED" and at + 1 < len(args):
            entries_added = arguments.integer(args[at + 1])
            if entries_added < 0:
                raise ReplyError(b"ERR entries_added must be positive")
        elif word == b"MAXDELETEDID" and at + 1 < len(args):
            max_deleted_id = stream_arguments.stream_id(args[at + 1])
            if last_id < max_deleted_id:
                raise ReplyError(b"ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
        else:
            raise refusals.syntax()
        at += 2
    stream = existing(ctx, args[1])
    resets = max_deleted_id == ids.ZERO and ctx.session.privileged  # our own log may set max-deleted to 0-0
    if last_id < stream.max_deleted_id and not resets:
        raise ReplyError(b"ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
    if stream.length:
        if last_id < stream.last_live_id:
            raise ReplyError(b"ERR The ID specified in XSETID is smaller than the target stream top item")
        if NOT_GIVEN < entries_added < stream.length:
            raise ReplyError(b"ERR The entries_added specified in XSETID is smaller than the target stream length")
    stream.set_last_id(last_id)
    if entries_added != NOT_GIVEN:
        stream.entries_added = entries_added
    if max_deleted_id > ids.ZERO or resets:
        stream.max_deleted_id = max_deleted_id
    ctx.count_group_changes(args[1], 1)
    _log_set_id(ctx, args, max_deleted_id)
    ctx.event("t", b"xsetid", args[1])
    if stream.policies is not None:
        settling.apply_policies(ctx, args[1], stream)
    return reply.OK


def _log_set_id(ctx: Context, args: list[bytes], max_deleted_id: StreamId) -> None:
    """Log an XSETID. A client's MAXDELETEDID 0-0 changes nothing (Redis 8.6.3); of a line of the log it would."""
    if max_deleted_id != ids.ZERO or ctx.session.privileged:
        ctx.log_request(args)
        return
    kept = args[:3]
    for at in range(3, len(args), 2):
        if args[at].upper() != b"MAXDELETEDID":
            kept += args[at : at + 2]
    ctx.log(*kept)


@command(
    "XCFGSET key idmp-duration-block:[idmp-duration-token:IDMP-DURATION, duration:integer] "
    "idmp-maxsize-block:[idmp-maxsize-token:IDMP-MAXSIZE, maxsize:integer]",
    "8.6.0 write fast | keys 1 RW update",
    "Sets how long and how many idempotent ids a stream keeps.",
)
def xcfgset(ctx: Context, args: list[bytes]) -> bytes:
    stream = existing(ctx, args[1])
    producers = stream.producers
    duration_s = max_size = NOT_GIVEN
    at = 2
    while at < len(args):
        word = args[at].upper()
        if word == b"IDMP-DURATION" and at + 1 < len(args):
            if duration_s != NOT_GIVEN:
                raise ReplyError(b"ERR IDMP-DURATION specified multiple times")
            duration_s = arguments.integer(args[at + 1])
            if not 1 <= duration_s <= LONGEST_S:
                raise ReplyError(b"ERR IDMP-DURATION must be between 1 and 86400 seconds")
        elif word == b"IDMP-MAXSIZE" and at + 1 < len(args):
            if max_size != NOT_GIVEN:
                raise ReplyError(b"ERR IDMP-MAXSIZE specified multiple times")
            max_size = arguments.integer(args[at + 1])
            if not 1 <= max_size <= MOST_IIDS:
                raise ReplyError(b"ERR IDMP-MAXSIZE must be between 1 and 10000 entries")
        else:
            raise refusals.syntax()
        at += 2
    if duration_s == NOT_GIVEN and max_size == NOT_GIVEN:
        raise ReplyError(b"ERR At least one parameter must be specified")
    changed = producers.configure(
        producers.duration_s if duration_s == NOT_GIVEN else duration_s,
        producers.max_size if max_size == NOT_GIVEN else max_size,
    )
    if changed:
        ctx.dirty += 1
        _log(ctx, args)
    return reply.OK


@command(
    "XIDMPRECORD key pid iid stream-id",
    "8.6.2 write denyoom fast | keys 1 RW update",
    "Restores one idempotent id of a producer.",
)
def xidmprecord(ctx: Context, args: list[bytes]) -> bytes:
    pid, iid = args[2], args[3]
    entry_id = stream_arguments.stream_id(args[4])
    if not pid:
        raise ReplyError(b"ERR producer ID must be non-empty")
    if not iid:
        raise ReplyError(b"ERR idempotent ID must be non-empty")
    stream = existing(ctx, args[1])
    if stream.find(entry_id) is None:
        raise ReplyError(b"ERR No such message in stream")
    producers = stream.producers
    if not ctx.session.privileged:  # no log says what expired: there may be an older record here than at the master
        producers.sweep(ctx.now_ms)
        recorded = producers.find(pid, iid)
        if recorded == entry_id:
            return reply.OK
        if recorded is not None:
            raise ReplyError(b"ERR IID already exists for this producer with a different stream ID")
    producers.record(pid, iid, entry_id)
    ctx.dirty += 1
    _log(ctx, args)
    return reply.OK


def _log(ctx: Context, args: list[bytes]) -> None:
    """Log the request, unless the log is for an older Redis, which has no idempotence."""
    if ctx.effects.compat.idempotence:
        ctx.log_request(args)
