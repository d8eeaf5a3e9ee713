"""The parts of a server: an object for each topic, made once, and functions that concern several of them.

Handlers reach these objects through attributes of Context. Functions that work on a whole server (the log's replay,
eviction, a change of role) get its ServerState; Engine (engine.py) runs requests on it.
"""

import random

from penstock import system_time
from penstock.clock import Clock, SystemClock
from penstock.config.settings import Settings
from penstock.engine.access.access_control import AccessControl, Sessions
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.aof import aof_compat
from penstock.engine.aof.persistence import Persistence
from penstock.engine.clients import Clients
from penstock.engine.cluster.node import Node
from penstock.engine.cluster.slot_rules import SlotRules
from penstock.engine.conditions import Conditions
from penstock.engine.context import Context
from penstock.engine.effects import EffectLog, Effects
from penstock.engine.encodings import FormLimits
from penstock.engine.memory.memory_limit import MemoryLimit
from penstock.engine.policies.policy_state import PolicyState
from penstock.engine.pubsub.notifications import KeyEvents
from penstock.engine.pubsub.subscriptions import Subscriptions
from penstock.engine.replication.replication import Replication
from penstock.engine.scripting.scripts import Scripts
from penstock.engine.session import Endpoints, Link, QueuedRequests, Session
from penstock.engine.state import CLUSTERED, NEEDS_REPLICAS
from penstock.engine.table import client_compat
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry.statistics import Statistics
from penstock.engine.telemetry.telemetry import Telemetry
from penstock.engine.waiting.blocking import Blocking
from penstock.engine.waiting.clock_jumps import ClockJumps
from penstock.engine.waiting.waiting import Waiting
from penstock.errors import ReplyError
from penstock.storage.keyspace import Keyspace
from penstock.storage.lazy_free import LazyFree


class Runner:
    """The interface of the engine for its parts: requests without a client, and ticks.

    ended_us: when the last request ended.
    """

    __slots__ = ("_clock", "_has_system_time", "ended_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._has_system_time = type(clock) is SystemClock
        self.ended_us = 0

    def now_us(self) -> int:
        """Unix time in microseconds. Every request reads it twice, so compiled, the machine's time is a call in C."""
        return system_time.now_us() if self._has_system_time else self._clock.now_us()

    def run(self, ctx: Context, row: Row, request: list[bytes], began_us: int) -> bytes:
        """Run one request that comes from no client: of a script, a blocked request's next try, the log's replay.

        Its reply, BLOCKED where it waits.
        """
        raise NotImplementedError

    def run_queue(self, ctx: Context, queue: QueuedRequests, replies: list[bytes]) -> QueuedRequests:
        """Run the requests of a transaction as one unit of the log; returns those that are left.

        Requests are left if a script takes long: then the server is busy, and the script's reply comes later.
        """
        raise NotImplementedError

    def ran_late(self, ctx: Context, row: Row, request: list[bytes], began_us: int, refusal: ReplyError | None) -> None:
        """A request that took long in another thread is over, and counted as `run` counts; began_us is monotonic."""
        raise NotImplementedError

    def tick(self) -> None:
        """Do what is due by time: deadlines, CLAIM wake-ups, policies, expiry, the end of a pause."""
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


class ServerState:
    """The parts of one server.

    context: the one of requests that are handled one after the other; a script has its own. memory, scripts, context:
    there once the engine has made them. ticks_are_behind: the last tick left work to the next, which comes soon.
    """

    __slots__ = (
        "access", "blocking", "chance", "clients", "clock", "clock_jumps", "cluster", "commands", "compatibility",
        "conditions", "context", "effects", "form_limits", "key_events", "keyspace", "lazy_free", "memory",
        "persistence", "policies", "replication", "runner", "scripts", "settings", "statistics", "subscriptions",
        "telemetry", "ticks_are_behind", "waiting",
    )  # fmt: skip

    context: Context
    memory: MemoryLimit
    scripts: Scripts

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        chance: random.Random,
        runner: Runner,
        commands: KnownCommands,
        catalog: CommandCatalog,
        log: EffectLog | None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.runner = runner
        self.commands = commands
        self.conditions = Conditions(clock)
        settings.watch("import-mode", self._read_import_mode)
        self._read_import_mode()
        is_node = settings.yes("cluster-enabled")
        if is_node:
            settings.force("databases", "1")
        self.keyspace = Keyspace(settings.number("databases"))
        self.cluster: SlotRules | None = None
        if is_node:
            self.cluster = SlotRules(settings, Node(settings, chance), self.keyspace.databases[0])
            self.conditions.set(CLUSTERED, True)
        self.form_limits = FormLimits(settings)
        self.lazy_free = LazyFree()
        self.ticks_are_behind = False
        self.replication = Replication(settings, clock, chance)
        self.statistics = Statistics(clock.now_us() // 1000)
        self.telemetry = Telemetry(settings, clock, chance, self.conditions, commands)
        self.clock_jumps = ClockJumps(clock)
        self.compatibility = client_compat.of(settings)
        if self.compatibility.is_valkey:
            self.telemetry.large.follow_settings()
        self.policies = PolicyState(self.compatibility, self.conditions)
        # clients, and messages to them
        self.clients = Clients(settings, chance, self.conditions, commands)
        self.access = AccessControl(settings, clock, catalog, ServerSessions(self), self.statistics)
        self.subscriptions = Subscriptions()
        self.key_events = KeyEvents(settings, self.subscriptions, self.clients, self.conditions)
        # the log and replicas
        self.effects = Effects(log, aof_compat.of(settings))
        for name in ("aof-compat-version", "aof-compat-consumer"):
            settings.watch(name, self._change_aof_compat)
        settings.watch("min-replicas-to-write", self._read_needed_replicas)
        self._read_needed_replicas()
        self.persistence = Persistence(settings, clock, self.conditions, self._changes)
        # blocked requests
        self.blocking = Blocking(self.keyspace)
        self.waiting = Waiting(
            settings, clock, self.blocking, self.clients, self.persistence, self.replication, self.statistics,
            self.telemetry.slow_log,
        )  # fmt: skip

    def connect(self, address: str = "", local_address: str = "", link: Link | None = None) -> Session:
        """A new client's session. It is authenticated at once where no password is set.

        link: what carries it, which knows the addresses; without one they are those that are given.
        """
        clients = self.clients
        endpoints = Endpoints(address, local_address) if link is None else None
        session = Session(clients.next_id, endpoints, self.clock.now_us() // 1000)
        session.link = link
        clients.next_id += 1
        self.access.begin(session)
        clients.sessions[session.id] = session
        self.statistics.connections += 1
        return session

    def disconnect(self, session: Session) -> None:
        """The client disconnected: forget its blocked request, watched keys, subscriptions and the like."""
        session.closed = True
        if self.conditions.busy:
            session.keep_endpoints()
            self.scripts.disconnected.append(session)
            return
        self.forget_blocked(session)
        if session.reads_as and not self.persistence.wanted_shutdown:
            self.policies.ended += [(session.id, place) for place in session.reads_as]
        clients = self.clients
        clients.unwatch(session)
        if session.tracking is not None:
            clients.tracking.end(session)
            clients.note_tracking()
        self.subscriptions.forget(session)
        if session.monitors:
            clients.monitor(session, False)
        self.replication.forget(session)
        if session.id in clients.sessions:
            del clients.sessions[session.id]
        session.link = None

    def forget_blocked(self, session: Session) -> None:
        """A session's blocked request, if it has one, is not served any more."""
        if session.blocked is not None:
            self.blocking.leave(session.blocked, self.clock.now_us() // 1000)
            session.blocked = None

    def _change_aof_compat(self) -> None:
        """CONFIG SET aof-compat-version: from now on the log has the commands of another version."""
        self.effects.compat = aof_compat.within_words(self.settings, self.replication.words)
        if self.persistence.want_new_base():
            self.persistence.wanted_rewrite = True

    def _read_import_mode(self) -> None:
        self.conditions.imports = self.settings.yes("import-mode")

    def _read_needed_replicas(self) -> None:
        self.conditions.set(NEEDS_REPLICAS, self.settings.number("min-replicas-to-write") > 0)

    def _changes(self) -> int:
        return self.context.dirty + self.scripts.calls.dirty


class ServerSessions(Sessions):
    """The sessions of a server, as a change of users concerns them."""

    def __init__(self, server: ServerState) -> None:
        self._server = server

    def every(self) -> list[Session]:
        return list(self._server.clients.sessions.values())

    def close(self, session: Session) -> None:
        self._server.context.close(session)

    def is_in_exec(self, session: Session) -> bool:
        context = self._server.context
        return context.session is session and not context.waits

    def drop_cache(self, session: Session) -> None:
        clients = self._server.clients
        clients.tracking.note_rights(session, session is self._server.context.session, clients.outgoing)
