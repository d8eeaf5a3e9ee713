"""Consumers that come into being by a request or by an event."""

from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.server_state import ServerState
from penstock.engine.session import NO_CLIENT
from penstock.engine.state import RESTRICTED
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group


def new_consumer(ctx: Context, key: bytes, group: Group, name: bytes) -> Consumer:
    """Make a consumer that does not exist yet, named explicitly or by a first read or claim.

    It is always logged here: a read or a claim may give it no entry, and a policy may take its entries before the
    request ends. (Redis 8.6 does not log consumers that claims make, nor, before 8.6.4, those of reads.)
    """
    consumer = group.add_consumer(name, ctx.now_ms)
    ctx.count_group_changes(key, 1)
    ctx.log(b"XGROUP", b"CREATECONSUMER", key, group.name, name)
    if group.policy is not None:
        settling.consumer_made(ctx, key, group)
    ctx.event("t", b"xgroup-createconsumer", key)
    return consumer


def make_again(server: ServerState, reader: BlockedRequest, now_us: int) -> None:
    """The consumer of a reader that is blocked at a group exists again from the next event on, if it was deleted.

    Not for a reader if its user may not read there any more, or its connection is about to be closed.
    """
    session, key = reader.session, reader.keys[0]
    if session in server.clients.to_close:
        return
    if session.state & RESTRICTED and session.user.denial(reader.row, reader.args, reader.db_index):
        return
    ctx = server.context
    ctx.begin(NO_CLIENT, now_us)
    ctx.select(reader.db_index)
    stream = ctx.stream(key)
    group = None if stream is None or reader.group is None else stream.groups.get(reader.group)
    if group is not None and reader.consumer not in group.consumers:
        new_consumer(ctx, key, group, reader.consumer)
        server.effects.end_unit()
