"""READONLY, READWRITE and ASKING: what a connection says to a node of a cluster (Redis 8.6.3).

Tests: transcripts cluster_slots; cases commands/test_cluster, commands/test_cluster_of_one.
"""

from penstock.commands.cluster.cluster_nodes import node_of
from penstock.engine.context import Context
from penstock.engine.state import ASKED
from penstock.engine.table.command_table import command
from penstock.protocol import reply


@command("READONLY", "3.0.0 loading stale fast | acl connection", "Allows a connection to read from a replica.")
def readonly(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    ctx.session.reads_replicas = True
    return reply.OK


@command("READWRITE", "3.0.0 loading stale fast | acl connection", "Ends READONLY.")
def readwrite(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    ctx.session.reads_replicas = False
    return reply.OK


@command("ASKING", "3.0.0 fast | acl connection", "Announces that the next request follows an ASK redirection.")
def asking(ctx: Context, args: list[bytes]) -> bytes:
    """It holds for a transaction that begins with the next request as well (Redis 8.6.3)."""
    node_of(ctx)
    ctx.session.set_state(ASKED, True)
    return reply.OK
