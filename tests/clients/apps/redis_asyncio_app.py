"""redis-py's asyncio side behind Sentinels: a consumer group as queue, results in a hash by a transaction."""

import asyncio
import os
import sys

import job
from redis.asyncio import Redis, Sentinel
from redis.exceptions import RedisError, ResponseError

JOBS = "jobs"
RESULTS = "results"
IDLE_MS = 3000


def connected() -> Redis:
    """A client of the master, whichever it is."""
    sentinel = Sentinel(job.sentinels())
    return sentinel.master_for(job.MASTER, password=os.environ["PASSWORD"], socket_timeout=5, decode_responses=True)


async def turn(client: Redis, name: str) -> None:
    """Take what others left for IDLE_MS, then what is new."""
    try:
        await client.xgroup_create(JOBS, "workers", "0", mkstream=True)
    except ResponseError as refusal:
        if not str(refusal).startswith("BUSYGROUP"):
            raise
    entries = (await client.xautoclaim(JOBS, "workers", name, IDLE_MS, "0", count=10))[1]
    if not entries:
        read = await client.xreadgroup("workers", name, {JOBS: ">"}, count=5, block=500)
        entries = dict(read.items() if isinstance(read, dict) else read or []).get(JOBS, [])
    for entry_id, fields in entries:
        number = int(fields["number"])
        square = await asyncio.to_thread(job.square, number)
        async with client.pipeline(transaction=True) as both:
            both.hset(RESULTS, number, square)
            both.xack(JOBS, "workers", entry_id)
            await both.execute()


async def work() -> None:
    """Work for ever; a turn that the master's absence broke is begun again."""
    client, name = connected(), f"worker-{os.getpid()}"
    while True:
        try:
            await turn(client, name)
        except (RedisError, OSError) as failure:
            sys.stderr.write(f"{failure!r}\n")
            await asyncio.sleep(0.2)


async def send() -> None:
    client = connected()
    for number in job.numbers():
        await client.xadd(JOBS, {"number": number})


async def tell() -> None:
    for number, square in (await connected().hgetall(RESULTS)).items():
        job.say(int(number), square)


asyncio.run({"work": work, "send": send, "results": tell}[sys.argv[1]]())
