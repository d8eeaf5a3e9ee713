"""The engine: a request in, a reply out. It is called, never calls out and never waits.

The same engine runs under the TCP server, inside a test with a manual clock, inside the log's replay, and in a
user's own process.
"""

import random
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine import consumers, field_expiry, notifications, refusals, session
from penstock.engine.access import user_rules
from penstock.engine.access.access_log import AccessLog
from penstock.engine.access.users import DefaultUser
from penstock.engine.aof import aof_compat
from penstock.engine.aof.persistence import Persistence
from penstock.engine.blocking import BlockedRequest, Blocking
from penstock.engine.context import BLOCKED, Context
from penstock.engine.effects import EffectLog, Effects
from penstock.engine.memory.memory_limit import MemoryLimit
from penstock.engine.scripting import busy_script
from penstock.engine.scripting.scripts import Scripts
from penstock.engine.session import Session
from penstock.engine.subscriptions import Subscriptions
from penstock.engine.sync_waiting import SyncWaiting
from penstock.engine.table import client_compat, renaming
from penstock.engine.table.command_table import Row
from penstock.engine.telemetry import monitor_line
from penstock.engine.telemetry.identity import Identity
from penstock.engine.telemetry.latency_monitor import LatencyMonitor
from penstock.engine.telemetry.slow_log import SlowLog
from penstock.engine.telemetry.statistics import Statistics
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import Alike
from penstock.storage.keyspace import Keyspace, Value
from penstock.storage.lazy_free import LazyFree
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.listpack_nodes import NodeLimits
from penstock.storage.streams.stream import Stream

NEVER_SLOW: Final = 2**63  # microseconds
FREED_AT_ONCE_US: Final = 2_000  # of what deleted values left: so long is it gone on with
FREED_EVERY_MS: Final = 10
EXPIRED_A_TICK: Final = 1000  # keys removed by one tick at most, so that a tick stays short


class Engine:
    """The table, the keyspace, the waiting sessions and the effects of one server.

    After every call of `handle` or `tick` the caller takes `outgoing` (replies for other sessions, in order)
    and looks at `to_close`, `wanted_rewrite` and `wanted_shutdown`.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        chance: random.Random,
        rows: dict[bytes, Row],
        keyspace: Keyspace | None = None,
        log: EffectLog | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.keyspace = keyspace or Keyspace(settings.number("databases"))
        self.effects = Effects(log, aof_compat.of(settings))
        self.compatibility = client_compat.of(settings)
        known = self.compatibility.table(rows)
        self.rows, kept = renaming.rename(known, settings.renamed)
        self._logged = self.compatibility.hidden | kept  # rows that only the log knows, or by another name
        self._spellings: dict[bytes, Row] = {}
        for name, row in self.rows.items():
            self._spellings[name] = self._spellings[name.lower()] = row
        self.alike_names = frozenset([name for name, row in self._spellings.items() if row.alike_handler is not None])
        self.node_limits = NodeLimits(0, 0)
        self._set_node_limits()
        settings.watch("stream-node-max-bytes", self._set_node_limits)
        settings.watch("stream-node-max-entries", self._set_node_limits)
        self.statistics = Statistics(clock.now_us() // 1000)
        self.identity = Identity(chance)
        self.user: DefaultUser = user_rules.user_of(settings)
        self.access_log = AccessLog(settings)
        self.slow_log = SlowLog(settings)
        self.latency = LatencyMonitor()
        self._slow_from_us = NEVER_SLOW  # the lower of the two thresholds below
        self._set_thresholds()
        settings.watch("slowlog-log-slower-than", self._set_thresholds)
        settings.watch("latency-monitor-threshold", self._set_thresholds)
        settings.watch("slowlog-max-len", self.slow_log.shorten)
        self.sync_waiting = SyncWaiting()
        self.persistence = Persistence(self)
        self.blocking = Blocking(self.keyspace)
        self.watchers: dict[tuple[int, bytes], set[Session]] = {}
        self.sessions: dict[int, Session] = {}
        self.next_session_id = 1
        self.monitors: set[Session] = set()
        self.subscriptions = Subscriptions()
        self.notified = ""  # letters of the keyspace events that are told; empty: none
        self._set_notified()
        settings.watch("notify-keyspace-events", self._set_notified)
        self.loading = False
        self.active_expiry = True
        self.trouble: bytes | None = None  # why writers are refused: the MISCONF text
        self.paused_until_ms = 0
        self.pauses_all = False
        self.postponed: list[BlockedRequest] = []  # requests held back by CLIENT PAUSE
        # what the caller must do after a call
        self.outgoing: list[tuple[Session, bytes]] = []
        self.to_close: list[Session] = []
        self.wanted_rewrite = False
        self.wanted_shutdown = False
        self.was_plain = False  # whether handle_several last met requests only that touch data
        self.changed = False  # whether the last request of handle_several changed something that was logged
        self.ended_us = 0  # when the last request that `run` ran was over
        self.context = Context(self, Session(0))
        self.busy = False  # with a script that takes long, in another thread: nobody else is at the keyspace
        self.scripts = Scripts(self)
        self.memory = MemoryLimit(self)
        self.lazy_free = LazyFree()

    def new_stream(self) -> Stream:
        """An empty stream, with the settings of this moment for its idempotent producers."""
        settings = self.settings
        producers = Producers(settings.number("stream-idmp-duration"), settings.number("stream-idmp-maxsize"))
        return Stream(self.node_limits, producers)

    def _set_node_limits(self) -> None:
        settings = self.settings
        self.node_limits.set(settings.number("stream-node-max-bytes"), settings.number("stream-node-max-entries"))

    # -- sessions ---------------------------------------------------------------------------------------------------

    def connect(self, address: str = "", local_address: str = "") -> Session:
        """A new client's session. It is authenticated at once where no password is set."""
        session = Session(self.next_session_id, address, local_address, self.clock.now_us() // 1000)
        self.next_session_id += 1
        session.authenticated = self.default_user().needs_no_login()
        self.sessions[session.id] = session
        self.statistics.connections += 1
        return session

    def default_user(self) -> DefaultUser:
        """The user, as requirepass and ACL SETUSER made it."""
        self.user.heed(self.settings.text("requirepass"))
        return self.user

    def disconnect(self, session: Session) -> None:
        """The client is gone: everything that waits or watches for it is forgotten."""
        session.closed = True
        if self.busy:
            self.scripts.gone.append(session)
            return
        if session.blocked is not None:
            self.blocking.forget(session.blocked)
            session.blocked = None
        self.unwatch(session)
        self.subscriptions.forget(session)
        self.monitors.discard(session)
        self.sessions.pop(session.id, None)

    def unwatch(self, session: Session) -> None:
        """Forget what a session watches (EXEC, DISCARD, UNWATCH, RESET, the end of the connection)."""
        for place in session.watched:
            watching = self.watchers[place]
            watching.discard(session)
            if not watching:
                del self.watchers[place]
        session.watched.clear()
        session.watch_broken = False

    # -- one request ------------------------------------------------------------------------------------------------

    def handle(self, session: Session, request: list[bytes]) -> bytes:
        """Answer one request. Where `session.blocked` is set afterwards, the answer comes through `outgoing`."""
        if self.busy:
            return self._voiced(session, busy_script.handle(self, session, request))
        now_us = self.clock.now_us()
        ctx = self.context
        ctx.begin(session, now_us)
        session.last_ms = ctx.now_ms
        row = self._spellings.get(request[0])
        try:
            if row is None or row.subcommands:
                row = self.named_row(request)
            if not row.fits(len(request)) or row.handler is None:
                raise refusals.arity(row.label)
            self.admit(session, row)
            if self.paused_until_ms and self._postpone(session, row, request):
                return reply.NO_REPLY
            if session.queue is not None and not row.transactional:
                session.queue.append((row, request))
                return self._voiced(session, reply.QUEUED)
        except ReplyError as refusal:
            if row is not None and row.name == "EXEC":
                refusal = self.abort(session, refusal)
            elif session.queue is not None:
                session.queue_failed = True
            self.statistics.reject(row, refusal.text)
            return self._voiced(session, reply.error(refusal.text))
        session.last_command = row.title
        answer = self.run(ctx, row, request, now_us)
        session.heed_mode()
        if self.busy:
            return reply.NO_REPLY  # a script goes on; what it changes is one unit
        self.effects.end_unit()
        if self.blocking.ready:
            self._serve(now_us)
        if answer is BLOCKED:
            return reply.NO_REPLY
        if session.reply_skip or session.is_silent:
            return self._voiced(session, answer)
        return answer

    def _ordinary_row(self, request: list[bytes]) -> Row | None:
        """The row of a request that touches data only and has the right number of words."""
        row = self._spellings.get(request[0])
        return row if row is not None and row.ordinary and row.fits(len(request)) else None

    def answer_plainly(self, session: Session, request: list[bytes]) -> bytes | None:
        """As `handle` for one request that touches data only, while nothing stands in its way; None: it was not run.

        NOTHING_YET where the session was blocked.
        """
        if not session.is_ordinary or self._is_hindered():
            return None
        row = self._ordinary_row(request)
        if row is None:
            return None
        now_us = self.clock.now_ns() // 1000
        ctx = self.context
        ctx.begin(session, now_us)
        session.last_ms = ctx.now_ms
        session.last_command = row.title
        answer = self.run(ctx, row, request, now_us)
        if self.effects.lines:
            self.effects.end_unit()
        if self.blocking.ready:
            self._serve(now_us)
        return answer

    def answer_alike(self, session: Session, requests: Alike, answers: list[bytes], logged: list[int]) -> bool:
        """Answer requests that are alike, all or none of them; see handle_several."""
        if not session.is_ordinary or self._is_hindered():
            return False
        row = self._spellings[requests.head[0]]
        if row.alike_handler is None or not row.fits(requests.words()):
            return False
        now_us = self.clock.now_ns() // 1000
        ctx = self.context
        ctx.begin(session, now_us)
        units, before = self.effects.units, len(answers)
        calls = row.alike_handler(ctx, requests, answers)
        if not calls:
            return False
        session.last_ms = ctx.now_ms
        session.last_command = row.title
        self.ended_us = self.clock.now_ns() // 1000
        usec = self.ended_us - now_us
        self._count_together(ctx, row, usec, calls)
        if usec >= self._slow_from_us * calls:
            self._note_slow(ctx, row, requests.request(0), usec // calls)
        self.changed = self.effects.units != units
        if self.changed:
            logged.extend(range(before, len(answers)))
        return True

    def handle_several(
        self,
        session: Session,
        requests: list[list[bytes]],
        most_bytes: int,
        answers: list[bytes],
        logged: list[int],
        until_us: int = NEVER_SLOW,
    ) -> int:
        """Answer requests of one client in turn; how many were.

        Answers are added to the list, where there are any; `logged` gets the places of those that tell of a logged
        change. It stops after a request that left something for the caller to look at, or that blocked or closes the
        session, once there are more than `most_bytes` of answers, and after a request that ended at `until_us` or
        later.
        """
        done, count, size = 0, len(requests), 0
        self.was_plain = True
        effects = self.effects
        while done < count:
            before = len(answers)
            units = effects.units
            if session.is_ordinary and not self._is_hindered():
                done = self._handle_ordinary(session, requests, done, most_bytes - size, answers, logged, until_us)
            elif session.is_queueing and not self._is_hindered():
                done = self._queue(session, requests, done, answers)
            if len(answers) == before and session.blocked is None:
                self.was_plain = False
                answer = self.handle(session, requests[done])
                done += 1
                self.changed = effects.units != units
                if answer:
                    if self.changed:
                        logged.append(before)
                    answers.append(answer)
            if self.outgoing or session.blocked is not None or session.closing:
                break
            if self.to_close or self.wanted_shutdown:
                break
            size += sum([len(answer) for answer in answers[before:]])
            if size > most_bytes or self.ended_us >= until_us:
                break
        return done

    def _is_hindered(self) -> bool:
        """Whether something stands in the way of requests that touch data only, or somebody is told of them."""
        return (
            self.trouble is not None
            or self.busy
            or self.loading
            or (self.memory.limit > 0 and not self.memory.has_room())
            or bool(self.monitors or self.notified or self.paused_until_ms)
        )

    def _handle_ordinary(
        self,
        session: Session,
        requests: list[list[bytes]],
        start: int,
        most_bytes: int,
        answers: list[bytes],
        logged: list[int],
        until_us: int,
    ) -> int:
        """As `handle` for requests from `start` on that touch data only; the place of the first that was not answered.

        The clock is read once a request: one ends when the next begins. `changed` tells of the last one.
        """
        ctx, effects = self.context, self.effects
        began_us = self.clock.now_ns() // 1000
        ctx.begin(session, began_us)
        at, count = start, len(requests)
        while at < count:
            request = requests[at]
            row = self._ordinary_row(request)
            if row is None:
                break
            session.last_command = row.title
            units, before = effects.units, len(answers)
            calls = 0
            if row.run_handler is not None and count - at > 1:
                calls = row.run_handler(ctx, requests, at, answers)
            if calls:
                self.ended_us = self.clock.now_ns() // 1000
                self._note_together(ctx, row, request, self.ended_us - began_us, calls)
                at += calls
                most_bytes -= sum([len(answer) for answer in answers[before:]])
            else:
                answer = self.run(ctx, row, request, began_us)
                at += 1
                if effects.lines:
                    effects.end_unit()
                if answer is not BLOCKED:
                    answers.append(answer)
                    most_bytes -= len(answer)
            self.changed = effects.units != units
            if self.changed:
                logged.extend(range(before, len(answers)))
            if self.blocking.ready:
                self._serve(began_us)
                break
            if most_bytes < 0 or session.blocked is not None or self.ended_us >= until_us:
                break
            began_us = ctx.now_us = self.ended_us
            ctx.now_ms = began_us // 1000
        session.last_ms = ctx.now_ms
        return at

    def _queue(self, session: Session, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
        """As `handle` inside MULTI for requests from `start` on that touch data only; the first that was not queued."""
        queue = session.queue
        assert queue is not None, "a session that queues has a queue"
        at, count = start, len(requests)
        while at < count:
            request = requests[at]
            row = self._ordinary_row(request)
            if row is None:
                break
            queue.append((row, request))
            at += 1
        if at > start:
            session.last_ms = self.clock.now_ns() // 1_000_000
            answers.extend([reply.QUEUED] * (at - start))
            self.changed = False
        return at

    def run_queued(self, ctx: Context, queue: list[tuple[Row, list[bytes]]], answers: list[bytes]) -> None:
        """Run the requests of a transaction that have no answer yet, as one unit of the log, and add their answers.

        It stops where a script takes long: then the server is busy.
        """
        requests = [request for _, request in queue]
        are_watched_over = bool(self.notified or self.monitors)
        self.effects.is_one_unit = True
        at, count = len(answers), len(queue)
        began_us = self.clock.now_ns() // 1000
        while at < count:
            row, request = queue[at]
            calls = 0
            if row.run_handler is not None and not are_watched_over:
                calls = row.run_handler(ctx, requests, at, answers)
            if calls:
                self.ended_us = self.clock.now_ns() // 1000
                self._note_together(ctx, row, request, self.ended_us - began_us, calls)
                at += calls
            else:
                answer = self.run(ctx, row, request, began_us)
                if self.busy:
                    return
                answers.append(answer)
                at += 1
            began_us = self.ended_us

    def _note_together(self, ctx: Context, row: Row, request: list[bytes], usec: int, calls: int) -> None:
        """So many alike requests, of which this was the first, were answered at once."""
        self._count_together(ctx, row, usec, calls)
        if usec >= self._slow_from_us * calls:
            self._note_slow(ctx, row, request, usec // calls)

    def _count_together(self, ctx: Context, row: Row, usec: int, calls: int) -> None:
        ctx.session.handled += calls
        self.statistics.ran_together(row, usec, calls)

    def abort(self, session: Session, refusal: ReplyError) -> ReplyError:
        """EXEC itself is refused: the transaction, if one is open, and the watches go (Redis 8.6.3)."""
        session.queue = None
        session.queue_failed = False
        self.unwatch(session)
        return ReplyError(b"EXECABORT Transaction discarded because of: " + refusal.text.removeprefix(b"ERR "))

    def row_of(self, request: list[bytes]) -> Row:
        """The row of a request whose arity fits, else the refusal (Redis 8.6.3)."""
        return _with_arity(self.named_row(request), request)

    def logged_row(self, request: list[bytes]) -> Row:
        """As `row_of`, for a line of the log, which knows what clients do not, and by its own name."""
        row = self._logged.get(request[0].upper())
        return self.row_of(request) if row is None else _with_arity(_subcommand(row, request), request)

    def named_row(self, request: list[bytes]) -> Row:
        """The row that a request names, whatever its arity; a container's own row where nothing follows its name."""
        row = self._spellings.get(request[0])
        if row is None:
            row = self.rows.get(request[0].upper())
            if row is None:
                raise _unknown_command(request)
        return _subcommand(row, request)

    def admit(self, session: Session, row: Row) -> None:
        """The gates before a request is run or queued, in Redis's order (Redis 8.6.3)."""
        if not session.authenticated and not row.no_auth:
            raise ReplyError(b"NOAUTH Authentication required.")
        if session.queue is not None and row.no_multi:
            raise ReplyError(b"ERR Command not allowed inside a transaction")
        if self.memory.limit:
            self.memory.admit(session, row)
        if self.trouble is not None and (_writes(session, row) or row.name == "PING"):
            raise ReplyError(self.trouble)
        if session.resp == 2 and session.is_subscribed and not row.pubsub:
            raise ReplyError(
                b"ERR Can't execute '%b': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed"
                b" in this context" % row.label
            )
        if self.loading and not row.loading:
            raise refusals.loading()
        if session.monitors and (row.write or "readonly" in row.flags):
            raise ReplyError(b"ERR Replica can't interact with the keyspace")

    def run(self, ctx: Context, row: Row, request: list[bytes], start_us: int) -> bytes:
        """Run one admitted request, alone or inside EXEC, and count it from `start_us` on."""
        assert row.handler is not None, "row_of gives no container"
        ctx.row = row
        ctx.args = request
        failure: bytes | None = None
        try:
            answer = row.handler(ctx, request)
        except ReplyError as refusal:
            failure = refusal.text
            answer = reply.error(failure)
        self.ended_us = self.clock.now_ns() // 1000
        if answer is not BLOCKED:
            usec = self.ended_us - start_us
            ctx.session.handled += 1
            self.statistics.ran(row, usec, failure)
            if usec >= self._slow_from_us:
                self._note_slow(ctx, row, request, usec)
        if self.monitors and not (answer is BLOCKED and row.name == "EXEC"):
            self._show_to_monitors(ctx, row, request)
        return answer

    def ran_late(self, ctx: Context, row: Row, request: list[bytes], began_us: int, failure: bytes | None) -> None:
        """A request that took long in another thread is over, and counted as `run` counts."""
        usec = self.clock.now_us() - began_us
        self.statistics.ran(row, usec, failure)
        if usec >= self._slow_from_us:
            self._note_slow(ctx, row, request, usec)
        if self.monitors and row.name == "EXEC":
            self._show_to_monitors(ctx, row, request)

    def _note_slow(self, ctx: Context, row: Row, request: list[bytes], usec: int) -> None:
        """A request took longer than one of the thresholds: to the slow log, to LATENCY, or to both."""
        settings = self.settings
        if usec >= settings.number("slowlog-log-slower-than") >= 0 and "skip_slowlog" not in row.flags:
            self.slow_log.add(ctx.session, row, request, ctx.now_us, usec)
            self.statistics.ran_slowly(row, usec)
        threshold_ms = settings.number("latency-monitor-threshold")
        if threshold_ms and usec >= threshold_ms * 1000:
            self.latency.ran(row, ctx.now_us, usec)

    def _set_thresholds(self) -> None:
        slow_us = self.settings.number("slowlog-log-slower-than")
        latency_ms = self.settings.number("latency-monitor-threshold")
        self._slow_from_us = min(
            slow_us if slow_us >= 0 else NEVER_SLOW, latency_ms * 1000 if latency_ms else NEVER_SLOW
        )

    def _show_to_monitors(self, ctx: Context, row: Row, request: list[bytes]) -> None:
        """MONITOR: after the request was run, in the database it left the session in (Redis 8.6.3)."""
        if not monitor_line.is_shown(row):
            return
        line = monitor_line.line(ctx.session, ctx.db_index, row, request, ctx.now_us)
        self.outgoing += [(session, line) for session in self.monitors if not session.is_silent]

    def notify(self, db_index: int, kind: str, name: bytes, key: bytes) -> None:
        """Tell of a keyspace event of a class (a letter), if the class is wanted."""
        if kind in self.notified:
            notifications.tell(self.subscriptions, self.notified, db_index, name, key, self.outgoing)

    def _set_notified(self) -> None:
        self.notified = notifications.wanted(self.settings)

    def replay(self, ctx: Context, request: list[bytes]) -> bytes:
        """Run a line of the log: no gates, no statistics, no waiting. Refusals come back as error replies."""
        row = self.logged_row(request)
        assert row.handler is not None, "logged_row gives no container"
        try:
            return row.handler(ctx, request)
        except ReplyError as refusal:
            return reply.error(refusal.text)

    def _voiced(self, session: Session, answer: bytes) -> bytes:
        """An answer as the session's CLIENT REPLY mode lets it out."""
        if session.reply_skip:
            session.reply_skip -= 1
            return reply.NO_REPLY
        return reply.NO_REPLY if session.is_silent else answer

    # -- pausing (CLIENT PAUSE) --------------------------------------------------------------------------------------

    def writes_paused(self, now_ms: int) -> bool:
        return now_ms < self.paused_until_ms

    def pause(self, until_ms: int, all_requests: bool) -> None:
        """CLIENT PAUSE. A pause that lasts is made neither shorter nor milder by another (Redis 8.6.3)."""
        if self.writes_paused(self.context.now_ms):
            all_requests |= self.pauses_all
            until_ms = max(until_ms, self.paused_until_ms)
        self.paused_until_ms, self.pauses_all = until_ms, all_requests

    def _postpone(self, session: Session, row: Row, request: list[bytes]) -> bool:
        """Hold a request back while its kind is paused."""
        now_ms = self.context.now_ms
        if now_ms >= self.paused_until_ms:
            return False
        if not (self.pauses_all or _writes(session, row) or row.name == "PUBLISH"):
            return False
        session.blocked = BlockedRequest(session, row, request, session.db_index, [], 0, reply.NO_REPLY)
        session.blocked.postponed = True
        self.postponed.append(session.blocked)
        return True

    def unpause(self) -> None:
        """CLIENT UNPAUSE, or the time is over: what was held back is run in the order in which it came."""
        self.paused_until_ms = 0
        held, self.postponed = self.postponed, []
        for blocked in held:
            session = blocked.session
            if session.closed or session.blocked is not blocked:
                continue
            session.blocked = None
            self._take_up(session, blocked.args)
        if self.blocking.ready:
            self._serve(self.clock.now_us())

    def _take_up(self, session: Session, request: list[bytes]) -> None:
        """Run a request that was held back."""
        at = len(self.outgoing)  # the reply stands before messages that the session sends to itself
        answer = self.handle(session, request)
        if session.blocked is None:
            self.outgoing.insert(at, (session, answer))

    # -- waiting ----------------------------------------------------------------------------------------------------

    def block(self, blocked: BlockedRequest) -> None:
        """A handler found nothing and may wait: its session is blocked, first come first served."""
        blocked.session.blocked = blocked
        self.blocking.add(blocked)

    def make_consumer(self, db_index: int, key: bytes, group: bytes, name: bytes, now_us: int) -> None:
        """A consumer that was deleted while a reader of it is blocked exists again from the next event on."""
        ctx = self.context
        ctx.begin(session.NOBODY, now_us)
        ctx.select(db_index)
        stream = ctx.stream(key)
        found = None if stream is None else stream.groups.get(group)
        if found is not None and name not in found.consumers:
            consumers.new_consumer(ctx, key, found, name)
            ctx.log(b"XGROUP", b"CREATECONSUMER", key, group, name)
            self.effects.end_unit()

    def release(self, blocked: BlockedRequest, answer: bytes, at: int | None = None) -> None:
        """A blocked session gets its reply and is free again; `at`: the reply's place in `outgoing`.

        If not the last.
        """
        session = blocked.session
        session.handled += 1
        self.blocking.forget(blocked)
        session.blocked = None
        self.outgoing.insert(len(self.outgoing) if at is None else at, (session, self._voiced(session, answer)))

    def retry(self, blocked: BlockedRequest, now_us: int) -> bool:
        """Run a blocked request again; whether it was served."""
        assert blocked.row.handler is not None, "a parked request has run before"
        ctx = self.context
        session = blocked.session
        ctx.begin(session, now_us)
        ctx.select(blocked.db_index)
        ctx.attempt = blocked
        ctx.row, ctx.args = blocked.row, blocked.args
        failure: bytes | None = None
        at = len(self.outgoing)  # before what the session hears of its own doing
        start_us = self.clock.now_us()
        try:
            answer = blocked.row.handler(ctx, blocked.args)
        except ReplyError as refusal:
            failure = refusal.text
            answer = reply.error(failure)
        finally:
            ctx.attempt = None
        self.effects.end_unit()
        if answer is BLOCKED:
            return False
        self.statistics.ran(blocked.row, self.clock.now_us() - start_us, failure)
        self.release(blocked, answer, at)
        return True

    def _serve(self, now_us: int) -> None:
        """Serve the blocked readers of every key that became ready, until no key is."""
        if self.writes_paused(now_us // 1000):
            return  # tick comes back to it
        while self.blocking.ready:
            db_index, key = self.blocking.next_ready()
            self.blocking.serve(self, db_index, key, now_us)

    # -- time -------------------------------------------------------------------------------------------------------

    def serve_ready(self, now_us: int) -> None:
        """Serve whom a script, or who left, made ready."""
        if self.blocking.ready:
            self._serve(now_us)

    def finish_script(self) -> None:
        """To be called when `scripts.wake` was: a script that took long is over."""
        busy_script.finish(self)

    def free_lazily(self, value: Value | dict[bytes, Value] | None) -> None:
        """A value, or all of a database, was deleted and nobody else has it: free it.

        Bit by bit; at once where there is a limit of memory, for what is free is to be used, and while a log is loaded,
        for no time is given to it then.
        """
        if value is not None and not self.memory.limit and not self.loading:
            self.lazy_free.take(value)

    def _free_remains(self) -> None:
        until_us = self.clock.now_us() + FREED_AT_ONCE_US
        while self.lazy_free.parts and self.clock.now_us() < until_us:
            self.lazy_free.free_lazily()

    def tick(self) -> None:
        """What time alone brings: deadlines, CLAIM wake-ups, expiry, the end of a pause."""
        if self.busy:
            return
        now_us = self.clock.now_us()
        now_ms = now_us // 1000
        if self.paused_until_ms and now_ms >= self.paused_until_ms:
            self.unpause()
        self.sync_waiting.settle(self)
        self.statistics.sample(now_ms)
        for blocked in self.blocking.overdue(now_ms):
            self.statistics.ran(blocked.row, 0, None)
            self.release(blocked, blocked.timeout_reply)
        self.blocking.signal_claimable(now_ms)
        self.keyspace.drop_idle_orders(now_ms)
        if self.lazy_free.parts:
            self._free_remains()
        if self.active_expiry and not self.loading and not self.writes_paused(now_ms):
            self._expire(now_us)
        if self.blocking.ready:
            self._serve(now_us)

    def next_wakeup_ms(self) -> int:
        """When `tick` is due next for somebody's sake, or to free more, in unix ms; 0: for nobody's."""
        if self.busy:
            return 0
        waiter_ms, pause_ms = self.blocking.next_ms(), self.paused_until_ms
        due_ms = min(waiter_ms, pause_ms) if waiter_ms and pause_ms else waiter_ms or pause_ms
        if self.lazy_free.parts:
            freeing_ms = self.clock.now_us() // 1000 + FREED_EVERY_MS
            due_ms = min(due_ms, freeing_ms) if due_ms else freeing_ms
        return due_ms

    def _expire(self, now_us: int) -> None:
        ctx = self.context
        ctx.begin(session.NOBODY, now_us)
        for db_index, db in enumerate(self.keyspace.databases):
            if db.deadlines and db.deadlines[0][0] < ctx.now_ms:
                ctx.select(db_index)
                for key in db.overdue(ctx.now_ms, EXPIRED_A_TICK):
                    ctx.expire(key)
                    self.effects.end_unit()
            if db.fields_due.first_ms() < ctx.now_ms:
                ctx.select(db_index)
                field_expiry.expire_overdue(ctx)


def _writes(session: Session, row: Row) -> bool:
    """Whether a request may change data: a command that writes, or EXEC of a transaction that has one."""
    return row.write or (row.name == "EXEC" and any(queued.write for queued, _ in session.queue or ()))


def _subcommand(row: Row, request: list[bytes]) -> Row:
    """The row itself, or that of the subcommand which the second word names."""
    if not row.subcommands or len(request) < 2:
        return row
    subcommand = row.subcommands.get(request[1].upper())
    if subcommand is None:
        raise refusals.unknown_subcommand(request[1], request[0])
    return subcommand


def _with_arity(row: Row, request: list[bytes]) -> Row:
    """The row, if a request with so many words is one."""
    if not row.fits(len(request)) or row.handler is None:
        raise refusals.arity(row.label)
    return row


def _unknown_command(request: list[bytes]) -> ReplyError:
    """The refusal with the arguments' beginning, as Redis cuts it (Redis 8.6.3)."""
    name = refusals.c_string(request[0])[:128]
    if len(request) == 1:
        return ReplyError(b"ERR unknown command '%b'" % name)
    shown = b""
    for arg in request[1:]:
        if len(shown) >= 128:
            break
        shown += b"'%b' " % refusals.c_string(arg)[: 128 - len(shown)]
    return ReplyError(b"ERR unknown command '%b', with args beginning with: %b" % (name, shown))
