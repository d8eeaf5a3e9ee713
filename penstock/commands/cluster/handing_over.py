"""Changes of the map that a node of `penstock cluster` is asked for go to the launcher, which owns the map.

Tests: cases launching/test_cluster_beside_redis.
"""

from penstock.engine.cluster.node import Node
from penstock.engine.context import BLOCKED, Context
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import reply


def fixed() -> ReplyError:
    """A refusal of what would add a node, or take one away."""
    return ReplyError(b"ERR The nodes of this cluster are those that its launcher has started")


def hand_over(ctx: Context, node: Node, words: list[bytes]) -> bytes:
    """The request waits until every node that lives knows of the change; in a transaction it is only sent."""
    assert node.map_owner is not None, "a node with a map has its owner"
    number = node.map_owner.ask(words)
    if not ctx.waits:
        return reply.OK
    assert ctx.row is not None, "a request that runs has a row"
    blocked = BlockedRequest(ctx.session, ctx.row, ctx.args, ctx.db_index, [], 0, b"")
    ctx.blocking.block(blocked)
    node.waiting[number] = blocked
    return BLOCKED
