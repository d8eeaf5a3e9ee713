"""The jobs of jobs.py on a Penstock that keeps the policies; `send` adds them, `work NAME` is a worker."""

import os
import sys

import redis

from examples.job_life.jobs import JOBS, LEASE_MS, LONGEST_MS, MOST, SHORTEST_MS, Failed, handle

client = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


# -- the worker -------------------------------------------------------------------------------------------------------


def work(name: str) -> None:
    while True:
        for _, entries in client.xreadgroup("shop", name, {"jobs": ">"}, count=10, block=1000) or ():
            for entry_id, job in entries:
                try:
                    handle(int(job["number"]))
                    client.xack("jobs", "shop", entry_id)
                except Failed:
                    client.execute_command("XNACK", "jobs", "shop", "FAIL", "IDS", 1, entry_id)


# -- the program ------------------------------------------------------------------------------------------------------


def send() -> None:
    client.xgroup_create("jobs", "shop", "0", mkstream=True)
    client.execute_command(*["PENSTOCK.POLICY", "jobs", "MAXLEN", "0", "ACKED"])
    policy = f"ACKWAIT {LEASE_MS} BACKOFF {SHORTEST_MS} {LONGEST_MS} MAXDELIVER {MOST} DEADLETTER dead"
    client.execute_command("PENSTOCK.POLICY", "jobs", "GROUP", "shop", *policy.split())
    for number in range(JOBS):
        client.xadd("jobs", {"number": number})


if __name__ == "__main__":
    send() if sys.argv[1] == "send" else work(sys.argv[2])
