"""Publishers and subscribers, of a channel and of keyspace notifications, and the judge of what subscribers were sent.

A subscriber gets each message at most once, those of one publisher's connection in their order, none that was not
published or that was refused; and all of them, if its connection lasts from before the message to the end.
"""

import asyncio
import random
from collections import Counter as Counts
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.world.actors import OK, REFUSED, Actor, Write
from tests.world.client import Client, Lost, is_refusal
from tests.world.network import Network
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

CHANNELS: Final = (b"news", b"__keyevent@0__:set")
PUBLISH: Final = b"for _, name in ipairs(ARGV) do redis.call('PUBLISH', '%s', name) end return 1" % CHANNELS[0]
SHOWN: Final = 5


def notifying(chance: random.Random) -> dict[str, str]:
    return {"notify_keyspace_events": "E$"}


@dataclass(slots=True)
class Session:
    """Messages of one subscription. since_s: when it was confirmed, on the loop."""

    connected: Any
    since_s: float = float("inf")
    is_over: bool = False
    messages: list[bytes] = field(default_factory=list)


class SubscribedClient(Client):
    """A client that is sent messages between replies."""

    def __init__(self, network: Network, machine: Machine) -> None:
        super().__init__(network, machine)
        self.session: Session | None = None
        self.sessions: list[Session] = []
        self.strays: list[bytes] = []  # messages without a subscription

    def begin(self) -> Session:
        self.session = Session(self.connected)
        self.sessions.append(self.session)
        return self.session

    def take(self, value: Any) -> None:
        if not isinstance(value, list) or value[0] != b"message":
            super().take(value)
        elif self.session is None or self.session.connected is not self.connected:
            self.strays.append(value[2])
        else:
            self.session.messages.append(value[2])


class Publisher(Actor):
    """Publishes numbered messages, and sets keys: subscribers get the keys' names.

    Requests are sent one by one, in transactions, or by a script: then a subscriber gets several messages at once.
    """

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.published: list[Write] = []

    async def step(self) -> None:
        count, kind = self.chance.choice((1, 1, 5, 30)), self.chance.random()
        writes = [
            self.begin(b"p%d.%d" % (self.number, len(self.published)), self.published) for _ in range(count)
        ]  # fmt: skip
        names = [write.name for write in writes]
        if kind < 0.15:
            reply = await self.client.ask(b"EVAL", PUBLISH, b"0", *names)
            for write in writes:
                if not is_refusal(reply):  # else it may have ended amid its messages
                    write.end(reply, self.world.loop.time())
            return
        requests = [
            self.chance.choice(((b"PUBLISH", CHANNELS[0], name), (b"SET", name, b""))) for name in names
        ]  # fmt: skip
        if kind < 0.7:
            await self.all_of(requests, writes)
        else:
            await self.transact(requests, writes)


class Subscriber(Actor):
    """Subscribes, on each connection again; at times it unsubscribes."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.client: SubscribedClient = SubscribedClient(world.network, machine)

    async def step(self) -> None:
        session = self.client.session
        if session is None or session.connected is not self.client.connected:
            session = self.client.begin()
            for reply in self.client.send(*[(b"SUBSCRIBE", channel) for channel in CHANNELS]):
                await reply
            session.since_s = self.world.loop.time()
            self.world.story.tell(self.name, "has subscribed")
        elif self.chance.random() < 0.1:
            session.is_over = True
            for reply in self.client.send(*[(b"UNSUBSCRIBE", channel) for channel in CHANNELS]):
                await reply
            self.client.session = None
            self.world.story.tell(self.name, "has unsubscribed")
        await asyncio.sleep(self.chance.random())


async def judge(world: "World", client: Client) -> list[str]:
    writes = {one.name: one for actor in world.actors if isinstance(actor, Publisher) for one in actor.published}
    objections = []
    for actor in world.actors:
        if isinstance(actor, Subscriber):
            objections += [f"{actor.name}: {what}" for what in await _objections(actor.client, writes)]
    return objections[:SHOWN]


async def _objections(client: SubscribedClient, writes: dict[bytes, Write]) -> list[str]:
    try:
        await client.ask(b"PING")  # what was sent before has arrived
    except Lost:
        client.session = None
    found = [f"{name!r} came without a subscription" for name in client.strays]
    counts = Counts(name for session in client.sessions for name in session.messages if name in writes)
    found += [f"{name!r} came {count} times" for name, count in counts.items() if count > 1]
    found += [f"{name!r} came, and was refused" for name in counts if writes[name].outcome == REFUSED]
    found += [
        f"{name!r} came, and was not published"
        for session in client.sessions
        for name in session.messages
        if name not in writes and name.startswith(b"p")
    ]
    for session in client.sessions:
        found += _out_of_order([writes[name] for name in session.messages if name in writes])
    lasting = client.session
    if lasting is not None and not lasting.is_over and lasting.connected is client.connected and client.is_open:
        found += [
            f"{one.name!r} did not come"
            for one in writes.values()
            if one.outcome == OK and one.sent_s > lasting.since_s and one.name not in counts
        ]
    return found


def _out_of_order(messages: list[Write]) -> list[str]:
    latest: dict[Any, Write] = {}  # of each connection
    found = []
    for one in messages:
        before = latest.get(one.connected)
        if before is not None and _number(before) > _number(one):
            found.append(f"{one.name!r} came after {before.name!r}")
        latest[one.connected] = one
    return found


def _number(write: Write) -> int:
    return int(write.name.partition(b".")[2])
