"""Worlds of a master and two replicas, with partitions and clocks that drift apart."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.errors import UsageError
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.keyspace_picture import View, keyspace
from tests.world import faults, judges
from tests.world.actors import GROUP, OK, STREAM, Actor, Journal, Producer, Write
from tests.world.casts import Cut
from tests.world.client import Client, is_refusal
from tests.world.failover import WATCHERS, Directory, Handover, RoleChanger, Watcher
from tests.world.loop import WorldClock
from tests.world.process import Machine
from tests.world.story import Story
from tests.world.world import World, loaded_from

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

FIRST_PORT: Final = 6379
REPLICAS: Final = 2
QUIET_S: Final = 300.0  # virtual: within it all links are up; waits between links double up to a minute
KINDS_OF_CHANGES: Final = ("none", "watchers", "administrator")
ALL_LOOKS: Final = 5000  # entries, up to which looks at disks keep their share: a look loads whole logs


# -- what is there -----------------------------------------------------------------------------------------------------


class DriftingClock(WorldClock):
    """A clock whose unix time goes too fast or too slow; its monotonic time does not."""

    def __init__(self, world: "ServersWorld") -> None:
        super().__init__(world.loop, NOW_MS)
        self._world = world
        self._rate, self._since_s = 0.0, 0.0

    def now_us(self) -> int:
        return super().now_us() + round((self._world.loop.passed_s - self._since_s) * self._rate * 1e6)

    def drift(self, rate: float) -> None:
        """rate: seconds a second."""
        self.jump(round((self._world.loop.passed_s - self._since_s) * self._rate * 1000))
        self._rate, self._since_s = rate, self._world.loop.passed_s


@dataclass(slots=True)
class Confirmed:
    """What a client has had confirmed by WAIT or WAITAOF: on so many replicas, by then. `what`: add, get, ack."""

    what: str
    write: Write
    replicas: int
    on_disk: bool


class ConfirmedProducer(Producer):
    """Adds entries, and waits until replicas have them."""

    world: "ServersWorld"

    async def step(self) -> None:
        write = self.named()
        wait, on_disk = waiting(self.chance)
        found = await self.all_of([(b"XADD", STREAM, b"*", b"job", write.name), wait], [write, None])
        if write.outcome == OK:
            self.world.confirm("add", write, found[1], on_disk, self.client)


class ConfirmedWorker(Actor):
    """A consumer that waits until replicas have what was delivered to it, and what it has acknowledged."""

    world: "ServersWorld"

    async def step(self) -> None:
        consumer = b"c%d" % self.number
        if self.chance.random() < 0.1:
            await self.client.ask(b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM")
        words = (b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"5", b"STREAMS", STREAM, b">")
        write = self.begin(b"", [])
        wait, on_disk = waiting(self.chance)
        reply, replicas = await self.all_of([words, wait], [write, None])
        if not reply or is_refusal(reply):
            return
        found = [entry_id for entry_id, _ in reply[0][1]]
        self.journal.delivered += [(entry_id, consumer, write.done_s, False) for entry_id in found]
        for entry_id in found:
            got = Write(entry_id, write.sent_s, write.done_s, OK, None, write.connected)
            self.world.confirm("get", got, replicas, on_disk, self.client)
        acks = [self.begin(entry_id, self.journal.acked) for entry_id in found if self.chance.random() < 0.7]
        if not acks:
            return
        done = self.begin(b"", [])
        request = (b"XACK", STREAM, GROUP, *[write.name for write in acks])
        reply, replicas = await self.all_of([request, wait], [done, None])
        for write in acks:
            write.end(reply, done.done_s)
            if write.outcome == OK:
                self.world.confirm("ack", write, replicas, on_disk, self.client)


def waiting(chance: random.Random) -> tuple[tuple[bytes, ...], bool]:
    """WAIT or WAITAOF, and whether it is that of disks."""
    timeout_ms = b"%d" % chance.choice((50, 500, 3000))
    if chance.random() < 0.5:
        return (b"WAITAOF", b"1", b"%d" % REPLICAS, timeout_ms), True
    return (b"WAIT", b"%d" % chance.choice((1, REPLICAS)), timeout_ms), False


@dataclass(frozen=True, slots=True)
class ServersCast:
    """What takes part in a world of servers beside the actors of `queues`.

    changes: what may change the master. policy: the log's, if it is always the same. directives: of replicas.
    may_lack: whether a replica may have evicted a key, and have what came after. looks: how much of what WAITAOF
    confirms is looked for on the disks; a look loads the logs of all servers. Beyond
    ALL_LOOKS entries looks grow rarer.
    """

    name: str
    actors: tuple[type[Actor], ...]
    changes: tuple[str, ...]
    policy: str = ""
    directives: Callable[[random.Random], dict[str, str]] = lambda chance: {}
    may_lack: Callable[["ServersWorld", Machine, str], bool] = lambda world, machine, key: False
    looks: float = 0.1


ROLES: Final = ServersCast("roles", (ConfirmedProducer, ConfirmedProducer, ConfirmedWorker), KINDS_OF_CHANGES)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class At:
    """A world as a fault of one machine sees it: its `story` names the machine."""

    machine: Machine
    chance: random.Random
    _story: Story
    actors: list[Actor]

    @property
    def story(self) -> "At":
        return self

    def tell(self, name: str, what: str) -> None:
        self._story.tell(f"{name} of {self.machine.name}", what)


async def partitions(world: "ServersWorld") -> None:
    """Some servers and watchers do not reach the others for a while."""
    places = [machine.name for machine in world.machines] + [one.place for one in world.watchers]
    inside = world.chance.sample(places, world.chance.randrange(1, len(places)))
    world.story.tell("network", f"is cut around {', '.join(inside)}")
    world.network.cut((one, other) for one in inside for other in places if other not in inside)
    await asyncio.sleep(world.chance.choice((0.5, 3.0, 12.0)))
    world.network.cut([])
    world.story.tell("network", "is whole")


async def lost_links(world: "ServersWorld") -> None:
    """A connection between servers breaks."""
    links = [link for machine in world.machines if machine.process is not None for link in machine.process.links]
    if links:
        link = world.chance.choice(links)
        world.story.tell("network", f"the link of {link.place} breaks")
        if link.connected is not None:
            link.connected.reset()
        link.ended()


async def drifts(world: "ServersWorld") -> None:
    clock = world.chance.choice(world.machines).clock
    assert isinstance(clock, DriftingClock), "all are"
    clock.drift(world.chance.choice((-0.3, -0.01, 0.0, 0.01, 0.3)))


BETWEEN: Final[tuple[Callable[["ServersWorld"], Awaitable[None]], ...]] = (partitions, lost_links, drifts)


# -- the world ---------------------------------------------------------------------------------------------------------


class ServersWorld(World):
    """A master and two replicas. The master changes by watchers, by an administrator, or not at all."""

    answer_s = 2 * QUIET_S

    def __init__(self, seed: int, is_told: bool = False, servers: ServersCast = ROLES, cut: Cut | None = None) -> None:
        super().__init__(seed, is_told=is_told)
        chance = self.chance
        self.servers = servers
        if servers.policy:
            self.policy = servers.policy
            self.machine.directives |= {"appendfsync": servers.policy, "aof-load-corrupt-tail-max-size": "1000000000"}
        self.changes = chance.choice(servers.changes)
        self.handovers: list[Handover] = []
        self.confirmed: list[Confirmed] = []
        self.journal = Journal()
        self._looks = random.Random(seed)  # what is looked at changes nothing in the world
        self.wrong: list[str] = []  # objections found while the world runs
        self._set_up_machines()
        self.directory = Directory(self.machine)
        self.watchers: list[Watcher] = []
        if self.changes == "watchers":
            self.lasts_s = chance.choice((15.0, 40.0))
            self.restart_s = (0.5, 8.0, 20.0)
            self.watchers = [Watcher(self, number) for number in range(WATCHERS)]
        number = len(self.actors)
        more = list(servers.actors)
        if self.changes == "administrator":
            more.append(RoleChanger)
        self.actors += [kind(self, self.machine, number + at) for at, kind in enumerate(more)]
        for actor in self.actors:
            actor.journal = self.journal
            actor.machine = actor.client.machine = cast(Machine, self.directory)
        self.faults += cast(list[faults.Fault], chance.sample(BETWEEN, chance.randrange(0, len(BETWEEN) + 1)))
        if cut is not None:
            cut.apply(self)

    def _set_up_machines(self) -> None:
        chance = self.chance
        shared = {
            "repl-timeout": chance.choice(("4", "15")),
            "repl-ping-replica-period": "1",
            "repl-diskless-sync": chance.choice(("yes", "no")),
            "repl-diskless-sync-delay": chance.choice(("0", "0", "2")),
            "repl-backlog-size": chance.choice(("16kb", "1mb")),
            "min-replicas-to-write": chance.choice(("0", "0", "1")),
            "min-replicas-max-lag": "3",
        }
        for number in range(REPLICAS):
            self.machines.append(Machine(f"replica {number + 1}", self.loop, chance, self.story))
            self.machines[-1].directives = self.machine.directives | {"replicaof": f"127.0.0.1 {FIRST_PORT}"}
            self.machines[-1].directives |= self.servers.directives(chance)
        for number, machine in enumerate(self.machines):
            machine.directives |= shared | {"port": str(FIRST_PORT + number)}
            machine.clock = DriftingClock(self)
            self.network.machines[FIRST_PORT + number] = machine

    # -- roles --------------------------------------------------------------------------------------------------------

    def port_of(self, machine: Machine) -> int:
        return FIRST_PORT + self.machines.index(machine)

    def engine_of(self, machine: Machine) -> "Engine | None":
        return machine.process.engine if machine.is_up and machine.process is not None else None

    def leads(self, machine: Machine) -> bool:
        engine = self.engine_of(machine)
        return engine is not None and engine.replication.master is None

    def followed_by(self, machine: Machine) -> int:
        """The port of a server's master; 0 where it has none."""
        engine = self.engine_of(machine)
        return 0 if engine is None or engine.replication.master is None else engine.replication.master.port

    def keep_roles(self) -> None:
        """As CONFIG REWRITE: each server has its role again when it starts."""
        for machine in self.machines:
            engine = self.engine_of(machine)
            if engine is not None:
                machine.directives.pop("replicaof", None)
                if engine.settings.text("replicaof"):
                    machine.directives["replicaof"] = engine.settings.text("replicaof")

    def hand_over(self, handover: Handover) -> None:
        self.directory.master = self.machine = handover.new
        self.handovers.append(handover)

    def ends_of_processes(self) -> int:
        return sum(len(machine.ends) for machine in self.machines)

    # -- what happens -------------------------------------------------------------------------------------------------

    async def _happen(self) -> list[str]:
        self.story.tell("world", f"the master is changed by: {self.changes}")
        watching = [self.loop.create_task(watcher.run()) for watcher in self.watchers]
        objections = await super()._happen()
        for task in watching:
            task.cancel()
        return self.wrong + objections + [repr(task.exception()) for task in watching if task.done()]

    async def _fail(self, fault: faults.Fault) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / self.every_s))
            at = At(self.chance.choice(self.machines), self.chance, self.story, self.actors)
            await fault(self if fault in BETWEEN else cast(World, at))

    def _heal(self) -> None:
        super()._heal()
        self.network.cut([])

    # -- what is judged -----------------------------------------------------------------------------------------------

    def confirm(self, what: str, write: Write, replicas: Any, on_disk: bool, client: Client) -> None:
        """WAIT has answered: what it says must be so."""
        is_here = isinstance(replicas, list) and bool(replicas[0])
        count = replicas[1] if isinstance(replicas, list) else 0 if on_disk else replicas
        if not isinstance(count, int) or not count:
            return
        if any(at_s >= write.sent_s for at_s in self.network.links_made_s):
            return  # a replica that came again is counted twice until its old link ends, as in Redis
        if is_here or not on_disk:
            self.confirmed.append(Confirmed(what, write, count, on_disk))
        connected = client.connected
        is_calm = all(at_s < write.sent_s for machine in self.machines for at_s, _ in machine.ends)
        if what != "add" or not is_calm or self.handovers or connected is None:
            return
        master = connected.process.machine
        others = [machine for machine in self.machines if machine is not master]
        looks = self.servers.looks * min(1.0, ALL_LOOKS / max(1, len(self.journal.added)))
        if on_disk and self.policy != "no" and self._looks.random() < looks:  # no: what is written counts
            there = sum(has_entry_on_disk(machine, write.reply) for machine in others)
            if there < count or (is_here and not has_entry_on_disk(master, write.reply)):
                shown = f"entry {write.name.decode()} ({write.reply.decode()}) at {self.loop.time():.6f}"
                self.wrong.append(f"{shown}: WAITAOF says it is on {count} disks of replicas, and {there} have it")
        engines = [engine for machine in others if (engine := self.engine_of(machine)) is not None]
        there = sum(has_entry(engine, write.reply) for engine in engines)
        if there < count and not any(engine.conditions.loading for engine in engines):
            self.wrong.append(f"entry {write.name.decode()} was confirmed on {count} replicas, and is on {there}")

    def keeping(self) -> judges.Keeping:
        return KeepingOfServers(self)

    async def _judge(self) -> list[str]:
        for actor in self.actors:
            if isinstance(actor, RoleChanger):
                await actor.have_all_follow()
        if not await self._is_quiet():
            return [f"the links are not up, although nothing fails: {self._links()}"]
        objections = await super()._judge()
        objections += confirmed(self)
        if not await self._is_quiet():
            return [*objections, f"the links are down again: {self._links()}"]
        return objections + one_picture(self)

    async def _is_quiet(self) -> bool:
        """Wait until each replica has what the master has, and each log is written."""
        until_s = self.loop.time() + QUIET_S
        while self.loop.time() < until_s:
            self.machine = self.directory.master
            if self._has_one_stream():
                return True
            await asyncio.sleep(0.25)
        return False

    def _links(self) -> str:
        """What each server follows, and how far it is."""
        shown = []
        for machine in self.machines:
            if (engine := self.engine_of(machine)) is not None:
                link = engine.replication.master
                place = "master" if link is None else f"follows {link.port}, {'up' if link.is_up else link.problem}"
                shown.append(f"{machine.name} at offset {engine.replication.offset} ({place})")
        return "; ".join(shown)

    def _has_one_stream(self) -> bool:
        master = self.engine_of(self.machine)
        if master is None or not self.leads(self.machine):
            return False
        for machine in self.machines:
            engine = self.engine_of(machine)
            log = None if engine is None else engine.persistence.log
            if engine is None or log is None or log.writes_held or log.buffered or engine.conditions.loading:
                return False
            if machine is self.machine:
                continue
            if self.followed_by(machine) != self.port_of(self.machine):
                return False
            link = engine.replication.master
            if link is None or not link.is_up or engine.replication.offset != master.replication.offset:
                return False
        return True


def has_entry_on_disk(machine: Machine, entry_id: bytes) -> bool:
    """Whether it would be there after a loss of power at this moment, even if nothing is kept that was not synced."""
    try:
        return has_entry(loaded_from(machine, is_synced=True), entry_id)
    except UsageError:
        return False


def has_entry(engine: "Engine", entry_id: bytes) -> bool:
    stream = engine.keyspace.databases[0].values.get(STREAM)
    wanted = ids.parse(entry_id)
    return isinstance(stream, Stream) and any(True for _ in stream.runs(wanted, wanted, 1))


class KeepingOfServers(judges.Keeping):
    """What may be lost where the master changes: what was not on all replicas, and what each server may lose."""

    def __init__(self, world: ServersWorld) -> None:
        super().__init__(world)
        self._world = world
        self._unsafe = [
            (one, next((later.done_s for later in world.handovers[at:] if later.new is one.old), float("inf")))
            for at, one in enumerate(world.handovers)
            if not one.is_safe
        ]  # each with when the old master was the master again
        self._baseless_s = [at_s for machine in world.machines for at_s in machine.baseless_ends]
        if world.policy == "always":
            self._baseless_s = []  # a copy that is not on the disk is confirmed to no client
        self._of_machines = [judges.Keeping(_Of(world.policy, machine)) for machine in world.machines]

    def may_lose(self, write: Write) -> bool:
        maker = None if write.connected is None else write.connected.process.machine
        for handover, again_s in self._unsafe:
            if write.sent_s <= handover.done_s or (maker is handover.old and write.sent_s <= again_s):
                return True
        if self._world.handovers and any(write.sent_s <= at_s for at_s in self._baseless_s):
            return True
        return any(one.may_lose(write) for one in self._used())

    @property
    def may_forget(self) -> bool:
        return bool(self._unsafe or self._baseless_s) or any(one.may_forget for one in self._used())

    def _used(self) -> list[judges.Keeping]:
        """Of the machines that were masters."""
        return self._of_machines if self._world.handovers else self._of_machines[:1]


@dataclass(slots=True)
class _Of:
    """A world that has one machine, for its judge."""

    policy: str
    machine: Machine


def confirmed(world: ServersWorld) -> list[str]:
    """What all replicas had is there, unless a server lost what it had not written: by its end, at that moment."""
    process = world.machine.process
    assert process is not None, "it answered just now"
    held, last_id = {}, 0
    stream = process.engine.keyspace.databases[0].values.get(STREAM)
    group = stream.groups.get(GROUP) if isinstance(stream, Stream) else None
    if group is not None:
        last_id = group.last_id
        held = {block.id_at(at): None for block, at in group.pel.by_id.walk(0)}
    acked = {write.name for write in world.journal.acked}
    losses = [LossesOfAll(world, machine) for machine in world.machines]
    objections = []
    for one in world.confirmed:
        write, shown = one.write, f"{one.what} {one.write.name.decode()}"
        if one.replicas < REPLICAS or any(loss.may_lose(one) for loss in losses):
            continue
        shown += f", confirmed on {one.replicas} {'disks of ' * one.on_disk}replicas at {write.done_s:.6f},"
        if one.what == "add":
            if not has_entry(process.engine, write.reply):
                objections.append(f"{shown} is lost")
            continue
        entry_id = ids.parse(write.name)
        if entry_id > last_id:
            objections.append(f"{shown} is behind the group's last id, {last_id}")
        elif one.what == "ack" and entry_id in held:
            objections.append(f"{shown} is pending again")
        elif one.what == "get" and entry_id not in held and write.name not in acked:
            objections.append(f"{shown} is not pending")
    return objections


class LossesOfAll:
    """When a server may have lost what WAIT confirmed: WAIT is of memory, WAITAOF of disks, if anything is synced."""

    def __init__(self, world: ServersWorld, machine: Machine) -> None:
        self._keeping = judges.Keeping(_Of(world.policy, machine))
        self._syncs = world.policy != "no"
        self._ends_s = [at_s for at_s, _ in machine.ends]

    def may_lose(self, one: Confirmed) -> bool:
        if one.on_disk and self._syncs:
            return False
        late_s = one.write.done_s + judges.EVERYSEC_S
        return self._keeping.may_lose(one.write) or any(one.write.sent_s <= at_s <= late_s for at_s in self._ends_s)


def one_picture(world: ServersWorld) -> list[str]:
    """Master, replicas, and what each would load, are the same.

    What may differ: when consumers were seen (no log and no stream has it), the order of what was delivered at one
    moment (an RDB file does not keep it), what has expired (a replica waits for the master's word), and policies (they
    come with a copy only, docs/policies.md).
    """
    now_ms = max(machine.clock.now_us() for machine in world.machines) // 1000
    view = View(seen_times=False, ties=False, now_ms=now_ms)
    master = world.engine_of(world.machine)
    assert master is not None, "it answered just now"
    was, objections = judges.without_policies(keyspace(master, view)), []
    for machine in world.machines:
        engine = world.engine_of(machine)
        if machine is world.machine or engine is None:
            continue
        found = judges.without_policies(keyspace(engine, view))
        for key in sorted(was.keys() | found.keys()):
            is_evicted = world.servers.may_lack(world, machine, key)
            if was.get(key) != found.get(key) and not is_evicted:
                where = judges.difference(was.get(key), found.get(key))
                objections.append(f"key {key} of {machine.name} differs from the master's: {where}")
        objections += [f"{machine.name}: {one}" for one in world._loaded_beside_memory(machine)]
    return objections
