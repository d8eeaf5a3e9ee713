"""Celery: kombu's lists with unacknowledged jobs in a hash and a sorted set, results by keys and pub/sub."""

import os
import sys

import job
from celery import Celery

SENTINELS = [f"sentinel://:{os.environ['PASSWORD']}@{host}:{port}/0" for host, port in job.sentinels()]
URL = ";".join(SENTINELS) or os.environ["REDIS_URL"]
OF_SENTINELS = {"master_name": job.MASTER} if SENTINELS else {}

app = Celery("jobs", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    result_backend_transport_options=OF_SENTINELS,
    broker_transport_options=OF_SENTINELS
    | {
        "visibility_timeout": 5,
        "unacked_restore_interval": 2,  # by default they are looked for every 100 seconds,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 10,  # and a worker that dies while looking keeps the others from it for 300
    },
    broker_connection_retry_on_startup=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    result_expires=600,
)


@app.task(name="square")
def square(number: int) -> int:
    """The job."""
    return job.square(number)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        for number in job.numbers():
            square.apply_async((number,), task_id=f"job-{number}")
    else:
        for number in range(400):
            kept = app.AsyncResult(f"job-{number}")
            if kept.state == "SUCCESS":
                job.say(number, kept.result)
