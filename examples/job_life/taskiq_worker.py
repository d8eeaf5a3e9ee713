"""The same jobs on taskiq 0.13 and taskiq-redis 1.2 with any Redis; `send` adds them.

A worker is `taskiq worker examples.job_life.taskiq_worker:broker --workers 1`, and one process more keeps the pauses:
`taskiq scheduler examples.job_life.taskiq_worker:scheduler`.
"""

import asyncio
import os

import redis.asyncio
from taskiq import TaskiqMiddleware, TaskiqScheduler
from taskiq.middlewares import SmartRetryMiddleware
from taskiq_redis import ListRedisScheduleSource, RedisStreamBroker

from examples.job_life.jobs import JOBS, LEASE_MS, LONGEST_MS, MOST, SHORTEST_MS, handle

URL = os.environ["REDIS_URL"]


# -- the worker -------------------------------------------------------------------------------------------------------


class DeadLetters(TaskiqMiddleware):
    async def on_error(self, message, result, exception):
        if int(message.labels.get("_retries", 0)) + 1 >= MOST:
            async with redis.asyncio.Redis.from_url(URL) as client:
                await client.xadd("dead", {"number": message.args[0], "reason": repr(exception)})


source = ListRedisScheduleSource(URL)
retries = SmartRetryMiddleware(
    default_retry_count=MOST,
    default_retry_label=True,
    default_delay=SHORTEST_MS / 1000,
    use_delay_exponent=True,
    max_delay_exponent=LONGEST_MS / 1000,
    schedule_source=source,
)
broker = RedisStreamBroker(URL, idle_timeout=LEASE_MS, unacknowledged_lock_timeout=10, xread_block=1000, xread_count=10)
broker = broker.with_middlewares(retries, DeadLetters())  # the last one hears of an error first
scheduler = TaskiqScheduler(broker, [source])


@broker.task(task_name="job")
async def job(number: int) -> None:
    await asyncio.to_thread(handle, number)


# -- the program ------------------------------------------------------------------------------------------------------


async def send() -> None:
    await broker.startup()
    for number in range(JOBS):
        await job.kiq(number)
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(send())
