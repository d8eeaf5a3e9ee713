"""taskiq-redis: tasks on a stream with a group, results as keys, a schedule in a list source (its lock is a script)."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta

import job
from taskiq import TaskiqScheduler
from taskiq_redis import ListRedisScheduleSource, RedisAsyncResultBackend, RedisStreamBroker

URL = os.environ["REDIS_URL"]
SCHEDULED = 10  # of those sent together, so many come by the schedule

results = RedisAsyncResultBackend(URL, result_ex_time=600)
broker = RedisStreamBroker(URL, idle_timeout=4000, unacknowledged_lock_timeout=10).with_result_backend(results)
source = ListRedisScheduleSource(URL)
scheduler = TaskiqScheduler(broker, [source])


@broker.task(task_name="square")
async def square(number: int) -> int:
    """The job, off the loop."""
    return await asyncio.to_thread(job.square, number)


async def send() -> None:
    """Most at once, some by the schedule, a second ahead."""
    await broker.startup()
    await source.startup()
    for number in job.numbers()[:-SCHEDULED]:
        await square.kicker().with_task_id(f"job-{number}").kiq(number)
    for number in job.numbers()[-SCHEDULED:]:
        due = datetime.now(UTC) + timedelta(seconds=1)
        await square.kicker().with_task_id(f"job-{number}").schedule_by_time(source, due, number)
    await broker.shutdown()


async def tell(count: int) -> None:
    """Results of those that were not scheduled: a scheduled one gets its ID later."""
    await results.startup()
    for number in range(count):
        if await results.is_result_ready(f"job-{number}"):
            job.say(number, (await results.get_result(f"job-{number}")).return_value)


if __name__ == "__main__":
    asyncio.run(send() if sys.argv[1] == "send" else tell(400))
