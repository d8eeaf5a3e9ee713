"""WAIT and WAITAOF: requests that wait until replicas have the changes, or until these are on disks."""

from typing import Final

from penstock.engine.aof.persistence import Persistence
from penstock.engine.replication.replication import Replication
from penstock.protocol import reply

NO_LOG: Final = -1  # in place of a unit
WITHOUT_LOG: Final = b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."


class Wanted:
    """The condition that one request waits for.

    unit: of the log, which is to be synced; NO_LOG without a log. offset: of the replication stream. local: whether
    the unit must be synced before the reply. counts_syncs: WAITAOF, with two numbers in its reply.
    """

    __slots__ = ("counts_syncs", "local", "offset", "replicas", "unit")

    def __init__(self, unit: int, offset: int, local: bool, replicas: int, counts_syncs: bool) -> None:
        self.unit = unit
        self.offset = offset
        self.local = local
        self.replicas = replicas
        self.counts_syncs = counts_syncs

    def look(self, persistence: Persistence, replication: Replication) -> tuple[bool, bytes]:
        """Whether it has what it waits for, or cannot get it any more, and the reply that is true now."""
        if self.local and persistence.log is None:
            return True, reply.error(WITHOUT_LOG)
        is_safe = self.unit != NO_LOG and self.unit <= persistence.synced_units()
        if not self.counts_syncs:
            count = replication.acked(self.offset)
            return count >= self.replicas, reply.integer(count)
        count = replication.synced(self.offset)
        answer = reply.array([reply.ONE if is_safe else reply.ZERO, reply.integer(count)])
        return (is_safe or not self.local) and count >= self.replicas, answer
