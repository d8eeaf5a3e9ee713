"""The same jobs in bare redis-py on any Redis: the worker keeps leases, pauses and dead letters itself.

It does what the policies do, as far as a client can: a lease is kept by polling, a pause by a sorted set.
"""

import os
import sys
import time

import redis

from examples.job_life.jobs import JOBS, LEASE_MS, LONGEST_MS, MOST, SHORTEST_MS, Failed, handle

client = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


# -- the worker -------------------------------------------------------------------------------------------------------

# A worker that takes a retry from the set adds it to the stream in the same step: it is not lost, nor added twice.
RETRY = """
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 10)) do
    local job = cjson.decode(member)
    redis.call('XADD', KEYS[2], '*', 'number', job[1], 'attempts', job[2])
    redis.call('ZREM', KEYS[1], member)
end
"""


def work(name: str) -> None:
    retry = client.register_script(RETRY)
    cursor = "0-0"
    while True:
        retry(keys=["retries", "jobs"], args=[int(time.time() * 1000)])
        cursor, stale, _ = client.xautoclaim("jobs", "shop", name, LEASE_MS, cursor, count=10)
        for entry_id, job in stale:
            begin(entry_id, job, deliveries_of(entry_id))
        for _, entries in client.xreadgroup("shop", name, {"jobs": ">"}, count=10, block=250) or ():
            for entry_id, job in entries:
                begin(entry_id, job, 1)


def deliveries_of(entry_id: str) -> int:
    rows = client.xpending_range("jobs", "shop", min=entry_id, max=entry_id, count=1)
    return int(rows[0]["times_delivered"]) if rows else 1


def begin(entry_id: str, job: dict[str, str], deliveries: int) -> None:
    attempts = int(job.get("attempts", 0)) + deliveries
    if attempts > MOST:
        finish(entry_id, job, attempts - 1, failed=True)
        return
    try:
        handle(int(job["number"]))
    except Failed:
        finish(entry_id, job, attempts, failed=True)
    else:
        finish(entry_id, job, attempts, failed=False)


def finish(entry_id: str, job: dict[str, str], attempts: int, failed: bool) -> None:
    with client.pipeline(transaction=True) as unit:
        if failed and attempts >= MOST:
            unit.xadd("dead", job | {"attempts": str(attempts)})
        elif failed:
            pause_ms = min(LONGEST_MS, SHORTEST_MS * 2 ** (attempts - 1))
            unit.zadd("retries", {f"[{job['number']},{attempts}]": int(time.time() * 1000) + pause_ms})
        unit.xack("jobs", "shop", entry_id)
        unit.xdel("jobs", entry_id)
        unit.execute()


# -- the program ------------------------------------------------------------------------------------------------------


def send() -> None:
    client.xgroup_create("jobs", "shop", "0", mkstream=True)
    for number in range(JOBS):
        client.xadd("jobs", {"number": number})


if __name__ == "__main__":
    send() if sys.argv[1] == "send" else work(sys.argv[2])
