"""dramatiq: lists, hashes and sorted sets behind one Lua script a call; a dead worker's jobs come back by heartbeat."""

import contextlib
import os
import sys

import dramatiq
import job
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import ResultMissing, Results
from dramatiq.results.backends.redis import RedisBackend

URL = os.environ["REDIS_URL"]

broker = RedisBroker(url=URL, heartbeat_timeout=4000, maintenance_chance=50_000)
broker.add_middleware(Results(backend=RedisBackend(url=URL), store_results=True, result_ttl=600_000))
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=5, min_backoff=200)
def square(number: int) -> int:
    """The job."""
    return job.square(number)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        for number in job.numbers():
            job.remember(number, square.send(number).message_id)
    else:
        for number, message_id in job.remembered():
            message = square.message(number).copy(message_id=message_id)
            with contextlib.suppress(ResultMissing):
                job.say(number, message.get_result(block=False))
