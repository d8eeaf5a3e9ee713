"""Consumers that come into being by a request or by an event."""

from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group


def new_consumer(ctx: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """Make a consumer that does not exist yet, named explicitly or by a first read or claim."""
    consumer = group.add_consumer(name, ctx.now_ms)
    ctx.dirty += 1
    if group.policy is not None:
        settling.consumer_made(ctx, key, group)
    ctx.event("t", b"xgroup-createconsumer", key)
    return consumer
