"""FastStream: even numbers by a stream with a group, odd ones by a list, results asked for over pub/sub."""

import asyncio
import contextlib
import os
import sys

import job
from faststream import FastStream
from faststream.redis import RedisBroker, RedisSentinelBroker, StreamSub
from redis.asyncio import Redis, Sentinel
from redis.exceptions import ResponseError

SENTINELS, SECRET = job.sentinels(), os.environ.get("PASSWORD")
broker = (
    RedisSentinelBroker(sentinels=SENTINELS, sentinel_master_name=job.MASTER, password=SECRET)
    if SENTINELS
    else RedisBroker(os.environ["REDIS_URL"])
)
app = FastStream(broker)
ME = f"worker-{os.getpid()}"


@broker.subscriber(stream=StreamSub("jobs", group="workers", consumer=ME, polling_interval=100, last_id=">"))
async def by_stream(number: int) -> None:
    """A new entry."""
    await asyncio.to_thread(job.square, number)


@broker.subscriber(stream=StreamSub("jobs", group="workers", consumer=f"{ME}-late", min_idle_time=3000))
async def left_behind(number: int) -> None:
    """An entry that another worker has left unacknowledged."""
    await asyncio.to_thread(job.square, number)


@broker.subscriber(list="jobs-list")
async def by_list(number: int) -> None:
    """From a list."""
    await asyncio.to_thread(job.square, number)


@broker.subscriber("squares")
async def asked(number: int) -> int:
    """Pub/sub in both directions."""
    return number * number


async def send() -> None:
    """Half by the stream, half by the list; the group is there before: a late worker makes it at the stream's end."""
    link = Redis.from_url(os.environ["REDIS_URL"])
    if SENTINELS:
        link = Sentinel(SENTINELS).master_for(job.MASTER, password=SECRET)
    async with link:
        with contextlib.suppress(ResponseError):  # it is there
            await link.xgroup_create("jobs", "workers", "0", mkstream=True)
    async with broker:
        for number in job.numbers():
            if number % 2:
                await broker.publish(number, list="jobs-list")
            else:
                await broker.publish(number, stream="jobs")


async def tell(count: int) -> None:
    """Squares by request and reply."""
    async with broker:
        await broker.start()
        for number in range(count):
            reply = await broker.request(number, "squares", timeout=5)
            job.say(number, await reply.decode())


if __name__ == "__main__":
    asyncio.run(send() if sys.argv[1] == "send" else tell(50))
