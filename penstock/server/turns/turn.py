"""One turn of the event loop, which all connections share: its changes are logged, then its replies are sent."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from penstock.engine.engine import Engine
from penstock.engine.state import BUSY, MONITORS, SUBSCRIBED
from penstock.server.connections.admission import Admission
from penstock.server.connections.client_eviction import ClientEviction
from penstock.server.connections.limits import OutputLimits, RequestLimits
from penstock.server.script_thread import ScriptThread
from penstock.server.server_log import ServerLog

if TYPE_CHECKING:
    from penstock.server.connections.connection import Connection

TURNS_ALONE: Final = 8  # turns in a row with one connection's requests; later ones end as soon as these are done
PUSHED_TO: Final = SUBSCRIBED | MONITORS  # a session that gets messages besides its replies
LOOKS_EVERY: Final = 64  # of them, the turn that does not, to see whether others send requests by now


class EndedTurn:
    """A turn: its replies are sent once its changes are logged: at once, as a rule, or later where the log says so."""

    __slots__ = ("_is_withheld", "_to_send", "_turn", "is_finished")

    def __init__(self, turn: "Turn", to_send: list["Connection"]) -> None:
        self._turn = turn
        self._to_send = to_send
        self._is_withheld = False
        self.is_finished = False

    def hold(self, reads_go: bool) -> None:
        """The log makes the turn wait. reads_go: the replies to connections without changes are sent all the same."""
        self._is_withheld = True
        withheld = self._turn.withheld
        for connection in self._to_send:
            if reads_go and connection not in withheld and not connection.reports_change():
                connection.deliver(True)
            else:
                withheld.pop(connection, None)  # and added again: a notified client stays before the change's maker
                withheld[connection] = None
                connection.withhold()

    def finish(self, is_kept: bool) -> None:
        """Send the replies; is_kept as in `Connection.deliver`. Turns that wait are finished together."""
        self.is_finished = True
        withheld = self._turn.withheld
        if self._is_withheld:
            self._turn.release(is_kept)
            return
        for connection in self._to_send:
            if withheld and is_kept and connection in withheld:
                connection.withhold()  # replies from before are withheld
            else:
                connection.deliver(is_kept)


class LogWriter(Protocol):
    """Writes the log: AofWriter (log_writer.py), or in tests a class of their own."""

    def end_of_turn(self, finish: Callable[[bool], None]) -> bool:
        """Write the turn's changes, and call `finish` when its replies may be sent: now or later.

        It gets whether the changes are kept; False: that is not known. Turns that wait end together, with the same
        answer, when everything is written that has come by then. Returns whether replies to connections without changes
        may be sent at once where the turn waits.
        """

    def cron(self) -> None:
        """Called ten times a second, and when a sync is over."""

    def close(self) -> bool:
        """The last write and sync; whether everything is on the disk. All turns that wait are finished."""


class StreamSender(Protocol):
    """Sends changes to replicas: Replicas (replication/replicas.py)."""

    def end_of_turn(self) -> None:
        """Send the turn's changes."""

    def cron(self) -> None:
        """Called ten times a second."""


class Turn:
    """The state that the connections of one server share, and the end of each turn.

    The loop reads every socket that has bytes, and each connection handles its requests. Then the turn ends, once: one
    write of the log, one sync with `always`, one write to each client. So all writers of a turn share a sync (group
    commit).

    to_send: connections with replies of this turn. pushed: those of them that are sent to first, in this order: a
    client with a cache that is notified of a change must not learn of it after the client that made it has its reply.
    output_blocked: connections with written bytes that the peer has not received. unfinished: those with requests left
    for the turn's end. withheld: connections with replies that the log holds back, in the order in which they are sent.
    shutting_down: no request is handled any more.
    """

    __slots__ = (
        "_alone", "_armed_ms", "_closed", "_ending", "_senders", "_timer", "_units", "admission", "client_eviction",
        "connections", "engine", "log_writer", "loop", "output_blocked", "output_limits", "pushed", "replicas",
        "request_limits", "server_log", "shutting_down", "stop", "to_send", "unfinished", "withheld",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        log_writer: LogWriter,
        server_log: ServerLog,
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[], None],
    ) -> None:
        self.engine = engine
        self.log_writer = log_writer
        self.server_log = server_log
        self.loop = loop
        self.stop = stop  # what SHUTDOWN does
        self.shutting_down = False
        self.replicas: StreamSender | None = None
        self.admission = Admission(engine)
        self.request_limits = RequestLimits(engine.settings)
        self.output_limits = OutputLimits(engine.settings)
        self.connections: dict[int, Connection] = {}  # by session id
        self.client_eviction = ClientEviction(
            engine.settings, engine.statistics, server_log, lambda: list(self.connections.values())
        )
        self.to_send: list[Connection] = []  # in the order of their first replies
        self.pushed: dict[Connection, None] = {}
        self.output_blocked: dict[Connection, None] = {}
        self.unfinished: dict[Connection, None] = {}
        self._ending = False
        self._closed = False
        self.withheld: dict[Connection, None] = {}
        self._senders = 0  # connections with requests that were handled in this turn
        self._alone = 0  # turns in a row that had one of them
        self._units = engine.effects.units  # `effects.units` at the last turn's end
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms = 0  # unix time in ms that the timer is set to; 0: it is not
        engine.scripts.use(ScriptThread(self._script_is_over))
        engine.scripts.calls.server_log = self._report
        engine.access.report = server_log.warning
        engine.persistence.report = server_log.warning
        engine.policies.log.report = self._report

    # -- scripts ----------------------------------------------------------------------------------------------------

    def _script_is_over(self) -> None:
        """Called in a script's thread when a script that took long has ended."""
        with suppress(RuntimeError):  # the loop may be closed
            self.loop.call_soon_threadsafe(self._finish_script)

    def _finish_script(self) -> None:
        self.outside(self.engine.finish_script)

    def _report(self, level: int, text: str) -> None:
        (self.server_log.debug, self.server_log.verbose, self.server_log.notice, self.server_log.warning)[level](text)

    # -- connections ------------------------------------------------------------------------------------------------

    def continue_later(self, connection: "Connection") -> None:
        """Have a connection handle more requests at the end of this turn, or of the next if this one is ending."""
        self.unfinished[connection] = None
        self.end_soon()

    def has_nothing_to_do(self) -> bool:
        """Whether a reply can be sent now, because the turn's end would do nothing else.

        No client learns of a change, its own or another's, before it is logged.
        """
        engine = self.engine
        return (
            engine.effects.units == self._units
            and not self.withheld
            and not engine.clients.outgoing
            and not engine.blocking.by_key
            and not engine.clients.tracking.due
            and not self.output_limits.bound_everybody
        )

    def forget(self, connection: "Connection") -> None:
        """Remove a connection that is closed. The turn ends if that leaves something to do."""
        session = connection.session
        del self.connections[session.id]
        if self.pushed:
            self.pushed.pop(connection, None)
        if self.output_blocked:
            self.output_blocked.pop(connection, None)
        if self.unfinished:
            self.unfinished.pop(connection, None)
        if self.withheld:
            self.withheld.pop(connection, None)
        self.client_eviction.forget(connection)
        self.engine.server.disconnect(session)
        if session.is_replica or session.reads_as or not self.has_nothing_to_do():
            self.end_soon()

    def look_around(self, is_logged: bool = False) -> None:
        """As `hand_out`, for a caller that does not end the turn: it ends soon if there is something to send."""
        if self.hand_out(is_logged):
            self.end_soon()

    def hand_out(self, is_logged: bool = False) -> bool:
        """After a call of the engine: take replies for other sessions, close sessions, stop the server.

        is_logged: the call logged a change, and the replies report it. Returns whether there were replies: the caller
        must end the turn.
        """
        engine = self.engine
        has_some = bool(engine.clients.outgoing) and not engine.conditions.bits & BUSY
        if has_some:
            outgoing = engine.clients.outgoing
            engine.clients.outgoing = []
            for session, answer in outgoing:
                connection = self.connections.get(session.id)
                if connection is not None:
                    if answer:  # a pushed message is no reply: it is sent even if the log fails
                        is_pushed = session.state & PUSHED_TO != 0 or answer.startswith(b">")
                        connection.add_reply(answer, is_logged and not is_pushed)
                        if is_pushed:
                            self.pushed[connection] = None
                    if session.blocked is None and connection.must_continue():
                        self.continue_later(connection)
        if engine.clients.to_close:
            closing = engine.clients.to_close
            engine.clients.to_close = []
            for session in closing:
                connection = self.connections.get(session.id)
                if connection is not None:
                    connection.abort()
        if engine.persistence.wanted_shutdown and not self.shutting_down:
            self.shutting_down = True
            self.stop()
        return has_some

    # -- the end ----------------------------------------------------------------------------------------------------

    def end_soon(self) -> None:
        """End this turn once the loop has read everything that has come."""
        if not self._ending:
            self._ending = True
            self.loop.call_soon(self.end)

    def end_after_requests(self) -> None:
        """End this turn after the requests of a connection that is free are done.

        At once if there has been only one such connection in each turn for a while, be it always the same or not: no
        other would share the turn's write and sync.
        """
        self._senders += 1
        if self._alone >= TURNS_ALONE and self._alone % LOOKS_EVERY and not self._ending:
            self.end()
        else:
            self.end_soon()

    def end(self) -> None:
        self._ending = False
        if self._closed:
            return
        unfinished = self.unfinished
        if unfinished:
            self.unfinished = {}
            for connection in unfinished:
                connection.handle_requests()
                connection.note_waiting()
        if self.engine.clients.tracking.due:
            self.engine.end_turn()
            self.hand_out()
        to_send = self.to_send
        self.to_send = []
        if self.pushed:
            others = dict.fromkeys(to_send)
            to_send = list({connection: None for connection in self.pushed if connection in others} | others)
            self.pushed = {}
        if self._senders:
            self._alone = self._alone + 1 if self._senders == 1 else 0
            self._senders = 0
        self._units = self.engine.effects.units
        ended = EndedTurn(self, to_send)
        reads_go = self.log_writer.end_of_turn(ended.finish)
        if not ended.is_finished:
            ended.hold(reads_go)
        replication = self.engine.replication
        if self.replicas is not None and (replication.stream is not None or replication.pending_syncs):
            self.replicas.end_of_turn()
        if self.client_eviction.limit and self.client_eviction.is_over:
            self.client_eviction.evict()
        if self.hand_out():  # WAITAOF may have been waiting for the sync
            self.end_soon()
        due_ms = self.engine.next_wakeup_ms()
        if due_ms and not 0 < self._armed_ms <= due_ms:
            self.set_timer(due_ms)

    def release(self, is_kept: bool) -> None:
        """Send what the log held back. Connections with replies of the turn that has not ended yet get all at its end.

        is_kept: as in `Connection.deliver`.
        """
        withheld, self.withheld = self.withheld, {}
        for connection in withheld:
            if not is_kept or not connection.is_noted:
                connection.deliver(is_kept)
        if self.to_send:
            self.end_soon()

    def close(self) -> bool:
        """Answer every request that was read, as far as possible; whether all changes are on the disk."""
        self.end()
        while self.unfinished and not self.shutting_down:
            self.end()
        self.shutting_down = self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        return self.log_writer.close()

    # -- time -------------------------------------------------------------------------------------------------------

    def set_timer(self, due_ms: int) -> None:
        """Have `tick` called at the engine's next deadline.

        A timer for an earlier time is kept: it finds nothing to do, and is set again then. So a deadline that moves
        with every request costs nothing.
        """
        if self._timer is not None:
            self._timer.cancel()
        wait_ms = max(due_ms - self.engine.clock.now_us() // 1000, 1)
        self._armed_ms = due_ms
        self._timer = self.loop.call_later(wait_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._armed_ms = 0
        self.tick()

    def tick(self) -> None:
        """Have the engine do what is due."""
        self.outside(self.engine.tick)

    def look_after_log(self) -> None:
        """Called by cron, and when a sync has ended: waiting turns and WAITAOF may go on."""
        if not self._closed:
            self.outside(self.log_writer.cron)

    # -- what no request asks for -----------------------------------------------------------------------------------

    def outside(self, work: Callable[[], object]) -> None:
        """Do something that is no client's request, and end the turn: what it changes is logged, what it says sent.

        Whatever calls the engine from the loop, but for connections that handle requests, does it by this function:
        ticks (deadlines, expiry, evictions, policies, pauses), the end of a script, the log's cron, replicas' cron and
        failover, a clock that is moved. A link to a master cannot, and calls `applied`.
        """
        before = self.engine.effects.units
        work()
        self.look_around(self.engine.effects.units != before)
        self.end_soon()

    def applied(self) -> None:
        """Something of a master's was run: its stream, a copy, its answer to PSYNC."""
        self.engine.memory.is_due = self.engine.memory.limit > 0  # no request of a client has looked
        self.look_around(True)
        self.end_soon()
