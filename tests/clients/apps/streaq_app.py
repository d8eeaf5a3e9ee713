"""streaQ: tasks on streams behind scripts, some delayed by a sorted set, what a dead worker held reclaimed."""

import asyncio
import contextlib
import os
import sys

import job
from streaq import Worker

worker = Worker(redis_url=os.environ["REDIS_URL"], concurrency=4, idle_timeout=4)
DELAYED = 10  # of those sent together, so many wait a second first


@worker.task(name="square", ttl=600)
async def square(number: int) -> int:
    """The job, off the loop."""
    return await asyncio.to_thread(job.square, number)


async def send() -> None:
    """Most at once, some a second later."""
    async with worker:
        for number in job.numbers()[:-DELAYED]:
            job.remember(number, (await square.enqueue(number)).id)
        for number in job.numbers()[-DELAYED:]:
            job.remember(number, (await square.enqueue(number).start(delay=1)).id)


async def tell() -> None:
    """The results kept."""
    async with worker:
        for number, task_id in job.remembered():
            with contextlib.suppress(TimeoutError):
                job.say(number, (await worker.result_by_id(task_id, timeout=5)).result)


if __name__ == "__main__":
    asyncio.run(send() if sys.argv[1] == "send" else tell())
