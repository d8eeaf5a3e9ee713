"""Lists that only grow, a client that saves often, one that empties everything; and their judge.

Without a log, and with save points: what was there at a confirmed SAVE is kept, though children of processes that were
killed go on; what FLUSHALL emptied does not come back. A register tells of its last change only, a list of each.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from tests.world.actors import OK, REFUSED, Actor, Write
from tests.world.client import Client
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

SAVES: Final = (b"SAVE", b"BGSAVE")
SHOWN: Final = 3


class Trail(Actor):
    """Appends 1, 2, 3 ... to a list of its own."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.key = b"trail:%d" % number
        self.writes: list[Write] = []

    async def step(self) -> None:
        write = self.begin(b"%d" % (len(self.writes) + 1), self.writes)
        await self.all_of([(b"RPUSH", self.key, write.name)], [write])


class EagerSaver(Actor):
    """Saves again and again, at once or by a child."""

    async def step(self) -> None:
        write = self.begin(b"", [])
        words = self.chance.choice(SAVES)
        await self.all_of([(words,)], [write])
        if words == b"SAVE" and write.outcome == OK:
            self.journal.saved.append(write)
        await asyncio.sleep(self.chance.choice((0.05, 0.3, 1.0)))


class Emptier(Actor):
    """Empties all databases."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.flushes: list[Write] = []

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 5)
        write = self.begin(b"", self.flushes)
        await self.all_of([(b"FLUSHALL", *self.chance.choice(((), (b"ASYNC",), (b"SYNC",))))], [write])


async def judge(world: "World", client: Client) -> list[str]:
    flushes = [flush for actor in world.actors if isinstance(actor, Emptier) for flush in actor.flushes]
    objections: list[str] = []
    for actor in world.actors:
        if isinstance(actor, Trail):
            objections += _trail(world, actor, await client.ask(b"LRANGE", actor.key, b"0", b"-1"), flushes)
    return objections[:SHOWN]


def _trail(world: "World", actor: Trail, found: list[bytes], flushes: list[Write]) -> list[str]:
    """Why a list cannot have these elements."""
    keeping, there, objections = world.keeping(), set(found), []
    if len(there) < len(found):
        objections.append(f"{actor.key.decode()} has elements twice")
    for write in actor.writes:
        shown = f"{write.name.decode()} of {actor.key.decode()} ({write.outcome}, sent at {write.sent_s:.6f})"
        if write.name not in there:
            was_emptied = any(flush.outcome != REFUSED and flush.done_s >= write.sent_s for flush in flushes)
            if write.outcome == OK and not was_emptied and not keeping.may_lose(write):
                objections.append(f"{shown} is lost")
        elif write.outcome == REFUSED:
            objections.append(f"{shown} was refused, and is there")
        else:
            emptied = next((flush for flush in flushes if _is_kept(world, flush, write)), None)
            if emptied is not None:
                objections.append(f"{shown} is there: everything was emptied at {emptied.done_s:.6f}")
    return objections


def _is_kept(world: "World", flush: Write, write: Write) -> bool:
    """Whether a flush came after a write, and was saved: its reply does not say if the save failed."""
    has_failed = any(flush.sent_s <= at_s <= flush.done_s for at_s in world.machine.failures)
    return flush.outcome == OK and flush.sent_s > write.done_s and not has_failed
