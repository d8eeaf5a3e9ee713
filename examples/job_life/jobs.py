"""The jobs that are compared, and how often each was begun: every sixth fails twice, two are poison, one hangs."""

import os
import time
from pathlib import Path
from typing import Final

JOBS: Final = 60
LEASE_MS: Final = 3000
SHORTEST_MS: Final = 500
LONGEST_MS: Final = 2000
MOST: Final = 4  # attempts
POISON: Final = (17, 42)
HANGS: Final = 25  # at its first attempt, until its worker is killed


class Failed(Exception):
    """The job could not be done."""


def is_flaky(number: int) -> bool:
    return number % 6 == 3


def least_attempts() -> int:
    """What the jobs need, if none is begun without need."""
    return JOBS + 2 * sum(map(is_flaky, range(JOBS))) + len(POISON) * (MOST - 1) + 1


def rules() -> dict[str, object]:
    """The numbers above, for workers in other languages."""
    return {
        "jobs": JOBS,
        "leaseMs": LEASE_MS,
        "shortestMs": SHORTEST_MS,
        "most": MOST,
        "poison": POISON,
        "hangs": HANGS,
        "flaky": list(filter(is_flaky, range(JOBS))),
    }


def handle(number: int) -> None:
    """Do a job; writes `begun|done number pid ns` to the file JOB_JOURNAL names."""
    attempt = 1 + sum(words[:2] == ["begun", str(number)] for words in journal(Path(os.environ["JOB_JOURNAL"])))
    _write("begun", number)
    if number == HANGS and attempt == 1:
        time.sleep(3600)
    if number in POISON or (is_flaky(number) and attempt <= 2):
        raise Failed(f"attempt {attempt} at job {number}")
    _write("done", number)


def journal(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def _write(verb: str, number: int) -> None:
    line = f"{verb} {number} {os.getpid()} {time.monotonic_ns()}\n".encode()
    file = os.open(os.environ["JOB_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, line)
    os.close(file)
