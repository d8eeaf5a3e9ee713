"""Consumers of a group that wait for entries one by one, and the judge of their order: first come, first served."""

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tests.world.actors import OK
from tests.world.blocking import SHOWN, Given, Giver, Served, Wait, Waiter, place_of
from tests.world.client import Client, is_refusal
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

TASKS: Final = b"tasks"
SIDE: Final = b"side"  # a stream that stays empty: a reader of two streams waits in another way than one of one
CREW: Final = b"crew"
TIMEOUTS_MS: Final = (200, 1000, 30_000)


class TaskGiver(Giver):
    """Creates the groups, and adds entries alone, in transactions and in pipelines."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.given[TASKS] = []
        self._has_groups = False

    async def step(self) -> None:
        if not self._has_groups:
            replies = [
                await self.client.ask(b"XGROUP", b"CREATE", key, CREW, b"0", b"MKSTREAM") for key in (TASKS, SIDE)
            ]
            self._has_groups = all(not is_refusal(reply) or b"BUSYGROUP" in str(reply).encode() for reply in replies)
            return
        writes = [self._new(TASKS) for _ in range(self.chance.choice((1, 1, 2, 5)))]
        adds = [(b"XADD", TASKS, b"*", b"name", write.name) for write in writes]
        if self.chance.random() < 0.5:
            await self.all_of(adds, writes)
        else:
            replies = await self.all_of([(b"MULTI",), *adds, (b"EXEC",)], [None] * (len(adds) + 2))
            made = replies[-1] if isinstance(replies[-1], list) else [replies[-1]] * len(writes)
            for write, reply in zip(writes, made, strict=True):
                write.end(reply, self.world.loop.time())


class GroupReader(Waiter):
    """A consumer that waits for one entry at a time; at times it is gone while it waits."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.places: dict[bytes, tuple[int, ...]] = {}  # by name

    async def step(self) -> None:
        timeout_ms = self.chance.choice(TIMEOUTS_MS)
        streams = self.chance.choice(((TASKS, b">"), (TASKS, b">"), (TASKS, SIDE, b">", b">")))
        consumer = b"c%d" % self.chance.choice((self.number, self.number, 0))
        words = (
            b"XREADGROUP", b"GROUP", CREW, consumer, b"COUNT", b"1", b"BLOCK", b"%d" % timeout_ms, b"STREAMS", *streams
        )  # fmt: skip
        value = await self.wait(TASKS, words, timeout_ms / 1000)
        wait = self.waits[-1]
        if wait.outcome == OK and value:
            entry_id, fields = value[0][1][0]
            wait.name = fields[1]
            self.places[fields[1]] = place_of(entry_id)
        self.world.story.tell(self.name, f"XREADGROUP {streams!r}: {wait.outcome} {value!r}")


async def judge(world: "World", client: Client) -> list[str]:
    if world.keeping().may_forget:
        return []  # what was delivered may be new again
    given: dict[bytes, Given] = {}
    for actor in world.actors:
        if isinstance(actor, TaskGiver):
            given.update({one.write.name: one for one in actor.given[TASKS]})
    readers = [actor for actor in world.actors if isinstance(actor, GroupReader)]
    waits = [wait for reader in readers for wait in reader.waits]
    reply: Any = await client.ask(b"XREADGROUP", b"GROUP", CREW, b"last", b"COUNT", b"1000000", b"STREAMS", TASKS, b">")
    entries = reply[0][1] if reply and not is_refusal(reply) else []
    left = {fields[1]: place_of(entry_id) for entry_id, fields in entries}
    for places in (left, *[reader.places for reader in readers]):
        for name, place in places.items():
            given[name].place = place  # also where the addition's reply was lost
    found = Served(world, waits, given, set(left))
    return [*islice(found.objections(), SHOWN), *_twice(waits)]


def _twice(waits: list[Wait]) -> list[str]:
    names = [wait.name for wait in waits if wait.name is not None]
    return [f"{name!r} was delivered twice" for name in {name for name in names if names.count(name) > 1}][:SHOWN]
