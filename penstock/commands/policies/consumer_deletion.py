"""PENSTOCK.DELCONSUMER: deletes a consumer without losing its pending entries.

Tests: transcripts policies_consumers; cases policies/test_consumers.
"""

from penstock.commands.streams.groups.xgroup import delete_consumer
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.protocol import reply


@command(
    "PENSTOCK.DELCONSUMER key group consumer condition:<IFEMPTY|RELEASE>",
    f"{PENSTOCK_VERSION} write | keys 1 RW delete | arity -4",
    "Deletes a consumer if it has no pending entries, or gives them back.",
    "O(N log R) with N the consumer's pending entries and R the group's released ones.",
)
def penstock_delconsumer(ctx: Context, args: list[bytes]) -> bytes:
    """How many pending entries the consumer had; 0 if there is no such consumer."""
    key, name = args[1], args[2]
    condition = args[4].upper() if len(args) == 5 else b""
    if condition not in (b"IFEMPTY", b"RELEASE"):
        raise refusals.syntax()
    stream = ctx.stream(key)
    group = None if stream is None else stream.groups.get(name)
    if stream is None or group is None:
        raise refusals.no_group(key, name)
    consumer = group.consumers.get(args[3])
    if consumer is None:
        return reply.ZERO
    count = consumer.pending
    if condition == b"RELEASE":
        settling.give_back(ctx, key, stream, group, consumer)
    elif count:
        return reply.integer(count)
    delete_consumer(ctx, stream, group, consumer, [b"XGROUP", b"DELCONSUMER", key, name, consumer.name])
    return reply.integer(count)
