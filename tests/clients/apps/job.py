"""The job of every framework here: square a number, and write both down where no server is asked."""

import os
import sys
import time
from pathlib import Path

WORK_S = 0.004


MASTER = "main"  # as the Sentinels name it


def sentinels() -> list[tuple[str, int]]:
    """Where the Sentinels are, behind which the servers are; none where there is one server."""
    places = [place.split(":") for place in os.environ.get("SENTINELS", "").split()]
    return [(host, int(port)) for host, port in places]


def square(number: int) -> int:
    """The square; the line in the file is one write, so that lines of two workers do not mix."""
    time.sleep(WORK_S)
    line = f"{number} {number * number}\n".encode()
    log = os.open(os.environ["JOBS_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line)
    os.close(log)
    return number * number


def remember(number: int, name: str) -> None:
    """Note what the framework called this job, for `remembered` in another process."""
    with Path(os.environ["JOBS_SENT"]).open("a") as sent:
        sent.write(f"{number} {name}\n")


def remembered() -> list[tuple[int, str]]:
    """Numbers and names of the jobs sent, in order."""
    with Path(os.environ["JOBS_SENT"]).open() as sent:
        return [(int(number), name) for number, name in (line.split() for line in sent)]


def say(number: int, result: object) -> None:
    """A result as the framework gave it back."""
    sys.stdout.write(f"{number} {result}\n")


def numbers() -> range:
    """The numbers named after `send`."""
    return range(int(sys.argv[2]), int(sys.argv[3]))
