"""Replication of an embedded server: its links to a master and to replicas are kept by a thread with an event loop."""

from typing import Final

from penstock.server.replication.master_link import MasterLink
from penstock.server.replication.replicas import Replicas
from penstock.server.turns.turn import Turn
from penstock.storage.aof.disk import Disk
from penstock.testing.copies import CopiesInMemory
from penstock.testing.faults.no_disk import NoDisk
from penstock.testing.loops.loop_thread import LoopThread

PERIOD_S: Final = 0.1  # of the machine's time: the server's clock may stand still


class Replication:
    """A turn's calls for replicas (a StreamSender), passed on to the thread.

    The thread is started by the first REPLICAOF, PSYNC or SYNC.
    """

    def __init__(self, turn: Turn, disk: Disk, thread: LoopThread) -> None:
        report = turn.server_log.notice
        self._thread = thread
        self._turn = turn
        self._link = MasterLink(
            turn.engine, CopiesInMemory() if isinstance(disk, NoDisk) else disk, report, turn.applied
        )
        self._replicas = Replicas(turn, disk, report)
        self._replicas.link = self._link
        self._has_begun = False
        self._is_closed = False
        self._turn_is_due = False
        turn.replicas = self
        turn.engine.settings.watch("replicaof", self.begin)

    def begin(self) -> None:
        """Have the thread look after the links from here on; called with the lock held."""
        if not self._has_begun and not self._is_closed:
            self._has_begun = True
            self._thread.call_soon(self._run_cron)

    def end_of_turn(self) -> None:
        """Have the turn's changes sent."""
        self.begin()
        if not self._turn_is_due and not self._is_closed:
            self._turn_is_due = True
            self._thread.call_soon(self._end_turn)

    def cron(self) -> None:
        """The server's cron follows the server's clock; the thread has a cron of its own."""

    def close(self) -> None:
        """End the links; what was changed before has been sent. Called without the lock."""
        self._thread.call_and_wait(self._stop)
        self._is_closed = True  # a thread that is busy stops the links later; nothing more is given to it

    def close_soon(self) -> None:
        """As `close`, but does not wait for the thread; called with the lock held."""
        if self._has_begun and not self._is_closed:
            self._thread.call_soon(self._stop)

    # -- in the thread, with the lock held ----------------------------------------------------------------------------

    def _end_turn(self) -> None:
        self._turn_is_due = False
        if not self._is_closed:
            self._replicas.end_of_turn()

    def _stop(self) -> None:
        self._is_closed = True
        self._replicas.close()
        self._link.stop()

    def _run_cron(self) -> None:
        if self._is_closed:
            return
        self._thread.call_later(PERIOD_S, self._run_cron)  # first: an exception below must not stop the cron
        self._turn.outside(self._replicas.cron)
