"""walrus: its consumer group as queue, a hash for results, and a lock, a cache and a rate limit on the way."""

import os
import sys

import job
from walrus import Database

db = Database.from_url(os.environ["REDIS_URL"])
jobs = db.consumer_group("workers", ["jobs"])
kept = db.Hash("results")
IDLE_MS = 3000


def work() -> None:
    """Take what others left for IDLE_MS, then what is new; each job under a lock."""
    jobs.create()
    jobs.set_id("0-0") if not db.exists("jobs") else None
    name = f"worker-{os.getpid()}"
    stream = jobs.consumer(name).jobs
    while True:
        left = [row["message_id"] for row in stream.pending() if row["time_since_delivered"] > IDLE_MS]
        entries = stream.claim(*left, min_idle_time=IDLE_MS) if left else stream.read(count=5, block=500)
        for entry_id, fields in entries or []:
            number = int(fields[b"number"])
            with db.lock(f"lock-{number}", ttl=2000):
                kept[number] = job.square(number)
            stream.ack(entry_id)


if sys.argv[1] == "work":
    work()
elif sys.argv[1] == "send":
    for number in job.numbers():
        jobs.jobs.add({"number": number})
else:
    for number, square in kept:
        job.say(int(number), square.decode())
