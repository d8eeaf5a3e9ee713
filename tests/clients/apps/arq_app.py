"""arq: a sorted set as queue, WATCH and MULTI to take a job, results as keys; a taken job comes back by a timeout."""

import asyncio
import os
import sys

import job
from arq import create_pool
from arq.connections import RedisSettings
from arq.jobs import Job

ADDRESS = RedisSettings.from_dsn(os.environ["REDIS_URL"])


async def square(ctx: dict[str, object], number: int) -> int:
    """The job, off the loop."""
    return await asyncio.to_thread(job.square, number)


class WorkerSettings:
    """What `arq arq_app.WorkerSettings` runs."""

    functions = (square,)
    redis_settings = ADDRESS
    job_timeout = 3
    max_jobs = 5
    keep_result = 600
    poll_delay = 0.1


async def send() -> None:
    """One job a number."""
    pool = await create_pool(ADDRESS)
    for number in job.numbers():
        await pool.enqueue_job("square", number, _job_id=f"job-{number}")
    await pool.aclose()


async def tell(count: int) -> None:
    """The results kept."""
    pool = await create_pool(ADDRESS)
    for number in range(count):
        kept = await Job(f"job-{number}", pool).result_info()
        if kept is not None:
            job.say(number, kept.result)


if __name__ == "__main__":
    asyncio.run(send() if sys.argv[1] == "send" else tell(400))
