"""XINFO: describes streams, groups and consumers.

Tests: transcripts xinfo; cases commands/test_pending_rows; law against_redis/test_random_requests.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.commands.policies import policy_fields
from penstock.commands.streams.groups.info_fields import InfoFields
from penstock.commands.streams.groups.pending_rows import NO_NOW, PendingRows
from penstock.commands.streams.reading.xrange import EVERYTHING, entries_of
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import UNKNOWN, Group
from penstock.storage.streams.stream import Stream

SHOWN: Final = 10  # the default COUNT of FULL, for entries and pending entries


def _existing(ctx: Context, key: bytes) -> Stream:
    value = ctx.read(key)
    if value is None:
        raise refusals.no_such_key()
    if not isinstance(value, Stream):
        raise refusals.wrong_type()
    ctx.blocking.note_seen(ctx.db_index, key)
    value.producers.sweep(ctx.now_ms)
    return value


container("XINFO", group="stream", since="5.0.0", summary="Commands that describe streams.")


@command(
    "XINFO|STREAM key full-block:[FULL@~6.0.0 [COUNT count@~6.0.0]]",
    "5.0.0 readonly | keys 2 RO access",
    "Returns a stream's counters and its first and last entry, or with FULL all of it.",
    history=(
        ("6.0.0", "Added the `FULL` modifier."),
        (
            "7.0.0",
            (
                "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, "
                "`entries-read` and `lag` fields"
            ),
        ),
        ("7.2.0", "Added the `active-time` field, and changed the meaning of `seen-time`."),
        (
            "8.6.0",
            (
                "Added the `idmp-duration`, `idmp-maxsize`, `pids-tracked`, `iids-tracked`, "
                "`iids-added` and `iids-duplicates` fields for IDMP tracking."
            ),
        ),
    ),
)
def xinfo_stream(ctx: Context, args: list[bytes]) -> bytes:
    stream = _existing(ctx, args[2])
    fields = InfoFields(ctx)
    if len(args) == 3:
        _add_heading(fields, stream)
        _add_ends(fields, ctx, stream)
        fields.add_all(policy_fields.of_stream(ctx, stream))
        return fields.as_map()
    if args[3].upper() != b"FULL" or len(args) not in (4, 6) or (len(args) == 6 and args[4].upper() != b"COUNT"):
        raise refusals.unknown_or_wrong(args[1], args[0])
    max_count = SHOWN
    if len(args) == 6:
        max_count = arguments.integer(args[5])
        max_count = EVERYTHING if max_count == 0 else SHOWN if max_count < 0 else max_count
    groups = [_full_group(ctx, stream, group, max_count) for group in stream.groups_by_name()]
    entries = entries_of(stream.runs(ids.ZERO, ids.MAX, max_count))
    _add_heading(fields, stream)
    fields.add(b"entries", entries)
    fields.add(b"groups", reply.array(groups))
    fields.add_all(policy_fields.of_stream(ctx, stream))
    return fields.as_map()


def _add_heading(fields: InfoFields, stream: Stream) -> None:
    """The fields at the beginning of both forms of XINFO STREAM."""
    producers = stream.producers
    nodes = len(stream.nodes)
    fields.add_number(b"length", stream.length)
    fields.add_number(b"radix-tree-keys", nodes)
    fields.add_number(b"radix-tree-nodes", nodes + 1)
    fields.add(b"last-generated-id", reply.bulk(ids.text(stream.last_id)))
    fields.add(b"max-deleted-entry-id", reply.bulk(ids.text(stream.max_deleted_id)))
    fields.add_number(b"entries-added", stream.entries_added)
    fields.add(b"recorded-first-entry-id", reply.bulk(ids.text(stream.first_id)))
    fields.add_number(b"idmp-duration", producers.duration_s)
    fields.add_number(b"idmp-maxsize", producers.max_size)
    fields.add_number(b"pids-tracked", len(producers.pids))
    fields.add_number(b"iids-tracked", producers.tracked)
    fields.add_number(b"iids-added", producers.added)
    fields.add_number(b"iids-duplicates", producers.duplicates)


def _add_ends(fields: InfoFields, ctx: Context, stream: Stream) -> None:
    first = last = reply.null(ctx.resp3)
    if stream.length:
        head, tail = stream.segments[0], stream.segments[-1]
        first, last = head.entry(head.first_live()), tail.entry(tail.last_live())
    fields.add_number(b"groups", len(stream.groups))
    fields.add(b"first-entry", first)
    fields.add(b"last-entry", last)


def _known(ctx: Context, number: int | None) -> bytes:
    """A count, or null if it cannot be computed because entries were deleted."""
    return reply.null(ctx.resp3) if number is None else reply.integer(number)


def _entries_read(ctx: Context, group: Group) -> bytes:
    return _known(ctx, None if group.entries_read == UNKNOWN else group.entries_read)


def _full_group(ctx: Context, stream: Stream, group: Group, max_count: int) -> bytes:
    pending = PendingRows(group, max_count, NO_NOW, True)
    pending.add_from(ids.ZERO, None)
    consumers = [_full_consumer(ctx, group, consumer, max_count) for consumer in group.consumers_by_name()]
    fields = InfoFields(ctx)
    fields.add(b"name", reply.bulk(group.name))
    fields.add(b"last-delivered-id", reply.bulk(ids.text(group.last_id)))
    fields.add(b"entries-read", _entries_read(ctx, group))
    fields.add(b"lag", _known(ctx, stream.lag(group)))
    fields.add_number(b"pel-count", group.pel.count)
    fields.add_number(b"nacked-count", group.pel.order.released)
    fields.add(b"pending", pending.as_array())
    fields.add(b"consumers", reply.array(consumers))
    fields.add_all(policy_fields.of_group(ctx, stream, group))
    return fields.as_map()


def _full_consumer(ctx: Context, group: Group, consumer: Consumer, max_count: int) -> bytes:
    pending = PendingRows(group, max_count, NO_NOW, False)
    pending.add_from(ids.ZERO, consumer)
    fields = InfoFields(ctx)
    fields.add(b"name", reply.bulk(consumer.name))
    fields.add_number(b"seen-time", consumer.seen_ms)
    fields.add_number(b"active-time", consumer.active_ms)
    fields.add_number(b"pel-count", consumer.pending)
    fields.add(b"pending", pending.as_array())
    return fields.as_map()


@command(
    "XINFO|GROUPS key",
    "5.0.0 readonly | keys 2 RO access",
    "Lists a stream's consumer groups.",
    history=(("7.0.0", "Added the `entries-read` and `lag` fields"),),
)
def xinfo_groups(ctx: Context, args: list[bytes]) -> bytes:
    stream = _existing(ctx, args[2])
    rows = [
        reply.fields(
            [
                (b"name", reply.bulk(group.name)),
                (b"consumers", reply.integer(len(group.consumers))),
                (b"pending", reply.integer(group.pel.count)),
                (b"last-delivered-id", reply.bulk(ids.text(group.last_id))),
                (b"entries-read", _entries_read(ctx, group)),
                (b"lag", _known(ctx, stream.lag(group))),
                *policy_fields.of_group(ctx, stream, group),
            ],
            ctx.resp3,
        )
        for group in stream.groups_by_name()
    ]
    return reply.array(rows)


@command(
    "XINFO|CONSUMERS key group",
    "5.0.0 readonly | keys 2 RO access | tips nondeterministic_output",
    "Lists a group's consumers.",
    history=(("7.2.0", "Added the `inactive` field, and changed the meaning of `idle`."),),
)
def xinfo_consumers(ctx: Context, args: list[bytes]) -> bytes:
    stream = _existing(ctx, args[2])
    group = stream.groups.get(args[3])
    if group is None:
        raise refusals.no_group_at(args[2], args[3])
    rows = [
        reply.fields(
            [
                (b"name", reply.bulk(consumer.name)),
                (b"pending", reply.integer(consumer.pending)),
                (b"idle", reply.integer(max(ctx.now_ms - consumer.seen_ms, 0))),
                (b"inactive", reply.integer(-1 if consumer.active_ms < 0 else max(ctx.now_ms - consumer.active_ms, 0))),
            ],
            ctx.resp3,
        )
        for consumer in group.consumers_by_name()
    ]
    return reply.array(rows)


declare_help(
    "XINFO",
    "5.0.0",
    [
        ("CONSUMERS <key> <groupname>", "The consumers of a group, with their pending entries and idle times."),
        ("GROUPS <key>", "The groups of a stream, with their positions and lags."),
        (
            "STREAM <key> [FULL [COUNT <count>]]",
            "The stream's counters, first and last entry; FULL: entries, groups and pending entries too.",
        ),
    ],
)
