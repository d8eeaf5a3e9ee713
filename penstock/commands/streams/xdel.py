"""XDEL, XDELEX and XACKDEL: deleting entries by their ids."""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.engine import refusals
from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams.entry_deletion import delete_all
from penstock.storage.streams.stream import ACKNOWLEDGED, DELETE_REFERENCES, KEEP_REFERENCES, Stream

GONE: Final = b":1\r\n"  # deleted
ABSENT: Final = b":-1\r\n"  # XDELEX: no such entry; XACKDEL: not pending in this group
REFERENCED: Final = b":2\r\n"  # some group still needs it


@command(
    "XDEL",
    "key id [id ...]",
    group="stream",
    since="5.0.0",
    flags="write fast",
    keys="1 RW delete",
    complexity="O(1) for each single item to delete in the stream, regardless of the stream size.",
    summary="Deletes entries by their ids.",
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
        _tell(ctx, args[1], deleted)
        ctx.log_request(args)
    return reply.integer(deleted)


@command(
    "XDELEX",
    "key condition:[KEEPREF|DELREF|ACKED] ids:IDS (numids id [id ...])",
    group="stream",
    since="8.2.0",
    flags="write fast",
    keys="1 RW delete",
    complexity="O(1) for each single item to delete in the stream, regardless of the stream size.",
    summary="Deletes entries by their ids, heeding or cleaning what groups hold pending.",
)
def xdelex(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.stream(args[1])
    references, texts = _read_options(args, 2)
    if stream is None:
        return reply.array([ABSENT] * len(texts))
    answers = []
    deleted = 0
    entry_ids = stream_arguments.stream_ids(texts)
    for entry_id in entry_ids:
        if references == ACKNOWLEDGED and stream.is_referenced(entry_id):
            answers.append(REFERENCED)
            continue
        if references == DELETE_REFERENCES:
            stream.drop_references(entry_id)
        if stream.delete(entry_id):
            deleted += 1
            answers.append(GONE)
        else:
            answers.append(ABSENT)
    if deleted:
        _tell(ctx, args[1], deleted)
        if ctx.effects.dialect.references:
            ctx.log_request(args)
        else:
            ctx.log(b"XDEL", args[1], *_answered(texts, answers, GONE))
            if references == DELETE_REFERENCES:
                group_effects.log_dropped_references(ctx, args[1], stream, entry_ids)
    return reply.array(answers)


@command(
    "XACKDEL",
    "key group condition:[KEEPREF|DELREF|ACKED] ids:IDS (numids id [id ...])",
    group="stream",
    since="8.2.0",
    flags="write fast",
    keys="1 RW update delete",
    complexity="O(1) for each message ID processed.",
    summary="Acknowledges entries in a group and deletes them.",
)
def xackdel(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.read_stream(args[1])
    references, texts = _read_options(args, 3)
    group = None if stream is None else stream.groups.get(args[2])
    if stream is None or group is None:
        return reply.array([ABSENT] * len(texts))
    answers = []
    acknowledged = deleted = 0
    for entry_id in stream_arguments.stream_ids(texts):
        if not group.acknowledge(entry_id):
            answers.append(ABSENT)
            continue
        acknowledged += 1
        if references == ACKNOWLEDGED and stream.is_referenced(entry_id):
            answers.append(REFERENCED)
            continue
        if references == DELETE_REFERENCES:
            stream.drop_references(entry_id)
        deleted += stream.delete(entry_id)
        answers.append(GONE)  # also where only the pending entry was left
    if deleted:
        _tell(ctx, args[1], deleted)
    if acknowledged:
        ctx.dirty += acknowledged
        if ctx.effects.dialect.references:
            ctx.log_request(args)
        else:
            _log_in_old_words(ctx, args, stream, references, texts, answers)
    return reply.array(answers)


def _log_in_old_words(
    ctx: Context, args: list[bytes], stream: Stream, references: int, texts: list[bytes], answers: list[bytes]
) -> None:
    """An XACKDEL for a Redis that has none."""
    gone = _answered(texts, answers, GONE)
    ctx.log(b"XACK", args[1], args[2], *gone, *_answered(texts, answers, REFERENCED))
    if gone:
        ctx.log(b"XDEL", args[1], *gone)
        if references == DELETE_REFERENCES:
            group_effects.log_dropped_references(ctx, args[1], stream, stream_arguments.stream_ids(gone))


def _answered(texts: list[bytes], answers: list[bytes], wanted: bytes) -> list[bytes]:
    """The ids that got an answer."""
    return [text for text, answer in zip(texts, answers, strict=True) if answer == wanted]


def _tell(ctx: Context, key: bytes, deleted: int) -> None:
    ctx.dirty += deleted
    ctx.touch(key)
    ctx.event("t", b"xdel", key)


def _read_options(args: list[bytes], at: int) -> tuple[int, list[bytes]]:
    """[KEEPREF|DELREF|ACKED] IDS numids id [id ...], in any order; of several IDS the last counts."""
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
