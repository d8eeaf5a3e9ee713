"""Syncs that fail shortly before the process is killed: the next one reads what no sync writes any more."""

import asyncio
import errno
from typing import TYPE_CHECKING, Final

from tests.world.actors import STREAM, Producer

if TYPE_CHECKING:
    from tests.world.world import World

PADDING: Final = (100, 5000, 20_000)  # bytes: some entries take several pages of the disk


class Packer(Producer):
    """Adds entries that are long."""

    async def step(self) -> None:
        write = self.named()
        padding = b"x" * self.chance.choice(PADDING)
        reply = await self.client.ask(b"XADD", STREAM, b"*", b"job", write.name, b"padding", padding)
        write.end(reply, self.world.loop.time())
        self.world.story.tell(self.name, f"{write.name.decode()} with {len(padding)} bytes: {write.outcome} {reply!r}")


async def failing_syncs(world: "World") -> None:
    """The next sync fails; at times the process is killed soon after that."""
    machine = world.machine
    machine.disk.failures.setdefault("sync", []).append(errno.EIO)
    world.story.tell("disk", "the next sync fails")
    failures = len(machine.failures)
    for _ in range(20):
        await asyncio.sleep(0.05)
        if len(machine.failures) > failures and machine.is_up and world.chance.random() < 0.3:
            machine.crash(loses_power=False)
            return
