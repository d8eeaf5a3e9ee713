"""XGROUP: create, change and delete consumer groups and consumers.

Tests: transcripts groups, consumers; law test_laws; model storage/test_against_naive.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.consumers import new_consumer
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.table.command_table import command, container
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import UNKNOWN, Group
from penstock.storage.streams.stream import Stream

KEY_NEEDED: Final = (
    b"ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option"
    b" to create an empty stream automatically."
)


def _stream(ctx: Context, args: list[bytes]) -> Stream:
    stream = ctx.stream(args[2])
    if stream is None:
        raise ReplyError(KEY_NEEDED)
    return stream


def _stream_and_group(ctx: Context, args: list[bytes]) -> tuple[Stream, Group]:
    stream = _stream(ctx, args)
    group = stream.groups.get(args[3])
    if group is None:
        raise refusals.no_group_at(args[2], args[3])
    return stream, group


def _read_options(args: list[bytes], may_make_stream: bool) -> tuple[bool, int]:
    """Read [MKSTREAM] [ENTRIESREAD n]: whether to create the stream, and the count, UNKNOWN if there is none."""
    make_stream = False
    entries_read = UNKNOWN
    at = 5
    while at < len(args):
        word = args[at].upper()
        if word == b"MKSTREAM" and may_make_stream:
            make_stream = True
        elif word == b"ENTRIESREAD" and at + 1 < len(args):
            at += 1
            entries_read = arguments.integer(args[at])
            if entries_read < UNKNOWN:
                raise ReplyError(b"ERR value for ENTRIESREAD must be positive or -1")
        else:
            raise refusals.unknown_or_wrong(args[1], args[0])
        at += 1
    return make_stream, entries_read


def _refuse_surplus(args: list[bytes], max_count: int) -> None:
    """Refuse repeated options, which only make the request too long. Redis checks this after the key and the group."""
    if len(args) > max_count:
        raise refusals.unknown_or_wrong(args[1], args[0])


container("XGROUP", group="stream", since="5.0.0", summary="Commands for consumer groups.")


@command(
    "XGROUP|CREATE key group id-selector:<id|new-id:$> [MKSTREAM] "
    "[entriesread:ENTRIESREAD entries-read:integer@~7.0.0]",
    "5.0.0 write denyoom | keys 2 RW insert",
    "Creates a consumer group.",
    history=(("7.0.0", "Added the `entries_read` named argument."),),
)
def xgroup_create(ctx: Context, args: list[bytes]) -> bytes:
    make_stream, entries_read = _read_options(args, True)
    key, name = args[2], args[3]
    stream = ctx.stream(key)
    if stream is None and not make_stream:
        raise ReplyError(KEY_NEEDED)
    _refuse_surplus(args, 8)
    if args[4] == b"$":
        last_id = ids.ZERO if stream is None else stream.last_id
    else:
        last_id = stream_arguments.stream_id(args[4])
    if stream is None:
        stream = ctx.form_limits.new_stream()
        ctx.db.put(key, stream)
        ctx.touch(key)
        ctx.signal(key)
        ctx.event("n", b"new", key)
    if name in stream.groups:
        raise ReplyError(b"BUSYGROUP Consumer Group name already exists")
    stream.groups[name] = Group(name, last_id, min(entries_read, stream.entries_added))
    ctx.count_group_changes(key, 1)
    ctx.log_request(args)
    ctx.event("t", b"xgroup-create", key)
    settling.group_created(ctx, key, stream, stream.groups[name])
    return reply.OK


@command(
    "XGROUP|SETID key group id-selector:<id|new-id:$> [entriesread:ENTRIESREAD entries-read:integer@~7.0.0]",
    "5.0.0 write | keys 2 RW update",
    "Sets a group's last-delivered id.",
    history=(("7.0.0", "Added the optional `entries_read` argument."),),
)
def xgroup_setid(ctx: Context, args: list[bytes]) -> bytes:
    _, entries_read = _read_options(args, False)
    stream, group = _stream_and_group(ctx, args)
    _refuse_surplus(args, 7)
    last_id = stream.last_id if args[4] == b"$" else stream_arguments.bounded_id(args[4])
    former_id = group.last_id
    group.last_id = last_id
    group.entries_read = min(entries_read, stream.entries_added)
    ctx.count_group_changes(args[2], 1)
    ctx.log_request(args)
    ctx.event("t", b"xgroup-setid", args[2])
    settling.group_moved(ctx, args[2], stream, group, former_id)
    return reply.OK


@command(
    "XGROUP|DESTROY key group",
    "5.0.0 write | keys 2 RW delete",
    "Deletes a consumer group.",
    "O(N) where N is the number of entries in the group's pending entries list (PEL).",
)
def xgroup_destroy(ctx: Context, args: list[bytes]) -> bytes:
    stream = _stream(ctx, args)
    if stream.groups.pop(args[3], None) is None:
        return reply.ZERO
    ctx.count_group_changes(args[2], 1)
    ctx.log_request(args)
    ctx.event("t", b"xgroup-destroy", args[2])
    ctx.signal(args[2])  # unblocks its readers, with an error
    settling.swept(ctx, args[2], stream)
    return reply.ONE


@command(
    "XGROUP|CREATECONSUMER key group consumer",
    "6.2.0 write denyoom | keys 2 RW insert",
    "Creates a consumer in a group.",
)
def xgroup_createconsumer(ctx: Context, args: list[bytes]) -> bytes:
    _, group = _stream_and_group(ctx, args)
    if args[4] in group.consumers:
        return reply.ZERO
    new_consumer(ctx, args[2], group, args[4])
    return reply.ONE


@command(
    "XGROUP|DELCONSUMER key group consumer",
    "5.0.0 write | keys 2 RW delete",
    "Deletes a consumer with its pending entries.",
)
def xgroup_delconsumer(ctx: Context, args: list[bytes]) -> bytes:
    stream, group = _stream_and_group(ctx, args)
    consumer = group.consumers.get(args[4])
    if consumer is None:
        return reply.ZERO
    lost = consumer.pending
    settling.consumer_deleted(ctx, args[2], stream, group, consumer)
    delete_consumer(ctx, stream, group, consumer, args)
    return reply.integer(lost)


def delete_consumer(ctx: Context, stream: Stream, group: Group, consumer: Consumer, request: list[bytes]) -> None:
    """Delete a consumer with what it still has pending, as the XGROUP DELCONSUMER asks that is logged."""
    key = request[2]
    group.remove_consumer(consumer)
    ctx.blocking.consumer_deleted(ctx.db_index, key, group.name, consumer.name)
    ctx.count_group_changes(key, 1)
    ctx.log_request(request)
    ctx.event("t", b"xgroup-delconsumer", key)
    settling.swept(ctx, key, stream)


declare_help(
    "XGROUP",
    "5.0.0",
    [
        (
            "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
            "Create a group whose last-delivered id is <id>.",
        ),
        ("CREATECONSUMER <key> <group> <consumer>", "Create a consumer in a group."),
        ("DELCONSUMER <key> <group> <consumer>", "Delete a consumer and the pending entries it owns."),
        ("DESTROY <key> <group>", "Delete a group with its consumers and pending entries."),
        ("SETID <key> <group> <id|$> [ENTRIESREAD <count>]", "Set the last-delivered id of a group."),
    ],
)
