"""What every framework goes through: load, a worker killed, the server started again, and every job done all the same.

    server up - two workers - half of the jobs - one worker is killed (SIGKILL) - a new one takes its place -
    the server is stopped and started with the same data - the other half - all done? - results read

Behind Sentinels it is the master that is killed, and a replica that goes on; in a cluster of three, slots move to
another node, which is killed then (`many_servers.py`).

A job squares its number and appends both to a file, so that what was done is known without asking the server. Workers
are kept as a container host keeps them: one that ends is started again, and counted.
"""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.clients.frameworks import APPS, CLUSTER, SENTINELS, Framework
from tests.clients.many_servers import ClusterOfThree, Servers, WatchedServers
from tests.clients.servers import KeptServer
from tests.clients.session_reaper import SessionReaper, end_session

PATIENCE_S = 240.0  # RQ takes a job for abandoned after 61 seconds, and one that was only fetched after as much again
RESULTS_S = 30.0
BETWEEN_LOOKS_S = 0.5
SENDING_S = 240.0
NUDGE_S = 5.0
NUDGES = 20  # jobs beyond those counted, for a framework that looks for lost jobs only when a new one comes
WORKERS = 2
UNDONE = 3  # jobs of `run_nothing`


@dataclass(slots=True)
class Outcome:
    """How a course ended: numbers of jobs, workers that were started again after ending by themselves, seconds."""

    sent: int
    done: int = 0
    lost: int = 0
    wrong: int = 0
    repeated: int = 0
    restarts: int = 0
    results: int = 0
    seconds: float = 0.0


class Worker:
    """One of the framework's own worker processes, in a session of its own, which the reaper ends at the latest."""

    def __init__(self, words: list[str], environment: dict[str, str], log: Path, reaper: SessionReaper) -> None:
        self._reaper = reaper
        self._words = words
        self._environment = environment
        self._log = log
        self._process = self._started()
        self.restarts = 0

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            started = subprocess.Popen(
                self._words, cwd=APPS, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        self._reaper.watch(started.pid)
        return started

    def keep(self) -> None:
        """Start it again if it has ended."""
        if self._process.poll() is not None:
            self.kill()
            self.restarts += 1
            self._process = self._started()

    def replace(self) -> None:
        """Kill it and start another in its place, which is not counted."""
        self.kill()
        self._process = self._started()

    def kill(self) -> None:
        """SIGKILL, to its children too."""
        self._process.kill()
        end_session(self._process.pid)
        self._process.wait()
        self._reaper.forget(self._process.pid)


class Course:
    """One framework beside one server; `run()` is the whole way."""

    def __init__(self, framework: Framework, directory: Path, reaper: SessionReaper) -> None:
        self._framework = framework
        self._directory = directory
        self._reaper = reaper
        self._done = directory / "done.txt"
        self._done.touch()
        self._server = servers_of(framework, directory)
        self._server_up()
        self.server_version = self._server.version()
        self._environment = os.environ | {
            "JOBS_DONE": str(self._done),
            "JOBS_SENT": str(directory / "sent.txt"),
            **self._server.environment,
            "PATH": f"{framework.programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(APPS),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._workers: list[Worker] = []

    def _server_up(self) -> None:
        for leader in self._server.leaders:
            self._reaper.watch(leader)
        self._server.wait_until_ready()

    def _restart_server(self) -> None:
        for leader in self._server.leaders:
            self._reaper.forget(leader)
        self._server.stop()
        self._server.start()
        self._server_up()

    def run(self) -> Outcome:
        """The whole way; what ended badly is in the outcome, what never ended is a TimeoutError."""
        started_s = time.monotonic()
        jobs = self._framework.jobs
        outcome = Outcome(sent=jobs)
        try:
            self._workers = [self._worker() for _ in range(WORKERS)]
            for words in self._framework.beside:
                self._workers.append(self._process(words))
            self._send(0, jobs // 2)
            self._wait_for(jobs // 8)
            self._workers[0].replace()
            self._wait_for(jobs // 4)
            self._restart_server()
            if self._framework.beside_restarts:
                for worker in self._workers[WORKERS:]:
                    worker.replace()
            self._send(jobs // 2, jobs)
            self._wait_for(jobs - self._framework.may_lose, nudging=self._framework.nudged)
            outcome.results = self._results()
        finally:
            for worker in self._workers:
                outcome.restarts += worker.restarts
                worker.kill()
            self._server.kill()
        self._count(outcome)
        outcome.seconds = time.monotonic() - started_s
        return outcome

    def _process(self, words: tuple[str, ...]) -> Worker:
        log = self._directory / f"worker{len(self._workers)}.log"
        words_of_it = [word.format(url=self._environment["REDIS_URL"]) for word in words]
        return Worker(words_of_it, self._environment, log, self._reaper)

    def _worker(self) -> Worker:
        return self._process(self._framework.worker)

    def _asked(self, *words: str) -> str:
        """What the framework's sender printed."""
        sender = subprocess.Popen(
            [*self._framework.sender, *words],
            cwd=APPS,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reaper.watch(sender.pid)
        try:
            said, complaint = sender.communicate(timeout=SENDING_S)
        finally:
            sender.kill()
            end_session(sender.pid)
            sender.wait()
            self._reaper.forget(sender.pid)
        assert sender.returncode == 0, f"{words} of {self._framework.name}:\n{said[-2000:]}{complaint[-4000:]}"
        return said

    def _send(self, first: int, end: int) -> None:
        self._asked("send", str(first), str(end))

    def run_nothing(self) -> int:
        """Send jobs without a worker: how many results are read back."""
        try:
            self._send(0, UNDONE)
            return self._right_results()
        finally:
            self._server.kill()

    def _right_results(self) -> int:
        """How many results the framework itself has kept and reads back right."""
        lines = self._asked("results").splitlines()
        pairs = [words for words in map(str.split, lines) if len(words) == 2 and words[0].isdigit()]
        return sum(1 for number, value in pairs if str(int(number) ** 2) == value)

    def _results(self) -> int:
        """The same, until it has kept enough."""
        deadline_s = time.monotonic() + RESULTS_S
        while True:  # the last jobs' results are on their way
            right = self._right_results()
            if right >= self._framework.kept or time.monotonic() > deadline_s:
                return right
            time.sleep(BETWEEN_LOOKS_S)

    def _finished(self) -> list[tuple[int, int]]:
        """What the jobs wrote: number and square, in the order of their ends."""
        lines = self._done.read_text().splitlines()
        pairs = [(int(number), int(square)) for number, square in (line.split() for line in lines)]
        return [pair for pair in pairs if pair[0] < self._framework.jobs]

    def _wait_for(self, count: int, nudging: bool = False) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        nudge_s = time.monotonic() + NUDGE_S
        nudges = self._framework.jobs
        while len({number for number, _ in self._finished()}) < count:
            if time.monotonic() > deadline_s:
                raise TimeoutError(self._picture(count))
            if nudging and time.monotonic() > nudge_s:
                self._send(nudges, nudges + NUDGES)
                nudges += NUDGES
                nudge_s = time.monotonic() + NUDGE_S
            for worker in self._workers:
                worker.keep()
            time.sleep(BETWEEN_LOOKS_S)

    def _picture(self, count: int) -> str:
        finished = {number for number, _ in self._finished()}
        missing = sorted(set(range(self._framework.jobs)) - finished)[:10]
        logs = "\n".join(log.read_text(errors="replace")[-1500:] for log in sorted(self._directory.glob("*.log")))
        return f"{len(finished)} of {count} jobs done, missing {missing}; the workers said:\n{logs}"

    def _count(self, outcome: Outcome) -> None:
        finished = self._finished()
        numbers = {number for number, _ in finished}
        outcome.done = len(numbers)
        outcome.lost = outcome.sent - outcome.done
        outcome.repeated = len(finished) - len(numbers)
        outcome.wrong = sum(1 for number, square in finished if square != number * number)


def servers_of(framework: Framework, directory: Path) -> Servers:
    """What a framework is run beside."""
    if framework.beside_servers == SENTINELS:
        return WatchedServers(directory)
    if framework.beside_servers == CLUSTER:
        return ClusterOfThree(directory)
    return KeptServer(directory, framework.in_cluster, framework.by_tls)


@contextlib.contextmanager
def course(framework: Framework) -> Iterator[Course]:
    """A course; its files and processes go with it."""
    with tempfile.TemporaryDirectory(prefix="penstock-clients-") as directory, SessionReaper() as reaper:
        yield Course(framework, Path(directory), reaper)
