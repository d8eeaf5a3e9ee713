"""CLUSTER subcommands that only Valkey has: delete the keys of a slot, and migrations, which there are none of (9.1.2).

Tests: cases commands/test_slot_flushing, commands/test_valkey_dialect.
"""

from typing import Final

from penstock.commands.cluster.cluster_changes import BY_RANGES, CHANGES, not_moved
from penstock.commands.cluster.cluster_nodes import node_of
from penstock.commands.common.overwriting import delete
from penstock.engine import arguments, refusals
from penstock.engine.cluster.node import keys_in
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

KEYS_A_LINE: Final = 1000  # of the log


@command(
    "CLUSTER|FLUSHSLOT slot:integer flush-type:[ASYNC|SYNC]",
    "9.0.0 write admin no_async_loading | only_in valkey | traits in_every_database | acl keyspace",
    "Deletes the keys of a slot.",
    "O(N) where N is the number of keys of the node.",
)
def cluster_flushslot(ctx: Context, args: list[bytes]) -> bytes:
    """Also the keys of a slot that the node does not serve. A master's line is followed without a cluster."""
    if not ctx.session.privileged:
        node_of(ctx)
    if len(args) > 4:
        raise refusals.unknown_or_wrong(args[1], args[0])
    slot = arguments.slot(args[2])
    if len(args) == 4 and args[3].upper() not in (b"SYNC", b"ASYNC"):
        raise refusals.syntax()
    deleted = [key for key in keys_in(slot, list(ctx.db.values)) if delete(ctx, key)]
    for at in range(0, len(deleted), KEYS_A_LINE):
        ctx.log(b"DEL", *deleted[at : at + KEYS_A_LINE])
    return reply.OK


@command(
    "CLUSTER|GETSLOTMIGRATIONS",
    f"9.0.0 {CHANGES} | only_in valkey",
    "Lists the migrations of slots: there are none here.",
    "O(N), where N is the number of active slot import and export jobs.",
)
def cluster_getslotmigrations(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    return reply.EMPTY_ARRAY


@command(
    "CLUSTER|CANCELSLOTMIGRATIONS",
    f"9.0.0 {CHANGES} | only_in valkey | traits in_every_database",
    "Cancels the migrations of slots: there are none here.",
    "O(N), where N is the number of slot migration operations being cancelled.",
)
def cluster_cancelslotmigrations(ctx: Context, args: list[bytes]) -> bytes:
    node_of(ctx)
    raise ReplyError(b"ERR No migrations ongoing")


command(
    "CLUSTER|MIGRATESLOTS migration-group:(slotsrange-token:SLOTSRANGE range:(start-slot:integer end-slot:integer) ..."
    " node-token:NODE node-id) ...",
    f"9.0.0 {CHANGES} | only_in valkey | traits in_every_database | arity -4",
    "Moves slots to other nodes. Refused here.",
    BY_RANGES,
)(not_moved)
