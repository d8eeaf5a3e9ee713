"""What uses the servers: producers, workers of groups, blocked readers, an administrator, and a wanderer."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.support.stream_histories import PASS, RESTART, Histories
from tests.world.client import Client, Lost, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

STREAM: Final = b"jobs"
GROUP: Final = b"workers"
QUEUE: Final = b"queue"
LONGEST_S: Final = 5.0
ELSEWHERE: Final = frozenset({PASS, RESTART, "SELECT", "SWAPDB", "MOVE"})  # no requests, or none of one database
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


@dataclass(slots=True)
class Write:
    """One change that a client asked for: `name` is in what it writes, once. Times are the loop's, in seconds."""

    name: bytes
    sent_s: float
    done_s: float = float("inf")
    outcome: str = UNKNOWN
    reply: Any = None
    connected: Any = None

    def end(self, reply: Any, now_s: float) -> None:
        self.outcome = REFUSED if is_refusal(reply) else OK
        self.reply, self.done_s = reply, now_s


@dataclass(slots=True)
class Journal:
    """What the clients know: entries added, entries delivered and acknowledged, elements pushed and popped."""

    added: list[Write] = field(default_factory=list)
    delivered: list[tuple[bytes, bytes, float, bool]] = field(default_factory=list)  # id, consumer, when, by a claim
    acked: list[Write] = field(default_factory=list)
    pushed: list[Write] = field(default_factory=list)
    popped: list[Write] = field(default_factory=list)  # the reply has the element
    counted: list[Write] = field(default_factory=list)
    saved: list[Write] = field(default_factory=list)  # SAVE, confirmed
    gaps: list[Write] = field(default_factory=list)  # times without a log, or with one that begins
    in_force: list[float] = field(default_factory=list)  # when a log that began was known to be in force


class Actor:
    """Does one step after another while the world is loaded, and connects again where the connection is lost."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        self.name = f"{type(self).__name__.lower()} {number}"
        self.number = number
        self.world = world
        self.machine = machine
        self.journal = world.journal
        self.chance = random.Random(world.chance.random())
        self.client = Client(world.network, machine)

    async def run(self) -> None:
        while self.world.is_loaded:
            try:
                await self.client.open()
                await self.step()
                await asyncio.sleep(self.chance.expovariate(1 / self.world.pause_s))
            except Lost:
                self.world.story.tell(self.name, "has lost its connection")

    async def step(self) -> None:
        raise NotImplementedError

    def begin(self, name: bytes, journal: list[Write]) -> Write:
        write = Write(name, self.world.loop.time(), connected=self.client.connected)
        journal.append(write)
        return write

    async def all_of(self, requests: Sequence[tuple[bytes, ...]], writes: Sequence[Write | None]) -> list[Any]:
        """Send requests at once, and note what becomes of the writes among them, one for each request or None."""
        replies = self.client.send(*requests)
        found = []
        for reply, write, words in zip(replies, writes, requests, strict=True):
            value = await reply
            found.append(value)
            if write is not None:
                write.end(value, self.world.loop.time())
                self.world.story.tell(self.name, f"{b' '.join(words)!r}: {write.outcome} {value!r}")
        return found

    async def transact(self, requests: Sequence[tuple[bytes, ...]], writes: Sequence[Write]) -> None:
        """As `all_of`, in a transaction."""
        replies = await self.all_of([(b"MULTI",), *requests, (b"EXEC",)], [None] * (len(requests) + 2))
        made = replies[-1] if isinstance(replies[-1], list) else [replies[-1]] * len(requests)
        for write, reply in zip(writes, made, strict=True):
            write.end(reply, self.world.loop.time())


class Producer(Actor):
    """Adds entries, alone, in pipelines and in transactions."""

    _made = 0

    def named(self) -> Write:
        self._made += 1
        return self.begin(b"%d.%d" % (self.number, self._made), self.journal.added)

    async def step(self) -> None:
        kind = self.chance.random()
        count = 1 if kind < 0.5 else self.chance.choice((2, 5, 30))
        writes = [self.named() for _ in range(count)]
        requests = [(b"XADD", STREAM, b"*", b"job", write.name) for write in writes]
        if kind < 0.85:
            await self.all_of(requests, writes)
        else:
            await self.transact(requests, writes)


class Worker(Actor):
    """A consumer of the group: reads new entries, or what others left, and acknowledges most of what it got."""

    async def step(self) -> None:
        consumer = b"c%d" % self.number
        kind = self.chance.random()
        if kind < 0.1:
            await self.client.ask(b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM")
        elif kind < 0.2:
            words = (b"XAUTOCLAIM", STREAM, GROUP, consumer, b"%d" % self.chance.choice((0, 5000)), b"0", b"JUSTID")
            reply = await self.client.ask(*words)
            if not is_refusal(reply):
                await self._took(reply[1], consumer, is_claim=True)
        else:
            block = (b"BLOCK", b"%d" % self.chance.choice((1, 50, 700))) if self.chance.random() < 0.5 else ()
            count = b"%d" % self.chance.choice((1, 3, 100))
            words = (b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", count, *block, b"STREAMS", STREAM, b">")
            reply = await self.client.ask(*words)
            if reply and not is_refusal(reply):
                await self._took([entry_id for entry_id, _ in reply[0][1]], consumer, is_claim=False)

    async def _took(self, found: list[bytes], consumer: bytes, is_claim: bool) -> None:
        now_s = self.world.loop.time()
        self.journal.delivered += [(entry_id, consumer, now_s, is_claim) for entry_id in found]
        self.world.story.tell(self.name, f"{'claims' if is_claim else 'gets'} {found}")
        done = [entry_id for entry_id in found if self.chance.random() < 0.8]
        if done:
            writes = [self.begin(entry_id, self.journal.acked) for entry_id in done]
            reply = await self.client.ask(b"XACK", STREAM, GROUP, *done)
            for write in writes:
                write.end(reply, self.world.loop.time())


class Pusher(Actor):
    """Pushes elements, each with a name of its own."""

    _made = 0

    async def step(self) -> None:
        self._made += 1
        write = self.begin(b"%d.%d" % (self.number, self._made), self.journal.pushed)
        await self.all_of([(b"RPUSH", QUEUE, write.name)], [write])


class Popper(Actor):
    """Waits for elements; at times it is gone while it waits."""

    async def step(self) -> None:
        write = self.begin(b"", self.journal.popped)
        reply = self.client.send((b"BLPOP", QUEUE, b"%d" % self.chance.choice((1, 2, 30))))[0]
        if self.chance.random() < 0.3:
            await asyncio.wait([reply], timeout=self.chance.random() * 2)
            if not reply.done():
                self.world.story.tell(self.name, "is gone while it waits")
                self.client.reset()
        value = await reply
        write.end(value, self.world.loop.time())
        if value is not None and write.outcome == OK:
            write.name = value[1]
        self.world.story.tell(self.name, f"BLPOP: {value!r}")


class Counter(Actor):
    """Counts up one number."""

    async def step(self) -> None:
        write = self.begin(b"", self.journal.counted)
        await self.all_of([(b"INCR", b"count")], [write])


class Administrator(Actor):
    """Rewrites, saves, and asks how things are."""

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 3)
        words = self.chance.choice(([b"BGREWRITEAOF"], [b"BGSAVE"], [b"INFO"], [b"BGREWRITEAOF"]))
        reply = await self.client.ask(*words)
        self.world.story.tell(self.name, f"{words[0].decode()}: {str(reply)[:60]!r}")


class Wanderer(Actor):
    """Asks everything that streams have, in a database of its own: what is kept must be what is there."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        histories = Histories(random.Random(self.chance.random()))
        histories.reads_history = False  # what that raises is in no log
        requests = histories.history(400)
        self._left = [one for one in requests if ELSEWHERE.isdisjoint(one)]

    async def step(self) -> None:
        count = min(len(self._left), self.chance.choice((1, 1, 10)))
        taken, self._left = self._left[:count], self._left[count:]
        if not taken:
            await asyncio.sleep(1)
            return
        requests = [(b"SELECT", b"1"), *[tuple(_bytes(word) for word in request) for request in taken]]
        try:
            async with asyncio.timeout(LONGEST_S):
                for words, reply in zip(requests, await self.all_of(requests, [None] * len(requests)), strict=True):
                    self.world.story.tell(self.name, f"{b' '.join(words)!r}: {reply!r}"[:200])
        except TimeoutError:  # it waits for what does not come
            self.client.reset()


def _bytes(word: object) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")
