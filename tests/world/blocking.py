"""Clients that wait at a list, a sorted set and a stream, and the judge of what they get.

Those that wait are served in the order in which they came, none waits while something is there, and what is there is
taken in its order: a list's from the left, a sorted set's by score, a stream's by id.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from tests.world.actors import OK, Actor, Write
from tests.world.client import Client, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

GIFTS: Final = b"gifts"  # a list
RANKS: Final = b"ranks"  # a sorted set
NEWS: Final = b"news"  # a stream
TIMEOUTS_S: Final = (0.2, 1.0, 30.0)
PUSH: Final = b"for _, name in ipairs(ARGV) do redis.call('RPUSH', KEYS[1], name) end return 1"
ROUNDING_S: Final = 0.002
SHOWN: Final = 3


@dataclass(slots=True)
class Given:
    """An element or an entry that was offered. place: its score, or the parts of its id, where it has one."""

    write: Write
    place: tuple[float, ...] = ()


@dataclass(slots=True)
class Wait:
    """A request that waits at one key. arrives_s: when the server has it. name: what it got, if that is known."""

    key: bytes
    actor: str
    sent_s: float
    arrives_s: float
    timeout_s: float
    done_s: float = float("inf")
    outcome: str = ""
    name: bytes | None = None
    after: bytes = b""  # the id behind which a reader reads
    names: list[bytes] = field(default_factory=list)

    @property
    def ends_s(self) -> float:
        """Before it, the server does not end the wait."""
        return self.sent_s + self.timeout_s - ROUNDING_S


class Giver(Actor):
    """Offers elements and entries, alone, several at once, in transactions and by a script."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.given: dict[bytes, list[Given]] = {GIFTS: [], RANKS: [], NEWS: []}
        self._made = 0

    def _new(self, key: bytes, place: tuple[float, ...] = ()) -> Write:
        self._made += 1
        write = Write(b"%d.%d" % (self.number, self._made), self.world.loop.time())
        self.given[key].append(Given(write, place))
        return write

    async def step(self) -> None:
        kind = self.chance.random()
        if kind < 0.4:
            writes = [self._new(GIFTS) for _ in range(self.chance.choice((1, 1, 2, 5)))]
            await self._all(self._pushes([write.name for write in writes]), writes)
        elif kind < 0.7:
            score = round(self.chance.random(), 6)
            write = self._new(RANKS, (score,))
            await self._all([(b"ZADD", RANKS, b"%r" % score, write.name)], [write])
        else:
            write = self._new(NEWS)
            await self._all([(b"XADD", NEWS, b"*", b"name", write.name)], [write])

    def _pushes(self, names: list[bytes]) -> list[tuple[bytes, ...]]:
        how = self.chance.random()
        if how < 0.5:
            return [(b"RPUSH", GIFTS, *names)]
        if how < 0.7:
            return [(b"EVAL", PUSH, b"1", GIFTS, *names)]
        if how < 0.85:
            return [(b"MULTI",), *[(b"RPUSH", GIFTS, name) for name in names], (b"EXEC",)]
        moves = [(b"LMOVE", b"aside", GIFTS, b"LEFT", b"RIGHT")] * len(names)
        return [(b"MULTI",), (b"RPUSH", b"aside", *names), *moves, (b"EXEC",)]

    async def _all(self, requests: list[tuple[bytes, ...]], writes: list[Write]) -> None:
        last = (await self.all_of(requests, [None] * len(requests)))[-1]
        now_s = self.world.loop.time()
        for write in writes:
            write.end(last, now_s)
        self.world.story.tell(self.name, f"{b' '.join(requests[-1])!r} with {[one.name for one in writes]}: {last!r}")


class Waiter(Actor):
    """Waits at the list or the sorted set; at times it is gone while it waits."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.waits: list[Wait] = []

    async def step(self) -> None:
        timeout_s = self.chance.choice(TIMEOUTS_S)
        seconds = b"%r" % timeout_s
        key, words = self.chance.choice([
            (GIFTS, (b"BLPOP", GIFTS, seconds)), (GIFTS, (b"BLMOVE", GIFTS, b"taken", b"LEFT", b"RIGHT", seconds)),
            (GIFTS, (b"BLMPOP", seconds, b"2", b"never", GIFTS, b"LEFT")), (RANKS, (b"BZPOPMIN", RANKS, seconds)),
            (RANKS, (b"BZMPOP", seconds, b"1", RANKS, b"MIN")),
        ])  # fmt: skip
        value = await self.wait(key, words, timeout_s)
        wait = self.waits[-1]
        if wait.outcome == OK and value is not None:
            wait.name = _taken(words[0], value)
        self.world.story.tell(self.name, f"{words[0].decode()} {key.decode()}: {wait.outcome} {value!r}")

    async def wait(self, key: bytes, words: tuple[bytes, ...], timeout_s: float) -> Any:
        """The reply to a request that waits; it is noted."""
        reply = self.client.send(words)[0]
        connected = self.client.connected
        assert connected is not None, "it has just sent"
        wait = Wait(key, self.name, self.world.loop.time(), connected.requests.free_s, timeout_s)
        self.waits.append(wait)
        if self.chance.random() < 0.2:
            await asyncio.wait([reply], timeout=self.chance.random() * 2)
            if not reply.done():
                self.world.story.tell(self.name, "is gone while it waits")
                self.client.reset()
        value = await reply
        wait.done_s = self.world.loop.time()
        wait.outcome = "refused" if is_refusal(value) else OK
        return value


class Follower(Waiter):
    """Reads a stream from its beginning, entry by entry."""

    _after = b"0-0"

    async def step(self) -> None:
        timeout_ms = self.chance.choice((100, 1000, 5000))
        words = (
            b"XREAD", b"COUNT", self.chance.choice((b"1", b"10")), b"BLOCK", b"%d" % timeout_ms, b"STREAMS", NEWS,
            self._after,
        )  # fmt: skip
        value = await self.wait(NEWS, words, timeout_ms / 1000)
        wait = self.waits[-1]
        wait.after = self._after
        if value and wait.outcome == OK:
            found = value[0][1]
            wait.names = [fields[1] for _, fields in found]
            self._after = found[-1][0]
        self.world.story.tell(self.name, f"reads {wait.names} behind {wait.after!r}")


def _taken(command: bytes, value: Any) -> bytes:
    """The element in a reply."""
    found: bytes = value if command == b"BLMOVE" else value[1]
    if command == b"BLMPOP":
        found = value[1][0]
    elif command == b"BZMPOP":
        found = value[1][0][0]
    return found


# -- the judge --------------------------------------------------------------------------------------------------------


async def judge(world: "World", client: Client) -> list[str]:
    if world.keeping().may_forget:
        return []  # what was taken may be there again
    waits: dict[bytes, list[Wait]] = defaultdict(list)
    given: dict[bytes, dict[bytes, Given]] = {key: {} for key in (GIFTS, RANKS, NEWS)}
    for actor in world.actors:
        if isinstance(actor, Waiter):
            for wait in actor.waits:
                waits[wait.key].append(wait)
        elif isinstance(actor, Giver):
            for key, each in actor.given.items():
                given[key].update({one.write.name: one for one in each})
    left = {
        GIFTS: set(await client.ask(b"LRANGE", GIFTS, b"0", b"-1")),
        RANKS: set(await client.ask(b"ZRANGE", RANKS, b"0", b"-1")),
    }
    objections: list[str] = []
    for key, here in left.items():
        objections += islice(Served(world, waits[key], given[key], here).objections(), SHOWN)
    return objections + followed(world, waits[NEWS], await client.ask(b"XRANGE", NEWS, b"-", b"+"), given[NEWS])


class Served:
    """What was offered at one key, what waited there, and what is left in the end."""

    def __init__(self, world: "World", waits: list[Wait], given: dict[bytes, Given], left: set[bytes]) -> None:
        self.waits = [wait for wait in waits if wait.outcome == OK]
        self.given = given
        self.left = left
        self.jumps_s = [at_s for at_s, _ in world.machine.clock.jumps]
        self.pops = {wait.name: wait for wait in self.waits if wait.name is not None}

    def objections(self) -> Iterator[str]:
        yield from self.waited_in_vain()
        yield from self.out_of_turn()
        yield from self.mixed_up()
        yield from self.out_of_order()

    def _jumped(self, wait: Wait) -> bool:
        return any(wait.sent_s <= at_s <= wait.done_s for at_s in self.jumps_s)

    def _there_from_to(self, name: bytes, one: Given) -> tuple[float, float] | None:
        """The time in which an element surely was there; None: it is not known."""
        if one.write.outcome != OK:
            return None
        if name in self.left:
            return one.write.done_s, float("inf")
        return (one.write.done_s, self.pops[name].sent_s) if name in self.pops else None

    def waited_in_vain(self) -> Iterator[str]:
        """A reader got nothing, although something was there while it waited."""
        for wait in self.waits:
            if wait.name is not None or self._jumped(wait):
                continue
            for name, one in self.given.items():
                there = self._there_from_to(name, one)
                if there is not None and there[0] < wait.ends_s and there[1] > wait.done_s:
                    yield (
                        f"{wait.actor} waited at {wait.key.decode()} from {wait.sent_s:.6f} to {wait.done_s:.6f} "
                        f"and got nothing: {name.decode()} was there since {there[0]:.6f}"
                    )
                    break

    def out_of_turn(self) -> Iterator[str]:
        """A reader was served before one that had waited longer."""
        for name, late in self.pops.items():
            push = self.given[name].write
            if push.outcome != OK:
                continue
            for wait in self.waits:
                if wait is late or not wait.arrives_s < min(push.sent_s, late.sent_s):
                    continue
                waits_on = wait.ends_s > push.done_s and not self._jumped(wait)
                if wait.name is not None:
                    waits_on = self.given[wait.name].write.sent_s > push.done_s
                if waits_on:
                    yield (
                        f"{late.actor}, which came at {late.sent_s:.6f}, got {name.decode()} of {push.sent_s:.6f} "
                        f"before {wait.actor}, which waits at {wait.key.decode()} since {wait.arrives_s:.6f}"
                    )

    def mixed_up(self) -> Iterator[str]:
        """What one request offered went to readers in another order than that in which these had come."""
        taken: dict[tuple[bytes, float], list[tuple[int, Wait]]] = defaultdict(list)
        for name, pop in self.pops.items():
            giver, _, place = name.partition(b".")
            sent_s = self.given[name].write.sent_s
            if pop.arrives_s < sent_s:
                taken[giver, sent_s].append((int(place), pop))
        for (_, sent_s), found in taken.items():
            found.sort(key=itemgetter(0))
            for (_, one), (_, other) in combinations(found, 2):
                if other.arrives_s < one.sent_s:
                    yield (
                        f"of what was offered at {sent_s:.6f}, {one.actor}, which came at {one.sent_s:.6f}, got "
                        f"{one.name!r}, and {other.actor}, which waited since {other.arrives_s:.6f}, {other.name!r}"
                    )

    def out_of_order(self) -> Iterator[str]:
        """An element was taken while another was there that comes before it."""
        for name, pop in self.pops.items():
            for other, before in self.given.items():
                there = self._there_from_to(other, before)
                if there is None or not (there[0] <= pop.sent_s and there[1] >= pop.done_s) or other == name:
                    continue
                one = self.given[name]
                if before.place < one.place or (before.place == one.place and there[0] <= one.write.sent_s):
                    yield (
                        f"{pop.actor} got {name.decode()} at {pop.done_s:.6f}: {other.decode()} comes before it, and "
                        f"was there since {there[0]:.6f}"
                    )


def followed(world: "World", waits: list[Wait], there: list[Any], given: dict[bytes, Given]) -> list[str]:
    """Readers of a stream get each entry once and in order, and none waits while there is a next one."""
    names, ids = [fields[1] for _, fields in there], {fields[1]: entry_id for entry_id, fields in there}
    objections = []
    by_actor: dict[str, list[bytes]] = defaultdict(list)
    for wait in waits:
        by_actor[wait.actor] += wait.names
        if wait.outcome != OK or wait.names:
            continue
        if any(wait.sent_s <= at_s <= wait.done_s for at_s, _ in world.machine.clock.jumps):
            continue
        for name, one in given.items():
            is_next = name in ids and place_of(ids[name]) > place_of(wait.after)
            if is_next and one.write.outcome == OK and one.write.done_s < wait.ends_s:
                objections.append(f"{wait.actor} got nothing at {wait.done_s:.6f}: {name!r} was there")
    for actor, found in by_actor.items():
        # A reader may see what is not confirmed yet, and is lost.
        read = [name for name in found if name in ids or given[name].write.outcome == OK]
        if read != names[: len(read)]:
            place = next((at for at, (one, other) in enumerate(zip(read, names, strict=False)) if one != other), -1)
            objections.append(f"{actor} read {read[place : place + 3]}, there is {names[place : place + 3]}")
    assert all(place_of(ids[one]) < place_of(ids[two]) for one, two in pairwise(names)), "XRANGE ascends"
    return objections[:SHOWN]


def place_of(entry_id: bytes) -> tuple[int, ...]:
    return tuple(map(int, entry_id.split(b"-")))
