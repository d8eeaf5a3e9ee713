"""WAIT and WAITAOF: until writes are on replicas, or on disks (Redis 8.6.3).

Tests: transcripts info; cases commands/test_server_admin, replication/test_replica_of_engine.
"""

from typing import Final

from penstock.commands.common import timeouts
from penstock.engine import arguments
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.engine.waiting.sync_waiting import NO_LOG, WITHOUT_LOG, Wanted
from penstock.errors import ReplyError

NOT_ON_REPLICA: Final = (
    b"ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured"
    b" to be writable (which is not the default) writes to replicas are just local and are not propagated."
)
AOF_NOT_ON_REPLICA: Final = (
    b"ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and"
    b" are not propagated."
)


@command(
    "WAIT numreplicas timeout:integer",
    "3.0.0 blocking | acl connection -keyspace | tips request_policy:all_shards response_policy:agg_min | "
    "group generic",
    "Waits until this connection's writes are on a number of replicas.",
)
def wait(ctx: Context, args: list[bytes]) -> bytes:
    """Waits for all that was written so far, by any client, so it may wait a little longer than Redis."""
    if ctx.replication.master is not None:
        raise ReplyError(NOT_ON_REPLICA)
    replicas = arguments.integer(args[1])
    deadline_ms = timeouts.deadline(args[2], ctx.now_ms)
    wanted = Wanted(NO_LOG, ctx.replication.last_write_offset, False, replicas, counts_syncs=False)
    return _answer(ctx, wanted, deadline_ms)


@command(
    "WAITAOF numlocal:integer numreplicas timeout:integer",
    "7.2.0 blocking | acl connection -keyspace | tips request_policy:all_shards response_policy:agg_min | "
    "group generic",
    "Waits until this connection's writes are synced to this server's disk and those of replicas.",
)
def waitaof(ctx: Context, args: list[bytes]) -> bytes:
    """Waits for all units appended so far, not only this connection's, so it may wait a little longer than Redis."""
    if ctx.replication.master is not None:
        raise ReplyError(AOF_NOT_ON_REPLICA)
    local = arguments.integer(args[1])
    if local not in (0, 1):
        raise ReplyError(b"ERR value is out of range, value must between 0 and 1")
    replicas = arguments.not_negative(args[2])
    deadline_ms = timeouts.deadline(args[3], ctx.now_ms)
    logged = ctx.persistence.log is not None and ctx.settings.yes("appendonly")
    if local and not logged:
        raise ReplyError(WITHOUT_LOG)
    unit = ctx.persistence.appended_units() if logged else NO_LOG
    wanted = Wanted(unit, ctx.replication.last_write_offset, local == 1, replicas, counts_syncs=True)
    return _answer(ctx, wanted, deadline_ms)


def _answer(ctx: Context, wanted: Wanted, deadline_ms: int) -> bytes:
    """The reply, if what is waited for is there already or the request may not wait."""
    is_met, answer = wanted.look(ctx.persistence, ctx.replication)
    if is_met or not ctx.waits:
        return answer
    assert ctx.row is not None, "a request that runs has a row"
    blocked = BlockedRequest(ctx.session, ctx.row, ctx.args, ctx.db_index, [], deadline_ms, answer)
    ctx.waiting.for_syncs(blocked, wanted)
    if wanted.replicas > 0:
        ctx.replication.wants_acks = True
    return BLOCKED
