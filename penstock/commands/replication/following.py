"""REPLICAOF and SLAVEOF: the master that this server follows (Redis 8.6.3).

Tests: transcripts stale_replica; cases replication/test_replica_of_engine; law replication/test_law_of_the_stream.
"""

from typing import Final

from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.replication import failover, role
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

HIGHEST_PORT: Final = 65535
BAD_PORT: Final = b"ERR Invalid master port"
FLAGS: Final = "admin noscript stale no_async_loading"
SYNTAX: Final = "args:<host-port:(host port:integer)|no-one:(no:NO one:ONE)>"


@command(f"SLAVEOF {SYNTAX}", f"1.0.0 {FLAGS}", "As REPLICAOF.", deprecated=("5.0.0", "`REPLICAOF`"))
@command(f"REPLICAOF {SYNTAX}", f"5.0.0 {FLAGS}", "Follows a master, or stops it.")
def replicaof(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.cluster is not None:
        raise ReplyError(b"ERR REPLICAOF not allowed in cluster mode.")
    if failover.is_running(ctx.server):
        raise ReplyError(b"ERR REPLICAOF not allowed while failing over.")
    if args[1].upper() == b"NO" and args[2].upper() == b"ONE":
        role.lead(ctx.server)
        return reply.OK
    if ctx.session.is_replica:
        raise ReplyError(b"ERR Command is not valid when client is a replica.")
    port = arguments.within(0, HIGHEST_PORT, args[2], BAD_PORT)
    host = args[1].decode(errors="surrogateescape")
    master = ctx.replication.master
    if master is not None and (master.host, master.port) == (host, port):
        return b"+OK Already connected to specified master\r\n"
    role.follow(ctx.server, host, port)
    return reply.OK
