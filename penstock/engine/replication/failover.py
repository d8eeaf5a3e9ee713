"""FAILOVER: a master and one of its replicas change places, and nothing that was confirmed is lost (Redis 8.6.3).

Writes are held back until the replica has acknowledged the whole stream. Then the master becomes its replica with
`PSYNC <id> <offset> FAILOVER`, and the receiver is master from there on. The link is made by the server
(server/replication/master_link.py), which reports the answer.
"""

from typing import Final

from penstock.engine.replication import replica as states
from penstock.engine.replication import role
from penstock.engine.replication.failover_state import IN_PROGRESS, NO_FAILOVER, WAITING, Place
from penstock.engine.server_state import ServerState

ABORTED_BY_HAND: Final = "Failover manually aborted"
TOO_SLOW: Final = "Replica never caught up before timeout"
REFUSED: Final = "Failover target rejected psync request"


def begin(server: ServerState, target: Place | None, deadline_ms: int, forced: bool) -> None:
    """Hold writes back from now on. target: the master to be; None: the first that has everything."""
    failover = server.replication.failover
    failover.begin(target, deadline_ms, forced)
    failover.report(f"FAILOVER requested to {failover.shown_target}.")
    server.conditions.hold_writes()
    server.replication.wants_acks = True


def look(server: ServerState) -> None:
    """Called at a turn's end and ten times a second: change places once a replica has everything, or time is over."""
    failover, replication = server.replication.failover, server.replication
    if failover.state != WAITING:
        return
    found = _caught_up(server)
    if found is not None:
        failover.report(f"Failover target {found[0]}:{found[1]} is synced, failing over.")
        _change_places(server, found)
    elif failover.deadline_ms and replication.now_ms() >= failover.deadline_ms:
        if failover.forced and failover.target is not None:
            failover.report(f"FAILOVER to {failover.shown_target} time out exceeded, failing over.")
            _change_places(server, failover.target)
        else:
            abort(server, TOO_SLOW)


def _caught_up(server: ServerState) -> Place | None:
    """The target, or any replica if none was named, once it has acknowledged the whole stream."""
    replication = server.replication
    for session in replication.replicas:
        found = session.replica
        if found is None or found.state != states.ONLINE or found.acked < replication.offset:
            continue
        place = replication.place_of(session, found)
        if replication.failover.target in (None, place):
            return place
    return None


def _change_places(server: ServerState, target: Place) -> None:
    """Be the target's replica. Our own replicas stay: the link closes them when the history has its new name."""
    failover = server.replication.failover
    failover.state, failover.target = IN_PROGRESS, target
    role.follow(server, *target, keeps_replicas=True)


def succeed(server: ServerState) -> None:
    """The target has taken over: requests that were held back are refused by a replica."""
    server.replication.failover.end()
    server.conditions.end_holding()


def abort(server: ServerState, why: str) -> None:
    """Stay the master, or become it again, and run the requests that were held back."""
    failover = server.replication.failover
    failover.report(f"FAILOVER to {failover.shown_target} aborted: {why}")
    was_in_progress = failover.state == IN_PROGRESS
    failover.end()
    if was_in_progress:
        role.lead(server)
    server.conditions.end_holding()


def is_in_progress(server: ServerState) -> bool:
    """Whether the next PSYNC asks the target to take over."""
    return server.replication.failover.state == IN_PROGRESS


def is_running(server: ServerState) -> bool:
    return server.replication.failover.state != NO_FAILOVER
