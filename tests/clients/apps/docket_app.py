"""pydocket: a stream and a sorted set behind scripts, some tasks in a second's time, results in hashes."""

import asyncio
import contextlib
import os
import sys
from datetime import UTC, datetime, timedelta

import job
from docket import Docket
from redis.exceptions import ConnectionError

DELAYED = 10  # of those sent together, so many wait a second first


async def square(number: int) -> int:
    """The job, off the loop."""
    return await asyncio.to_thread(job.square, number)


tasks = [square]


async def main() -> None:
    """Send, or tell the results."""
    async with Docket(name="jobs", url=os.environ["REDIS_URL"]) as docket:
        docket.register(square)
        if sys.argv[1] == "send":
            for number in job.numbers():
                late = number >= job.numbers().stop - DELAYED
                when = datetime.now(UTC) + timedelta(seconds=1) if late else None
                await docket.add(square, when=when, key=f"job-{number}")(number)
        else:
            for number in range(400):
                execution = await docket.get_execution(f"job-{number}")
                if execution is not None:
                    # It runs still, or it ran while the server was away.
                    with contextlib.suppress(ConnectionError, TimeoutError):
                        job.say(number, await execution.get_result(timeout=timedelta(seconds=5)))


if __name__ == "__main__":
    asyncio.run(main())
