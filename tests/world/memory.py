"""Limits of memory that come and go, and the judge of what they evict.

The memory in use is what the keyspace holds, by estimate: what the product asks the system for is one of its arguments
(`MemoryLimit.reading`). A limit below what is used is kept soon, though no request comes; what may not be evicted is
refused or kept.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.engine.engine import Engine
from penstock.engine.memory.value_sizes import key_bytes
from tests.world.actors import Actor
from tests.world.client import Client, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

COUNTS: Final = (50, 50, 400, 2500)  # of keys: a request or a tick evicts 1000 at the most
POLICIES: Final = (b"volatile-ttl", b"volatile-random", b"volatile-lru", b"noeviction")  # what lasts is not evicted
WAIT_S: Final = 2.0
SLACK: Final = 4096  # bytes that others write within a tenth of a second: so often what is used is read
AT_ONCE: Final = 500
SHOWN: Final = 3


def used_bytes(engine: Engine) -> int:
    """What the keys hold."""
    return sum(key_bytes(db, key) for db in engine.keyspace.databases for key in list(db.values))


def evictable(engine: Engine) -> int:
    return sum(len(db.expires) for db in engine.keyspace.databases)


class Limiter(Actor):
    """Fills the memory with keys that expire some day, sets a limit below what is used, and looks a little later."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        machine.reading = used_bytes
        self.objections: list[str] = []

    async def step(self) -> None:
        chance = self.chance
        count = chance.choice(COUNTS)
        requests = [(b"SET", b"filling:%d" % number, b"x" * 40, b"EX", b"1000000") for number in range(count)]
        for at in range(0, count, AT_ONCE):
            await self.all_of(requests[at : at + AT_ONCE], [None] * len(requests[at : at + AT_ONCE]))
        policy, process = chance.choice(POLICIES), self.machine.process
        if process is None:
            return
        limit = max(int(used_bytes(process.engine) * chance.choice((0.9, 0.5, 0.01))), 1)
        words = (b"CONFIG", b"SET", b"maxmemory-policy", policy, b"maxmemory", b"%d" % limit)
        reply = await self.client.ask(*words)
        self.world.story.tell(self.name, f"{count} keys; {b' '.join(words).decode()}: {reply!r}")
        if is_refusal(reply):
            return
        await asyncio.sleep(WAIT_S)
        if process is self.machine.process and self.machine.is_up and policy != b"noeviction":
            used = used_bytes(process.engine)
            self.world.story.tell(self.name, f"{used} bytes are used of {limit}")
            if used > limit + SLACK and evictable(process.engine):
                self.objections.append(
                    f"{self.name} at {self.world.loop.time():.6f}: {used} bytes are used, {WAIT_S:g} s after the limit "
                    f"was set to {limit}; {evictable(process.engine)} keys may be evicted by {policy.decode()}"
                )
        await self.client.ask(b"CONFIG", b"SET", b"maxmemory", b"0")
        await asyncio.sleep(chance.random() * 4)


async def judge(world: "World", client: Client) -> list[str]:
    return [one for actor in world.actors if isinstance(actor, Limiter) for one in actor.objections][:SHOWN]
