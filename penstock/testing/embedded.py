"""A server in this process: `with penstock.Server() as server: server.client().set("k", "v")`."""

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import quote

import hiredis

from penstock.clock import SystemClock
from penstock.commands.registry import new_engine
from penstock.config import config_file
from penstock.config.settings import Settings, nearest
from penstock.engine.engine import Engine
from penstock.engine.memory import process_memory, value_sizes
from penstock.engine.replication import role
from penstock.engine.waiting import clock_moving
from penstock.errors import UsageError
from penstock.protocol.reply import bulks
from penstock.server.cron import Cron
from penstock.server.server_log import MARKS, ServerLog
from penstock.server.turns.log_writer import AofWriter
from penstock.server.turns.turn import Turn
from penstock.testing import seeding, states
from penstock.testing.faults.failing import Faults
from penstock.testing.faults.failing_disk import FailingDisk
from penstock.testing.faults.no_disk import NoDisk
from penstock.testing.loops.inline_loop import InlineLoop
from penstock.testing.loops.loop_thread import LoopThread
from penstock.testing.loops.turned_clock import TurnedClock
from penstock.testing.openings import Openings
from penstock.testing.replication import Replication
from penstock.testing.states import Snapshot
from penstock.testing.trace import Trace

if TYPE_CHECKING:
    import asyncio

    import redis
    import redis.asyncio

    from penstock.testing.connections.sockets import Sockets

DEFAULTS: Final = {"port": "0", "repl-diskless-sync-delay": "0"}  # a test does not wait for replicas that may come
LINES_KEPT: Final = 1000
EXCHANGES_KEPT: Final = 200
EMPTY_BYTES: Final = 716_448  # what a server without keys uses (used_memory_startup of Redis 8.6.3)
LOGIN_OPTIONS: Final = frozenset({"credential_provider", "password", "username"})  # redis-py's


class Lines(ServerLog):
    """The server's messages, in memory: all of them, whatever `loglevel` is."""

    lines: list[str]

    def _read_level(self) -> None:
        self._level = 0
        self.is_verbose = True

    def _write(self, level: int, sentence: str) -> None:
        self.lines.append(f"{MARKS[level]} {sentence}")
        del self.lines[:-LINES_KEPT]


class Server:
    """A server in this process, in memory or on a directory; a context manager, also an asynchronous one.

    dir: where the log is kept; without it, nothing is. Other keywords are directives: `maxmemory="1gb"`,
    `compat_version="8.2"`, `notify_keyspace_events="KEA"`; True and False are yes and no.

    Clients of it are redis-py's, in any thread and any event loop. A request is handled in the thread that sends it, so
    a client costs no thread and no socket; one thread of the server runs timers, and only from the first client on that
    waits for something. Servers share nothing.

    TypeError for a keyword that is no directive; UsageError for a value that is wrong, and for a log that cannot be
    loaded.
    """

    _base_clock: ClassVar[type[SystemClock]] = SystemClock

    def __init__(self, dir: str | os.PathLike[str] | None = None, **directives: object) -> None:
        words = [word for name, value in directives.items() for word in flag(name, value)]
        self._words = [*words, *(["--dir", str(Path(dir).absolute())] if dir is not None else [])]
        self._in_memory = dir is None
        self._settings = self._settings_at_start()
        self._is_open = False
        self._sockets: Sockets | None = None
        self.clock = TurnedClock(self._base_clock())
        self.trace = Trace(self.clock.movable, EXCHANGES_KEPT)
        self.log: list[str] = []  # what the server logged last, as redis-server's lines without the time

    def _settings_at_start(self) -> Settings:
        """The directives that were given, and our defaults for the others."""
        settings = config_file.start(self._words)
        defaults = DEFAULTS | {"appendonly": "no"} if self._in_memory else DEFAULTS
        for name, default in defaults.items():
            if name not in settings.set_at_start:
                settings.read_line([name, default], set())
        return settings

    # -- from the start to the end ------------------------------------------------------------------------------------

    def start(self) -> "Server":
        """Load what is in the directory, and serve; `with` calls this."""
        if self._is_open:
            return self
        if not self._in_memory and not Path(self._settings.text("dir")).is_dir():
            raise UsageError(f"there is no directory {self._settings.text('dir')}")
        clock = self.clock.movable
        self._loop = loop = InlineLoop(clock)
        server_log = Lines(self._settings, clock)
        server_log.lines = self.log
        self.engine = engine = new_engine(self._settings, clock, random.Random(os.urandom(32)))
        engine.memory.reading = partial(_memory_in_use, engine)
        engine.telemetry.identity.startup_bytes = EMPTY_BYTES
        disk = NoDisk() if self._in_memory else FailingDisk()
        with loop.lock:
            log_writer = AofWriter(self._settings, engine, server_log.notice, disk)
            self._turn = Turn(engine, log_writer, server_log, cast("asyncio.AbstractEventLoop", loop), self._shut_down)
            log_writer.synced = partial(loop.call_soon_threadsafe, self._turn.look_after_log)
            for _ in log_writer.loading():
                pass
            engine.conditions.loading = False
            self._thread = LoopThread(loop)
            self._replication = Replication(self._turn, disk, self._thread)
            master = self._settings.words("replicaof")
            if master:
                role.follow(engine.server, master[0], int(master[1]))
            self._cron = Cron(self._turn)
            self._cron.start()
        self.faults = Faults(engine, loop, log_writer, self._move_clock)
        self._openings = Openings(self._turn, loop, self.faults, self.trace)
        self.clock.move = self._move_clock
        self._is_open = True
        if not self._in_memory:
            loop.start_thread()  # it has the log synced
        return self

    def close(self) -> None:
        """End as at SHUTDOWN: what was changed is in the log, clients lose their connections."""
        if not self._is_open:
            return
        self._is_open = False
        self.clock.move = self.clock.movable.advance_us
        self._openings.is_closed = True
        self._replication.close()
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None
        self._thread.close()
        with self._loop.lock:
            self._cron.stop()
            self._turn.close()
            for connection in list(self._turn.connections.values()):
                connection.close()
            self._loop.run_due()
        self._loop.close()

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Server":
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def restart(self, lost_bytes: int = 0) -> None:
        """End, and start again with what is in the directory; in memory, with nothing. Clients connect again.

        lost_bytes: so many bytes are missing at the end of the log, as after a crash in the middle of a write. Clients
        that were made before keep working; the clock stays as it was turned; what CONFIG SET changed is as it was at
        the start. UsageError if there is no log to lose bytes of, or it is shorter.
        """
        self._start_again(partial(self._tear, lost_bytes))

    def reset(self) -> None:
        """Become a new server, for the next test: the state, the clock, the faults, the log and the trace are new.

        Clients that were made before connect again, and `url` stays. UsageError for a server on a directory.
        """
        if not self._in_memory:
            raise UsageError("reset needs a server in memory: this one has its keys in a directory")
        self._start_again(self._forget)

    def _start_again(self, between: Callable[[], None]) -> None:
        """End, call a function, and start with the directives of the first start, for the same clients."""
        openings = self._openings
        port = self._settings.text("port") if self._sockets is not None else ""
        self.close()
        between()
        self._settings = self._settings_at_start()
        self.start()
        if port:
            self._settings.set_pairs([("port", port)])
            self._open_sockets()
        openings.become(self._openings)
        self._openings = openings

    def _forget(self) -> None:
        self.clock.movable.follow_base()
        self.log.clear()
        self.trace.clear()

    def _tear(self, lost_bytes: int) -> None:
        if not lost_bytes:
            return
        folder = Path(self._settings.text("dir"), self._settings.text("appenddirname"))
        files = [] if self._in_memory else list(folder.glob("*.incr.aof"))
        if not files:
            raise UsageError("there is no log whose end could be lost")
        newest = max(files, key=lambda path: int(path.name.split(".")[-3]))
        size = newest.stat().st_size - lost_bytes
        if size < 0:
            raise UsageError(f"the log's last file is {-size} bytes shorter than what is to be lost")
        os.truncate(newest, size)

    # -- states -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All keys as they are now, for `restore`."""
        self.openings()
        with self._loop.lock:
            return Snapshot(self.engine)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to the keys of a snapshot, which may be used again. UsageError for a server on a directory."""
        self.openings()
        if not self._in_memory:
            raise UsageError("restore needs a server in memory: the log of this one would not have the keys")
        with self._loop.lock:
            self._turn.outside(partial(states.restore, self.engine, snapshot))
            self._loop.run_due()

    def fail_over(self, snapshot: Snapshot) -> None:
        """A failover, for clients, to a replica that had got no further than a snapshot.

        Connections break, what was written since is lost, and the replica knows no script by its digest. UsageError for
        a server on a directory.
        """
        self.restore(snapshot)
        with self._loop.lock:
            self.engine.server.scripts.flush()
        self.faults.close_connections()

    def load(self, seed: str | os.PathLike[str]) -> int:
        """Run the requests of a file in redis-cli's syntax; how many. UsageError, with the line, for an error reply."""
        link = self.openings().socket(None)
        reader = hiredis.Reader(notEnoughData=False)
        count = 0
        try:
            if password := self._settings.text("requirepass"):
                link.sendall(bulks([b"AUTH", os.fsencode(password)]))
                reader.feed(link.recv(seeding.PIECE))
                reader.gets()
            for line in seeding.requests_of(Path(seed).read_text(errors="surrogateescape")):
                link.sendall(bulks(line.words))
                while (reply := reader.gets()) is False:
                    reader.feed(link.recv(seeding.PIECE))
                seeding.check(line, reply)
                count += 1
        finally:
            link.close()
        return count

    # -- clients ------------------------------------------------------------------------------------------------------

    def client(self, **options: Any) -> "redis.Redis":
        """A redis-py client of this server, with a connection pool of its own; options are redis.Redis's.

        It logs in with `requirepass`, unless the options say how it does.
        """
        from penstock.testing.connections import redis_py  # imported late: redis-py is an extra

        return redis_py.client(self.openings(), **self._login(options))

    def async_client(self, **options: Any) -> "redis.asyncio.Redis":
        """As `client`, for asyncio; each event loop needs a client of its own."""
        from penstock.testing.connections import redis_py  # imported late: redis-py is an extra

        return redis_py.async_client(self.openings(), **self._login(options))

    def _login(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a client, with the password where one is required and they name none."""
        password = self._settings.text("requirepass")
        has_own = not LOGIN_OPTIONS.isdisjoint(options)
        return options if has_own or not password else {"password": password} | options

    @property
    def url(self) -> str:
        """Where others reach the server: redis://127.0.0.1:PORT, or unix://PATH with the directive unixsocket.

        A password that is required is in it. The first use opens the socket, which a thread serves.
        """
        self.openings()
        url, password = self._open_sockets(), self._settings.text("requirepass")
        return url.replace("://", f"://:{quote(password, safe='')}@", 1) if password else url

    def _open_sockets(self) -> str:
        """Open the socket, if it is not; its URL."""
        if self._sockets is None:
            from penstock.testing.connections.sockets import Sockets  # imported late: most tests need no socket

            self._sockets = Sockets(self._turn, self._loop, self._thread, self._settings)
        return self._sockets.url

    def openings(self) -> Openings:
        """Opens links to the server, for connections of other client libraries. UsageError if it does not run."""
        if not self._is_open:
            raise UsageError("the server is not running: use `with penstock.Server() as server`")
        return self._openings

    # -- what the server calls ----------------------------------------------------------------------------------------

    def _move_clock(self, by_us: int) -> None:
        with self._loop.lock:
            self._turn.outside(partial(clock_moving.advance_us, self.engine.server, self.clock.movable, by_us))
            self._loop.run_due()
        self._loop.look_again()

    def _shut_down(self) -> None:
        """SHUTDOWN: new clients are refused, the others lose their connections."""
        self._openings.is_closed = True
        self._replication.close_soon()
        for connection in list(self._turn.connections.values()):
            connection.close()


def _memory_in_use(engine: Engine) -> tuple[int, int]:
    """Bytes that the server uses, by estimate, and the resident size of the process, most of which is the tests'."""
    return EMPTY_BYTES + value_sizes.dataset_bytes(engine.keyspace), process_memory.resident_bytes()


def flag(name: str, value: object) -> list[str]:
    """A keyword as a flag with its words: save="60 1" becomes --save 60 1. TypeError if it is no directive."""
    directive = name.replace("_", "-")
    if not Settings.begins_line(directive.lower()):
        near = "".join([f" Did you mean {one.replace('-', '_')!r}?" for one in nearest(directive)])
        raise TypeError(f"there is no keyword {name!r}, for there is no such directive.{near}")
    if isinstance(value, bool):
        return [f"--{directive}", "yes" if value else "no"]
    if directive in ("save", "bind", "user", "client-output-buffer-limit", "rename-command"):
        return [f"--{directive}", *str(value).split()] if value else [f"--{directive}", ""]
    return [f"--{directive}", str(value)]
