"""redis-py's RedisCluster: a consumer group as queue, results in a hash by a transaction, keys that share a slot."""

import contextlib
import os
import sys
import time

import job
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException, RedisError, ResponseError

JOBS = "{desk}jobs"
RESULTS = "{desk}results"
IDLE_MS = 3000


def connected() -> RedisCluster:
    """A client, once the server is there."""
    while True:
        with contextlib.suppress(RedisError, RedisClusterException):
            return RedisCluster.from_url(os.environ["REDIS_URL"], decode_responses=True)
        time.sleep(0.2)


def turn(cluster: RedisCluster, name: str) -> None:
    """Take what others left for IDLE_MS, then what is new."""
    try:
        cluster.xgroup_create(JOBS, "workers", "0", mkstream=True)
    except ResponseError as refusal:
        if not str(refusal).startswith("BUSYGROUP"):
            raise
    entries = cluster.xautoclaim(JOBS, "workers", name, IDLE_MS, "0", count=10)[1]
    if not entries:
        read = cluster.xreadgroup("workers", name, {JOBS: ">"}, count=5, block=500)
        streams = dict(read.items() if isinstance(read, dict) else read or [])
        entries = streams.get(JOBS, [])
    for entry_id, fields in entries:
        number = int(fields["number"])
        square = job.square(number)
        with cluster.pipeline(transaction=True) as both:
            both.hset(RESULTS, number, square)
            both.xack(JOBS, "workers", entry_id)
            both.execute()


def work() -> None:
    """Work for ever; a turn that the server's absence broke is begun again."""
    cluster, name = connected(), f"worker-{os.getpid()}"
    while True:
        try:
            turn(cluster, name)
        except (RedisError, RedisClusterException, OSError) as failure:
            sys.stderr.write(f"{failure!r}\n")
            time.sleep(0.2)


if sys.argv[1] == "work":
    work()
elif sys.argv[1] == "send":
    cluster = connected()
    for number in job.numbers():
        cluster.xadd(JOBS, {"number": number})
else:
    for number, square in connected().hgetall(RESULTS).items():
        job.say(int(number), square)
