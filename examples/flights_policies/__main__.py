"""Plays the flights of 2013 through a stream with policies that the server keeps, while workers and a dependency fail.

One producer, six workers of one group, each a process; a worker has no line of recovery (worker.py). Every 3,000th
flight is poison, two workers are killed and not replaced, a dependency is down for a while, cancelled flights are put
off, and flights of one aircraft must not overtake each other. What to do about that is said once, in POLICIES. At the
end two tables: what became of the flights, and when they were delivered again. The exit code is 1 unless no flight was
lost or overtaken, the dead letters are the poison, and nothing is left.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import redis
from tqdm import tqdm

from examples.flights.data import ALL_FLIGHTS, archive
from examples.flights.server import Server, penstock
from examples.flights.wire import GROUP, STREAM, connect
from examples.flights_policies.judge import Verdict, handled_in, judge, picture, table
from examples.flights_policies.worker import DOWN

DEAD: Final = "flights:dead"
POLICIES: Final = (
    f"PENSTOCK.POLICY {STREAM} MAXLEN 0 ACKED",
    f"PENSTOCK.POLICY {STREAM} GROUP {GROUP} ACKWAIT {{ack_wait_ms}} REAP {{reap_ms}} KEY tailnum",
    f"PENSTOCK.POLICY {STREAM} GROUP {GROUP} BACKOFF 200 2000 JITTER 20 MAXDELIVER 8 DEADLETTER {DEAD}",
)
WORKERS: Final = 6
KILLED: Final = {0.25: "worker-1", 0.55: "worker-2"}
DOWN_AT: Final = 0.40
DOWN_S: Final = 3.0
REAP_MS: Final = 3000
POLL_S: Final = 0.1
STALL_S: Final = 120


class Director:
    """Starts all processes, does the harm, and waits until nothing is left to do."""

    def __init__(self, flights: int, ack_wait_ms: int, directory: Path, quiet: bool) -> None:
        self._flights = flights
        self._ack_wait_ms = ack_wait_ms
        self._directory = directory
        self._server = Server(penstock(), directory)
        self._client = connect(self._server.port, "director")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._dead: set[str] = set()
        self._bar = tqdm(total=flights, unit=" flights", unit_scale=True, disable=quiet)
        self._began_s = self._changed_s = time.monotonic()
        self._done = 0
        self.samples: list[tuple[float, int]] = []
        self.events: list[tuple[float, str]] = []

    def run(self) -> tuple[Verdict, float]:
        """The verdict, and the seconds that it took."""
        self._server.start()
        try:
            self._client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
            for line in POLICIES:
                self._client.execute_command(*line.format(ack_wait_ms=self._ack_wait_ms, reap_ms=REAP_MS).split())
            for number in range(1, WORKERS + 1):
                name = f"worker-{number}"
                self._start("examples.flights_policies.worker", name, "--directory", str(self._directory))
            words = ["--flights", self._flights, "--of", 1, "--share", 0, "--journal", self._directory / "sent"]
            self._began_s = self._changed_s = time.monotonic()
            self._start("examples.flights.producer", "producer", *map(str, words))
            self._until(min(KILLED))
            self._kill(KILLED[min(KILLED)])
            self._until(DOWN_AT)
            self._break_the_dependency(max(KILLED))
            self._until(max(KILLED))
            self._kill(KILLED[max(KILLED)])
            while not self._is_over():
                self._look()
            return self._verdict(), time.monotonic() - self._began_s
        finally:
            self._bar.close()
            for process in self._processes.values():
                process.kill()
                process.wait()
            self._server.stop()

    def _start(self, module: str, name: str, *words: str) -> None:
        command = [sys.executable, "-m", module, "--port", str(self._server.port), "--name", name, *words]
        with (self._directory / f"{name}.log").open("ab") as said:
            self._processes[name] = subprocess.Popen(command, stdout=said, stderr=said)

    # -- harm -------------------------------------------------------------------------------------------------------

    def _kill(self, name: str) -> None:
        """SIGKILL while it holds something; or as it is, where no worker can hold anything any more."""
        while not self._holds(name) and not self._is_handled():
            self._look()
        self._dead.add(name)
        self._processes[name].kill()
        self._processes[name].wait()
        self._say(f"{name} killed")

    def _holds(self, name: str) -> bool:
        """Whether it has entries in hand; then it is held still, so that the moment does not pass."""
        process = self._processes[name]
        process.send_signal(signal.SIGSTOP)
        held = self._client.xpending_range(STREAM, GROUP, min="-", max="+", count=1, consumername=name)
        if not held:
            process.send_signal(signal.SIGCONT)
        return bool(held)

    def _break_the_dependency(self, until: float) -> None:
        """For DOWN_S seconds, or until that part of the flights is done, where the next harm is due."""
        down = self._directory / DOWN
        down.touch()
        self._say("dependency down")
        until_s = time.monotonic() + DOWN_S
        while time.monotonic() < until_s and self._done < until * self._flights:
            self._look()
        down.unlink()
        self._say("dependency up")

    def _say(self, text: str) -> None:
        self.events.append((time.monotonic() - self._began_s, text))
        self._bar.write(f"{self._done:>9,}  {text}", file=sys.stderr)

    # -- watching ---------------------------------------------------------------------------------------------------

    def _until(self, part: float) -> None:
        while self._done < part * self._flights:
            self._look()

    def _look(self) -> None:
        """Wait a moment, take a sample, and give up on a run in which nothing happens any more."""
        time.sleep(POLL_S)
        for name, process in self._processes.items():
            if name not in self._dead and process.poll():
                raise RuntimeError(f"{name} ended with exit code {process.returncode}; see {name}.log")
        group, policy = self._group()
        self.samples.append((time.monotonic() - self._began_s, policy["redelivered"]))
        done = int(group["entries-read"] or 0) - int(group["pending"])
        if done != self._done:
            self._changed_s = time.monotonic()
            self._bar.update(done - self._done)
            self._done = done
        elif time.monotonic() > self._changed_s + STALL_S:
            left = f"{group['pending']} flights are pending, {group['lag']} are not delivered yet"
            raise RuntimeError(f"nothing has happened for {STALL_S} seconds: {left}")

    def _group(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The group, and its policy, as XINFO GROUPS has them."""
        group: dict[str, Any] = self._client.xinfo_groups(STREAM)[0]
        shown = group["penstock-policy"]
        return group, shown if isinstance(shown, dict) else dict(zip(shown[::2], shown[1::2], strict=True))

    def _is_over(self) -> bool:
        return self._is_handled() and not self._kept()

    def _is_handled(self) -> bool:
        """Whether all has been sent, and nothing of it is to be delivered or acknowledged."""
        is_sent = self._processes["producer"].poll() is not None
        group, _ = self._group()
        return is_sent and not group["pending"] and not group["lag"]

    def _kept(self) -> set[str]:
        """Dead workers that are not reaped yet."""
        return self._dead & {consumer["name"] for consumer in self._client.xinfo_consumers(STREAM, GROUP)}

    def _verdict(self) -> Verdict:
        group, policy = self._group()
        dead = [int(letter["serial"]) for _, letter in self._client.xrange(DEAD)]
        left = int(group["pending"]) + int(self._client.xlen(STREAM))
        handled = handled_in(self._directory)
        return judge(self._flights, handled, dead, policy["redelivered"], policy["reaped"], left, len(self._kept()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="flights_policies", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flights", type=int, default=ALL_FLIGHTS, help="how many, from the first day on")
    parser.add_argument("--ack-wait-ms", type=int, default=5000, help="a lease (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    chosen = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="flights-"))
    try:
        archive()
        director = Director(chosen.flights, chosen.ack_wait_ms, directory, chosen.quiet)
        verdict, wall_s = director.run()
    except (OSError, RuntimeError, redis.RedisError) as reason:
        print(f"flights: {reason}\nwhat there is of logs and journals: {directory}", file=sys.stderr)
        return 1
    print(picture(director.samples, director.events), end="\n\n")
    print(table(verdict, chosen.flights, wall_s))
    if verdict.is_clean():
        shutil.rmtree(directory)
    else:
        print(f"log and journals: {directory}", file=sys.stderr)
    return 0 if verdict.is_clean() else 1


if __name__ == "__main__":
    sys.exit(main())
