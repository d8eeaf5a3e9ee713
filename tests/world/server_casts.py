"""Casts of servers: what WAITAOF confirms is looked for on disks, and replicas have limits of their own memory."""

import asyncio
import random
from typing import Final

from tests.world.actors import OK, STREAM, Actor, Producer
from tests.world.client import Client, Lost, is_refusal
from tests.world.memory import AT_ONCE, SLACK, WAIT_S, evictable, used_bytes
from tests.world.process import Machine
from tests.world.replicas import REPLICAS, ROLES, ConfirmedProducer, ServersCast, ServersWorld
from tests.world.world import World

FILLING: Final = "filling:"
OF_WANDERER: Final = "1 "  # its database
COUNTS: Final = (50, 400, 1500)
PATIENCE_S: Final = 2.0


class SyncedProducer(Producer):
    """Adds entries, and waits until disks of replicas have them."""

    world: ServersWorld

    async def step(self) -> None:
        write = self.named()
        wanted = b"%d" % self.chance.choice((1, REPLICAS))
        wait = (b"WAITAOF", self.chance.choice((b"0", b"0", b"1")), wanted, b"%d" % self.chance.choice((50, 3000)))
        found = await self.all_of([(b"XADD", STREAM, b"*", b"job", write.name), wait], [write, None])
        if write.outcome == OK:
            self.world.confirm("add", write, found[1], True, self.client)


class ReplicaLimiter(Actor):
    """Fills the memory with keys that expire some day, and limits that of a replica, which may evict by itself or not.

    A replica that leaves its memory to its master evicts nothing.
    """

    world: ServersWorld

    def __init__(self, world: World, machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        for each in world.machines:
            each.reading = used_bytes

    async def step(self) -> None:
        chance = self.chance
        count = chance.choice(COUNTS)
        requests = [(b"SET", b"%s%d" % (FILLING.encode(), at), b"x" * 40, b"EX", b"1000000") for at in range(count)]
        for at in range(0, count, AT_ONCE):
            await self.all_of(requests[at : at + AT_ONCE], [None] * len(requests[at : at + AT_ONCE]))
        await self._limit(chance.choice([one for one in self.world.machines if one is not self.world.machine]))

    async def _limit(self, machine: Machine) -> None:
        process = machine.process
        if process is None or not machine.is_up:
            return
        policy = self.chance.choice((b"volatile-ttl", b"volatile-lru", b"noeviction"))
        limit = max(int(used_bytes(process.engine) * self.chance.choice((0.9, 0.5, 0.01))), 1)
        told = await self._tell(machine, b"CONFIG", b"SET", b"maxmemory-policy", policy, b"maxmemory", b"%d" % limit)
        self.world.story.tell(self.name, f"{machine.name}: {policy.decode()}, maxmemory {limit}: {told!r}")
        if told == b"OK":
            await asyncio.sleep(WAIT_S)
            if process is machine.process and machine.is_up and policy != b"noeviction" and not self._is_kept(machine):
                self._look(machine, limit)
        await self._tell(machine, b"CONFIG", b"SET", b"maxmemory", b"0")

    def _is_kept(self, machine: Machine) -> bool:
        return evicts_nothing(machine) or (engine := self.world.engine_of(machine)) is None or engine.conditions.loading

    def _look(self, machine: Machine, limit: int) -> None:
        engine = self.world.engine_of(machine)
        assert engine is not None, "it is up"
        used = used_bytes(engine)
        if used > limit + SLACK and evictable(engine):
            self.world.wrong.append(
                f"{machine.name} at {self.world.loop.time():.6f}: {used} bytes are used, {WAIT_S:g} s after its limit "
                f"was set to {limit}; {evictable(engine)} keys may be evicted"
            )

    async def _tell(self, machine: Machine, *words: bytes) -> object:
        client = Client(self.world.network, machine)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await client.open()
                reply = await client.ask(*words)
                return str(reply) if is_refusal(reply) else reply
        except (Lost, TimeoutError):
            return None
        finally:
            client.reset()


def evicts_nothing(machine: Machine) -> bool:
    return machine.directives.get("replica-ignore-maxmemory", "yes") == "yes"


def own_limits(chance: random.Random) -> dict[str, str]:
    return {"replica-ignore-maxmemory": chance.choice(("no", "no", "yes"))}


def may_have_evicted(world: ServersWorld, machine: Machine, key: str) -> bool:
    """Keys with a time of expiry go: those that fill the memory, and some of the wanderer's, which it makes anew."""
    return (FILLING in key or key.startswith(OF_WANDERER)) and not evicts_nothing(machine)


DISKS: Final = ServersCast("disks", (SyncedProducer,) * 4, ("none",), policy="everysec", looks=1.0)
LIMITS: Final = ServersCast(
    "limits", (ReplicaLimiter, ConfirmedProducer), ("none",), directives=own_limits, may_lack=may_have_evicted
)
ALL: Final = {cast.name: cast for cast in (ROLES, DISKS, LIMITS)}
