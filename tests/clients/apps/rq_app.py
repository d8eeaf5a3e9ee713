"""RQ: a queue on lists and sorted sets, results by streams and scripts, abandoned jobs tried again."""

import os
import sys

from job import numbers, remember, remembered, say, sentinels, square
from redis import Redis
from rq import Queue, Retry
from rq.cli.helpers import get_redis_from_config
from rq.job import Job

link = Redis.from_url(os.environ["REDIS_URL"])
if sentinels():
    import rq_settings

    link = get_redis_from_config(vars(rq_settings))

if sys.argv[1] == "send":
    queue = Queue("jobs", connection=link)
    for number in numbers():
        sent = queue.enqueue(square, number, job_timeout=10, retry=Retry(max=3), result_ttl=600)
        remember(number, sent.id)
else:
    for number, name in remembered():
        say(number, Job.fetch(name, connection=link).return_value())
