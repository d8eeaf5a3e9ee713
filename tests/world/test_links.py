"""Tasks that servers of a world begin."""

import asyncio
import inspect

from tests.world.links import OWNER
from tests.world.world import World


async def works() -> None:
    """What a task is to do."""


def test_what_is_cancelled_before_its_first_step_is_closed() -> None:
    world, work = World(0), works()

    async def begin_and_cancel() -> None:
        world.machine.start()
        assert world.machine.process is not None
        OWNER.set(world.machine.process)
        asyncio.get_running_loop().create_task(work).cancel()
        await asyncio.sleep(0)

    world.loop.run_until_complete(begin_and_cancel())
    world.loop.close()

    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
