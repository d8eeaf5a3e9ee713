"""A server becomes a replica, or a master again."""

from typing import Final

from penstock.engine.replication.master import Master
from penstock.engine.server_state import ServerState
from penstock.engine.state import FOLLOWING
from penstock.protocol import reply

UNBLOCKED: Final = reply.error(
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)


def follow(server: ServerState, host: str, port: int, keeps_replicas: bool = False) -> None:
    """Be a replica from here on; the server makes the link. Blocked clients and replicas of ours are closed.

    keeps_replicas: they stay until the master has answered (FAILOVER).
    """
    replication = server.replication
    for session in list(server.clients.sessions.values()):
        if session.blocked is not None and not session.blocked.postponed:
            server.waiting.release(session.blocked, UNBLOCKED)
            session.closing = True
    if not keeps_replicas:
        server.clients.to_close += replication.replicas
    replication.master = Master(host, port, replication.now_ms())
    server.effects.cut_unit()  # our replicas have what an EXEC in hand has changed; the offset that we name counts it
    server.effects.replicate(None)  # replicas of ours get what the master sends
    server.conditions.set(FOLLOWING, True)
    server.settings.note("replicaof", f"{host} {port}")


def lead(server: ServerState) -> None:
    """Become a master, with the present data; our own replicas may continue (PSYNC)."""
    replication = server.replication
    if replication.master is None:
        return
    replication.master = None
    replication.new_history()
    if replication.is_partial:
        replication.is_partial = False
        server.persistence.begin_anew()
    server.clients.to_close += replication.replicas
    if replication.stream is not None:
        server.effects.replicate(replication.stream)
    server.conditions.set(FOLLOWING, False)
    server.settings.note("replicaof", "")
