"""redis-py, its RedisCluster or a master by its Sentinel: a consumer group as queue, results by a transaction."""

import contextlib
import os
import sys
import time

import job
from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException, RedisError, ResponseError
from redis.sentinel import Sentinel

JOBS = "{desk}jobs"
RESULTS = "{desk}results"
IDLE_MS = 3000


def connected() -> Redis | RedisCluster:
    """A client, once the server is there."""
    if job.sentinels():
        return Sentinel(job.sentinels()).master_for(
            job.MASTER, password=os.environ["PASSWORD"], socket_timeout=5, decode_responses=True
        )
    while True:
        with contextlib.suppress(RedisError, RedisClusterException):
            return RedisCluster.from_url(os.environ["REDIS_URL"], decode_responses=True)
        time.sleep(0.2)


def turn(client: Redis | RedisCluster, name: str) -> None:
    """Take what others left for IDLE_MS, then what is new."""
    try:
        client.xgroup_create(JOBS, "workers", "0", mkstream=True)
    except ResponseError as refusal:
        if not str(refusal).startswith("BUSYGROUP"):
            raise
    entries = client.xautoclaim(JOBS, "workers", name, IDLE_MS, "0", count=10)[1]
    if not entries:
        read = client.xreadgroup("workers", name, {JOBS: ">"}, count=5, block=500)
        streams = dict(read.items() if isinstance(read, dict) else read or [])
        entries = streams.get(JOBS, [])
    for entry_id, fields in entries:
        number = int(fields["number"])
        square = job.square(number)
        with client.pipeline(transaction=True) as both:
            both.hset(RESULTS, number, square)
            both.xack(JOBS, "workers", entry_id)
            both.execute()


def work() -> None:
    """Work for ever; a turn that the server's absence broke is begun again."""
    client, name = connected(), f"worker-{os.getpid()}"
    while True:
        try:
            turn(client, name)
        except (RedisError, RedisClusterException, OSError) as failure:
            sys.stderr.write(f"{failure!r}\n")
            time.sleep(0.2)


if sys.argv[1] == "work":
    work()
elif sys.argv[1] == "send":
    client = connected()
    for number in job.numbers():
        client.xadd(JOBS, {"number": number})
else:
    for number, square in connected().hgetall(RESULTS).items():
        job.say(int(number), square)
