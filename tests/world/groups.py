"""A group with a policy: what feeds it, what works in it, and the judge of its deliveries.

An entry is with one consumer at a time. It is delivered again by a claim, by a lease that ended, after a release, and
after a restart that lost a delivery that was not synced. In the end each confirmed entry was acknowledged or is a dead
letter; of one key, entries come in their order and one at a time.
"""

import asyncio
from collections import Counter as Counts
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.world.actors import OK, REFUSED, UNKNOWN, Actor, Write
from tests.world.client import Client, Lost, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

ORDERS: Final = b"orders"
SHOP: Final = b"shop"
DEAD: Final = b"orders:dead"
READ, CLAIMED = "is read", "is claimed"
RETRY_S: Final = 20.0  # a producer sends an entry again for so long; ids are kept for 100 s
DRAIN_S: Final = 45.0
ROUNDING_MS: Final = 2.0


@dataclass(slots=True)
class Rules:
    """The group's policy; None: not set."""

    ackwait_ms: int | None
    backoff_ms: tuple[int, int] | None
    most: int | None  # deliveries
    key: bytes | None
    empties: bool  # what is done is deleted

    def requests(self) -> list[tuple[bytes, ...]]:
        group: list[bytes] = []
        if self.ackwait_ms is not None:
            group += [b"ACKWAIT", b"%d" % self.ackwait_ms]
        if self.backoff_ms is not None:
            group += [b"BACKOFF", b"%d" % self.backoff_ms[0], b"%d" % self.backoff_ms[1]]
        if self.most is not None:
            group += [b"MAXDELIVER", b"%d" % self.most, b"DEADLETTER", DEAD]
        if self.key is not None:
            group += [b"KEY", self.key]
        made = [(b"PENSTOCK.POLICY", ORDERS, b"GROUP", SHOP, *group)] if group else []
        if self.empties:
            made.append((b"PENSTOCK.POLICY", ORDERS, b"MAXLEN", b"0", b"ACKED"))
        return made


@dataclass(slots=True)
class Delivery:
    """An entry in a reply. min_idle_ms: what a claim asked for. Times are the loop's, in seconds."""

    name: bytes
    entry_id: bytes
    consumer: bytes
    way: str
    sent_s: float
    done_s: float
    min_idle_ms: int = 0


class PolicyKeeper(Actor):
    """Creates the group, and sets its policy again and again, as a deployment does."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        chance = self.chance
        self.rules = Rules(
            chance.choice((None, 300, 2000)), chance.choice((None, (100, 1000))), chance.choice((None, None, 2, 4)),
            chance.choice((None, b"customer")), chance.random() < 0.3,
        )  # fmt: skip
        if self.rules.key is not None:
            self.rules.ackwait_ms = self.rules.ackwait_ms or 1000  # which it needs
        self.is_set = False

    async def step(self) -> None:
        if not self.is_set or self.chance.random() < 0.1:
            self.is_set = await self.set(self.client) or self.is_set
        await asyncio.sleep(0.05)

    async def set(self, client: Client) -> bool:
        await client.ask(b"XGROUP", b"CREATE", ORDERS, SHOP, b"0", b"MKSTREAM")
        replies = [await client.ask(*words) for words in self.rules.requests()]
        self.world.story.tell(self.name, f"sets {self.rules}: {replies}")
        return not any(map(is_refusal, replies))


class Shopper(Actor):
    """Waits for the policy before it begins."""

    async def step(self) -> None:
        if self.keeper.is_set:
            await self.act()
        else:
            await asyncio.sleep(0.05)

    @property
    def keeper(self) -> PolicyKeeper:
        return next(actor for actor in self.world.actors if isinstance(actor, PolicyKeeper))

    async def act(self) -> None:
        raise NotImplementedError


class Feeder(Shopper):
    """Adds entries; those with an idempotent id are sent again until their fate is known."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.added: list[Write] = []
        self.customers: dict[bytes, bytes] = {}  # by name
        self.repeated: set[bytes] = set()  # names of what was sent with an idempotent id

    async def act(self) -> None:
        name = b"%d.%d" % (self.number, len(self.added) + 1)
        write = self.begin(name, self.added)
        self.customers[name] = customer = b"k%d" % self.chance.randrange(3)
        idempotent: tuple[bytes, ...] = ()
        if self.chance.random() < 0.5:
            self.repeated.add(name)
            idempotent = (b"IDMP", b"feeder%d" % self.number, name)
        words = (b"XADD", ORDERS, *idempotent, b"*", b"name", name, b"customer", customer)
        was_lost = False
        while True:
            try:
                await self.all_of([words], [write])
                if was_lost and write.outcome == REFUSED:
                    write.outcome = UNKNOWN  # a try before may have worked
                return
            except Lost:
                was_lost = True
                if not idempotent or not self.world.is_loaded or self.world.loop.time() - write.sent_s > RETRY_S:
                    raise
                await self.client.open()


class LeaseWorker(Shopper):
    """Reads, claims, acknowledges, gives back, and forgets."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.consumer = b"c%d" % number
        self.delivered: list[Delivery] = []
        self.acked: list[Write] = []
        self.released: list[tuple[Write, bytes]] = []  # and how

    async def act(self) -> None:
        kind, sent_s = self.chance.random(), self.world.loop.time()
        count = b"%d" % self.chance.choice((1, 3, 20))
        if kind < 0.15:
            idle_ms = self.chance.choice((0, 200, 3000))
            wanted = (b"%d" % idle_ms, b"0", b"COUNT", count)
            reply = await self.client.ask(b"XAUTOCLAIM", ORDERS, SHOP, self.consumer, *wanted)
            if not is_refusal(reply):
                await self._work([self._taken(one, CLAIMED, sent_s, idle_ms) for one in reply[1]])
            return
        if kind < 0.2 and self.delivered:
            known, idle_ms = self.chance.choice(self.delivered), self.chance.choice((0, 500))
            reply = await self.client.ask(b"XCLAIM", ORDERS, SHOP, self.consumer, b"%d" % idle_ms, known.entry_id)
            if not is_refusal(reply):
                await self._work([self._taken(one, CLAIMED, sent_s, idle_ms) for one in reply if one])
            return
        block = (b"BLOCK", b"%d" % self.chance.choice((1, 50, 700))) if self.chance.random() < 0.5 else ()
        idle_ms = self.chance.choice((100, 1000))
        claim = (b"CLAIM", b"%d" % idle_ms) if self.chance.random() < 0.2 else ()
        words = (
            b"XREADGROUP", b"GROUP", SHOP, self.consumer, b"COUNT", count, *block, *claim, b"STREAMS", ORDERS, b">",
        )  # fmt: skip
        reply = await self.client.ask(*words)
        if reply and not is_refusal(reply):
            found = reply[0][1]
            await self._work([
                self._taken(one, CLAIMED if claim and int(one[3]) > 0 else READ, sent_s, idle_ms if claim else 0)
                for one in found
            ])  # fmt: skip

    def _taken(self, entry: list[Any], way: str, sent_s: float, min_idle_ms: int) -> Delivery:
        name = entry[1][1]
        taken = Delivery(name, entry[0], self.consumer, way, sent_s, self.world.loop.time(), min_idle_ms)
        self.delivered.append(taken)
        self.world.story.tell(self.name, f"{name.decode()} {entry[0].decode()} {way} (since {sent_s:.6f})")
        return taken

    async def _work(self, found: list[Delivery]) -> None:
        for one in found:
            kind = self.chance.random()
            if kind < 0.65:
                write = self.begin(one.name, self.acked)
                await self.all_of([(b"XACK", ORDERS, SHOP, one.entry_id)], [write])
            elif kind < 0.8:
                may_end = self.keeper.rules.most is not None
                how = self.chance.choice((b"FAIL", b"SILENT", b"FATAL") if may_end else (b"FAIL", b"SILENT"))
                write = Write(one.name, self.world.loop.time())
                self.released.append((write, how))
                await self.all_of([(b"XNACK", ORDERS, SHOP, how, b"IDS", b"1", one.entry_id)], [write])


# -- the judge --------------------------------------------------------------------------------------------------------


async def judge(world: "World", client: Client) -> list[str]:
    """Let a last worker do what is left, then judge."""
    keeper = next((actor for actor in world.actors if isinstance(actor, PolicyKeeper)), None)
    if keeper is None:
        return []
    while not await keeper.set(client):
        await asyncio.sleep(1)
    back_ms = -sum(by_ms for _, by_ms in world.machine.clock.jumps if by_ms < 0)
    world.machine.clock.jump(back_ms)  # what is held until a moment is not held for hours
    last, left = await _drained(world, client, keeper.rules)
    dead = await client.ask(b"XRANGE", DEAD, b"-", b"+")
    there = await client.ask(b"XRANGE", ORDERS, b"-", b"+")
    found = Found(world, keeper.rules, last, dead if isinstance(dead, list) else [], there)
    if left:
        return [f"{left} entries are pending, although a worker reads: {last[-3:]}"]
    objections = found.conserved() + found.deliveries() + found.dead_letters() + found.in_order()
    if keeper.rules.empties and there and not found.is_lossy and world.machine.clock.jumps == []:
        objections.append(f"every entry is done, and {len(there)} are there")
    return objections[:5]


async def _drained(world: "World", client: Client, rules: Rules) -> tuple[list[bytes], int]:
    """Names of what a last worker gets; how many entries stay pending."""
    names: list[bytes] = []
    until_s = world.loop.time() + DRAIN_S
    while world.loop.time() < until_s:
        reply = await client.ask(
            b"XREADGROUP", b"GROUP", SHOP, b"last", b"COUNT", b"100", b"BLOCK", b"500", b"STREAMS", ORDERS, b">"
        )
        entries = reply[0][1] if reply else []
        if rules.ackwait_ms is None:
            claimed = await client.ask(b"XAUTOCLAIM", ORDERS, SHOP, b"last", b"0", b"0", b"COUNT", b"100")
            entries = entries + claimed[1]
        names += [fields[1] for _, fields in entries]
        if entries:
            await client.ask(b"XACK", ORDERS, SHOP, *[entry_id for entry_id, _ in entries])
        summary = await client.ask(b"XPENDING", ORDERS, SHOP)
        if not entries and not summary[0]:
            return names, 0
    return names, int(summary[0])


class Found:
    """What the actors of a world know, and what is there at its end. last: names that the last worker got."""

    def __init__(self, world: "World", rules: Rules, last: list[bytes], dead: list[Any], there: list[Any]) -> None:
        self.world = world
        self.rules = rules
        self.last = set(last)
        self.dead = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in dead]
        self.there = there
        self.keeping = world.keeping()
        self.is_lossy = self.keeping.may_forget
        workers = [actor for actor in world.actors if isinstance(actor, LeaseWorker)]
        self.feeders = [actor for actor in world.actors if isinstance(actor, Feeder)]
        self.delivered: dict[bytes, list[Delivery]] = defaultdict(list)
        for one in sorted((one for worker in workers for one in worker.delivered), key=lambda one: one.done_s):
            self.delivered[one.name].append(one)
        self.acked: dict[bytes, list[Write]] = defaultdict(list)
        for write in (write for worker in workers for write in worker.acked):
            self.acked[write.name].append(write)
        self.released: dict[bytes, list[tuple[Write, bytes]]] = defaultdict(list)
        for write, how in (one for worker in workers for one in worker.released):
            self.released[write.name].append((write, how))

    def conserved(self) -> list[str]:
        """Each confirmed entry was done or is a dead letter; a refused one is nowhere; a repeated one is there once."""
        dead, seen = {one[b"name"] for one in self.dead}, Counts(fields[1] for _, fields in self.there)
        ids = {name: {one.entry_id for one in each} for name, each in self.delivered.items()}
        objections = []
        for feeder in self.feeders:
            for write in feeder.added:
                shown = f"entry {write.name.decode()} ({write.outcome}, sent at {write.sent_s:.6f})"
                was_taken = write.name in self.last or write.name in dead or write.name in self.acked
                if write.outcome == OK and not was_taken and not self.keeping.may_lose(write):
                    objections.append(f"{shown} is lost: no worker got it, and it is no dead letter")
                if write.outcome == REFUSED and (write.name in self.delivered or was_taken):
                    objections.append(f"{shown} was refused, and was delivered")
                if self.is_lossy or (write.name in feeder.repeated and self._jumped(write.sent_s, write.done_s)):
                    continue  # the server may have forgotten the idempotent id
                if seen[write.name] > 1 or len(ids.get(write.name, ())) > 1:
                    objections.append(f"{shown} is there twice: {ids.get(write.name)}")
                if write.outcome == OK and ids.get(write.name, {write.reply}) != {write.reply}:
                    objections.append(f"{shown} has the id {ids[write.name]}, not {write.reply}")
        return objections

    def deliveries(self) -> list[str]:
        """No delivery of what another has, but by the rules."""
        if self.is_lossy:
            return []
        objections = []
        for name, each in self.delivered.items():
            for place, one in enumerate(each):
                before = [other for other in each[:place] if other.done_s <= one.sent_s]
                why = self._objection(one, before) if before else None
                if why is not None:
                    objections.append(
                        f"{name.decode()} {one.way} by {one.consumer.decode()} at {one.done_s:.6f}: {why}; it was with "
                        f"{before[-1].consumer.decode()} since {before[-1].done_s:.6f}"
                    )
                acks = [ack for ack in self.acked[name] if ack.reply == 1 and ack.done_s <= one.sent_s]
                if acks:
                    objections.append(
                        f"{name.decode()} {one.way} at {one.done_s:.6f}, acknowledged at {acks[0].done_s:.6f}"
                    )
        return objections

    def _objection(self, one: Delivery, before: list[Delivery]) -> str | None:
        """Why an entry may not be delivered now that was delivered before."""
        last, releases = before[-1], [how for write, how in self.released[one.name] if write.sent_s < one.done_s]
        silent = sum(how == b"SILENT" for how in releases)
        if one.way == READ and self.rules.most is not None and len(before) - silent >= self.rules.most:
            return f"it was delivered {len(before)} times"
        if releases or self._jumped(last.sent_s, one.done_s):
            return None
        idle_ms = (one.done_s - last.sent_s) * 1000 + ROUNDING_MS
        needed_ms = one.min_idle_ms if one.way == CLAIMED else self.rules.ackwait_ms
        if needed_ms is None:
            return "no lease ends"
        return None if idle_ms >= needed_ms else f"{idle_ms:.0f} of {needed_ms} ms have passed"

    def _jumped(self, since_s: float, until_s: float) -> bool:
        return any(since_s <= at_s <= until_s for at_s, _ in self.world.machine.clock.jumps)

    def dead_letters(self) -> list[str]:
        """Each once, and for its reason."""
        if self.is_lossy:
            return []
        counts = Counts(one[b"name"] for one in self.dead)
        objections = [f"{name!r} is a dead letter {count} times" for name, count in counts.items() if count > 1]
        for one in self.dead:
            name = one[b"name"]
            if any(write.reply == 1 for write in self.acked[name]):
                objections.append(f"{name!r} was acknowledged, and is a dead letter")
            if one[b"_reason"] == b"fatal":
                if not any(how == b"FATAL" for _, how in self.released[name]):
                    objections.append(f"{name!r} is a dead letter as fatal: no worker said so")
            elif self.rules.most is None or int(one[b"_deliveries"]) < self.rules.most:
                objections.append(f"{name!r} is a dead letter after {one[b'_deliveries']!r} deliveries")
        return objections

    def in_order(self) -> list[str]:
        """With KEY, an entry is read only when each earlier one of its key was acknowledged or given up."""
        if self.rules.key is None or self.is_lossy:
            return []
        customers = {name: customer for feeder in self.feeders for name, customer in feeder.customers.items()}
        by_customer: dict[bytes, list[tuple[tuple[int, ...], bytes]]] = defaultdict(list)
        for feeder in self.feeders:
            for write in feeder.added:
                if write.outcome == OK and isinstance(write.reply, bytes):
                    place = tuple(map(int, write.reply.split(b"-")))
                    by_customer[customers[write.name]].append((place, write.name))
        ended = {one[b"name"] for one in self.dead}
        objections = []
        for name, each in self.delivered.items():
            first = next((one for one in each if one.way == READ), None)
            if first is None:
                continue
            place = tuple(map(int, first.entry_id.split(b"-")))
            for earlier, other in by_customer[customers[name]]:
                is_done = other in ended or any(write.sent_s < first.done_s for write in self.acked[other])
                if earlier < place and not is_done:
                    objections.append(f"{name!r} is read at {first.done_s:.6f} before {other!r} of its key is done")
        return objections
