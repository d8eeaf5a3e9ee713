"""XDEL, XDELEX and XACKDEL: delete entries by their ids.

Tests: transcripts xackdel, streams; cases commands/test_runs_of_ids; law test_laws; model storage/test_against_naive.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.engine import refusals
from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams.entry_deletion import delete_all
from penstock.storage.streams.ids import IdColumns, StreamId, halves
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import ACKNOWLEDGED, DELETE_REFERENCES, KEEP_REFERENCES

DELETED: Final = b":1\r\n"
ABSENT: Final = b":-1\r\n"  # XDELEX: no such entry; XACKDEL: not pending in this group
REFERENCED: Final = b":2\r\n"  # some group still needs it


@command(
    "XDEL key id [id ...]",
    "5.0.0 write fast | keys 1 RW delete",
    "Deletes entries by their ids.",
    "O(1) for each single item to delete in the stream, regardless of the stream size.",
)
def xdel(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.stream(args[1])
    if stream is None:
        return reply.ZERO
    if len(args) == 3:
        deleted = int(stream.delete(stream_arguments.stream_id(args[2])))
    else:
        deleted = delete_all(stream, stream_arguments.id_columns(args[2:]))
    if deleted:
        notify_deleted(ctx, args[1], deleted)
        ctx.log_request(args)
        if stream.policies is not None:
            settling.deleted(ctx, args[1], stream, stream_arguments.stream_ids(args[2:]))
    return reply.integer(deleted)


@command(
    "XDELEX key condition:[KEEPREF|DELREF|ACKED] ids:IDS (numids id [id ...])",
    "8.2.0 write fast | keys 1 RW delete",
    "Deletes entries by their ids; options say what happens to pending entries.",
    "O(1) for each single item to delete in the stream, regardless of the stream size.",
)
def xdelex(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.stream(args[1])
    references, texts = _read_options(args, 2)
    if stream is None:
        return reply.array([ABSENT] * len(texts))
    replies = []
    deleted = dropped = 0
    entry_ids = stream_arguments.stream_ids(texts)
    for entry_id in entry_ids:
        if references == ACKNOWLEDGED and stream.is_referenced(entry_id):
            replies.append(REFERENCED)
            continue
        if references == DELETE_REFERENCES:
            dropped += stream.drop_references(entry_id)  # also of a deleted entry
        if stream.delete(entry_id):
            deleted += 1
            replies.append(DELETED)
        else:
            replies.append(ABSENT)
    if deleted:
        notify_deleted(ctx, args[1], deleted)
    if deleted or dropped:
        ctx.count_group_changes(args[1], dropped)
        if ctx.effects.compat.references:
            ctx.log_request(args)
        else:
            if deleted:
                ctx.log(b"XDEL", args[1], *_ids_with(texts, replies, DELETED))
            if dropped:
                group_effects.log_dropped_references(ctx, args[1], stream, entry_ids)
        if stream.policies is not None:
            settling.deleted(ctx, args[1], stream, entry_ids)
    return reply.array(replies)


@command(
    "XACKDEL key group condition:[KEEPREF|DELREF|ACKED] ids:IDS (numids id [id ...])",
    "8.2.0 write fast | keys 1 RW update delete",
    "Acknowledges entries in a group and deletes them.",
    "O(1) for each message ID processed.",
)
def xackdel(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.read_stream(args[1])
    references, texts = _read_options(args, 3)
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        return reply.array([ABSENT] * len(texts))
    length = stream.length
    if references == KEEP_REFERENCES and len(texts) > 1:
        replies = _take_all(stream, group, stream_arguments.id_columns(texts))
    else:
        replies = [_take(stream, group, entry_id, references) for entry_id in stream_arguments.stream_ids(texts)]
    acknowledged = len(replies) - replies.count(ABSENT)
    deleted = length - stream.length
    if deleted:
        notify_deleted(ctx, args[1], deleted)
    if acknowledged:
        ctx.count_group_changes(args[1], acknowledged)
        if ctx.effects.compat.references:
            ctx.log_request(args)
        else:
            _log_for_older_redis(ctx, args, stream, references, texts, replies)
        if stream.policies is not None:
            if deleted:
                settling.taken(ctx, args[1], stream, stream_arguments.stream_ids(texts))
            settling.acknowledged(ctx, args[1], stream, stream_arguments.stream_ids(texts))
    return reply.array(replies)


def _take(stream: Stream, group: Group, entry_id: StreamId, references: int) -> bytes:
    """Acknowledge one entry, and delete it unless some group still needs it: what XACKDEL answers. O(g log b)."""
    ms, seq = halves(entry_id)
    if not group.pel.acknowledge(ms, seq):
        return ABSENT
    if references == ACKNOWLEDGED and stream.is_referenced(entry_id):
        return REFERENCED
    if references == DELETE_REFERENCES:
        stream.drop_references(entry_id)
    stream.delete(entry_id)
    return DELETED  # also if the entry itself was deleted before


def _take_all(stream: Stream, group: Group, wanted: IdColumns) -> list[bytes]:
    """As `_take` with KEEPREF for each id, in runs of neighbours. Costs as `acknowledge_all` and `delete_all`."""
    was_pending = group.pel.acknowledge_all(wanted)
    if was_pending.count(1) == len(wanted):
        delete_all(stream, wanted)
        return [DELETED] * len(wanted)
    for at, one in enumerate(was_pending):
        if one:
            stream.delete(wanted.id_at(at))
    return [DELETED if one else ABSENT for one in was_pending]


def _log_for_older_redis(
    ctx: Context, args: list[bytes], stream: Stream, references: int, texts: list[bytes], replies: list[bytes]
) -> None:
    """Log an XACKDEL for a Redis that does not have it."""
    deleted_texts = _ids_with(texts, replies, DELETED)
    ctx.log(b"XACK", args[1], args[2], *deleted_texts, *_ids_with(texts, replies, REFERENCED))
    if deleted_texts:
        ctx.log(b"XDEL", args[1], *deleted_texts)
        if references == DELETE_REFERENCES:
            group_effects.log_dropped_references(ctx, args[1], stream, stream_arguments.stream_ids(deleted_texts))


def _ids_with(texts: list[bytes], replies: list[bytes], wanted: bytes) -> list[bytes]:
    """The ids that got a certain reply."""
    return [text for text, answer in zip(texts, replies, strict=True) if answer == wanted]


def notify_deleted(ctx: Context, key: bytes, deleted: int) -> None:
    """Entries of a stream were deleted."""
    ctx.dirty += deleted
    ctx.touch(key)
    ctx.event("t", b"xdel", key)


def _read_options(args: list[bytes], at: int) -> tuple[int, list[bytes]]:
    """Read [KEEPREF|DELREF|ACKED] IDS numids id [id ...], in any order; the last IDS counts."""
    references = KEEP_REFERENCES
    referred = False
    texts: list[bytes] = []
    while at < len(args):
        word = args[at].upper()
        if word in REFERENCE_WORDS and not referred:
            referred = True
            references = REFERENCE_WORDS[word]
        elif word == b"IDS" and at + 1 < len(args):
            texts, at = stream_arguments.numbered_ids(
                args,
                at + 1,
                b"ERR Number of IDs must be a positive integer",
                b"ERR The `numids` parameter must match the number of arguments",
                2**63 - 1,
            )
        else:
            raise refusals.syntax()
        at += 1
    if not texts:
        raise ReplyError(b"ERR IDS option is required")
    return references, texts
