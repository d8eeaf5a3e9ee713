"""WAIT and WAITAOF: requests that wait until replicas have the changes, or until these are on disks."""

from typing import Final

from penstock.protocol import reply

NO_LOG: Final = -1  # in place of a unit
WITHOUT_LOG: Final = b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."


class Copies:
    """How far the log and the replicas are."""

    def has_log(self) -> bool:
        """Whether there is a log."""
        raise NotImplementedError

    def synced_units(self) -> int:
        """How many units of the log are synced."""
        raise NotImplementedError

    def acked(self, offset: int) -> int:
        """How many replicas have applied so much of the stream."""
        raise NotImplementedError

    def synced(self, offset: int) -> int:
        """How many replicas have so much on their disks."""
        raise NotImplementedError


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

    def look(self, copies: Copies) -> tuple[bool, bytes]:
        """Whether it has what it waits for, or cannot get it any more, and the reply that is true now."""
        if self.local and not copies.has_log():
            return True, reply.error(WITHOUT_LOG)
        is_safe = self.unit != NO_LOG and self.unit <= copies.synced_units()
        if not self.counts_syncs:
            count = copies.acked(self.offset)
            return count >= self.replicas, reply.integer(count)
        count = copies.synced(self.offset)
        answer = reply.array([reply.ONE if is_safe else reply.ZERO, reply.integer(count)])
        return (is_safe or not self.local) and count >= self.replicas, answer
