"""The engine: a request in, a reply out. It is called, never calls out and never waits.

The same engine runs under the TCP server, inside a test with a manual clock, inside the log's replay, and in a
user's own process.
"""

import random
from functools import partial
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine import consumers, gate, key_expiry
from penstock.engine.context import BLOCKED, Context
from penstock.engine.effects import EffectLog
from penstock.engine.memory import recency, stream_packing
from penstock.engine.memory.eviction import Evictor
from penstock.engine.memory.memory_limit import MemoryLimit
from penstock.engine.policies import policy_tick
from penstock.engine.scripting import late_script
from penstock.engine.scripting.script_requests import ScriptRequests
from penstock.engine.scripting.scripts import Scripts
from penstock.engine.server_state import Runner, ServerState
from penstock.engine.session import NO_CLIENT, QueuedRequests, Session
from penstock.engine.state import (
    AT_END_OF_REQUEST,
    BUSY,
    CACHING_CHOSEN,
    CLUSTERED,
    IN_MULTI,
    MEASURED,
    MEMORY_LIMITED,
    MONITORED,
    NOTED,
    PAUSED,
    REPLIES_WITHHELD,
    RESTRICTED,
    SEEN,
    TRACKED,
    WEIGHED,
)
from penstock.engine.table.command_lookup import CommandLookup, with_arity
from penstock.engine.table.command_table import REPLY_BYTES, BatchHandler, Command, command_of
from penstock.engine.table.row import Row
from penstock.engine.telemetry.slow_requests import SlowRequests
from penstock.engine.waiting import clock_following, pausing
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.engine.waiting.blocking import SERVED_AT_ONCE
from penstock.engine.waiting.clock_jumps import LEAST_US
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import REQUESTS, RequestBatch, batches_from, one
from penstock.storage.deadlines import NEVER

NO_LIMIT_US: Final = 2**63
MOST_BYTES: Final = 2**62  # of replies: no limit
TOGETHER_US: Final = 1000  # for requests of a batch that are run in a row
NONE_LEFT: Final[list[RequestBatch]] = []
FREED_AT_ONCE_US: Final = 2_000  # of what deleted values left: time budget for freeing, per tick
FREED_EVERY_MS: Final = 10


class Engine(Runner):
    """Runs requests on a server's state, whose parts that it needs for each of them are its own attributes, too.

    After every call of `handle` or `tick` the caller takes `clients.outgoing` (replies for other sessions, in order)
    and looks at `clients.to_close`, `persistence.wanted_rewrite` and `persistence.wanted_shutdown`.
    """

    __slots__ = (
        "_alone", "_make_consumer", "_runnable", "_slow", "access", "batch_shapes", "began_us", "blocking", "changed",
        "clients", "clock", "commands", "conditions", "effects", "keyspace", "lazy_free", "memory", "only_data",
        "persistence", "policies", "replication", "scripts", "server", "settings", "statistics", "telemetry", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        chance: random.Random,
        commands: CommandLookup,
        log: EffectLog | None = None,
    ) -> None:
        super().__init__(clock)
        self.commands = commands
        self._runnable = commands.runnable
        self.batch_shapes = commands.batch_shapes
        self.settings = settings
        self.clock = clock
        self.server = server = ServerState(settings, clock, chance, self, commands, commands.catalog, log)
        self.conditions = server.conditions
        self.clients = server.clients
        self.access = server.access
        self.keyspace = server.keyspace
        self.lazy_free = server.lazy_free
        self.policies = server.policies
        self.blocking = server.blocking
        self.waiting = server.waiting
        self.statistics = server.statistics
        self.telemetry = server.telemetry
        self.effects = server.effects
        self.persistence = server.persistence
        self.replication = server.replication
        self._slow = SlowRequests(settings, self.telemetry.slow_log, self.telemetry.latency, self.statistics)
        self.only_data = False  # whether the last handle_batches met requests only that touch data
        self.changed = False  # whether the last request changed something that was logged
        self.began_us = 0  # when the last handle_batches began
        self._alone = one([])  # the request that `run` was given last
        self._make_consumer = partial(consumers.make_again, server)
        self.memory = server.memory = MemoryLimit(
            settings, clock, server.statistics, Evictor(server).evict, partial(server.conditions.set, MEMORY_LIMITED)
        )
        self.scripts = server.scripts = Scripts(server, ScriptRequests(server))
        server.context = Context(server, Session(0))
        settings.watch("maxmemory-policy", partial(recency.choose_context, server))
        recency.choose_context(server)

    # -- requests ---------------------------------------------------------------------------------------------------

    def handle(self, session: Session, request: list[bytes]) -> bytes:
        """Handle one request as handle_batches does; returns its reply, empty if there is none yet."""
        replies: list[bytes] = []
        self.handle_batches(session, [one(request)], MOST_BYTES, replies, [])
        return b"".join(replies)

    def handle_batches(
        self,
        session: Session,
        batches: list[RequestBatch],
        most_bytes: int,
        replies: list[bytes],
        logged: list[int],
        most_us: int = NO_LIMIT_US,
        is_locked: bool = False,
    ) -> list[RequestBatch]:
        """Handle requests of one client in order; returns the requests that are left for later.

        Replies are appended; that of a blocked request comes later through `outgoing`. `logged` gets the places of
        replies that confirm a logged change. It stops after a request that left work for the caller (`outgoing`,
        `to_close`, `wanted_shutdown`), after one that blocks or closes the session, after `most_bytes` of replies, and
        after `most_us`. `only_data` says afterwards whether all of them touched data only. is_locked: the caller holds
        the lock that a long script needs for its requests.
        """
        if self.conditions.bits & BUSY and not is_locked:
            with self.scripts.calls.lock:
                return self.handle_batches(session, batches, most_bytes, replies, logged, most_us, is_locked=True)
        self.only_data = True
        self.began_us = began_us = self.now_us()
        if not 0 <= began_us - self.ended_us < LEAST_US:  # the clock may have been set: first, what began before that
            clock_following.follow(self.server)
        until_us = began_us + most_us
        last = len(batches) - 1
        sent = len(replies)  # replies with their bytes counted
        for place, batch in enumerate(batches):
            at, together = 0, batch.count > 1
            while at < batch.count:
                done = self._handle_next(session, batch, at, together, began_us, replies, logged)
                together = together and done > 1
                at += done
                if at == batch.count and place == last:
                    return NONE_LEFT
                if self._must_stop(session):
                    return batches_from(batches, place, at)
                for reply_at in range(sent, len(replies)):
                    most_bytes -= len(replies[reply_at])
                sent = len(replies)
                if most_bytes < 0 or self.ended_us >= until_us:
                    return batches_from(batches, place, at)
                began_us = self.ended_us
        return NONE_LEFT

    def _handle_next(
        self,
        session: Session,
        batch: RequestBatch,
        at: int,
        together: bool,
        began_us: int,
        replies: list[bytes],
        logged: list[int],
    ) -> int:
        """Handle the request of a batch at a place, and those behind it that are handled with it: how many.

        together: whether it may be more than one. Replies and `logged` as in `handle_batches`.
        """
        ctx, effects = self.server.context, self.effects
        ctx.begin(session, began_us)
        session.last_ms = ctx.now_ms
        first, units = len(replies), effects.units
        row = self._runnable.get(batch.prefix[0])
        done = 0
        if session.state | self.conditions.bits or row is None or not row.least_words <= batch.width <= row.most_words:
            if row is not None and self._may_run(session, row, batch, at):
                together = together and self._is_judged_once(session, row, batch, at)
            else:
                row, done = self._pass_gate(session, row, batch, at, replies)
                together = False
        if row is not None:
            session.last_command = row.title
            done = self._execute(ctx, row, batch, at, together, began_us, replies)
            if (effects.line or self.blocking.ready or effects.is_one_unit) and not self.conditions.bits & BUSY:
                if effects.line or effects.is_one_unit:
                    effects.end_unit()
                if self.blocking.ready:
                    self._serve(self.ended_us)  # a key may have expired since the request began
            if not row.ordinary:
                self.only_data = False
        if session.state & AT_END_OF_REQUEST:
            self._end_request(session, row, replies, first)
        elif not self.only_data and len(replies) > first and not replies[-1]:
            replies.pop()  # a request that has no reply: CLIENT REPLY SKIP, a second MONITOR
        self.changed = effects.units != units
        # A reader of an expired key reports no change: the key is overdue wherever the log is loaded.
        if self.changed and (row is None or row.write or "readonly" not in row.flags):
            for reply_at in range(first, len(replies)):
                logged.append(reply_at)
        return done

    def _must_stop(self, session: Session) -> bool:
        """Whether the caller must look at what the last request left before the session's next one is handled."""
        return bool(
            self.clients.outgoing
            or session.blocked is not None
            or session.closing
            or self.clients.to_close
            or self.persistence.wanted_shutdown
        )

    def _may_run(self, session: Session, row: Command, batch: RequestBatch, at: int) -> bool:
        """Whether the bits that are set let a request run: there is room, its user may run it, its slot is here."""
        if not row.fits(batch.width):
            return False
        state = (session.state | self.conditions.bits) & ~WEIGHED
        if state & CLUSTERED:
            if self.server.cluster is None or not self.server.cluster.serves(row, batch.request(at)):
                return False
            state &= ~CLUSTERED
        if state == MEMORY_LIMITED:
            return self.memory.has_room()
        return not state or (
            state == RESTRICTED and session.user.denial(row, batch.request(at), session.db_index) is None
        )

    def _execute(
        self,
        ctx: Context,
        row: Command,
        batch: RequestBatch,
        at: int,
        together: bool,
        began_us: int,
        replies: list[bytes],
    ) -> int:
        """Run the request of a batch at a place, or all from there on as far as the batch handler takes them.

        The only place that calls a command. How many were run; their replies are appended, but none for a request that
        blocks. What is counted and sent depends on the caller: the context of the log's replay (`privileged`) counts
        nothing, a blocked request's next try (`attempt`) is not shown to monitors again.
        """
        ctx.row = row
        if together and row.batch_handler is not None and at + 1 < batch.count:
            done = self._execute_together(ctx, row, row.batch_handler, batch.after(at), began_us, replies)
            if done:
                return done
        handler = row.handler
        assert handler is not None, "the gate lets no container through"
        stop = batch.count if together and row.batch_shape & REQUESTS else at + 1
        first, size, first_us = at, 0, began_us
        while True:
            if batch.count == 1:
                request, text = batch.prefix, batch.text
            else:
                request, text = batch.request(at), batch.text_of(at)
            ctx.args, ctx.text = request, text
            failure: bytes | None = None
            is_counted = False
            try:
                answer = handler(ctx, request)
            except ReplyError as refusal:
                failure = refusal.text
                is_counted = refusal.is_counted
                answer = reply.error(failure)
            is_blocked = answer is BLOCKED
            if not is_blocked:
                replies.append(answer)
            session = ctx.session
            if session.privileged:
                return 1
            self.ended_us = ended_us = self.now_us()
            if not is_blocked:
                usec, slow_us = ended_us - began_us, self._slow.from_us
                if usec < 0 or usec >= slow_us:
                    usec = clock_following.without_jump(self.server, usec)
                if ctx.attempt is None:
                    session.handled += 1
                self.statistics.ran(row, usec, failure, is_counted)
                if usec >= slow_us:
                    self._slow.note(ctx.session, ctx.now_us, row, request, usec)
            if self.conditions.bits & NOTED:
                self._note_request(ctx, row, request, answer, ended_us - began_us)
            at += 1
            if at == stop or self.blocking.ready or self.clients.outgoing or ended_us - first_us > TOGETHER_US:
                return at - first
            size += len(answer)
            if size > REPLY_BYTES:
                return at - first
            if self.effects.line and not self.effects.is_one_unit:
                self.effects.end_unit()
            began_us = ended_us

    def _execute_together(
        self,
        ctx: Context,
        row: Command,
        batch_handler: BatchHandler,
        batch: RequestBatch,
        began_us: int,
        replies: list[bytes],
    ) -> int:
        """Run the first requests of a batch at once, as many as its batch handler takes: how many."""
        first = len(replies)
        done = batch_handler(ctx, batch, replies)
        if done:
            self.ended_us = self.now_us()
            usec = max(self.ended_us - began_us, 0)
            ctx.session.handled += done
            self.statistics.ran_together(row, usec, done)
            if usec >= self._slow.from_us * done:
                self._slow.note(ctx.session, ctx.now_us, row, batch.request(0), usec // done)
            if self.conditions.bits & WEIGHED:
                self.telemetry.large.note_together(ctx.session, ctx.now_us, row, batch, replies[first:])
        return done

    def run(self, ctx: Context, row: Row, request: list[bytes], began_us: int) -> bytes:
        replies: list[bytes] = []
        # What runs has its words before another request can take the batch.
        self._execute(ctx, command_of(row), self._alone.become(request, b""), 0, False, began_us, replies)
        return replies[0] if replies else BLOCKED

    def run_queue(self, ctx: Context, queue: QueuedRequests, replies: list[bytes]) -> QueuedRequests:
        self.effects.is_one_unit = True
        together = not self.conditions.bits & SEEN
        began_us = self.now_us()
        for place, (row, batch) in enumerate(queue):
            if not row.ordinary:
                self.only_data = False
            command = command_of(row)
            at, takes_batch = 0, together and batch.count > 1
            takes_batch = takes_batch and self._is_judged_once(ctx.session, row, batch, at)
            while at < batch.count:
                if ctx.session.state & RESTRICTED:
                    refusal = self.access.refusal_in_exec(ctx.session, row, batch.request(at))
                    if refusal is not None:
                        self.statistics.reject(None, refusal)
                        replies.append(reply.error(refusal))
                        at += 1
                        continue
                done = self._execute(ctx, command, batch, at, takes_batch, began_us, replies)
                began_us = self.ended_us
                takes_batch = takes_batch and done > 1
                at += done
                if self.conditions.bits & BUSY:
                    return queue[place + 1 :]
        return []

    def _is_judged_once(self, session: Session, row: Row, batch: RequestBatch, at: int) -> bool:
        """Whether rights and slots are the same for all requests of a batch from a place on."""
        if self.server.cluster is not None and not self.server.cluster.is_judged_once(row, batch):
            return False
        return not session.state & RESTRICTED or self.access.same_verdict(session, row, batch, at)

    def _pass_gate(
        self, session: Session, row: Command | None, batch: RequestBatch, at: int, replies: list[bytes]
    ) -> tuple[Command | None, int]:
        """Decide on a request that may not simply be run: its row if it is to be run now.

        Otherwise how many requests are done with: refused, queued for EXEC, or held back by a pause.
        """
        state = (session.state | self.conditions.bits) & ~WEIGHED
        try:
            # Where nothing but a transaction stands in the way, a command that may be in one is asked no more.
            if state != IN_MULTI or row is None or row.no_multi or not row.fits(batch.width):
                request = batch.request(at)
                if row is None or row.subcommands:
                    session.last_command = ""  # until the command is known (Redis 8.6.3, CLIENT LIST)
                    row = self.commands.named(request)
                session.last_command = row.title
                row = with_arity(row, request)
                gate.admit(self.server, session, row, request)
                if self.conditions.bits & PAUSED and pausing.postpone(self.server, session, row, request):
                    self.only_data = False
                    return None, 1
            if session.queue is None or row.transactional:
                return row, 0
        except ReplyError as refusal:
            if row is not None and row.name == "EXEC":
                refusal = gate.abort(self.server, session, refusal)
            elif session.queue is not None:
                session.queue_failed = True
            self.statistics.reject(row, refusal.text)
            self.ended_us = self.now_us()
            self.only_data = False
            self._end_caching(session, row)
            replies.append(reply.error(refusal.text))
            return None, 1
        # The gate decides once for all requests of a batch, unless memory runs short between two of them, or they have
        # different keys, and the user may use only some.
        is_judged_once = not self.conditions.bits & ~WEIGHED and self._is_judged_once(session, row, batch, at)
        left = batch.after(at) if is_judged_once else batch.part(at, at + 1)
        if not session.queue_failed and not session.watch_broken:  # else EXEC runs nothing (Redis 8.6.3)
            session.enqueue(row, left)
            if row.selects_database:
                self.access.follow_queue(session, row, left)
        session.last_command = row.title
        if left.count > 1 and state == IN_MULTI:  # nothing looks at the replies one by one
            replies.append(reply.QUEUED * left.count)
        else:
            replies.extend([reply.QUEUED] * left.count)
        self.ended_us = self.now_us()
        return None, left.count

    def ran_late(self, ctx: Context, row: Row, request: list[bytes], began_us: int, refusal: ReplyError | None) -> None:
        usec = self.clock.monotonic_us() - began_us
        text, is_counted = (None, False) if refusal is None else (refusal.text, refusal.is_counted)
        self.statistics.ran(row, usec, text, is_counted)
        if usec >= self._slow.from_us:
            self._slow.note(ctx.session, ctx.now_us, row, request, usec)
        if self.clients.monitors and row.name == "EXEC":
            ctx.show_to_monitors(row, request)

    def replay(self, ctx: Context, requests: list[list[bytes]], at: int) -> tuple[int, bytes]:
        request = requests[at]
        row = self.commands.logged(request)
        if row.replay_handler is not None:
            done = row.replay_handler(ctx, requests, at)
            if done:
                return done, b""
        answer = self.run(ctx, row, request, 0)
        return 1, answer if answer.startswith(b"-") else b""

    def _note_request(self, ctx: Context, row: Row, request: list[bytes], answer: bytes, usec: int) -> None:
        """A request was run, or waits: show it to monitors, remember the keys that it read (CLIENT TRACKING), its size.

        What runs a script shows itself, before the requests of the script (commands/scripting).
        """
        is_blocked = answer is BLOCKED
        is_late = is_blocked and row.name == "EXEC"  # it is shown when it is over
        if self.conditions.bits & MONITORED and ctx.attempt is None and not is_late and not row.runs_script:
            ctx.show_to_monitors(row, request)
        if self.conditions.bits & TRACKED:
            self.clients.tracking.note_read(ctx.session, row, request, self.clients.outgoing)
            if ctx.waits and not is_blocked:
                self.clients.tracking.end_request(self.clients.outgoing)
        if not is_blocked and self.conditions.bits & MEASURED:
            self.telemetry.note_hot_keys(ctx.session, ctx.now_ms, row, request, usec, len(answer))
        if not is_blocked and self.conditions.bits & WEIGHED:
            self.telemetry.large.note(ctx.session, ctx.now_us, row, request, len(answer))

    def _end_request(self, session: Session, row: Row | None, replies: list[bytes], first: int) -> None:
        """A request of a session was run, refused, queued or blocked; its replies begin at a place."""
        session.end_asking()
        if row is not None:
            self._end_caching(session, row)
        if session.state & REPLIES_WITHHELD:
            self.clients.withhold(session, replies, first)
        elif not self.only_data and len(replies) > first and not replies[-1]:
            replies.pop()

    def _end_caching(self, session: Session, row: Row | None) -> None:
        """CLIENT CACHING holds for the next request that is not a CLIENT request, or for a whole transaction.

        A request of CLIENT with the wrong number of arguments does not end it either (Redis 8.6.3).
        """
        is_over = session.queue is None and session.blocked is None
        if is_over and session.state & CACHING_CHOSEN and (row is None or not row.name.startswith("CLIENT|")):
            session.choose_caching(False)

    def unpause(self) -> None:
        """CLIENT UNPAUSE, or the end of the pause: run the requests that were held back, in their order."""
        for blocked in pausing.end(self.server):
            if pausing.is_held(blocked) and blocked.session.has_client():
                blocked.session.blocked = None
                self._run_held_back(blocked.session, blocked.args)
        if self.blocking.ready:
            self._serve(self.clock.now_us())

    def _run_held_back(self, session: Session, request: list[bytes]) -> None:
        """Run a request that CLIENT PAUSE held back."""
        at = len(self.clients.outgoing)  # the reply stands before messages that the session sends to itself
        answer = self.handle(session, request)
        if session.blocked is None:
            self.clients.outgoing.insert(at, (session, answer))

    # -- waiting ----------------------------------------------------------------------------------------------------

    def retry(self, blocked: BlockedRequest, now_us: int) -> bool:
        """Run a blocked request again; returns whether it is done: served, or its client has disconnected.

        A client that has gone stays blocked: what it sent after that is not handled before the loop reports its end. So
        has one that a transaction closes (CLIENT KILL, ACL DELUSER), before what the same transaction pushed is served.
        """
        ctx = self.server.context
        session = blocked.session
        if session in self.clients.to_close or (self.blocking.may_take(blocked) and not session.has_client()):
            self.blocking.forget(blocked)
            return True
        ctx.begin(session, now_us)
        ctx.select(blocked.db_index)
        ctx.attempt = blocked
        at = len(self.clients.outgoing)  # before messages about the session's own changes
        try:
            if session.state & RESTRICTED:
                self.access.admit(session, blocked.row, blocked.args)
            answer = self.run(ctx, blocked.row, blocked.args, self.now_us())
        except ReplyError as refusal:  # its user's rules have changed
            self.statistics.reject(blocked.row, refusal.text)
            answer = reply.error(refusal.text)
        finally:
            ctx.attempt = None
        self.effects.end_unit()
        if answer is BLOCKED:
            return False
        self.waiting.release(blocked, answer, at)
        return True

    def _serve(self, now_us: int) -> None:
        """Serve the blocked readers of every key that became ready, until no key is."""
        if self.conditions.bits & PAUSED and self.conditions.writes_paused(now_us // 1000):
            return  # tick comes back to it
        most = SERVED_AT_ONCE
        while self.blocking.ready:
            db_index, key = self.blocking.next_ready()
            most -= self.blocking.serve(self.retry, self._make_consumer, db_index, key, now_us, most)

    # -- time -------------------------------------------------------------------------------------------------------

    def end_turn(self) -> None:
        """The end of a turn: notify clients of the keys that changed in it (CLIENT TRACKING)."""
        if self.clients.tracking.due and not self.conditions.busy:
            self.clients.tracking.end_turn(self.clients.outgoing)

    def serve_ready(self, now_us: int) -> None:
        if self.blocking.ready:
            self._serve(now_us)

    def finish_script(self) -> None:
        """A script that took long is over: the script runner has its caller call this."""
        late_script.finish(self.server)

    def _free_remains(self) -> None:
        until_us = self.clock.monotonic_us() + FREED_AT_ONCE_US
        while self.lazy_free.parts and self.clock.monotonic_us() < until_us:
            self.lazy_free.free_lazily()

    def tick(self) -> None:
        if self.conditions.busy:
            return
        clock_following.follow(self.server)
        now_us = self.ended_us = self.clock.now_us()  # the next request begins after this look at the clock
        now_ms = now_us // 1000
        if self.conditions.paused_until_ms and now_ms >= self.conditions.paused_until_ms:
            self.unpause()
        self.waiting.answer_waits()
        self.statistics.sample(self.clock.monotonic_us() // 1000)
        for blocked in self.blocking.overdue(now_ms):
            self.waiting.note_waited(blocked)
            self.waiting.release(blocked, blocked.timeout_reply)
        self.blocking.signal_claimable(now_ms)
        if self.policies.used:
            policy_tick.run(self.server, now_us)
        self.keyspace.drop_idle_orders(now_ms)
        self.clients.tracking.drop_excess(NO_CLIENT, self.clients.outgoing)
        if self.lazy_free.parts:
            self._free_remains()
        if self.memory.is_due:
            gate.evict_due(self.server, now_us)
        self.server.ticks_are_behind = False
        if self.conditions.may_expire and not self.conditions.keeps_expired(now_ms):
            key_expiry.expire_overdue(self.server, now_us)
        stream_packing.run(self.server)
        self.blocking.make_later_ready()
        if self.blocking.ready:
            self._serve(now_us)

    def next_wakeup_ms(self) -> int:
        if self.conditions.bits & BUSY:
            return 0
        waiter_ms = self.blocking.next_ms() if self.blocking.blocked else 0
        pause_ms = self.conditions.paused_until_ms if self.conditions.bits & PAUSED else 0
        due_ms = min(waiter_ms, pause_ms) if waiter_ms and pause_ms else waiter_ms or pause_ms
        if self.lazy_free.parts or (self.memory.is_due and not self.conditions.loading):
            freeing_ms = self.clock.now_us() // 1000 + FREED_EVERY_MS
            due_ms = min(due_ms, freeing_ms) if due_ms else freeing_ms
        if self.server.ticks_are_behind:
            tick_ms = self.clock.now_us() // 1000 + key_expiry.EXPIRED_EVERY_MS
            due_ms = min(due_ms, tick_ms) if due_ms else tick_ms
        if self.policies.used:
            due_ms = min(due_ms or NEVER, policy_tick.next_ms(self.server, self.clock.now_us() // 1000))
            return 0 if due_ms == NEVER else due_ms
        return due_ms
