"""One world: a server, its clients, a network, a disk and a clock, all of them made by one number."""

import asyncio
import random
import traceback
from collections import Counter as Counts
from typing import Any, Final

from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.server.turns.log_writer import AofWriter
from tests.crash.powered import ROOT
from tests.support.deferred_log import DeferredThreads
from tests.support.engines import make_engine
from tests.world import faults, judges
from tests.world.actors import GROUP, QUEUE, STREAM, Journal
from tests.world.casts import QUEUES, Cast, Cut
from tests.world.client import Client, Lost
from tests.world.endless import Endless, limited
from tests.world.gaps import KeepingWithGaps
from tests.world.links import let_servers_connect
from tests.world.loop import Stalled, WorldLoop
from tests.world.memory import Limiter
from tests.world.network import Network
from tests.world.process import Machine
from tests.world.story import Story

POLICIES: Final = ("always", "always", "everysec", "no")
RESTART_S: Final = (0.05, 0.5, 2.0)
HEALS_S: Final = 120.0  # virtual: within it everything is answered again
ANSWER_S: Final = 150.0  # a log is begun again after 60 s at the latest


class World:
    """`run` lets the world happen, and returns the objections of its judges."""

    answer_s = ANSWER_S
    restart_s = RESTART_S

    def __init__(self, seed: int, cast: Cast = QUEUES, is_told: bool = False, cut: Cut | None = None) -> None:
        self.seed = seed
        self.cast = cast
        self.chance = chance = random.Random(seed)
        self.loop = WorldLoop()
        self.story = Story(self.loop, is_told)
        self.network = Network(self.loop, chance)
        self.policy = chance.choice(POLICIES)
        self.lasts_s, steps = chance.choice((2.0, 10.0, 40.0)), chance.choice((20, 60, 300))
        self.pause_s = self.lasts_s / steps  # of an actor, between two steps
        directives = {
            "appendonly": "yes", "appendfsync": self.policy, "aof_use_rdb_preamble": chance.choice(("yes", "no")),
            "auto_aof_rewrite_min_size": chance.choice(("1mb", "2kb")),
            "aof_load_corrupt_tail_max_size": "0" if self.policy == "always" else "1000000000",  # holes: not synced
        }  # fmt: skip
        directives |= cast.directives(chance)
        self.has_log = directives["appendonly"] == "yes"
        self.machine = Machine("server", self.loop, chance, self.story, **directives)
        self.machines = [self.machine]
        let_servers_connect(self.network)
        self.journal = Journal()
        self.is_loaded = True
        kinds = cast.kinds(chance)
        self.actors = [kind(self, self.machine, number) for number, kind in enumerate(kinds)]
        self.faults = chance.sample(cast.faults, chance.randrange(0, 5))
        self.every_s = chance.choice((0.3, 2.0, 8.0))
        if cut is not None:
            cut.apply(self)

    def run(self) -> list[str]:
        try:
            with limited(self.loop.time), self.cast.within(self):
                return self.loop.run_until_complete(self._happen())
        except Stalled:
            return ["nothing is left that could happen, and something still waits"]
        except Endless as problem:
            return [str(problem)]
        finally:
            self.loop.close()

    # -- what happens -------------------------------------------------------------------------------------------------

    async def _happen(self) -> list[str]:
        names = ", ".join(fault.__name__ for fault in self.faults)
        self.story.tell("world", f"{self.cast.name} {self.seed}, appendfsync {self.policy}; faults: {names or 'none'}")
        for machine in self.machines:
            machine.start()
        supervisors = [self.loop.create_task(self._supervise(machine)) for machine in self.machines]
        acting = [self.loop.create_task(actor.run()) for actor in self.actors]
        failing = [self.loop.create_task(self._fail(fault)) for fault in self.faults]
        await asyncio.sleep(self.lasts_s)
        self.is_loaded = False
        for task in failing:
            task.cancel()
        self._heal()
        objections = await self._settle(acting)
        if not objections:
            try:
                async with asyncio.timeout(self.answer_s):
                    objections = await self._judge()
            except TimeoutError:
                objections = ["the server does not answer, although nothing fails"]
            except AssertionError as broken:  # the `check` of a structure
                place = traceback.extract_tb(broken.__traceback__)[-1]
                objections = [f"an invariant is broken: {str(broken) or place.line} ({place.name})"]
        for task in supervisors:
            task.cancel()
        for machine in self.machines:
            if machine.is_up and machine.process is not None:
                machine.process.end()
        for task in [*failing, *acting]:
            task.cancel()
        await asyncio.sleep(1)
        errors = [error for machine in self.machines for error in machine.errors]
        return objections + errors + self.loop.complaints

    async def _supervise(self, machine: Machine) -> None:
        """Start a server again wherever it has ended."""
        while True:
            await asyncio.sleep(self.chance.choice(self.restart_s))
            if not machine.is_up:
                machine.start()

    async def _fail(self, fault: faults.Fault) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / self.every_s))
            await fault(self)

    def _heal(self) -> None:
        self.story.tell("world", "nothing fails from here on")
        for machine in self.machines:
            machine.disk.heal()
            machine.child_dies = 0.0
            machine.is_healed = True
        for actor in self.actors:
            if actor.client.connected is not None:
                actor.client.connected.replies.read_on()

    async def _settle(self, acting: list[asyncio.Task[None]]) -> list[str]:
        """Wait until each actor has ended its step."""
        _, waiting = await asyncio.wait(acting, timeout=HEALS_S)
        late = [actor.name for actor, task in zip(self.actors, acting, strict=True) if task in waiting]
        broken = [task.exception() for task in acting if task not in waiting and task.exception() is not None]
        return [f"{name} waits for a reply, although nothing fails" for name in late] + [repr(one) for one in broken]

    # -- what is judged -----------------------------------------------------------------------------------------------

    async def _judge(self) -> list[str]:
        client = Client(self.network, self.machine)
        await self._writable(client)
        objections: list[str] = []
        found = await self._ask(client, b"XRANGE", STREAM, b"-", b"+")
        objections += judges.entries(self, [(entry_id, fields[1]) for entry_id, fields in found])
        try:
            pending = await self._ask(client, b"XPENDING", STREAM, GROUP, b"-", b"+", b"1000000")
        except NoSuch:
            pending = []
        objections += judges.deliveries(self, [(one[0], one[1]) for one in pending])
        objections += judges.elements(self, await self._ask(client, b"LRANGE", QUEUE, b"0", b"-1"))
        objections += judges.counts(self, int(await self._ask(client, b"GET", b"count") or 0))
        for judge in self.cast.judges:
            objections += await judge(self, client)
        while not self._has_log_now and await client.ask(b"SAVE") != b"OK":
            await asyncio.sleep(1)  # a child saves
        while self._is_held:
            await asyncio.sleep(0.1)  # a child writes the first base of the log
        return objections + self._loaded_beside_memory(self.machine)

    async def _writable(self, client: Client) -> None:
        """Wait until the server takes writes."""
        while True:
            try:
                await client.open()
                if any(isinstance(actor, Limiter) for actor in self.actors):
                    await client.ask(b"CONFIG", b"SET", b"maxmemory", b"0")
                if await client.ask(b"SET", b"judge", b"1") == b"OK":
                    return
                if not self._has_log_now:  # after a save that failed, the next one may be due in an hour
                    await client.ask(b"SAVE")
            except Lost:
                pass
            await asyncio.sleep(0.5)

    async def _ask(self, client: Client, *words: bytes) -> Any:
        reply = await client.ask(*words)
        if isinstance(reply, Exception):
            raise NoSuch(str(reply))
        return reply

    @property
    def _has_log_now(self) -> bool:
        process = self.machine.process
        assert process is not None and self.machine.is_up, "it answered just now"
        return process.settings.yes("appendonly")

    @property
    def _is_held(self) -> bool:
        """Whether what is confirmed is in memory only, until the log's base is written."""
        process = self.machine.process
        assert process is not None and self.machine.is_up, "it answered just now"
        log = process.log_writer.log
        return log is not None and log.writes_held

    def _loaded_beside_memory(self, machine: Machine) -> list[str]:
        process = machine.process
        assert process is not None and machine.is_up, "it answered just now"
        return judges.picture(self, process.engine, loaded_from(machine, self._has_log_now))

    def keeping(self) -> judges.Keeping:
        """What may be lost."""
        return KeepingWithGaps(self)

    def figures(self) -> Counts[str]:
        """How much happened."""
        journal = self.journal
        found = Counts({"virtual seconds": round(self.loop.time()), "ends of processes": 0})
        for machine in self.machines:
            found["ends of processes"] += len(machine.ends)
        for name in ("added", "acked", "pushed", "popped", "counted"):
            for write in getattr(journal, name):
                found[f"{name}: {write.outcome}"] += 1
        return found


def loaded_from(machine: Machine, has_log: bool = True, is_synced: bool = False) -> Engine:
    """What a server loads from the files of a machine; is_synced: without what was not. UsageError where it cannot."""
    settings = Settings()
    for words in (["dir", ROOT], ["appendonly", "yes" if has_log else "no"]):
        settings.read_line(words, set())
    disk = machine.disk.copied()
    if is_synced:
        disk = machine.disk.lose_power()
        holes = "aof-load-corrupt-tail-max-size"
        settings.read_line([holes, machine.directives.get(holes, "0")], set())
    engine = make_engine(machine.clock, settings=settings)
    said: list[str] = []
    engine.conditions.loading = True  # what has expired meanwhile is there for what was logged before
    for _ in AofWriter(settings, engine, said.append, disk, DeferredThreads()).loading():
        pass
    return engine


class NoSuch(Exception):
    """A judge's request was refused."""
