"""`penstock import` from a server amid faults, again and again into one directory, and the judge of its copies.

An import that says it is whole has everything that was confirmed before it last asked how far the source was, nothing
that was refused, and nothing twice. One that is not whole says why. The last one, when nothing fails, has the same
picture as the source.
"""

import asyncio
import re
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hiredis
import pytest

from penstock import wire_client
from penstock.clock import Clock
from penstock.commands.registry import new_engine
from penstock.engine.engine import Engine
from penstock.errors import UsageError
from penstock.progress_line import ProgressLine
from penstock.server.run import CLEAN, FAILED
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from penstock.storage.types.lists import List
from penstock.transfer import importing
from tests.crash.powered import ROOT
from tests.support.keyspace_picture import View, keyspace
from tests.world import judges
from tests.world.actors import OK, QUEUE, REFUSED, STREAM, Actor, Write
from tests.world.client import Client
from tests.world.disk import Killed
from tests.world.fibers import Fiber, Sockets
from tests.world.network import HOST
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

PORT: Final = 6379
ADDRESS: Final = wire_client.Address("", HOST, PORT, "", "", 0)
LOOK_S: Final = 0.05
LONGEST_S: Final = 120.0  # virtual, for an import while nothing fails
WITHOUT_CAUSE: Final = re.compile(r": *\.?$|None", re.MULTILINE)
NEEDS_USER: Final = re.compile("has data already|was changed after its import|cannot be read")
FAULTS: Final = ("none", "none", "kill", "power", "call", "link", "stop", "disk", "full")
SHOWN: Final = 3


class Died(Exception):
    """The importing process, or its machine, was killed."""


@dataclass(slots=True)
class Copy:
    """What a whole import left. sure_s: what was confirmed before then is in it."""

    sure_s: float
    done_s: float
    entries: Counts[bytes]
    elements: Counts[bytes]
    count: int


class ImportingServer:
    """Stands for `Server`: the process of an import, as far as `Importer` uses it."""

    def __init__(self, machine: Machine, engine: Engine) -> None:
        self._machine = machine
        self._engine = engine
        self._over = asyncio.Event()

    def stop(self) -> None:
        self._over.set()

    async def run(self) -> int:
        machine = self._machine
        machine.start(self._engine)
        while machine.is_up and not self._over.is_set():
            await asyncio.sleep(LOOK_S)
        process = machine.process
        if not machine.is_up or process is None:
            raise Died
        process.end()
        if not process.is_safe and machine.disk.is_dead:
            raise Died
        return CLEAN if process.is_safe else FAILED


class Import(Actor):
    """Imports, with or without --follow, while its own machine and its link fail; then the same command again."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        world.network.machines[PORT] = machine
        self.target = Machine("importer", world.loop, self.chance, world.story)
        self.copies: list[Copy] = []
        self.objections: list[str] = []
        self.asked_s = 0.0  # when the source was last asked how far it is
        self.has_all_at_once = False  # the last import took a snapshot, and did not go on where another had ended

    async def step(self) -> None:
        failing = asyncio.create_task(self._fail(self.chance.choice(FAULTS)))
        try:
            await self.run_once(self.chance.random() < 0.4)
        finally:
            failing.cancel()
            self.target.disk.heal()

    async def run_once(self, follows: bool) -> tuple[bool, str] | None:
        """One command: what `ended` gives; None where it fails."""
        target, story = self.target, self.world.story
        settings = importing.settings_for(ADDRESS, Path(ROOT))
        settings.read_line(["loglevel", "nothing"], set())
        settings.read_line(["appendfsync", self.world.policy], set())
        engine = new_engine(settings, target.clock, self.chance)
        try:
            await self._blocking(importing.begin, engine, target.disk, ADDRESS, ROOT)
            importer = importing.Importer(engine, ADDRESS, ROOT, follows)
            server = ImportingServer(target, engine)
            stopping = asyncio.create_task(self._stop(server, importer, follows))
            try:
                code = await importer.run(server)  # type: ignore[arg-type]  # it uses `run` and `stop`
            finally:
                stopping.cancel()
            sure_s = self._caught_up_s(engine) if follows else self.asked_s
            copy = await self._blocking(self._copy, importer, target.disk, code, sure_s)
        except (Died, Killed):
            if target.is_up or target.disk.is_dead:  # dead: it died before its server began, or after it had ended
                target.crash(loses_power=False)
            story.tell(self.name, "the import is killed")
            return None
        except UsageError as problem:
            story.tell(self.name, f"the import fails: {problem}")
            self._judge_failure(str(problem))
            return None
        link = engine.replication.master
        self.has_all_at_once = link is not None and link.copied_bytes > 0
        story.tell(self.name, f"the import is whole: {copy[1]!r}")
        return copy

    def _copy(self, importer: importing.Importer, disk: Any, code: int, sure_s: float) -> tuple[bool, str]:
        found = importing.ended(importer, disk, code)
        self.copies.append(self._copied(sure_s))
        return found

    def _judge_failure(self, text: str) -> None:
        """It names a cause, unless the server has said that its log could not be written, or it was told to end."""
        if WITHOUT_CAUSE.search(text) or NEEDS_USER.search(text):
            self.objections.append(f"an import fails, and gives no cause or does not begin anew: {text!r}")

    def _caught_up_s(self, engine: Engine) -> float:
        """Now, where a server that follows has everything of the source; else nothing is sure."""
        source = self.machine.process
        is_up = engine.replication.master is not None and self.machine.is_up and source is not None
        same = is_up and source is not None and source.engine.replication.id == engine.replication.id
        if same and source is not None and source.engine.replication.offset == engine.replication.offset:
            return self.world.loop.time()
        return 0.0

    def _copied(self, sure_s: float) -> Copy:
        """What is in the files now."""
        from tests.world.world import loaded_from  # it imports the casts

        values = loaded_from(self.target).keyspace.databases[0].values
        stream, queue, count = values.get(STREAM), values.get(QUEUE), values.get(b"count")
        entries = Counts(names_of(stream) if isinstance(stream, Stream) else ())
        elements = Counts(iter(queue) if isinstance(queue, List) else ())
        counted = int(count) if isinstance(count, bytes | int) else 0
        return Copy(sure_s, self.world.loop.time(), entries, elements, counted)

    # -- what happens meanwhile ---------------------------------------------------------------------------------------

    async def _blocking(self, work: Any, *args: Any) -> Any:
        return await Fiber(partial(work, *args)).run()

    async def _stop(self, server: ImportingServer, importer: importing.Importer, follows: bool) -> None:
        """Ctrl-C of one that follows, once it was whole."""
        while not follows or not importer.is_whole:
            await asyncio.sleep(LOOK_S)
        await asyncio.sleep(self.chance.random() * 3)
        server.stop()

    async def _fail(self, kind: str) -> None:
        target, chance = self.target, self.chance
        await asyncio.sleep(chance.choice((0.01, 0.3, 2.0, 6.0)) * chance.random())
        self.world.story.tell(self.name, f"fault: {kind}")
        if kind in ("kill", "power") and target.is_up:
            target.crash(loses_power=kind == "power")
        elif kind == "call":
            target.disk.dies_at = target.disk.calls + chance.choice((1, 3, 10, 40))
        elif kind == "link" and target.process is not None:
            for link in list(target.process.links):
                link.abort()
        elif kind == "disk":
            target.disk.failing[chance.choice(("write", "sync", "rename", "create"))] = (5, chance.choice((0.2, 1.0)))
        elif kind == "full":
            target.disk.room = chance.choice((0, 10, 5000))
        if kind in ("disk", "full"):
            await asyncio.sleep(chance.random() * 5)
            target.disk.heal()


def names_of(stream: Stream) -> Iterator[bytes]:
    """The values of the entries' first fields."""
    reader = hiredis.Reader()
    for segment, start, stop in stream.runs(0, ids.MAX, stream.length):
        reader.feed(segment.entries(start, stop))
    while entry := reader.gets():
        yield entry[1][1]


class ToldProgress(ProgressLine):
    """Progress is a part of the story."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[str, str], None], clock: Clock) -> None:
        super().__init__(clock)
        self._tell = tell

    def show(self, text: str, at_once: bool = False) -> None:
        self._tell("progress", text)

    def end(self) -> None:
        """There is no terminal."""


@contextmanager
def within(world: "World") -> Iterator[None]:
    """Blocking requests of an import reach the source, and its threads are fibers."""
    actor = next(actor for actor in world.actors if isinstance(actor, Import))

    def run_in_executor(executor: object, work: Any, *args: Any) -> asyncio.Task[Any]:
        actor.asked_s = world.loop.time()
        return world.loop.create_task(Fiber(partial(work, *args)).run())

    world.loop.run_in_executor = run_in_executor  # type: ignore[method-assign, assignment]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire_client, "socket", Sockets(world.network, world.machine))
        patch.setattr(importing, "ProgressLine", partial(ToldProgress, world.story.tell))
        yield


# -- the judge --------------------------------------------------------------------------------------------------------


async def judge(world: "World", client: Client) -> list[str]:
    actor = next(actor for actor in world.actors if isinstance(actor, Import))
    keeping, journal = world.keeping(), world.journal
    actor.target.disk.heal()
    objections = list(actor.objections)
    until_s, last = world.loop.time() + LONGEST_S, None
    while last is None and world.loop.time() < until_s:
        last = await actor.run_once(follows=False)
        await asyncio.sleep(LOOK_S)
    if last is None:
        return [*objections, "an import does not come to an end, although nothing fails"]
    for copy in actor.copies:
        for what, writes, there in (
            ("entry", journal.added, copy.entries), ("element", journal.pushed, copy.elements),
        ):  # fmt: skip
            objections += [
                f"{what} {one}, in the copy of {copy.done_s:.6f}" for one in _wrong(writes, there, copy, keeping)
            ]
        sure = sum(_is_sure(write, copy, keeping) for write in journal.counted)
        most = sum(write.outcome != REFUSED and write.sent_s <= copy.done_s for write in journal.counted)
        if not sure <= copy.count <= most:
            objections.append(f"the copy of {copy.done_s:.6f} has counted {copy.count}: from {sure} to {most}")
    if not last[0]:
        objections.append(f"the last import differs from its source: {last[1]}")
    return objections[:SHOWN] + _pictures(world, actor)


def _is_sure(write: Write, copy: Copy, keeping: judges.Keeping) -> bool:
    return write.outcome == OK and write.done_s < copy.sure_s and not keeping.may_lose(write)


def _wrong(writes: list[Write], there: Counts[bytes], copy: Copy, keeping: judges.Keeping) -> Iterator[str]:
    for write in writes:
        count = there[write.name]
        if count > 1:
            yield f"{write.name!r} is there {count} times"
        elif count and write.outcome == REFUSED:
            yield f"{write.name!r} was refused, and is there"
        elif not count and _is_sure(write, copy, keeping):
            yield f"{write.name!r}, confirmed at {write.done_s:.6f}, is lost (asked at {copy.sure_s:.6f})"


def _pictures(world: "World", actor: Import) -> list[str]:
    """What a server loads from the last copy is what the source has.

    Policies come with a snapshot only (docs/policies.md): an import that goes on keeps those that it has.
    """
    from tests.world.world import loaded_from  # it imports the casts

    source, target = world.machine.process, actor.target
    assert source is not None, "it answered just now"
    view = View(seen_times=False, ties=False, now_ms=max(one.clock.now_us() for one in (world.machine, target)) // 1000)
    was, found = keyspace(source.engine, view), keyspace(loaded_from(target), view)
    if not actor.has_all_at_once:
        was, found = judges.without_policies(was), judges.without_policies(found)
    return [
        f"key {key} of the last import differs: {judges.difference(was.get(key), found.get(key))}"
        for key in sorted(was.keys() | found.keys())
        if was.get(key) != found.get(key)
    ][:SHOWN]
