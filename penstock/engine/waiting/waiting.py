"""How a blocked request ends: with a reply, by time, or by a sync of the log or of replicas."""

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.aof.persistence import Persistence
from penstock.engine.clients import Clients
from penstock.engine.replication.replication import Replication
from penstock.engine.state import CACHING_CHOSEN, REPLIES_WITHHELD
from penstock.engine.telemetry.request_log import RequestLog
from penstock.engine.telemetry.statistics import Statistics
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.engine.waiting.blocking import Blocking
from penstock.engine.waiting.migrating import Migrator
from penstock.engine.waiting.sync_waiting import Wanted


class Waiting:
    """migrator: the server's; None: there is no loop."""

    __slots__ = (
        "_blocking", "_clients", "_clock", "_for_syncs", "_persistence", "_replication", "_settings", "_slow_log",
        "_statistics", "migrator",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        blocking: Blocking,
        clients: Clients,
        persistence: Persistence,
        replication: Replication,
        statistics: Statistics,
        slow_log: RequestLog,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._blocking = blocking
        self._clients = clients
        self._statistics = statistics
        self._slow_log = slow_log
        self._for_syncs: list[tuple[BlockedRequest, Wanted]] = []
        self._persistence = persistence
        self._replication = replication
        self.migrator: Migrator | None = None

    def release(self, blocked: BlockedRequest, answer: bytes, at: int | None = None) -> None:
        """Give a blocked session its reply and free it. at: the reply's place in `outgoing`; None: the last."""
        session, clients = blocked.session, self._clients
        session.handled += 1
        self._blocking.leave(blocked, self._clock.now_us() // 1000)
        session.blocked = None
        if session.state & CACHING_CHOSEN and session.queue is None:
            session.choose_caching(False)
        if session.state & REPLIES_WITHHELD:
            answer = clients.as_client_wants(session, answer)
        outgoing = clients.outgoing
        outgoing.insert(len(outgoing) if at is None else at, (session, answer))

    def note_waited(self, blocked: BlockedRequest, failure: bytes | None = None) -> None:
        """A blocked request ends without being run again: it counts as run, and took no time."""
        self._statistics.ran(blocked.row, 0, failure)
        if not self._settings.number("slowlog-log-slower-than"):
            self._slow_log.add(blocked.session, blocked.row, blocked.args, self._clock.now_us(), 0)
            self._statistics.count_slow(blocked.row, 0)

    def for_syncs(self, blocked: BlockedRequest, wanted: Wanted) -> None:
        """WAIT, WAITAOF: block a request until it has what it wants of the log and of replicas."""
        self._blocking.block(blocked)
        self._for_syncs.append((blocked, wanted))

    def answer_waits(self) -> None:
        """The log may have been synced since, or a replica have acknowledged more: WAIT and WAITAOF are answered.

        Those that have not what they wait for are answered with what there is, once their time is up.
        """
        if not self._for_syncs:
            return
        still = []
        for blocked, wanted in self._for_syncs:
            if blocked.session.blocked is not blocked:
                continue  # it timed out, or its client disconnected
            is_met, answer = wanted.look(self._persistence, self._replication)
            if is_met:
                self.note_waited(blocked)
                self.release(blocked, answer)
            else:
                blocked.timeout_reply = answer
                still.append((blocked, wanted))
        self._for_syncs = still
