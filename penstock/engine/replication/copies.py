"""How far writes are, here and on replicas, as WAIT and WAITAOF ask it."""

from penstock.engine.aof.persistence import Persistence
from penstock.engine.replication.replication import Replication
from penstock.engine.waiting.sync_waiting import Copies


class AllCopies(Copies):
    """The log's and the replicas'."""

    def __init__(self, persistence: Persistence, replication: Replication) -> None:
        self._persistence = persistence
        self._replication = replication

    def has_log(self) -> bool:
        return self._persistence.log is not None

    def synced_units(self) -> int:
        return self._persistence.synced_units()

    def acked(self, offset: int) -> int:
        return self._replication.acked(offset)

    def synced(self, offset: int) -> int:
        return self._replication.synced(offset)
