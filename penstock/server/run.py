"""Starts a server, serves, and ends it."""

import asyncio
import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol, cast

from penstock.clock import Clock, MovableClock, SystemClock
from penstock.commands.registry import new_engine
from penstock.config import node_file
from penstock.config.directive_types import BadValue
from penstock.config.settings import Settings
from penstock.engine.cluster.node import Node
from penstock.engine.engine import Engine
from penstock.engine.replication import role
from penstock.engine.versions import BUILD, PENSTOCK_VERSION, REDIS_VERSION
from penstock.errors import UsageError
from penstock.server import allocated_memory
from penstock.server.connections.admission import is_loopback
from penstock.server.connections.connection import Connection
from penstock.server.connections.limits import raise_file_limit
from penstock.server.cron import Cron
from penstock.server.launcher_link import LauncherLink
from penstock.server.listening import Doors
from penstock.server.replication.master_link import MasterLink
from penstock.server.replication.replicas import Replicas
from penstock.server.server_log import ServerLog, uncaught_errors_logged_in, write_file
from penstock.server.supervision import notify_end, notify_ready
from penstock.server.tls import tls_context
from penstock.server.turns.log_writer import AofWriter
from penstock.server.turns.turn import Turn
from penstock.storage.aof.disk import Disk, SystemDisk

CLEAN: Final = 0
FAILED: Final = 1

GC_THRESHOLDS: Final = (50_000, 20, 100)  # larger than Python's: lines of a log and requests make few reference cycles
FAREWELL_S: Final = 2.0  # how long clients may take to receive their last replies
FAREWELL_STEP_S: Final = 0.01
SLICE_S: Final = 0.02  # of loading, before clients are answered
SCRIPT_S: Final = 0.1  # between two looks whether a script is over, before the end
RETRY_S: Final = 1.0  # between two attempts of a node to end after its launcher
LAST_RETRY_S: Final = 60.0  # of them; then it ends all the same
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Companion(Protocol):
    """Serves in the server's process what is not asked in the Redis protocol: metrics."""

    def start(self, turn: Turn) -> None:
        """Called in the loop when the addresses are bound, before the log is loaded. UsageError if it cannot start."""

    def stop(self) -> None:
        """Called in the loop when the server ends."""


def serve(settings: Settings, disk: Disk | None = None, companions: Sequence[Companion] = ()) -> int:
    """Serve until a signal or SHUTDOWN; the process's exit code. What keeps the server from starting is in its log.

    disk: where the log is kept; None: among the operating system's files. UsageError where the log of messages cannot
    be written.
    """
    make_loop, loop_name = loop_factory()
    clock: Clock = MovableClock(SystemClock()) if settings.yes("penstock-test-clock") else SystemClock()
    server_log = ServerLog(settings, clock)
    server_log.begin()
    with uncaught_errors_logged_in(server_log):
        try:
            engine = new_engine(settings, clock, random.Random(os.urandom(32)))
            engine.telemetry.identity.event_loop = loop_name
            engine.memory.reading = allocated_memory.Allocated().read
            engine.memory.give_back = engine.scripts.calls.give_back = allocated_memory.give_back
            with asyncio.Runner(loop_factory=make_loop) as runner:
                code = runner.run(Server(engine, server_log, disk or SystemDisk(), companions).run())
        except UsageError as problem:
            server_log.fatal(str(problem))
            return FAILED
        server_log.warning("Redis is now ready to exit, bye bye...")
        return code


def check(settings: Settings) -> None:
    """UsageError if a server with these settings could not start because of its users, their file, or TLS."""
    new_engine(settings, SystemClock(), random.Random(0))
    tls_context.at_start(settings)


def loop_factory() -> tuple[Callable[[], asyncio.AbstractEventLoop], str]:
    """uvloop's loop factory if it is installed and PENSTOCK_LOOP is not asyncio, else asyncio's; and the name."""
    if os.environ.get("PENSTOCK_LOOP") == "asyncio" or find_spec("uvloop") is None:
        return asyncio.new_event_loop, "asyncio"
    import uvloop  # not installed everywhere

    return uvloop.new_event_loop, "uvloop"


class Server:
    """One server: its engine, log, sockets and cron."""

    __slots__ = ("_companions", "_disk", "_engine", "_journal", "_over", "_settings", "_turn")

    _turn: Turn

    def __init__(self, engine: Engine, server_log: ServerLog, disk: Disk, companions: Sequence[Companion] = ()) -> None:
        self._engine = engine
        self._companions = companions
        self._disk = disk
        self._settings = engine.settings
        self._journal = server_log
        self._over = asyncio.Event()

    async def run(self) -> int:
        settings, server_log = self._settings, self._journal
        loop = asyncio.get_running_loop()
        self._log_beginning()
        self._fit_file_limit()
        # Addresses first: a second server that is started by mistake must not touch the log of the first.
        doors = Doors(settings, server_log, loop)
        doors.bind()
        launcher = self._join_cluster()
        log_writer = AofWriter(settings, self._engine, server_log.notice, self._disk)
        self._turn = turn = Turn(self._engine, log_writer, server_log, loop, self._over.set)
        log_writer.synced = partial(call_soon, loop, turn.look_after_log)
        for companion in self._companions:
            companion.start(turn)
        self._take_signals(loop)
        pidfile = write_pidfile(settings.text("pidfile"))
        replicas = Replicas(turn, self._disk, server_log.notice)
        turn.replicas = replicas
        link = MasterLink(self._engine, self._disk, server_log.notice, turn.applied)
        replicas.link = link
        if launcher is not None:
            await launcher.open(turn)
        cron = Cron(turn)
        cron.start()
        self._engine.conditions.loading = True  # from the first client on
        await doors.open(
            cast(Callable[[], asyncio.Protocol], partial(Connection, turn)),
            cast(Callable[[], asyncio.Protocol], partial(Connection, turn, True)),
        )
        server_log.notice("Server initialized")
        for address in doors.addresses:
            server_log.notice(f"Listening on {address}")
        gc.freeze()  # nothing is garbage so far; later collections do not go through these objects
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        try:
            await self._load_all(log_writer, loop)
        except UsageError:
            doors.close()
            for connection in list(turn.connections.values()):
                connection.abort()
            raise
        gc.collect()
        gc.freeze()  # loaded values live long: the garbage collector is never to go through them again
        self._engine.memory.give_back()
        if not self._over.is_set():
            master = settings.words("replicaof")
            if master:
                role.follow(self._engine.server, master[0], int(master[1]))
            self._engine.conditions.loading = False
            if launcher is not None:
                launcher.say_ready()
            for kind in doors.kinds:
                server_log.notice(f"Ready to accept connections {kind}")
            notify_ready(settings.text("supervised"), os.environ, server_log.warning)
        await self._until_end()
        doors.close()
        cron.stop()
        for companion in self._companions:
            companion.stop()
        is_safe = turn.close()
        replicas.close()
        link.stop()
        await farewell(turn)
        if pidfile is not None:
            pidfile.unlink(missing_ok=True)
        if not is_safe:
            server_log.warning("The log could not be written: the last changes may be lost")
        return CLEAN if is_safe else FAILED

    async def _until_end(self) -> None:
        await self._over.wait()
        self._journal.notice("User requested shutdown...")
        notify_end(self._settings.text("supervised"), os.environ)

    def _log_beginning(self) -> None:
        """The first lines of the log: what this server is, and what is unsafe about its users."""
        self._journal.notice(
            f"Penstock {PENSTOCK_VERSION} speaks as Redis {REDIS_VERSION}, pid={os.getpid()},"
            f" Python {sys.version.split()[0]}, {self._engine.telemetry.identity.event_loop}, {BUILD} build"
        )
        for warning in (self._engine.access.warning(), open_to_others(self._engine)):
            if warning:
                self._journal.warning(warning)

    def _join_cluster(self) -> LauncherLink | None:
        """Where the server is a node: take the map that its launcher has for it, or keep its own state."""
        cluster, settings = self._engine.server.cluster, self._settings
        if cluster is None:
            return None
        if settings.text("replicaof"):
            raise UsageError("replicaof is not allowed with cluster-enabled yes")
        if not settings.number("cluster-launcher"):
            keep_node(cluster.node, settings)
            return None
        launcher = LauncherLink(self._engine, cluster, self._end_after_launcher, self._journal.warning)
        launcher.read_first_map()
        return launcher

    def _take_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in SIGNALS:
            loop.add_signal_handler(number, self._signalled, number)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by what started us, it would hide how children end
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # closing the terminal does not end the server, as in Redis

    def stop(self) -> None:
        """End as after SIGTERM."""
        self._over.set()

    async def _load(self, log_writer: AofWriter, loop: asyncio.AbstractEventLoop) -> None:
        """Load the log in slices; in between, clients get LOADING, and signals are handled.

        A loading that is broken off leaves the engine `loading`: no client is served what was loaded so far.
        """
        slice_began_s = loop.time()
        for _ in log_writer.loading():
            if loop.time() - slice_began_s < SLICE_S:
                continue
            await asyncio.sleep(0)
            if self._over.is_set():
                return
            slice_began_s = loop.time()

    async def _load_all(self, log_writer: AofWriter, loop: asyncio.AbstractEventLoop) -> None:
        """As `_load`; UsageError if the data take more memory than there is."""
        try:
            await self._load(log_writer, loop)
        except MemoryError:
            raise UsageError("There is not enough memory to load the data.") from None

    def _fit_file_limit(self) -> None:
        """Allow as many clients as the system allows files for."""
        wanted = self._settings.number("maxclients")
        allowed = raise_file_limit(wanted)
        if allowed < 1:
            raise UsageError("the system allows too few open files (ulimit -n)")
        if allowed < wanted:
            self._journal.warning(f"The system allows files for {allowed} clients only, not {wanted}")
            self._settings.set_pairs([("maxclients", str(allowed))])
        self._settings.watch("maxclients", self._follow_maxclients, may_refuse=True)

    def _follow_maxclients(self) -> None:
        """CONFIG SET maxclients."""
        wanted = self._settings.number("maxclients")
        allowed = raise_file_limit(wanted)
        if allowed < wanted:
            raise BadValue(
                f"The operating system is not able to handle the specified number of clients, try with {allowed}"
            )

    def _signalled(self, number: signal.Signals, is_later: bool = False) -> None:
        """The first signal shuts the server down, the second ends the process at once.

        If an RDB file is to be saved, and that fails, or if the log has no base yet, the server goes on (Redis 8.6.3),
        unless `force` is set. Where only that file has the data, it is saved once the script that runs is over:
        is_later.
        """
        if self._over.is_set():
            return
        options = self._settings.text(f"shutdown-on-{number.name.lower()}").split()
        if not self._engine.persistence.may_end("force" in options):
            return
        if self._awaits_script(options):
            if not is_later:
                self._journal.notice(f"{number.name}: a script runs, and the server ends when it is over (SCRIPT KILL)")
            asyncio.get_running_loop().call_later(SCRIPT_S, self._signalled, number, True)
            return
        if not self._save_at_end(options) and "force" not in options:
            self._journal.warning(f"{number.name}: the RDB file cannot be saved, so the server goes on")
            return
        self._journal.notice(f"Received {number.name} scheduling shutdown...")  # not before it is certain
        for each in SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(each)
            signal.signal(each, lambda *_: os._exit(FAILED))
        self._over.set()

    def _end_after_launcher(self, tried_s: float = 0.0) -> None:
        """The launcher of this node has ended: the node ends as after SIGTERM, or once it may."""
        if self._over.is_set():
            return
        self._signalled(signal.SIGTERM)
        if tried_s >= LAST_RETRY_S:
            self._journal.warning("The launcher of this node has ended, and the node ends all the same")
            self._over.set()
        elif not self._over.is_set():
            asyncio.get_running_loop().call_later(RETRY_S, self._end_after_launcher, tried_s + RETRY_S)

    def _saves_at_end(self, options: list[str]) -> bool:
        """Whether an RDB file is to be saved: that is asked for, or there are save points."""
        if self._engine.conditions.loading or "nosave" in options:
            return False
        return "save" in options or bool(self._engine.persistence.saves.points())

    def _awaits_script(self, options: list[str]) -> bool:
        """Whether the end waits for a script: its changes, and those before it, would be in no file (Redis 8.6.3)."""
        is_only_copy = self._engine.persistence.log is None and self._saves_at_end(options)
        return self._engine.conditions.busy and is_only_copy and "force" not in options

    def _save_at_end(self, options: list[str]) -> bool:
        """Save the RDB file if it is to be; False where it failed.

        Without a log no request is handled from then on: what it changes would be confirmed, and in no file.
        """
        persistence = self._engine.persistence
        if self._engine.conditions.busy or not self._saves_at_end(options):
            return True
        if persistence.saves.save is None or persistence.saves.save():
            return False
        if persistence.log is None:
            self._turn.shutting_down = True
        return True


def open_to_others(engine: Engine) -> str:
    """A sentence where clients of other machines need no password, as Redis has; else empty."""
    settings = engine.settings
    addresses = [address.removeprefix("-") for address in settings.words("bind")]
    is_listening = bool(settings.number("port") or settings.number("tls-port"))
    is_reached = is_listening and not all(one == "localhost" or is_loopback(one) for one in addresses)
    if not is_reached or settings.yes("protected-mode") or not engine.access.default.needs_no_login():
        return ""
    return (
        f"WARNING: no password is required, and clients of other machines are let in (bind {' '.join(addresses)},"
        " protected-mode no): they can read and change everything. Set requirepass"
    )


def call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call a function in the loop, from another thread."""
    loop.call_soon_threadsafe(callback)


async def farewell(turn: Turn) -> None:
    """Close every connection, and wait a little until the clients have received what was sent."""
    for connection in list(turn.connections.values()):
        connection.close()
    until_s = turn.loop.time() + FAREWELL_S
    while turn.connections and turn.loop.time() < until_s:
        await asyncio.sleep(FAREWELL_STEP_S)


def keep_node(node: Node, settings: Settings) -> None:
    """Read the node's ID and slots, and keep them from here on; UsageError where the file is of no use."""
    path = Path(settings.text("dir")) / settings.text("cluster-config-file")
    try:
        text = node_file.read(path)
        if text is not None:
            node.read(text)
        node.keep_by(lambda: node_file.replace(path, node.written()))
    except OSError as problem:
        raise UsageError(f"cannot keep {path}: {problem.strerror}") from None
    except (ValueError, IndexError) as problem:
        raise UsageError(f"cannot use {path}: {problem}; this server is a cluster of one") from None


def write_pidfile(path: str) -> Path | None:
    if not path:
        return None
    write_file(path, "pidfile", f"{os.getpid()}\n", "w")
    return Path(path)
