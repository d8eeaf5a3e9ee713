"""FAILOVER: this master and one of its replicas change places (Redis 8.6.3).

Tests: transcripts failover; cases replication/test_failover.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.replication import failover
from penstock.engine.replication import replica as states
from penstock.engine.replication.failover_state import NO_DEADLINE, Place
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

TIMEOUT_TOO_SHORT: Final = b"ERR FAILOVER timeout must be greater than 0"
FORCE_NEEDS_MORE: Final = b"ERR FAILOVER with force option requires both a timeout and target HOST and IP."
NOT_A_REPLICA: Final = b"ERR FAILOVER target HOST and PORT is not a replica."
WORDS_OF_TO: Final = 3


class Wanted:
    """The options of FAILOVER. target: None for any replica; timeout_ms: 0 for none."""

    __slots__ = ("forced", "target", "timeout_ms")

    def __init__(self) -> None:
        self.target: Place | None = None
        self.timeout_ms = 0
        self.forced = False


@command(
    "FAILOVER [target:TO (host port:integer [FORCE])] [ABORT] [TIMEOUT milliseconds]",
    "6.2.0 admin noscript stale",
    "Makes one of the replicas the master, and this server its replica.",
)
def failover_command(ctx: Context, args: list[bytes]) -> bytes:
    if ctx.cluster is not None:
        raise ReplyError(b"ERR FAILOVER not allowed in cluster mode. Use CLUSTER FAILOVER command instead.")
    if len(args) == 2 and args[1].upper() == b"ABORT":
        if not failover.is_running(ctx.server):
            raise ReplyError(b"ERR No failover in progress.")
        failover.abort(ctx.server, failover.ABORTED_BY_HAND)
        return reply.OK
    wanted = _wanted(args)
    _admit(ctx, wanted)
    deadline_ms = (
        min(ctx.replication.now_ms() + wanted.timeout_ms, arguments.MAX_INT64) if wanted.timeout_ms else NO_DEADLINE
    )
    failover.begin(ctx.server, wanted.target, deadline_ms, wanted.forced)
    return reply.OK


def _wanted(args: list[bytes]) -> Wanted:
    """The options, each at most once, in any order."""
    wanted = Wanted()
    at = 1
    while at < len(args):
        option, left = args[at].upper(), len(args) - at
        if option == b"TIMEOUT" and left > 1 and not wanted.timeout_ms:
            wanted.timeout_ms = arguments.integer(args[at + 1])
            if wanted.timeout_ms <= 0:
                raise ReplyError(TIMEOUT_TOO_SHORT)
            at += 2
        elif option == b"TO" and left >= WORDS_OF_TO and wanted.target is None:
            wanted.target = args[at + 1].decode(errors="surrogateescape"), arguments.integer(args[at + 2])
            at += WORDS_OF_TO
        elif option == b"FORCE" and not wanted.forced:
            wanted.forced = True
            at += 1
        else:
            raise refusals.syntax()
    return wanted


def _admit(ctx: Context, wanted: Wanted) -> None:
    """The refusals, in Redis's order."""
    replication = ctx.replication
    if failover.is_running(ctx.server):
        raise ReplyError(b"ERR FAILOVER already in progress.")
    if replication.master is not None:
        raise ReplyError(b"ERR FAILOVER is not valid when server is a replica.")
    if not replication.replicas:
        raise ReplyError(b"ERR FAILOVER requires connected replicas.")
    if wanted.forced and (wanted.target is None or not wanted.timeout_ms):
        raise ReplyError(FORCE_NEEDS_MORE)
    if wanted.target is None:
        return
    replica_states = [
        session.replica.state
        for session in replication.replicas
        if session.replica is not None and replication.place_of(session, session.replica) == wanted.target
    ]
    if not replica_states:
        raise ReplyError(NOT_A_REPLICA)
    if states.ONLINE not in replica_states:
        raise ReplyError(b"ERR FAILOVER target replica is not online.")
