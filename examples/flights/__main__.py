"""Plays the flights of 2013 through one stream while producers, workers and the server come to harm.

Two producers, six workers of one group, each a process. A third of the way one worker is killed with SIGKILL and
started again under its name; at 40% one producer loses its connection in the middle of a pipeline; half-way the server
is killed with SIGKILL and started again on its log. At the end the journals of all processes are joined, first with
what the server says, then with its log (the audit of penstock.pipeline, without Spark), and two tables are printed; the
exit code is 1 unless every flight was processed, none without need twice, and nothing is left pending.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any, Final

import redis
from tqdm import tqdm

from examples.audit import audit_local
from examples.flights.data import ALL_FLIGHTS, archive
from examples.flights.judge import Verdict, judge, log_table, table
from examples.flights.server import Server, penstock
from examples.flights.wire import GROUP, LOST, STREAM, connect
from penstock.pipeline.errors import PipelineError

PRODUCERS: Final = ("producer-1", "producer-2")
WORKERS: Final = {
    "worker-1": "plain",
    "worker-2": "plain",
    "worker-3": "plain",
    "worker-4": "plain",
    "refuser": "refuser",
    "rescuer": "rescuer",
}
VICTIM: Final = "worker-2"

CUT_AT: Final = 0.40
KILL_WORKER_AT: Final = 0.33
KILL_SERVER_AT: Final = 0.50
VICTIM_RESTS_S: Final = 0.2  # less than the rescuer's patience: the victim finds a history when it is back
SERVER_RESTS_S: Final = 3.5  # more than that: what was in hand is stale when the server is back

POLL_S: Final = 0.1
STALL_S: Final = 60
PAGE: Final = 2_000


class Director:
    """Starts all processes, does the harm, and waits until the group has nothing left to do."""

    def __init__(self, flights: int, program: list[str], directory: Path, quiet: bool, console: int = 0) -> None:
        """console: the port of Penstock's console; 0 for none."""
        self._flights = flights
        self._directory = directory
        self._console = console
        self._server = Server(program, directory, ("--console-port", str(console)) if console else ())
        self._client = connect(self._server.port, "director")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._bar = tqdm(total=flights, unit=" flights", unit_scale=True, disable=quiet)
        self._done = 0
        self._changed_s = time.monotonic()

    def run(self) -> tuple[Verdict, float]:
        """The verdict, and the seconds from the first entry to the last acknowledgement."""
        self._server.start()
        try:
            if self._console:
                self._say(f"the console is at http://127.0.0.1:{self._console}/")
            self._client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
            for name in WORKERS:
                self._start_worker(name)
            while len(self._client.xinfo_consumers(STREAM, GROUP)) < len(WORKERS):
                self._look()
            for share, name in enumerate(PRODUCERS):
                self._start_producer(name, share)
            self._until(KILL_WORKER_AT)
            self._kill_the_worker()
            self._until(KILL_SERVER_AT)
            self._kill_the_server()
            wall_s = self._until_drained()
            self._bar.close()
            self._stop_workers()
            verdict = self._judge()
            if self._console and sys.stdin.isatty():
                self._say("all is done; the console stays until you press Enter")
                sys.stdin.readline()
            return verdict, wall_s
        finally:
            self._bar.close()
            for process in self._processes.values():
                process.kill()
                process.wait()
            self._server.stop()

    # -- what happens -------------------------------------------------------

    def _kill_the_worker(self) -> None:
        """Kill it while it holds something: it is held still for a look, so that the moment does not pass."""
        victim = self._processes[VICTIM]
        while not (held := self._held_by_the_victim(victim)):
            self._look()
        victim.kill()
        victim.wait()
        self._say(f"{VICTIM} killed with {held} entries in hand")
        time.sleep(VICTIM_RESTS_S)
        self._start_worker(VICTIM)

    def _held_by_the_victim(self, victim: subprocess.Popen[bytes]) -> int:
        victim.send_signal(signal.SIGSTOP)
        held = self._client.xpending_range(STREAM, GROUP, min="-", max="+", count=1_000, consumername=VICTIM)
        if not held:
            victim.send_signal(signal.SIGCONT)
        return len(held)

    def _kill_the_server(self) -> None:
        self._server.kill()
        self._say("server killed")
        time.sleep(SERVER_RESTS_S)
        began_s = time.monotonic()
        self._server.start()
        self._changed_s = time.monotonic()
        self._say(f"server back after {self._changed_s - began_s:.1f} s of loading")

    def _until(self, part: float) -> None:
        while self._done < part * self._flights:
            self._look()

    def _until_drained(self) -> float:
        """Seconds from the first entry's id, which is its time of arrival, to now, when nothing is left to do."""
        while any(self._processes[name].poll() is None for name in PRODUCERS) or self._left() > 0:
            self._look()
        first_id, _ = self._client.xrange(STREAM, count=1)[0]
        return time.time() - int(first_id.split("-")[0]) / 1000

    def _left(self) -> int:
        group = self._group()
        return int(group["pending"]) + int(group["lag"] or 0) if group else 1

    def _look(self) -> None:
        """Wait a moment, show progress, and give up on a run in which nothing happens any more."""
        time.sleep(POLL_S)
        for name, process in self._processes.items():
            if process.poll():
                raise RuntimeError(f"{name} ended with exit code {process.returncode}; see {name}.log")
        group = self._group()
        done = int(group["entries-read"] or 0) - int(group["pending"]) if group else self._done
        if done != self._done:
            self._changed_s = time.monotonic()
            self._bar.update(done - self._done)
            self._done = done
        elif time.monotonic() > self._changed_s + STALL_S:
            raise RuntimeError(f"nothing has happened for {STALL_S} seconds")

    def _group(self) -> dict[str, Any] | None:
        try:
            groups: list[dict[str, Any]] = self._client.xinfo_groups(STREAM)
        except LOST:
            return None
        return groups[0]

    # -- processes ----------------------------------------------------------

    def _start_worker(self, name: str) -> None:
        self._start("worker", name, "--character", WORKERS[name])

    def _start_producer(self, name: str, share: int) -> None:
        own = self._flights // len(PRODUCERS)
        cut_at = int(CUT_AT * own) if share == 0 else -1
        words = ["--flights", self._flights, "--of", len(PRODUCERS), "--share", share, "--cut-at", cut_at]
        self._start("producer", name, *map(str, words))

    def _start(self, module: str, name: str, *words: str) -> None:
        command = [sys.executable, "-m", f"examples.flights.{module}", "--port", str(self._server.port)]
        command += ["--name", name, "--journal", str(self._directory / f"{name}.journal"), *words]
        with (self._directory / f"{name}.log").open("ab") as said:
            self._processes[name] = subprocess.Popen(command, stdout=said, stderr=said)

    def _stop_workers(self) -> None:
        for name in WORKERS:
            self._processes[name].terminate()
        for name in WORKERS:
            self._processes[name].wait(30)

    # -- the end ------------------------------------------------------------

    def _judge(self) -> Verdict:
        lines = chain.from_iterable(audit_local.journals_in(self._directory).values())
        pending = int(self._client.xpending(STREAM, GROUP)["pending"])
        return judge(self._flights, self._stream(), pending, lines)

    def _stream(self) -> dict[str, str]:
        serials: dict[str, str] = {}
        oldest = "-"
        while page := self._client.xrange(STREAM, min=oldest, count=PAGE):
            serials.update((entry_id, flight["serial"]) for entry_id, flight in page)
            oldest = f"({page[-1][0]}"
        return serials

    def _say(self, words: str) -> None:
        self._bar.write(f"{self._done:>9,}  {words}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="flights", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flights", type=int, default=ALL_FLIGHTS, help="how many, from the first day on")
    parser.add_argument("--server", help="another server's program, e.g. redis-server (default: Penstock)")
    parser.add_argument("--keep", type=Path, help="keep log and journals in this new folder")
    parser.add_argument("--console", type=int, default=0, metavar="PORT", help="show the flights in the console, there")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    chosen = parser.parse_args()
    directory = chosen.keep or Path(tempfile.mkdtemp(prefix="flights-"))
    try:
        archive()
        if chosen.keep:
            directory.mkdir(parents=True)
        program = [chosen.server] if chosen.server else penstock()
        verdict, wall_s = Director(chosen.flights, program, directory, chosen.quiet, chosen.console).run()
        log, journals = audit_local.requests(str(directory)), audit_local.journals_in(directory)
        findings = audit_local.check(log, journals, STREAM.encode(), GROUP.encode())
    except (OSError, RuntimeError, redis.RedisError, PipelineError) as reason:
        print(f"flights: {reason}\nwhat there is of logs and journals: {directory}", file=sys.stderr)
        return 1
    print(table(verdict, chosen.flights, wall_s))
    print(log_table(findings))
    is_clean = verdict.is_clean() and not any(one.is_a_fault for one in findings)
    if is_clean and not chosen.keep:
        shutil.rmtree(directory)
    elif not is_clean:
        print(f"logs and journals: {directory}", file=sys.stderr)
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
