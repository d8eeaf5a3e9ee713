"""What goes wrong in a world: each fault is a task that comes back at moments of its own until the world heals."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.world.disk import FAILING

if TYPE_CHECKING:
    from tests.world.world import World

Fault: TypeAlias = Callable[["World"], Awaitable[None]]
CALLS: Final = (1, 3, 10, 40, 200)


async def kills(world: "World") -> None:
    """The process is killed between two turns."""
    if world.machine.is_up:
        world.machine.crash(loses_power=False)


async def power_losses(world: "World") -> None:
    if world.machine.is_up:
        world.machine.crash(loses_power=True)


async def deaths_at_calls(world: "World") -> None:
    """The process dies amid one of the next calls of its disk."""
    disk = world.machine.disk
    disk.dies_at = disk.calls + world.chance.choice(CALLS)


async def full_disks(world: "World") -> None:
    """The disk is full for a while."""
    disk = world.machine.disk
    disk.room = world.chance.choice((0, 10, 500, 5000))
    world.story.tell("disk", f"has {disk.room} bytes left")
    await asyncio.sleep(world.chance.random() * 5)
    disk.room = None
    world.story.tell("disk", "has room")


async def disk_errors(world: "World") -> None:
    """Calls of one kind fail for a while, or once."""
    name = world.chance.choice(FAILING)
    disk = world.machine.disk
    number = world.chance.choice((errno.EIO, errno.ENOSPC))
    if world.chance.random() < 0.5:
        disk.failures.setdefault(name, []).append(number)
        world.story.tell("disk", f"the next {name} fails")
        return
    disk.failing[name] = (number, world.chance.choice((0.2, 1.0)))
    world.story.tell("disk", f"{name} fails")
    await asyncio.sleep(world.chance.random() * 3)
    disk.failing.pop(name, None)
    world.story.tell("disk", f"{name} works")


async def resets(world: "World") -> None:
    """A client's connection breaks."""
    client = world.chance.choice(world.actors).client
    client.reset()


async def half_closes(world: "World") -> None:
    """A client ends its half of a connection, at times with a request in flight or blocked."""
    world.chance.choice(world.actors).client.half_close()


async def slow_readers(world: "World") -> None:
    """A client reads nothing for a while."""
    connected = world.chance.choice(world.actors).client.connected
    if connected is not None:
        connected.replies.is_stopped = True
        await asyncio.sleep(world.chance.random() * 2)
        connected.replies.read_on()


async def clock_jumps(world: "World") -> None:
    by_ms = world.chance.choice((-7_200_000, -1000, -50, 50, 1000, 7_200_000))
    world.story.tell("clock", f"jumps by {by_ms} ms")
    world.machine.clock.jump(by_ms)


async def dying_children(world: "World") -> None:
    world.machine.child_dies = world.chance.choice((0.0, 0.5, 1.0))


ALL: Final[tuple[Fault, ...]] = (
    kills, power_losses, deaths_at_calls, full_disks, disk_errors, resets, slow_readers, clock_jumps, dying_children,
)  # fmt: skip
WITH_HALF_CLOSES: Final = (*ALL, half_closes, half_closes)
