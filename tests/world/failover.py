"""Changes of the master: watchers that do what Sentinel does, and an administrator that uses FAILOVER and REPLICAOF."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.world.actors import Actor
from tests.world.client import Client, Lost, is_refusal
from tests.world.network import HOST
from tests.world.process import Machine, Process

if TYPE_CHECKING:
    from tests.world.replicas import ServersWorld

LOOK_S: Final = 0.5  # between two rounds of a watcher
DOWN_S: Final = 2.0  # without an answer
ANSWER_S: Final = 1.0
WATCHERS: Final = 3
AGREED: Final = 2  # watchers
PATIENCE_S: Final = 4.0  # before a server that claims to be a master is made a replica
LONGEST_FAILOVER_S: Final = 20.0


class Directory:
    """Tells clients which server is the master. To them it is the machine to connect to."""

    def __init__(self, master: Machine) -> None:
        self.master = master
        self.epoch = 0

    @property
    def process(self) -> Process | None:
        return self.master.process


@dataclass(frozen=True, slots=True)
class Handover:
    """Another server became the master. is_safe: the old one gave it everything before."""

    old: Machine
    new: Machine
    done_s: float
    is_safe: bool


@dataclass(slots=True)
class Seen:
    """What a watcher knows of a server: INFO's lines, when it answered, and since when it claims what it should not."""

    lines: dict[str, str]
    heard_s: float
    wrong_since_s: float = -1.0


def lines_of(info: bytes) -> dict[str, str]:
    """The lines of INFO by name."""
    return dict(line.split(":", 1) for line in info.decode().split("\r\n") if ":" in line)


class Watcher:
    """One of three: it asks the servers how they are, agrees with the others, and one of them promotes a replica."""

    def __init__(self, world: "ServersWorld", number: int) -> None:
        self.place = f"watcher {number}"
        self.world = world
        self.voted_in = 0  # the last epoch in which it has voted
        self.clients: dict[Machine, Client] = {}
        self.seen: dict[Machine, Seen] = {}
        for machine in world.machines:
            client = self.clients[machine] = Client(world.network, machine)
            client.place = self.place

    async def run(self) -> None:
        for machine in self.world.machines:
            self.seen[machine] = Seen({}, self.world.loop.time())
        while True:
            await asyncio.sleep(LOOK_S * (0.5 + self.world.chance.random()))
            await asyncio.gather(*[self._look(machine) for machine in self.world.machines])
            directory = self.world.directory
            if not self._is_down(directory.master):
                await self._put_right(directory.master)
            elif self._agrees():
                await self._fail_over()

    async def ask(self, machine: Machine, *requests: tuple[bytes, ...]) -> list[object]:
        """The replies; none where they do not come in time."""
        client = self.clients[machine]
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.open()
                return [await reply for reply in client.send(*requests)]
        except (Lost, TimeoutError):
            client.reset()
            return []

    async def _look(self, machine: Machine) -> None:
        replies = await self.ask(machine, (b"INFO", b"replication"))
        if replies and isinstance(replies[0], bytes):
            seen = self.seen[machine]
            seen.lines, seen.heard_s = lines_of(replies[0]), self.world.loop.time()

    def _is_down(self, machine: Machine) -> bool:
        return self.world.loop.time() - self.seen[machine].heard_s > DOWN_S

    def _hears(self, other: "Watcher") -> bool:
        return not self.world.network.is_cut(self.place, other.place)

    def _agrees(self) -> bool:
        """Whether enough watchers see the master down, and most of them vote for this one."""
        directory, others = self.world.directory, [one for one in self.world.watchers if self._hears(one)]
        if sum(one._is_down(directory.master) for one in others) < AGREED:
            return False
        epoch = max(one.voted_in for one in self.world.watchers) + 1
        voters = [one for one in others if one.voted_in < epoch]
        for one in voters:
            one.voted_in = epoch
        return len(voters) >= AGREED

    async def _fail_over(self) -> None:
        """Promote the replica that has most of the stream."""
        world = self.world
        old = world.directory.master
        able = [
            machine
            for machine in world.machines
            if machine is not old and not self._is_down(machine) and self.seen[machine].lines.get("role") == "slave"
        ]
        if not able:
            return
        chosen = max(able, key=lambda machine: int(self.seen[machine].lines["slave_repl_offset"]))
        world.story.tell(self.place, f"{old.name} is down: promotes {chosen.name}")
        await self._change_role(chosen, (b"REPLICAOF", b"NO", b"ONE"))
        await self._look(chosen)
        if world.directory.master is old and self.seen[chosen].lines.get("role") == "master":
            world.hand_over(Handover(old, chosen, world.loop.time(), is_safe=False))

    async def _change_role(self, machine: Machine, request: tuple[bytes, ...]) -> None:
        """Change the role and close the clients, at once."""
        await self.ask(machine, (b"MULTI",), request, (b"CLIENT", b"KILL", b"TYPE", b"normal"), (b"EXEC",))
        self.world.keep_roles()

    async def _put_right(self, master: Machine) -> None:
        """Have every other server follow the master, once it is sure that it does not."""
        now_s, port = self.world.loop.time(), str(self.world.port_of(master))
        for machine, seen in self.seen.items():
            follows = seen.lines.get("role") == "slave" and seen.lines.get("master_port") == port
            if machine is master or follows or self._is_down(machine):
                seen.wrong_since_s = -1.0
            elif seen.wrong_since_s < 0:
                seen.wrong_since_s = now_s
            elif now_s - seen.wrong_since_s > PATIENCE_S:
                self.world.story.tell(self.place, f"{machine.name} is to follow {master.name}")
                await self._change_role(machine, (b"REPLICAOF", HOST.encode(), port.encode()))


class RoleChanger(Actor):
    """An administrator that has master and replica change places with FAILOVER, and moves replicas with REPLICAOF."""

    world: "ServersWorld"

    async def step(self) -> None:
        await asyncio.sleep(1 + self.chance.random() * 5)
        if self.chance.random() < 0.6:
            await self._fail_over()
        else:
            await self._move()

    async def _fail_over(self) -> None:
        world, began_s = self.world, self.world.loop.time()
        old, ends = world.directory.master, world.ends_of_processes()
        others = [machine for machine in world.machines if machine is not old]
        target = self.chance.choice([None, *others])
        to = () if target is None else (b"TO", HOST.encode(), b"%d" % world.port_of(target))
        reply = await self.client.ask(b"FAILOVER", *to, b"TIMEOUT", b"%d" % self.chance.choice((100, 2000)))
        world.story.tell(self.name, f"FAILOVER {b' '.join(to).decode()}: {reply!r}")
        try:
            while not is_refusal(reply) and (await self._state(old)) != "no-failover":
                await asyncio.sleep(0.1)
                if world.loop.time() - began_s > LONGEST_FAILOVER_S:
                    await self._tell(old, b"FAILOVER", b"ABORT")
        finally:
            await self._settle(old, ends)

    async def _state(self, machine: Machine) -> str:
        """Of the failover; none where the server cannot be asked."""
        info = await self._tell(machine, b"INFO", b"replication")
        return lines_of(info).get("master_failover_state", "") if isinstance(info, bytes) else "no-failover"

    async def _tell(self, machine: Machine, *words: bytes) -> object:
        client = Client(self.world.network, machine)
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.open()
                return await client.ask(*words)
        except (Lost, TimeoutError):
            return None
        finally:
            client.reset()

    async def _settle(self, old: Machine, ends: int) -> None:
        """Say which is the master now, and have the others follow it."""
        world = self.world
        masters = [machine for machine in world.machines if machine.is_up and world.leads(machine)]
        new = next((machine for machine in masters if machine is not old), old)
        world.keep_roles()
        if new is not old:
            world.story.tell(self.name, f"{new.name} is the master now")
            world.hand_over(Handover(old, new, world.loop.time(), is_safe=world.ends_of_processes() == ends))
            await self._tell(old, b"CLIENT", b"KILL", b"TYPE", b"normal")
        await self._all_follow(new)

    async def _all_follow(self, master: Machine) -> None:
        port = self.world.port_of(master)
        while any(self.world.followed_by(machine) != port for machine in self.world.machines if machine is not master):
            for machine in self.world.machines:
                if machine is not master:
                    await self._tell(machine, b"REPLICAOF", HOST.encode(), b"%d" % port)
            self.world.keep_roles()
            await asyncio.sleep(0.1)

    async def have_all_follow(self) -> None:
        """The last word, when nothing fails any more."""
        await self._all_follow(self.world.directory.master)

    async def _move(self) -> None:
        """Have a replica follow another one for a while."""
        master = self.world.directory.master
        one, other = [machine for machine in self.world.machines if machine is not master]
        reply = await self._tell(one, b"REPLICAOF", HOST.encode(), b"%d" % self.world.port_of(other))
        self.world.story.tell(self.name, f"{one.name} is to follow {other.name}: {reply!r}")
        self.world.keep_roles()
        await asyncio.sleep(self.chance.random() * 4)
        await self._all_follow(master)
