"""A group with RATE, INFLIGHT, PARALLEL and FAIR: its workers, what watches its readers, and the judge of both.

However the server is killed, not more than RATE was handed out in any span, nor more than INFLIGHT were with workers,
nor more than PARALLEL of a customer. And nothing waits that the limits would let out while a reader is blocked.

What is judged was certainly so: a delivery lies between its request and its reply, and an entry is with a worker from
the reply on, until the worker begins to say what became of it.
"""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.world import groups
from tests.world.client import Client, is_refusal
from tests.world.groups import ORDERS, READ, ROUNDING_MS, SHOP, Delivery, Feeder, LeaseWorker, PolicyKeeper, Rules
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

ACKWAIT_MS: Final = 1000
LOOK_AGAIN_S: Final = 0.2  # ticks and the turns of many readers are over by then
NO_LIMITS: Final = (b"RATE", b"NONE", b"INFLIGHT", b"NONE")


@dataclass(slots=True)
class Quotas:
    """The limits of a group. None: not set."""

    rate: tuple[int, int] | None  # deliveries, ms
    in_flight: int | None
    parallel: int | None
    fair: bool

    def words(self) -> list[bytes]:
        found: list[bytes] = []
        if self.rate is not None:
            found += [b"RATE", b"%d" % self.rate[0], b"%d" % self.rate[1]]
        if self.in_flight is not None:
            found += [b"INFLIGHT", b"%d" % self.in_flight]
        if self.parallel is not None:
            found += [b"PARALLEL", b"%d" % self.parallel]
        return [*found, b"FAIR", b"YES"] if self.fair else found


class QuotaKeeper(PolicyKeeper):
    """Sets the group's policy once: to name RATE begins a new span."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        chance = self.chance
        self.quotas = Quotas(
            chance.choice((None, (1, 200), (3, 500), (4, 6000))), chance.choice((None, 1, 3)),
            chance.choice((None, 1, 2)), chance.random() < 0.5,
        )  # fmt: skip
        is_keyed = self.quotas.parallel is not None or self.quotas.fair
        self.rules = Rules(ACKWAIT_MS, None, None, b"customer" if is_keyed else None, False)

    async def step(self) -> None:
        if not self.is_set:
            words = self.quotas.words()
            is_set = await self.set(self.client) and (
                not words or await self.client.ask(b"PENSTOCK.POLICY", ORDERS, b"GROUP", SHOP, *words) == b"OK"
            )
            self.world.story.tell(self.name, f"sets {self.quotas}: {is_set}")
            self.is_set = is_set
        await asyncio.sleep(0.05)


class QuotaWorker(LeaseWorker):
    """Reads with `>` only, and works."""

    async def act(self) -> None:
        sent_s, count = self.world.loop.time(), b"%d" % self.chance.choice((1, 3, 20))
        block = (b"BLOCK", b"%d" % self.chance.choice((50, 700, 3000))) if self.chance.random() < 0.7 else ()
        wanted = (b"COUNT", count, *block, b"STREAMS", ORDERS, b">")
        reply = await self.client.ask(b"XREADGROUP", b"GROUP", SHOP, self.consumer, *wanted)
        if reply and not is_refusal(reply):
            await self._work([self._taken(one, READ, sent_s, 0) for one in reply[0][1]])


class Watcher(groups.Shopper):
    """Looks for what could be handed out, and for readers that wait, in one request; twice, some time apart."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.idle: list[tuple[float, float, bytes]] = []  # from when to when the same reader waited for the same entry
        self.looks = 0

    async def act(self) -> None:
        first_s, first = self.world.loop.time(), await self._waiting()
        await asyncio.sleep(LOOK_AGAIN_S)
        second, second_s = await self._waiting(), self.world.loop.time()
        self.looks += 1
        self.idle += [(first_s, second_s, one) for one in first & second]

    async def _waiting(self) -> set[bytes]:
        """Pairs of a blocked reader's number and the entry that the next read would get."""
        requests = ((b"MULTI",), (b"PENSTOCK.PEEK", ORDERS, SHOP, b"COUNT", b"1"), (b"CLIENT", b"LIST"), (b"EXEC",))
        replies = [await reply for reply in self.client.send(*requests)]
        if not isinstance(replies[3], list) or any(map(is_refusal, replies[3])):
            return set()
        entries, clients = replies[3]
        fields = [dict(word.split(b"=", 1) for word in line.split()) for line in clients.splitlines()]
        blocked = [one[b"id"] for one in fields if b"b" in one[b"flags"] and one[b"cmd"] == b"xreadgroup"]
        return {number + b" " + entry[0] for number in blocked for entry in entries}


# -- the judge --------------------------------------------------------------------------------------------------------


async def judge(world: "World", client: Client) -> list[str]:
    """Judge the limits; then lift them, and judge what became of the entries."""
    keeper = next(actor for actor in world.actors if isinstance(actor, QuotaKeeper))
    workers = [actor for actor in world.actors if isinstance(actor, QuotaWorker)]
    objections = _idle_readers(world)
    if not world.keeping().may_forget:
        delivered = [one for worker in workers for one in worker.delivered]
        objections += _rated(delivered, keeper.quotas) + _at_once(world, workers, keeper.quotas)
    if keeper.is_set:
        await client.ask(b"PENSTOCK.POLICY", ORDERS, b"GROUP", SHOP, *NO_LIMITS)
    if (keeper.quotas.parallel or 1) > 1:
        keeper.rules.key = None  # those of a customer need not be done one after the other
    return (objections + await groups.judge(world, client))[:5]


def _idle_readers(world: "World") -> list[str]:
    """What waited beside a blocked reader, while the log could be written and no process ended."""
    ends_s = [(at_s, at_s) for at_s, _ in world.machine.ends]
    troubles_s = ends_s + [(one.since_s, one.until_s) for one in world.machine.troubles]
    idle = [one for actor in world.actors if isinstance(actor, Watcher) for one in actor.idle]
    return [
        f"from {first_s:.6f} to {second_s:.6f} a reader was blocked, and an entry could be handed out: {words!r}"
        for first_s, second_s, words in idle
        if not any(since_s <= second_s and first_s - 1 <= until_s for since_s, until_s in troubles_s)
    ]


def _rated(delivered: list[Delivery], quotas: Quotas) -> list[str]:
    """No span has more deliveries than RATE says."""
    if quotas.rate is None:
        return []
    most, span_ms = quotas.rate
    objections = []
    for first in delivered:
        until_s = first.sent_s + (span_ms - ROUNDING_MS) / 1000
        within = [one for one in delivered if first.sent_s <= one.sent_s and one.done_s <= until_s]
        if len(within) > most:
            objections.append(f"{len(within)} deliveries from {first.sent_s:.6f} to {until_s:.6f}, and {quotas}")
    return objections[:2]


def _at_once(world: "World", workers: list[QuotaWorker], quotas: Quotas) -> list[str]:
    """No moment has more entries with workers than INFLIGHT says, nor more of a customer than PARALLEL."""
    delivered = [one for worker in workers for one in worker.delivered]
    ends: dict[bytes, list[float]] = defaultdict(list)  # by name: when a worker said what became of it, or got it again
    for worker in workers:
        for write in [*worker.acked, *[write for write, _ in worker.released]]:
            ends[write.name].append(write.sent_s)
    for one in delivered:
        ends[one.name].append(one.sent_s)
    customers = {
        name: one for actor in world.actors if isinstance(actor, Feeder) for name, one in actor.customers.items()
    }
    changes: list[tuple[float, int, bytes]] = []
    for one in delivered:
        until_s = min([at_s for at_s in ends[one.name] if at_s >= one.done_s], default=one.done_s)
        if until_s > one.done_s:
            changes += [(one.done_s, 1, one.name), (until_s, -1, one.name)]
    held: set[bytes] = set()
    for at_s, change, name in sorted(changes):
        held = held | {name} if change > 0 else held - {name}
        of_customer = sum(customers[other] == customers[name] for other in held)
        is_keyed = quotas.parallel is not None or quotas.fair
        if quotas.in_flight is not None and len(held) > quotas.in_flight:
            return [f"{len(held)} entries are with workers at {at_s:.6f}, and {quotas}"]
        if is_keyed and of_customer > (quotas.parallel or 1):
            return [f"{of_customer} entries of {customers[name]!r} are with workers at {at_s:.6f}, and {quotas}"]
    return []
