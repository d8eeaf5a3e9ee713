"""Consumers that come into being by a request or by an event."""

from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group


def new_consumer(ctx: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """Make a consumer that does not exist yet, named explicitly or by a first read or claim.

    It is logged here, whatever the request does with it: a read or a claim may leave it with nothing, and what it gets
    may go to a policy before the request ends. (Redis 8.6 logs neither those of claims nor, before 8.6.4, of reads.)
    """
    consumer = group.add_consumer(name, ctx.now_ms)
    ctx.count_group_changes(key, 1)
    ctx.log(b"XGROUP", b"CREATECONSUMER", key, group.name, name)
    if group.policy is not None:
        settling.consumer_made(ctx, key, group)
    ctx.event("t", b"xgroup-createconsumer", key)
    return consumer
