"""A server becomes a replica, or a master again."""

from typing import Final

from penstock.engine.engine_state import EngineState
from penstock.engine.replication.master import Master
from penstock.engine.state import FOLLOWING
from penstock.protocol import reply

UNBLOCKED: Final = reply.error(
    b"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)


def follow(engine: EngineState, host: str, port: int, keeps_replicas: bool = False) -> None:
    """Be a replica from here on; the server makes the link. Blocked clients and replicas of ours are closed.

    keeps_replicas: they stay until the master has answered (FAILOVER).
    """
    replication = engine.replication
    for session in list(engine.sessions.values()):
        if session.blocked is not None and not session.blocked.postponed:
            engine.release(session.blocked, UNBLOCKED)
            session.closing = True
    if not keeps_replicas:
        engine.to_close += replication.replicas
    replication.master = Master(host, port, replication.now_ms())
    engine.effects.replicate(None)  # replicas of ours get what the master sends
    engine.set_state(FOLLOWING, True)
    engine.settings.note("replicaof", f"{host} {port}")


def lead(engine: EngineState) -> None:
    """Be a master again, with the data that there are; replicas of ours may go on (PSYNC)."""
    replication = engine.replication
    if replication.master is None:
        return
    replication.master = None
    replication.new_history()
    replication.stream_db = 0
    replication.is_amid = False
    engine.to_close += replication.replicas
    if replication.stream is not None:
        engine.effects.replicate(replication.stream)
    engine.set_state(FOLLOWING, False)
    engine.settings.note("replicaof", "")
