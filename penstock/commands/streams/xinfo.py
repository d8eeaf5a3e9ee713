"""XINFO: describes streams, groups and consumers."""

from typing import Final

from penstock.commands.common.help import help_reply
from penstock.commands.policies import policy_fields
from penstock.commands.streams.pending_rows import PendingRows, row_heads
from penstock.commands.streams.xrange import EVERYTHING, entries_of
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.group import UNKNOWN, Consumer, Group
from penstock.storage.streams.stream import Stream

HEADS: Final = row_heads(4)
OWN_HEADS: Final = row_heads(3)
SHOWN: Final = 10  # the default COUNT of FULL, for entries and pending entries


def _existing(ctx: Context, key: bytes) -> Stream:
    value = ctx.read(key)
    if value is None:
        raise refusals.no_such_key()
    if not isinstance(value, Stream):
        raise refusals.wrong_type()
    ctx.engine.blocking.settle(ctx.db_index, key)
    value.producers.sweep(ctx.now_ms)
    return value


container("XINFO", group="stream", since="5.0.0", summary="Commands that describe streams.")


@command(
    "XINFO|STREAM",
    "key full-block:[FULL [COUNT count]]",
    group="stream",
    since="5.0.0",
    flags="readonly",
    keys="2 RO access",
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
    summary="Returns a stream's counters and its first and last entry, or with FULL all of it.",
)
def xinfo_stream(ctx: Context, args: list[bytes]) -> bytes:
    stream = _existing(ctx, args[2])
    if len(args) == 3:
        return reply.fields(
            ctx.shown([*_heading(stream), *_ends(ctx, stream), *policy_fields.of_stream(ctx, stream)]), ctx.resp3
        )
    if args[3].upper() != b"FULL" or len(args) not in (4, 6) or (len(args) == 6 and args[4].upper() != b"COUNT"):
        raise refusals.unknown_or_wrong(args[1], args[0])
    max_count = SHOWN
    if len(args) == 6:
        max_count = arguments.integer(args[5])
        max_count = EVERYTHING if max_count == 0 else SHOWN if max_count < 0 else max_count
    groups = [_full_group(ctx, stream, group, max_count) for group in stream.groups_by_name()]
    entries = entries_of(stream.runs(ids.ZERO, ids.MAX, max_count))
    shown = [*_heading(stream), (b"entries", entries), (b"groups", reply.array(groups))]
    shown += policy_fields.of_stream(ctx, stream)
    return reply.fields(ctx.shown(shown), ctx.resp3)


def _heading(stream: Stream) -> list[tuple[bytes, bytes]]:
    """The fields at the beginning of both forms of XINFO STREAM."""
    producers = stream.producers
    nodes = len(stream.nodes)
    return [
        (b"length", reply.integer(stream.length)),
        (b"radix-tree-keys", reply.integer(nodes)),
        (b"radix-tree-nodes", reply.integer(nodes + 1)),
        (b"last-generated-id", reply.bulk(ids.text(stream.last_id))),
        (b"max-deleted-entry-id", reply.bulk(ids.text(stream.max_deleted_id))),
        (b"entries-added", reply.integer(stream.entries_added)),
        (b"recorded-first-entry-id", reply.bulk(ids.text(stream.first_id))),
        (b"idmp-duration", reply.integer(producers.duration_s)),
        (b"idmp-maxsize", reply.integer(producers.max_size)),
        (b"pids-tracked", reply.integer(len(producers.pids))),
        (b"iids-tracked", reply.integer(producers.tracked)),
        (b"iids-added", reply.integer(producers.added)),
        (b"iids-duplicates", reply.integer(producers.duplicates)),
    ]


def _ends(ctx: Context, stream: Stream) -> list[tuple[bytes, bytes]]:
    first = last = reply.null(ctx.resp3)
    if stream.length:
        head, tail = stream.segments[0], stream.segments[-1]
        first, last = head.entry(head.first_live()), tail.entry(tail.last_live())
    return [(b"groups", reply.integer(len(stream.groups))), (b"first-entry", first), (b"last-entry", last)]


def _known(ctx: Context, number: int | None) -> bytes:
    """A count, or null if it cannot be computed because entries were deleted."""
    return reply.null(ctx.resp3) if number is None else reply.integer(number)


def _entries_read(ctx: Context, group: Group) -> bytes:
    return _known(ctx, None if group.entries_read == UNKNOWN else group.entries_read)


class TimedRows(PendingRows):
    """Rows of [id, owner, delivery time in unix ms, deliveries]."""

    __slots__ = ()

    def tail(self, owner: int, time_ms: int, count: int) -> bytes:
        return reply.bulk(self.group.name_of(owner)) + reply.integer(time_ms) + reply.integer(count)


class OwnTimedRows(PendingRows):
    """Rows of [id, delivery time in unix ms, deliveries]."""

    __slots__ = ()

    def tail(self, owner: int, time_ms: int, count: int) -> bytes:
        return reply.integer(time_ms) + reply.integer(count)


def _full_group(ctx: Context, stream: Stream, group: Group, max_count: int) -> bytes:
    pending = TimedRows(group, HEADS, max_count)
    pending.add_from(ids.ZERO, None)
    consumers = [_full_consumer(ctx, group, consumer, max_count) for consumer in group.consumers_by_name()]
    fields = [
        (b"name", reply.bulk(group.name)),
        (b"last-delivered-id", reply.bulk(ids.text(group.last_id))),
        (b"entries-read", _entries_read(ctx, group)),
        (b"lag", _known(ctx, stream.lag(group))),
        (b"pel-count", reply.integer(group.pending)),
        (b"nacked-count", reply.integer(group.released)),
        (b"pending", pending.as_array()),
        (b"consumers", reply.array(consumers)),
        *policy_fields.of_group(ctx, stream, group),
    ]
    return reply.fields(ctx.shown(fields), ctx.resp3)


def _full_consumer(ctx: Context, group: Group, consumer: Consumer, max_count: int) -> bytes:
    pending = OwnTimedRows(group, OWN_HEADS, max_count)
    pending.add_from(ids.ZERO, consumer)
    return reply.fields(
        [
            (b"name", reply.bulk(consumer.name)),
            (b"seen-time", reply.integer(consumer.seen_ms)),
            (b"active-time", reply.integer(consumer.active_ms)),
            (b"pel-count", reply.integer(consumer.pending)),
            (b"pending", pending.as_array()),
        ],
        ctx.resp3,
    )


@command(
    "XINFO|GROUPS",
    "key",
    group="stream",
    since="5.0.0",
    flags="readonly",
    keys="2 RO access",
    history=(("7.0.0", "Added the `entries-read` and `lag` fields"),),
    summary="Lists a stream's consumer groups.",
)
def xinfo_groups(ctx: Context, args: list[bytes]) -> bytes:
    stream = _existing(ctx, args[2])
    rows = [
        reply.fields(
            [
                (b"name", reply.bulk(group.name)),
                (b"consumers", reply.integer(len(group.consumers))),
                (b"pending", reply.integer(group.pending)),
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
    "XINFO|CONSUMERS",
    "key group",
    group="stream",
    since="5.0.0",
    flags="readonly",
    keys="2 RO access",
    tips="nondeterministic_output",
    history=(("7.2.0", "Added the `inactive` field, and changed the meaning of `idle`."),),
    summary="Lists a group's consumers.",
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
                (b"inactive", reply.integer(_inactive_ms(ctx, consumer))),
            ],
            ctx.resp3,
        )
        for consumer in group.consumers_by_name()
    ]
    return reply.array(rows)


def _inactive_ms(ctx: Context, consumer: Consumer) -> int:
    return -1 if consumer.active_ms < 0 else max(ctx.now_ms - consumer.active_ms, 0)


@command(
    "XINFO|HELP",
    group="stream",
    since="5.0.0",
    flags="loading stale",
    summary="Lists the subcommands.",
)
def xinfo_help(ctx: Context, args: list[bytes]) -> bytes:
    return help_reply(
        "XINFO",
        [
            ("CONSUMERS <key> <groupname>", "The consumers of a group, with their pending entries and idle times."),
            ("GROUPS <key>", "The groups of a stream, with their positions and lags."),
            (
                "STREAM <key> [FULL [COUNT <count>]]",
                "The stream's counters, first and last entry; FULL: entries, groups and pending entries too.",
            ),
        ],
    )
