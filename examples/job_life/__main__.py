"""`python -m examples.job_life`: the same life of jobs by Penstock's policies, in bare redis-py, on taskiq and BullMQ.

Two workers do the jobs of jobs.py; the one that hangs is killed. Told are the lines of the worker, how often a job was
begun beyond what it needs, and how long after the kill the hanging job was begun again. `--redis` is a redis-server for
the others (else Penstock serves them), `--taskiq` the Python of an environment with taskiq-redis, `--bullmq` a folder
with BullMQ in its node_modules (`npm install bullmq ioredis`; else these are left out).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import redis

from examples.flights.server import Server, penstock
from examples.job_life.jobs import HANGS, JOBS, POISON, journal, least_attempts, rules

HERE: Final = Path(__file__).parent
MARK: Final = "-- the "
COMMENTS: Final = ("#", "//")
END_S: Final = 240
QUIET_S: Final = 3.0  # after the last job: what else is begun was begun in vain


class Life:
    """One way to do the jobs: what sends them, and what runs. dead: the key of its dead letters."""

    dead = "dead"

    def __init__(self, name: str, file: str, server: list[str], send: list[str], run: list[list[str]]) -> None:
        self.name, self.file = name, file
        self.server, self.send, self.run = server, send, run

    def lines(self) -> int:
        """Lines of the worker, without blank ones and comments."""
        text = (HERE / self.file).read_text().split(MARK)[1]
        lines = [line.strip() for line in text.splitlines()[1:]]
        return sum(bool(line) and not line.startswith(COMMENTS) for line in lines)

    def live(self) -> tuple[int, float, int, int]:
        """Attempts, seconds from the kill to the next attempt, jobs done, dead letters. RuntimeError after END_S."""
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            server = Server(self.server, directory)
            server.start()
            written = directory / "journal"
            environment = os.environ | {
                "REDIS_URL": f"redis://127.0.0.1:{server.port}",
                "JOB_JOURNAL": str(written),
                "JOB_RULES": json.dumps(rules()),
            }
            client = redis.Redis(port=server.port, decode_responses=True)
            processes: list[subprocess.Popen[bytes]] = []
            try:
                subprocess.run(self.send, env=environment, check=True, timeout=END_S, stderr=subprocess.DEVNULL)
                for command in self.run:
                    processes.append(
                        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
                    )
                killed_ns = kill_the_hanging(written)
                wait_until(lambda: len(done_in(written)) == JOBS - len(POISON) and self._dead(client) == len(POISON))
                time.sleep(QUIET_S)
                begun = [words for words in journal(written) if words[0] == "begun"]
                next_ns = min(int(ns) for _, number, _, ns in begun if int(number) == HANGS and int(ns) > killed_ns)
                return len(begun), (next_ns - killed_ns) / 1e9, len(done_in(written)), self._dead(client)
            finally:
                for process in processes:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                server.stop()

    def _dead(self, client: redis.Redis) -> int:
        return int(client.xlen(self.dead))


class BullMQ(Life):
    """Its dead letters are the queue's failed jobs."""

    dead = "bull:jobs:failed"

    def _dead(self, client: redis.Redis) -> int:
        return int(client.zcard(self.dead))


def done_in(written: Path) -> Counter[int]:
    return Counter(int(words[1]) for words in journal(written) if words[0] == "done")


def kill_the_hanging(written: Path) -> int:
    """SIGKILL to the process that hangs; when, in ns."""
    hanging: list[int] = []

    def hangs() -> bool:
        hanging[:] = [int(words[2]) for words in journal(written) if words[:2] == ["begun", str(HANGS)]]
        return bool(hanging)

    wait_until(hangs)
    time.sleep(0.5)  # the hanging job is the one in hand by now
    os.kill(hanging[0], signal.SIGKILL)
    return time.monotonic_ns()


def wait_until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + END_S
    while not condition():
        if time.monotonic() > until_s:
            raise RuntimeError("the jobs do not end")
        time.sleep(0.05)


def lives(other: list[str], taskiq: str, bullmq: str = "") -> list[Life]:
    def plain(module: str) -> tuple[list[str], list[list[str]]]:
        command = [sys.executable, "-m", f"examples.job_life.{module}"]
        return [*command, "send"], [[*command, "work", name] for name in ("one", "two")]

    found = [
        Life("Penstock's policies", "penstock_worker.py", penstock(), *plain("penstock_worker")),
        Life("bare redis-py", "bare_worker.py", other, *plain("bare_worker")),
    ]
    if taskiq:
        module = "examples.job_life.taskiq_worker"
        worker = [taskiq, "-m", "taskiq", "worker", f"{module}:broker", "--workers", "1"]
        scheduler = [taskiq, "-m", "taskiq", "scheduler", f"{module}:scheduler", "--update-interval", "1"]
        send = [taskiq, "-m", module]
        found.append(Life("taskiq-redis", "taskiq_worker.py", other, send, [worker, worker, scheduler]))
    if bullmq:
        node = ["env", f"BULLMQ={Path(bullmq).resolve()}", "node", str(HERE / "bullmq_worker.mjs")]
        found.append(BullMQ("BullMQ", "bullmq_worker.mjs", other, [*node, "send"], [[*node, "work"]] * 2))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="job_life", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--redis", help="a redis-server for the others (default: Penstock)")
    parser.add_argument("--taskiq", default="", help="the Python of an environment with taskiq-redis")
    parser.add_argument("--bullmq", default="", help="a folder with BullMQ in its node_modules")
    chosen = parser.parse_args()
    print(f"{'':<22}{'lines':>6}{'begun':>7}{'in vain':>9}{'back after':>12}{'done':>6}{'dead':>6}")
    for life in lives([chosen.redis] if chosen.redis else penstock(), chosen.taskiq, chosen.bullmq):
        begun, back_s, done, dead = life.live()
        vain = begun - least_attempts()
        print(f"{life.name:<22}{life.lines():>6}{begun:>7}{vain:>9}{back_s:>10.1f} s{done:>6}{dead:>6}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
