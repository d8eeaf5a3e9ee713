"""Keys that count up, a client that empties everything, one that switches the log, one that saves; and their judge.

In the end a key has what was last confirmed, or something with a fate that is not known; nothing that was emptied comes
back.
"""

import asyncio
import random
from typing import TYPE_CHECKING, Final

from tests.world.actors import OK, REFUSED, UNKNOWN, Actor, Write
from tests.world.client import Client, is_refusal
from tests.world.judges import Keeping
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

IN_FORCE: Final = b"penstock_aof_base_written:1"
SHOWN: Final = 3


def save_points(chance: random.Random) -> dict[str, str]:
    """No log, and save points."""
    return {"appendonly": "no", "save": chance.choice(("1 1", "2 10", "3600 1"))}


class Setter(Actor):
    """Sets a key of its own to 1, 2, 3 ... in a database that is emptied at times."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.key = b"register:%d" % number
        self.writes: list[Write] = []

    async def step(self) -> None:
        write = self.begin(b"%d" % (len(self.writes) + 1), self.writes)
        await self.all_of([(b"SELECT", b"2"), (b"SET", self.key, write.name)], [None, write])


class Flusher(Actor):
    """Empties the registers' database."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.flushes: list[Write] = []

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 3)
        write = self.begin(b"", self.flushes)
        mode = self.chance.choice(((), (b"ASYNC",), (b"SYNC",)))
        await self.all_of([(b"SELECT", b"2"), (b"FLUSHDB", *mode)], [None, write])


class Switcher(Actor):
    """Switches the log off and on again."""

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 5)
        if self.chance.random() < 0.5:
            gap = Write(b"", self.world.loop.time())
            self.world.journal.gaps.append(gap)
            await self._say(await self.client.ask(b"CONFIG", b"SET", b"appendonly", b"no"))
            await asyncio.sleep(self.chance.random() * 2)
        reply = await self.client.ask(b"CONFIG", b"SET", b"appendonly", b"yes")
        await self._say(reply)
        if is_refusal(reply):
            return
        if self.world.policy == "always":
            self._end_gaps(self.world.loop.time())  # what is confirmed from here on is kept
        while IN_FORCE not in await self.client.ask(b"INFO", b"persistence"):
            await asyncio.sleep(0.2)
        self._end_gaps(self.world.loop.time())
        self.world.journal.in_force.append(self.world.loop.time())
        self.world.story.tell(self.name, "the log is in force")

    async def _say(self, reply: object) -> None:
        self.world.story.tell(self.name, f"switches the log: {reply!r}")

    def _end_gaps(self, now_s: float) -> None:
        for gap in self.world.journal.gaps:
            gap.done_s = min(gap.done_s, now_s)


class Saver(Actor):
    """Saves at once, or by a child."""

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 4)
        write = self.begin(b"", [])
        words = self.chance.choice((b"SAVE", b"SAVE", b"BGSAVE"))
        await self.all_of([(words,)], [write])
        if words == b"SAVE" and write.outcome == OK:
            self.world.journal.saved.append(write)


async def judge(world: "World", client: Client) -> list[str]:
    keeping, objections = world.keeping(), []
    flushes = [flush for actor in world.actors if isinstance(actor, Flusher) for flush in actor.flushes]
    try:
        await client.ask(b"SELECT", b"2")
        for actor in world.actors:
            if isinstance(actor, Setter):
                found = int(await client.ask(b"GET", actor.key) or 0)
                objections += _register(actor, found, flushes, keeping)
    finally:
        await client.ask(b"SELECT", b"0")
    return objections[:SHOWN]


def _register(actor: Setter, found: int, flushes: list[Write], keeping: Keeping) -> list[str]:
    """Why a register cannot have this value."""
    sure = max((int(write.name) for write in actor.writes if _is_sure(write, flushes, keeping)), default=0)
    shown = f"{actor.key.decode()} is {found}"
    # A request of a connection that was lost may arrive after those of the next one: its fate is not known.
    if found < sure and not (found and actor.writes[found - 1].outcome == UNKNOWN):
        write = actor.writes[sure - 1]
        return [f"{shown}: {sure} was confirmed at {write.done_s:.6f} (sent at {write.sent_s:.6f})"]
    if not found:
        return []
    write = actor.writes[found - 1]
    if write.outcome == REFUSED:
        return [f"{shown}, which was refused: {write.reply}"]
    for flush in flushes:
        if flush.outcome == OK and flush.sent_s > write.done_s and not keeping.may_lose(flush):
            return [f"{shown}, sent at {write.sent_s:.6f}: that was emptied at {flush.done_s:.6f}"]
    return []


def _is_sure(write: Write, flushes: list[Write], keeping: Keeping) -> bool:
    """Whether it was confirmed, and neither lost nor emptied."""
    was_emptied = any(flush.outcome != REFUSED and flush.done_s >= write.sent_s for flush in flushes)
    return write.outcome == OK and not was_emptied and not keeping.may_lose(write)
