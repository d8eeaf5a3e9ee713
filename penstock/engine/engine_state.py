"""What an engine keeps besides running requests: settings, keyspace, sessions, blocked requests, counters.

Handlers, scripts, the log's replay and eviction know the engine as this; Engine (engine.py) is the one that runs
requests.
"""

import random

from penstock import system_time
from penstock.clock import Clock, SystemClock
from penstock.config.settings import Settings
from penstock.engine import encodings
from penstock.engine.access.access_control import AccessControl, Sessions
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.aof import aof_compat
from penstock.engine.aof.persistence import Persistence
from penstock.engine.cluster.node import Node
from penstock.engine.cluster.slot_rules import SlotRules
from penstock.engine.context import Context
from penstock.engine.effects import EffectLog, Effects
from penstock.engine.memory.memory_limit import MemoryLimit
from penstock.engine.migrating import Migrator
from penstock.engine.policies.policy_state import PolicyState
from penstock.engine.pubsub import notifications
from penstock.engine.pubsub.subscriptions import Subscriptions
from penstock.engine.replication.copies import AllCopies
from penstock.engine.replication.replication import Replication
from penstock.engine.scripting.scripts import Scripts
from penstock.engine.session import NO_PLACES, Endpoints, Link, QueuedRequests, Session
from penstock.engine.state import (
    BUSY,
    CACHING_CHOSEN,
    CLUSTERED,
    FOLLOWING,
    LOADING,
    LOG_FAILING,
    MEASURED,
    MONITORED,
    NEEDS_REPLICAS,
    NOTIFYING,
    PAUSED,
    REPLIES_WITHHELD,
    TRACKED,
)
from penstock.engine.table import client_compat
from penstock.engine.table.row import Row
from penstock.engine.telemetry import monitor_line
from penstock.engine.telemetry.client_memory import HELD_NAME
from penstock.engine.telemetry.hot_keys import HotKeys
from penstock.engine.telemetry.identity import Identity
from penstock.engine.telemetry.latency_monitor import LatencyMonitor
from penstock.engine.telemetry.slow_log import SlowLog
from penstock.engine.telemetry.statistics import Statistics
from penstock.engine.tracking.tracking import Tracking
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.engine.waiting.blocking import Blocking
from penstock.engine.waiting.clock_jumps import ClockJumps
from penstock.engine.waiting.sync_waiting import SyncWaiting
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.key_table import KeyTable
from penstock.storage.keyspace import Keyspace, Value
from penstock.storage.lazy_free import LARGEST_AT_ONCE, LazyFree, effort
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.listpack_nodes import StreamLimits
from penstock.storage.streams.stream import Stream


class EngineState:
    """The keyspace, the sessions, the blocked requests and the effects of one server.

    The caller of the engine takes `outgoing` (replies for other sessions, in order) and looks at `to_close`,
    `wanted_rewrite` and `wanted_shutdown`.
    """

    __slots__ = (
        "_has_system_time", "_holds_writes", "_loading", "_paused_until_ms", "_trouble", "access", "active_expiry",
        "blocking", "chance", "clock", "clock_jumps", "cluster", "compatibility", "context", "copies", "descriptions",
        "effects", "ended_us", "expiry_is_behind", "follows_changes", "hot_keys", "identity", "keyspace", "latency",
        "lazy_free", "memory", "migrator", "monitors", "next_session_id", "notified", "outgoing", "pauses_all",
        "persistence", "policies", "postponed", "replication", "rows", "scripts", "sessions", "set_limits",
        "settings", "slow_log", "small_hash_bytes", "small_hash_fields", "small_zset_bytes", "small_zset_members",
        "state", "statistics", "stream_limits", "subscriptions", "sync_waiting", "to_close", "tracking",
        "wanted_rewrite", "wanted_shutdown", "watchers",
    )  # fmt: skip

    context: Context  # the one of requests that are handled one after the other; a script has its own
    memory: MemoryLimit
    scripts: Scripts

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        chance: random.Random,
        rows: dict[bytes, Row],
        catalog: CommandCatalog,
        keyspace: Keyspace | None,
        log: EffectLog | None,
    ) -> None:
        self.settings = settings
        self.state = 0  # bits of state.py: why a request may not simply be run
        self.clock = clock
        self._has_system_time = type(clock) is SystemClock
        self.chance = chance
        self.rows = rows
        self.descriptions: dict[str, bytes] = {}  # what COMMAND and COMMAND DOCS say of all commands
        self.cluster: SlotRules | None = None
        if settings.yes("cluster-enabled"):
            settings.force("databases", "1")
            self.cluster = SlotRules(settings, Node(settings, chance))
            self.set_state(CLUSTERED, True)
        self.keyspace = keyspace or Keyspace(settings.number("databases"))
        self.effects = Effects(log, aof_compat.of(settings))
        for name in ("aof-compat-version", "aof-compat-consumer"):
            settings.watch(name, self._change_aof_compat)
        self.replication = Replication(settings, clock, chance)
        settings.watch("min-replicas-to-write", self._read_needed_replicas)
        self._read_needed_replicas()
        self.compatibility = client_compat.of(settings)
        self.policies = PolicyState(self.compatibility)
        self.stream_limits = StreamLimits(0, 0)
        self._set_stream_limits()
        settings.watch("stream-node-max-bytes", self._set_stream_limits)
        settings.watch("stream-node-max-entries", self._set_stream_limits)
        settings.watch("stream-compress-after", self._set_stream_limits)
        self._measure_sets()
        for name in encodings.SET_LIMITS:
            settings.watch(name, self._measure_sets)
        self._measure_hashes()
        for name in encodings.HASH_LIMITS:
            settings.watch(name, self._measure_hashes)
        self._measure_sorted_sets()
        for name in encodings.ZSET_LIMITS:
            settings.watch(name, self._measure_sorted_sets)
        self.statistics = Statistics(clock.now_us() // 1000)
        self.clock_jumps = ClockJumps(clock)
        self.identity = Identity(chance)
        self.slow_log = SlowLog(settings)
        settings.watch("slowlog-max-len", self.slow_log.shorten)
        self.latency = LatencyMonitor()
        self.sync_waiting = SyncWaiting()
        self.persistence = Persistence(settings, clock, self._changes)
        self.copies = AllCopies(self.persistence, self.replication)
        self.blocking = Blocking(self.keyspace)
        self.watchers: dict[tuple[int, bytes], set[Session]] = {}
        self.follows_changes = False  # whether a client watches keys, or tracks them (CLIENT TRACKING)
        self.sessions: dict[int, Session] = {}
        self.migrator: Migrator | None = None  # the server's
        self.tracking = Tracking(settings, chance, self.sessions)
        self.hot_keys: HotKeys | None = None
        self.access = AccessControl(settings, clock, catalog, EngineSessions(self), self.statistics)
        self.next_session_id = 1
        self.monitors: set[Session] = set()
        self.subscriptions = Subscriptions()
        self.notified = ""  # letters of the keyspace events that are published; set by notify_of
        self._set_notified()
        settings.watch("notify-keyspace-events", self._set_notified)
        self._loading = False
        self.active_expiry = True
        self.expiry_is_behind = False  # the last tick left overdue keys or fields to the next
        self._trouble: bytes | None = None
        self._paused_until_ms = 0
        self.pauses_all = False
        self._holds_writes = False
        self.postponed: list[BlockedRequest] = []  # requests held back by CLIENT PAUSE
        self.lazy_free = LazyFree()
        # what the caller must do after a call
        self.outgoing: list[tuple[Session, bytes]] = []
        self.to_close: list[Session] = []
        self.wanted_rewrite = False
        self.wanted_shutdown = False
        self.ended_us = 0  # when the last request was over

    def now_us(self) -> int:
        """Unix time in microseconds. Every request reads it twice, so compiled, the machine's time is a call in C."""
        return system_time.now_us() if self._has_system_time else self.clock.now_us()

    # -- what engine.py does ----------------------------------------------------------------------------------------

    def named_row(self, request: list[bytes]) -> Row:
        """The row that a request names, whatever its arity; a container's own row where nothing follows its name."""
        raise NotImplementedError

    def row_of(self, request: list[bytes]) -> Row:
        """The row of a request whose arity fits, else the refusal (Redis 8.6.3)."""
        raise NotImplementedError

    def logged_row(self, request: list[bytes]) -> Row:
        """As `row_of`, for a line of the log, which knows what clients do not, and by its own name."""
        raise NotImplementedError

    def run(self, ctx: Context, row: Row, request: list[bytes], began_us: int) -> bytes:
        """Run one request that comes from no client: of a script, a blocked request's next try, the log's replay.

        Its reply, BLOCKED where it waits.
        """
        raise NotImplementedError

    def run_queue(self, ctx: Context, queue: QueuedRequests, replies: list[bytes]) -> QueuedRequests:
        """Run the requests of a transaction as one unit of the log; what is left of them.

        Something is left where a script takes long: then the server is busy, and the script's reply is still to come.
        """
        raise NotImplementedError

    def ran_late(self, ctx: Context, row: Row, request: list[bytes], began_us: int, refusal: ReplyError | None) -> None:
        """A request that took long in another thread is over, and counted as `run` counts."""
        raise NotImplementedError

    def tick(self) -> None:
        """What time alone brings: deadlines, CLAIM wake-ups, policies, expiry, the end of a pause."""
        raise NotImplementedError

    def next_wakeup_ms(self) -> int:
        """Next unix ms at which `tick` must run; 0 if none."""
        raise NotImplementedError

    def serve_ready(self, now_us: int) -> None:
        """Serve the readers that a finished script or a disconnect unblocked."""
        raise NotImplementedError

    def replay(self, ctx: Context, requests: list[list[bytes]], at: int) -> tuple[int, bytes]:
        """Run lines of the log from a place on: how many, and the error reply of a line that was refused.

        No gates, no statistics, no waiting. ReplyError where a line names no command or has a wrong number of words.
        """
        raise NotImplementedError

    # -- why requests may not simply be run (state.py) ----------------------------------------------------------------

    def set_state(self, bit: int, holds: bool) -> None:
        """A reason why a request may not simply be run begins or ends to hold."""
        self.state = self.state | bit if holds else self.state & ~bit

    @property
    def trouble(self) -> bytes | None:
        """Why writers are refused: the MISCONF text; None while the log works."""
        return self._trouble

    @trouble.setter
    def trouble(self, text: bytes | None) -> None:
        self._trouble = text
        self.set_state(LOG_FAILING, text is not None)

    @property
    def loading(self) -> bool:
        return self._loading

    @loading.setter
    def loading(self, holds: bool) -> None:
        if self._loading and not holds:
            self.policies.loaded_ms = self.clock.now_us() // 1000
        self._loading = self.persistence.loading = holds
        self.set_state(LOADING, holds)

    @property
    def busy(self) -> bool:
        """With a script that takes long, in another thread: nothing else uses the keyspace."""
        return self.state & BUSY != 0

    @busy.setter
    def busy(self, holds: bool) -> None:
        self.set_state(BUSY, holds)

    @property
    def paused_until_ms(self) -> int:
        """Until when CLIENT PAUSE holds requests back, in unix ms; 0: it does not."""
        return self._paused_until_ms

    @paused_until_ms.setter
    def paused_until_ms(self, until_ms: int) -> None:
        self._paused_until_ms = until_ms
        self.set_state(PAUSED, until_ms > 0 or self._holds_writes)

    def hold_writes(self) -> None:
        """FAILOVER: hold back what may write, whatever CLIENT PAUSE and UNPAUSE say."""
        self._holds_writes = True
        self.set_state(PAUSED, True)

    def end_holding(self) -> None:
        """FAILOVER is over: the next tick runs what was held back."""
        self._holds_writes = False
        self.paused_until_ms = max(self.paused_until_ms, self.clock.now_us() // 1000)

    def notify_of(self, letters: str) -> None:
        """Publish the keyspace events of these letters from now on; empty: none."""
        self.notified = letters
        self.set_state(NOTIFYING, letters != "")

    def monitor(self, session: Session, holds: bool) -> None:
        """A session begins to be shown every request, or ends (MONITOR, RESET, its connection's end)."""
        session.monitors = holds
        if holds:
            self.monitors.add(session)
        else:
            self.monitors.discard(session)
        self.set_state(MONITORED, bool(self.monitors))

    def show_to_monitors(self, ctx: Context, row: Row, request: list[bytes]) -> None:
        """MONITOR: after the request was run, in the database it left the session in (Redis 8.6.3)."""
        if not monitor_line.is_shown(row):
            return
        line = monitor_line.line(ctx.session, ctx.db_index, row, request, ctx.now_us)
        self.outgoing += [(session, line) for session in self.monitors if not session.is_silent]

    def show_script(self, ctx: Context) -> None:
        """MONITOR: a request that runs a script is shown before the requests of the script (Redis 8.6.3)."""
        if self.monitors and not ctx.session.privileged:
            assert ctx.row is not None, "a request that runs has a row"
            self.show_to_monitors(ctx, ctx.row, ctx.args)

    def watch(self, session: Session, db_index: int, key: bytes) -> None:
        """WATCH: the session's next EXEC fails if the key changes before."""
        if (db_index, key) not in session.watched:
            session.watched_bytes += len(key) + HELD_NAME
        if not session.watched:
            session.watched, session.watched_stale = set(), set()
        session.watched.add((db_index, key))
        self.watchers.setdefault((db_index, key), set()).add(session)
        self.follows_changes = True

    def collect_hot_keys(self, hot_keys: HotKeys | None) -> None:
        """HOTKEYS began, ended or was reset; what was collected stays until it is reset."""
        self.hot_keys = hot_keys
        self.set_state(MEASURED, hot_keys is not None and hot_keys.is_active(self.clock.now_us() // 1000))

    def note_tracking(self) -> None:
        """A session has begun or ended to track keys."""
        self.set_state(TRACKED, bool(self.tracking.sessions))
        self.follows_changes = bool(self.watchers) or self.tracking.follows_changes

    def note_change(self, session: Session, db_index: int, key: bytes) -> None:
        """A key has changed while a session's request was run: for WATCH, and for CLIENT TRACKING."""
        for watching in self.watchers.get((db_index, key), ()):
            watching.watch_broken = True
        if self.tracking.follows_changes:
            if not self.loading:
                self.tracking.note_change(session, key, self.outgoing)
        elif not self.watchers:
            self.follows_changes = False  # no client tracks keys any more, and the last one that was read has changed

    def notify_flush(self, ctx: Context, is_lazy: bool) -> bytes:
        """A database was emptied: notify clients that track keys. Returns what is sent before the reply of the request.

        is_lazy: by an asynchronous request, whose reply Redis does not send from another thread.
        """
        is_first = ctx.waits and not is_lazy and not ctx.session.state & REPLIES_WITHHELD
        return self.tracking.note_flush(ctx.session, is_first, self.outgoing)

    def notify_reload(self, ctx: Context) -> None:
        """All data were replaced: as after a flush, but the session itself is notified after its reply."""
        self.tracking.note_flush(ctx.session, False, self.outgoing)

    def new_stream(self) -> Stream:
        """An empty stream, with the settings of this moment for its idempotent producers."""
        settings = self.settings
        producers = Producers(settings.number("stream-idmp-duration"), settings.number("stream-idmp-maxsize"))
        return Stream(self.stream_limits, producers)

    def notify(self, db_index: int, kind: str, name: bytes, key: bytes) -> None:
        """Publish a keyspace event of a class (a letter), if the class is wanted."""
        if kind in self.notified:
            notifications.publish(self.subscriptions, self.notified, db_index, name, key, self.outgoing)

    def _set_notified(self) -> None:
        self.notify_of(notifications.wanted(self.settings))

    def _set_stream_limits(self) -> None:
        settings = self.settings
        self.stream_limits.set(
            settings.number("stream-node-max-bytes"),
            settings.number("stream-node-max-entries"),
            settings.number("stream-compress-after"),
        )

    def _measure_sets(self) -> None:
        self.set_limits = encodings.set_limits(self.settings)

    def _measure_hashes(self) -> None:
        self.small_hash_fields, self.small_hash_bytes = map(self.settings.number, encodings.HASH_LIMITS)

    def _measure_sorted_sets(self) -> None:
        self.small_zset_members, self.small_zset_bytes = map(self.settings.number, encodings.ZSET_LIMITS)

    # -- sessions ---------------------------------------------------------------------------------------------------

    def connect(self, address: str = "", local_address: str = "", link: Link | None = None) -> Session:
        """A new client's session. It is authenticated at once where no password is set.

        link: what carries it, which knows the addresses; without one they are those that are given.
        """
        endpoints = Endpoints(address, local_address) if link is None else None
        session = Session(self.next_session_id, endpoints, self.now_us() // 1000)
        session.link = link
        self.next_session_id += 1
        self.access.begin(session)
        self.sessions[session.id] = session
        self.statistics.connections += 1
        return session

    def disconnect(self, session: Session) -> None:
        """The client is gone: everything that waits or watches for it is forgotten."""
        session.closed = True
        if self.busy:
            session.keep_endpoints()
            self.scripts.disconnected.append(session)
            return
        if session.blocked is not None:
            self.blocking.forget(session.blocked)
            session.blocked = None
        self.unwatch(session)
        if session.tracking is not None:
            self.tracking.end(session)
            self.note_tracking()
        self.subscriptions.forget(session)
        if session.monitors:
            self.monitor(session, False)
        self.replication.forget(session)
        if session.id in self.sessions:
            del self.sessions[session.id]
        session.link = None

    def unwatch(self, session: Session) -> None:
        """Forget what a session watches (EXEC, DISCARD, UNWATCH, RESET, the end of the connection)."""
        if session.watched:
            for place in session.watched:
                watching = self.watchers[place]
                watching.discard(session)
                if not watching:
                    del self.watchers[place]
            session.watched = session.watched_stale = NO_PLACES
            session.watched_bytes = 0
            self.follows_changes = bool(self.watchers) or self.tracking.follows_changes
        session.watch_broken = False

    def _change_aof_compat(self) -> None:
        """CONFIG SET: the log goes on in other words."""
        self.choose_compat()
        if self.persistence.want_new_base():
            self.wanted_rewrite = True

    def choose_compat(self) -> None:
        """The log and the stream to replicas have the words that the log's readers and all replicas know."""
        self.effects.compat = aof_compat.of(self.settings).within(self.replication.words)

    def _read_needed_replicas(self) -> None:
        self.set_state(NEEDS_REPLICAS, self.settings.number("min-replicas-to-write") > 0)

    def _changes(self) -> int:
        return self.context.dirty + self.scripts.calls.dirty

    # -- replies ----------------------------------------------------------------------------------------------------

    def as_client_wants(self, session: Session, answer: bytes) -> bytes:
        """A reply, or nothing where CLIENT REPLY OFF or SKIP withholds it."""
        if session.reply_skip:
            session.reply_skip -= 1
            return reply.NO_REPLY
        return reply.NO_REPLY if session.is_silent else answer

    # -- pausing (CLIENT PAUSE) --------------------------------------------------------------------------------------

    def keeps_expired(self, now_ms: int) -> bool:
        """Whether what has expired is only hidden: while writes are paused, and on a replica until the master's DEL."""
        return self.state & FOLLOWING != 0 or self.writes_paused(now_ms)

    def keeps_policies(self) -> bool:
        """Whether policies are applied: not with a named compat-version, and on a replica the master applies them."""
        return self.policies.kept and self.state & FOLLOWING == 0

    def writes_paused(self, now_ms: int) -> bool:
        return self._holds_writes or now_ms < self._paused_until_ms

    # -- waiting ----------------------------------------------------------------------------------------------------

    def block(self, blocked: BlockedRequest) -> None:
        """A handler found nothing and may wait: its session is blocked, first come first served."""
        blocked.session.blocked = blocked
        self.blocking.add(blocked)

    def release(self, blocked: BlockedRequest, answer: bytes, at: int | None = None) -> None:
        """Give a blocked session its reply and free it.

        at: the reply's place in `outgoing`; None: the last.
        """
        session = blocked.session
        session.handled += 1
        self.blocking.forget(blocked)
        session.blocked = None
        if session.state & CACHING_CHOSEN and session.queue is None:
            session.choose_caching(False)
        self.outgoing.insert(len(self.outgoing) if at is None else at, (session, self.as_client_wants(session, answer)))

    def settle_syncs(self) -> None:
        """The log may have been synced since, or a replica have acknowledged more: WAIT and WAITAOF are answered."""
        self.sync_waiting.settle(self.copies, self._answer_synced)

    def _answer_synced(self, blocked: BlockedRequest, answer: bytes) -> None:
        self.note_waited(blocked)
        self.release(blocked, answer)

    def note_delay(self, event: bytes, began_us: int) -> None:
        """Something besides a command is over that began at a monotonic time: LATENCY notes it if it took long."""
        threshold_us = self.settings.number("latency-monitor-threshold") * 1000
        if not threshold_us:
            return
        usec = self.clock.monotonic_us() - began_us
        if usec >= threshold_us:
            self.latency.note(event, self.clock.now_us(), usec)

    def note_waited(self, blocked: BlockedRequest, failure: bytes | None = None) -> None:
        """A blocked request ends without being run again: it counts as run, and took no time."""
        self.statistics.ran(blocked.row, 0, failure)
        if not self.settings.number("slowlog-log-slower-than"):
            self.slow_log.add(blocked.session, blocked.row, blocked.args, self.clock.now_us(), 0)
            self.statistics.count_slow(blocked.row, 0)

    def close(self, session: Session) -> None:
        """Close a connection; the one whose request is being run, when its reply has been sent."""
        if session is self.context.session:
            session.closing = True
        else:
            self.to_close.append(session)

    def free_lazily(self, value: Value | KeyTable | None) -> None:
        """A value, or all of a database, was deleted and is not referenced elsewhere: free it.

        Bit by bit; at once where there is a limit of memory, for what is free is to be used, and while a log is loaded,
        for no time is given to it then.
        """
        if value is not None and not self.memory.limit and not self.loading:
            self.lazy_free.take(value)

    def count_lazily_freed(self, value: Value | KeyTable | None) -> None:
        """For INFO's lazyfreed_objects: what Redis would free in a thread of its own."""
        if isinstance(value, KeyTable):
            self.statistics.lazyfreed += len(value)
        elif value is not None and effort(value) > LARGEST_AT_ONCE:
            self.statistics.lazyfreed += 1


class EngineSessions(Sessions):
    """The sessions of an engine."""

    def __init__(self, engine: EngineState) -> None:
        self._engine = engine

    def every(self) -> list[Session]:
        return list(self._engine.sessions.values())

    def close(self, session: Session) -> None:
        self._engine.close(session)

    def is_in_exec(self, session: Session) -> bool:
        context = self._engine.context
        return context.session is session and not context.waits

    def drop_cache(self, session: Session) -> None:
        engine = self._engine
        engine.tracking.note_rights(session, session is engine.context.session, engine.outgoing)
