"""huey: a list as queue (BRPOP), a schedule in a sorted set by a script, results in a hash."""

import os
import sys

import job
from huey import RedisHuey

huey = RedisHuey("jobs", url=os.environ["REDIS_URL"])
SCHEDULED = 10  # of those sent together, so many wait a second first


@huey.task(retries=2)
def square(number: int) -> int:
    """The job."""
    return job.square(number)


if __name__ == "__main__":
    from huey_app import square as task  # by the name that the consumer knows it under

    if sys.argv[1] == "send":
        for number in job.numbers()[:-SCHEDULED]:
            job.remember(number, task(number).id)
        for number in job.numbers()[-SCHEDULED:]:
            job.remember(number, task.schedule((number,), delay=1).id)
    else:
        for number, task_id in job.remembered():
            job.say(number, huey.result(task_id, preserve=True))
