"""A machine with a disk and a clock, and the server processes that live on it one after the other."""

import asyncio
import os
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from penstock.commands.registry import new_engine
from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.engine.memory.process_memory import CpuTimes
from penstock.engine.replication import role
from penstock.errors import UsageError
from penstock.server.connections.connection import Connection
from penstock.server.cron import Cron
from penstock.server.replication.master_link import MasterLink
from penstock.server.replication.replicas import Replicas
from penstock.server.server_log import ServerLog
from penstock.server.turns.log_writer import AofWriter
from penstock.server.turns.turn import Turn
from tests.crash.powered import ROOT
from tests.support.clock import NOW_MS
from tests.world.disk import Killed, WorldDisk
from tests.world.links import OWNER, LinkEnd, WorldPipeChild, new_child
from tests.world.loop import ProcessLoop, WorldClock, WorldLoop
from tests.world.machinery import DeferredChild, WorldSaveChild, WorldThreads
from tests.world.network import Connected
from tests.world.story import Story

FIRST_PID: Final = 1000
STARTUP_BYTES: Final = 20_000_000
SYSTEM_BYTES: Final = 1 << 34


def no_times() -> CpuTimes:
    """No process of a world takes any time."""
    times = CpuTimes()
    times.system = times.user = times.children_system = times.children_user = 0.0
    return times


class Process:
    """One life of a server: the product's own code, from its connections to its log. UsageError if it cannot start."""

    def __init__(self, machine: "Machine", directives: dict[str, str], engine: Engine | None = None) -> None:
        self.machine = machine
        self.disk = machine.disk
        self.is_alive = True
        self.is_listening = False
        self.connected: dict[Connected, None] = {}
        self.links: dict[LinkEnd, None] = {}  # to masters
        self.pipes: dict[int, WorldPipeChild] = {}  # of children, by descriptor, until they are read
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.loop = ProcessLoop(machine.loop, self.guard)
        self.is_safe = False  # it has ended, and its log was written
        self.engine = machine.new_engine(directives) if engine is None else engine
        self.settings = self.engine.settings
        self._hide_system()
        self.log_writer = AofWriter(
            self.settings, self.engine, self._say, self.disk, WorldThreads(self), DeferredChild(self)
        )
        self.log_writer.snapshots.child = WorldSaveChild(self)
        server_log = ServerLog(self.settings, machine.clock)
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.turn = Turn(self.engine, self.log_writer, server_log, loop, self._shut_down)
        self.log_writer.synced = partial(self.loop.call_soon_threadsafe, self.turn.look_after_log)
        self.replicas = Replicas(self.turn, self.disk, self._say, new_child(self))
        self.turn.replicas = self.replicas
        self._link = MasterLink(self.engine, self.disk, self._say, self.turn.applied)
        self.replicas.link = self._link
        self.engine.conditions.loading = True
        for _ in self.log_writer.loading():
            pass
        if master := self.settings.words("replicaof"):
            role.follow(self.engine.server, master[0], int(master[1]))
        self.engine.conditions.loading = False
        self._cron = Cron(self.turn)
        self._cron.start()
        self.is_listening = True

    def _hide_system(self) -> None:
        """What the system says of the process that runs the world is another thing each time, and so is INFO's size."""
        identity, machine, engine = self.engine.telemetry.identity, self.machine, self.engine
        identity.process_id, identity.startup_bytes = machine.new_pid(), STARTUP_BYTES
        identity.executable, identity.system, identity.interpreter = "penstock", "a world", "CPython"
        identity.usage.peak = identity.usage.total = lambda: SYSTEM_BYTES
        identity.usage.cpu = no_times
        engine.scripts.memory = lambda: 0
        engine.memory.reading = lambda: (machine.reading(engine),) * 2

    def _say(self, line: str) -> None:
        if self.is_alive:
            self.machine.story.tell(self.machine.name, line)

    def new_connection(self) -> Connection:
        return Connection(self.turn)

    def guard(self, call: Callable[..., object], *args: Any) -> None:
        """Run what belongs to the process, if it is alive. It dies where its disk says so."""
        if self.is_alive:
            token = OWNER.set(self)
            self.machine.guard(call, *args)
            OWNER.reset(token)

    def forget_task(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.pop(task, None)

    def stop_all(self) -> None:
        """The process is dead: its tasks, links and descriptors end."""
        self.is_alive = self.is_listening = False
        for connected in list(self.connected):
            connected.close_by_server()
        for link in list(self.links):
            link.abort()
        for task in list(self.tasks):
            task.cancel()
        for descriptor in self.pipes:
            os.close(descriptor)
        self.pipes.clear()

    def end(self) -> None:
        """As after SIGTERM."""
        if self.is_alive:
            self.guard(self._end)

    def _shut_down(self) -> None:
        """SHUTDOWN: at the end of what runs now."""
        self.loop.call_soon(self._end)

    def _end(self) -> None:
        self.is_listening = False
        self._cron.stop()
        self.is_safe = is_safe = self.turn.close()
        self.replicas.close()
        self._link.stop()
        for connection in list(self.turn.connections.values()):
            connection.close()
        self._say("ends" if is_safe else "ends: the log could not be written")
        self.stop_all()
        self.machine.is_up = False


def _startup(engine: Engine) -> int:
    return STARTUP_BYTES


@dataclass(slots=True)
class Trouble:
    """A time in which servers of a machine refused writers: their log, or their file, could not be written."""

    since_s: float
    until_s: float = float("inf")


class Machine:
    """A machine: its disk and clock outlive processes. `boots` counts how often it has been switched on.

    child_dies: how likely a child is killed. Delays are drawn for each thread's job and each child.
    """

    def __init__(self, name: str, loop: WorldLoop, chance: random.Random, story: Story, **directives: str) -> None:
        self.name = name
        self.loop = loop
        self.chance = chance
        self.story = story
        self.directives = {key.replace("_", "-"): value for key, value in directives.items()}
        self.clock = WorldClock(loop, NOW_MS)
        self.ends: list[tuple[float, bool]] = []  # of processes: when, and whether power was lost
        self.baseless_ends: list[float] = []  # of processes whose log had no file that it could be written to
        self.failures: list[float] = []  # when calls of the disk failed
        self.troubles: list[Trouble] = []
        self.disk = WorldDisk(chance, lambda: self.failures.append(loop.time()))
        self.reading: Callable[[Engine], int] = _startup  # bytes in use
        self.boots = 1
        self.child_dies = 0.0
        self.is_up = False
        self.is_healed = False  # nothing fails any more: a start must not fail
        self.errors: list[str] = []  # exceptions that escaped the product
        self._pids = FIRST_PID
        self.process: Process | None = None

    def _note_trouble(self, since_s: float, is_on: bool) -> None:
        """Trouble that a process ends with goes on until another one has none."""
        was_on = bool(self.troubles) and self.troubles[-1].until_s == float("inf")
        if is_on and not was_on:
            self.troubles.append(Trouble(since_s))
        elif was_on and not is_on:
            self.troubles[-1].until_s = self.loop.time()

    def _has_trouble(self) -> bool:
        return self.process is not None and self.process.engine.conditions.trouble is not None

    def thread_s(self) -> float:
        return self.chance.choice((0.001, 0.01, 0.1, 0.5, 1.5))

    def child_s(self) -> float:
        return self.chance.choice((0.05, 0.2, 1.0, 3.0))

    def new_pid(self) -> int:
        self._pids += 1
        return self._pids

    def new_engine(self, directives: dict[str, str]) -> Engine:
        settings = Settings()
        for name, value in ({"dir": ROOT, "loglevel": "nothing"} | directives).items():
            settings.read_line([name, value], set())
        return new_engine(settings, self.clock, random.Random(self.chance.random()))

    def start(self, engine: Engine | None = None) -> None:
        """Start a process, which serves if it can load what is there. engine: one that was made before."""
        assert not self.is_up, "one at a time"
        ended_s = self.ends[-1][0] if self.ends else self.loop.time()  # since then what was not synced is at risk
        try:
            self.process = Process(self, self.directives, engine)
        except UsageError as problem:
            self._note_trouble(ended_s, is_on=True)
            self.story.tell(self.name, f"does not start: {problem}")
            if self.is_healed:
                self.errors.append(f"does not start: {problem}")
        except Killed:
            self.crash(loses_power=False)
        else:
            self.is_up = True
            self._note_trouble(ended_s, self._has_trouble())
            self.story.tell(self.name, "serves")

    def crash(self, loses_power: bool) -> None:
        """The process is killed, or the machine loses power. What the disk kept is there for the next one."""
        self.story.tell(self.name, "loses power" if loses_power else "is killed")
        self.ends.append((self.loop.time(), loses_power))
        process, self.is_up = self.process, False
        self.disk = self.disk.as_left(loses_power)
        self.boots += loses_power
        if process is not None:
            log = process.log_writer.log
            if process.is_alive and (log is None or log.writes_held):
                self.baseless_ends.append(self.loop.time())
            process.stop_all()

    def guard(self, call: Callable[..., object], *args: Any) -> None:
        """Run the product's code. An exception that escapes is noted: it must not end the process."""
        try:
            call(*args)
            if self.is_up:
                self._note_trouble(self.loop.time(), self._has_trouble())
        except Killed:
            if self.is_up:
                self.crash(loses_power=self.chance.random() < 0.5)
        except Exception:
            self.errors.append(traceback.format_exc())
            self.story.tell(self.name, "an exception: " + traceback.format_exc().splitlines()[-1])
