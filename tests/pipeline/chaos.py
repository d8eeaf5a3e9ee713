"""`make chaos`: a stream is copied by Spark while drivers and executors are killed, and then every row is counted.

First a plain process stands for Spark, which is so cheap to start that it can be killed many times. Then Spark itself:
2,000,000 entries, stream to stream, with each delivery that promises every row once; the driver's processes are killed
(SIGKILL, Java and Python together) when the copy has as many rows as a seed says, and it is started again, until it
comes to its end. Then once more on `local-cluster`, where executors are killed and the query must survive. Then at a
master that is killed and that real Sentinels fail over (`failover`), and in a cluster whose slots move (`slot`).

Missing and doubled rows must be 0, each run must have killed something, and all of them together as many as
`--least-kills` says: a copy that was over before the first kill shows nothing. A copy that stands still ends the
program. The delivery `parquet` copies to files, where rows that Spark has committed are counted.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.pipeline.chaos_deployments import (
    Deployment,
    committed_batches,
    entries_of,
    failing_over,
    moving,
    parquet_rows,
)
from tests.support.patience import Patience
from tests.support.reference_server import LOCALHOST, reference_server
from tests.support.server_process import running_server

FORMAT = "redis_streams"
PARQUET = "parquet"
DELIVERIES = ("exactly-once", "idmp", "at-least-once", PARQUET)
TASK, FAILOVER, SLOTS = "task", "failover", "slot"
KINDS = (TASK, "driver", "executor", FAILOVER, SLOTS)
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # these processes do not live long enough for more
EXECUTOR = b"CoarseGrainedExecutorBackend"
LOOK_EVERY_S = 0.01
PATIENCE_S = 180  # without a row
BATCHES = 10  # a copy, unless --batch says otherwise
FILE_BATCHES = 50  # of files, which are written so quickly that a failover takes as long as a tenth of them
PAGE = 20_000
FAILURES = 3


# -- the driver: another process ---------------------------------------------------------------------------------------


def drive(job: dict[str, str]) -> None:
    """Copy the streams `sources` to `copies`, to their end; run again with the same checkpoint, go on."""
    from penstock.pipeline.runner.runner import run_to_end
    from penstock.pipeline.session import session

    spark = session(
        job["master"],
        "chaos",
        spark__driver__memory="768m",
        spark__executor__memory="512m",
        spark__driver__extraJavaOptions=QUICK_JAVA,
        spark__executor__extraJavaOptions=QUICK_JAVA,
        spark__ui__showConsoleProgress="false",
        spark__driver__host=LOCALHOST,
        spark__driver__bindAddress=LOCALHOST,
        spark__ui__enabled="false",
        spark__task__maxFailures="8",
        # What a start costs is mostly compiling: by Spark, too.
        spark__sql__codegen__wholeStage="false",
        spark__sql__codegen__factoryMode="NO_CODEGEN",
    )
    spark.sparkContext.setLogLevel("ERROR")
    reader = spark.readStream.format(FORMAT).option("endpoints", job["endpoint"]).option("stream", job["sources"])
    reader = reader.option("startingId", "earliest").option("maxEntriesPerTrigger", job["a_batch"])
    rows = reader.option("minPartitions", "2").schema("n bigint, payload string").load()
    if job["delivery"] == PARQUET:
        writer = rows.writeStream.format(PARQUET).option("path", job["files"])
    else:
        copies = job["copies"].split(",")
        to = "'to'" if len(copies) == 1 else f"concat('to:', n % {len(copies)})"
        writer = rows.selectExpr(f"{to} AS _stream", "*").writeStream.format(FORMAT)
        writer = writer.options(endpoints=job["endpoint"], delivery=job["delivery"], **json.loads(job["sink"]))
    writer = writer.option("checkpointLocation", job["checkpoint"])
    run_to_end(lambda **trigger: writer.trigger(**trigger).start())
    spark.stop()


class Driver:
    """The driver's processes: all of its session, so that Java, Python and the executors are found."""

    def __init__(self, job: dict[str, str], folder: str, output: Path) -> None:
        environment = os.environ | {"SPARK_WORKER_DIR": f"{folder}/work", "SPARK_LOCAL_DIRS": f"{folder}/local"}
        with output.open("ab") as said:  # a session of its own, which is killed as a whole: see `kill`
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.chaos", "--drive", json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def pids(self, of: bytes = b"") -> list[int]:
        """The processes of its session with `of` in their command line."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                state = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                if int(state[3]) == self._process.pid and of in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except (OSError, IndexError):
                continue  # it has ended meanwhile
        return sorted(found)

    def kill(self) -> None:
        """SIGKILL to all of them at once."""
        for pid in self.pids():
            kill(pid)
        self._process.wait()
        for pid in self.pids():  # what was being forked
            kill(pid)


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


# -- tasks without Spark: so cheap to kill that many moments are tried -------------------------------------------------


def write_batches(job: dict[str, str]) -> None:
    """The same copy as a plain process: batch after batch, as far as the commit log does not have it already."""
    import pyarrow

    from penstock.pipeline.connector.sink.ledger import Task
    from penstock.pipeline.connector.sink.sink_options import read_sink
    from penstock.pipeline.connector.sink.sink_writer import write_task

    options = read_sink({"endpoints": job["endpoint"], "stream": "to", "delivery": job["delivery"]}, False)
    commits = Path(job["checkpoint"])
    commits.mkdir(exist_ok=True)
    for batch, first in enumerate(range(0, int(job["entries"]), int(job["a_batch"]))):
        if (commits / str(batch)).exists():
            continue
        numbers = range(first, min(first + int(job["a_batch"]), int(job["entries"])))
        for partition in range(2):
            half = [number for number in numbers if number % 2 == partition]
            columns = {"n": half, "payload": [f"row {number} of the copy" for number in half]}
            rows = pyarrow.Table.from_pydict(columns).to_batches(max_chunksize=5_000)
            write_task(options, Task("chaos-query", batch, partition), rows)
        (commits / str(batch)).touch()


# -- one run ----------------------------------------------------------------------------------------------------------


class Run:
    """One copy, with kills."""

    def __init__(
        self, words: argparse.Namespace, deployment: Deployment, delivery: str, seed: int, folder: str
    ) -> None:
        self._words = words
        self._chance = random.Random(seed)
        self._folder = folder
        self._output = Path(folder) / "said"
        self._deployment = deployment
        self._files = Path(folder) / "files"
        batches = FILE_BATCHES if delivery == PARQUET else BATCHES
        self._job = {
            "endpoint": deployment.endpoint,
            "sources": ",".join(deployment.sources),
            "copies": ",".join(deployment.copies),
            "sink": json.dumps(deployment.sink),
            "delivery": delivery,
            "files": str(self._files),
            "checkpoint": f"{folder}/checkpoint",
            "a_batch": str(words.batch or max(words.entries // batches, 1)),
            "entries": str(words.entries),
            "master": "local[2]",
        }
        self._driver: Driver | None = None
        self._task: subprocess.Popen[bytes] | None = None
        self.kills = 0
        self.failures = 0
        self.at_rows: list[int] = []

    def _start(self) -> Driver:
        self._driver = Driver(self._job, self._folder, self._output)
        return self._driver

    def stop(self) -> None:
        """Leave nothing behind, however the run ends."""
        if self._driver is not None:
            self._driver.kill()
        if self._task is not None:
            self._task.kill()
            self._task.wait()

    def with_driver_kills(self) -> None:
        driver = self._start()
        for rows in self._moments(self._words.kills):
            while not self._await_rows(driver, rows) and driver.poll():
                driver = self._start_after_failure(driver)
            if driver.poll() is not None:
                break
            driver.kill()
            self._note()
            driver = self._start()
        self._to_the_end(driver)

    def with_task_kills(self) -> None:
        command = [sys.executable, "-m", "tests.pipeline.chaos", "--write", json.dumps(self._job)]
        task = self._task = subprocess.Popen(command)
        for rows in self._moments(self._words.task_kills):
            if not self._await_rows(task, rows):
                break
            task.kill()
            task.wait()
            self._note()
            task = self._task = subprocess.Popen(command)
        if task.wait():
            raise SystemExit("the process that stands for Spark failed")

    def with_executor_kills(self) -> None:
        self._job["master"] = "local-cluster[2,1,768]"
        driver = self._start()
        for rows in self._moments(self._words.executor_kills):
            executors: list[int] = []
            while self._await_rows(driver, rows) and not (executors := driver.pids(EXECUTOR)):
                time.sleep(LOOK_EVERY_S)  # the one that was killed is being started again
            if not executors:
                break
            kill(self._chance.choice(executors))
            self._note()
        self._to_the_end(driver)

    def with_disturbances(self) -> None:
        """Failovers, or slots that move; a query that ends because of them is started again."""
        driver = self._start()
        for rows in self._moments(self._words.disturbances):
            while not self._await_rows(driver, rows) and driver.poll():
                driver = self._start_after_failure(driver)
            if driver.poll() is not None:
                break
            self._note()  # before a failover, which takes seconds in which the copy may go on
            self._deployment.disturb(self._chance)
        self._to_the_end(driver)

    def _moments(self, kills: int) -> list[int]:
        """How many rows the copy is to have at each kill; the last tenth is left for what comes after it."""
        return sorted(1 + self._chance.randrange(max(self._words.entries * 9 // 10, 1)) for _ in range(kills))

    def _await_rows(self, writer: "Driver | subprocess.Popen[bytes]", rows: int) -> bool:
        """Until the copy has so many rows; False if its writer ended first. SystemExit if there are no more rows."""
        before, patience = -1, Patience.of(PATIENCE_S)
        while (there := self._rows()) < rows:
            if writer.poll() is not None:
                return False
            if there > before:
                before, patience = there, Patience.of(PATIENCE_S)
            if patience.is_over():
                raise SystemExit(f"the copy stands still at {there} rows:\n{self._said()}")
            time.sleep(LOOK_EVERY_S)
        return writer.poll() is None

    def _rows(self) -> int:
        """Rows in the copy; of files, those of the batches that were committed."""
        if self._job["delivery"] != PARQUET:
            return self._deployment.rows()
        return committed_batches(self._files) * int(self._job["a_batch"])

    def _said(self) -> str:
        return self._output.read_text(errors="replace")[-5000:] if self._output.exists() else ""

    def _note(self) -> None:
        self.kills += 1
        self.at_rows.append(self._rows())

    def _start_after_failure(self, driver: Driver) -> Driver:
        """Start it again where it failed by itself, which is one more way to die; but not for ever."""
        driver.kill()
        self.failures += 1
        say(f"          it ended by itself at {self._rows()} rows: {reason_of(self._said())}")
        if self.failures > FAILURES + self.kills:  # what ends a query may be a failover
            raise SystemExit(f"the query failed:\n{self._said()}")
        return self._start()

    def _to_the_end(self, driver: Driver) -> None:
        try:
            self._await_rows(driver, sys.maxsize)
            while driver.poll():
                driver = self._start_after_failure(driver)
                self._await_rows(driver, sys.maxsize)
        finally:
            driver.kill()

    def verdict(self) -> tuple[int, int, int]:
        """Rows in the copy, how many are missing, and how many are there too often."""
        is_parquet = self._job["delivery"] == PARQUET
        seen = Counter(parquet_rows(self._files) if is_parquet else entries_of(self._deployment, PAGE))
        total = seen.total()
        return total, self._words.entries - len(seen), total - len(seen)


def reason_of(said: str) -> str:
    """The newest line of a driver's output that names an error; its last line if none does."""
    lines = [line for line in said.splitlines() if line.strip()] or ["nothing was said"]
    named = [line for line in lines if re.search(r"\b(DataLoss|ServerGone|\w*(Error|Exception))\b", line)]
    return (named or lines)[-1].strip()[:400]


@dataclass(frozen=True)
class Result:
    """What one run did, and what its copy holds."""

    kind: str
    delivery: str
    kills: int
    total: int
    missing: int
    doubled: int

    def faults(self) -> list[str]:
        """Why the run proves nothing, or proves something bad; empty if it is right."""
        found = []
        if not self.kills:
            found.append(f"no {self.kind} was killed: copy more (--entries)")
        if self.missing:
            found.append("rows are missing")
        if self.doubled and self.delivery != "at-least-once":
            found.append("rows are doubled")
        return found


def fill(deployment: Deployment, entries: int) -> None:
    """What is copied, by the sink without Spark: two million entries in seconds."""
    import pyarrow

    from penstock.pipeline.connector.sink.ledger import Task
    from penstock.pipeline.connector.sink.sink_options import read_sink
    from penstock.pipeline.connector.sink.sink_writer import write_task

    options = read_sink({"endpoints": deployment.endpoint, "delivery": "at-least-once"}, False)
    streams = deployment.sources
    for first in range(0, entries, 50_000):
        numbers = range(first, min(first + 50_000, entries))
        columns = {
            "_stream": [streams[number % len(streams)] for number in numbers],
            "n": list(numbers),
            "payload": [f"row {number} of the copy" for number in numbers],
        }
        write_task(options, Task("fill", 0, 0), pyarrow.Table.from_pydict(columns).to_batches())


def one_run(words: argparse.Namespace, deployment: Deployment, kind: str, delivery: str, seed: int) -> Result:
    deployment.clear()
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        run = Run(words, deployment, delivery, seed, folder)
        try:
            match kind:
                case "task":
                    run.with_task_kills()
                case "failover" | "slot":
                    run.with_disturbances()
                case "driver":
                    run.with_driver_kills()
                case _:
                    run.with_executor_kills()
        finally:
            run.stop()
        deployment.settle()
        total, missing, doubled = run.verdict()
    say(
        f"seed {seed:>3}  {delivery:<13} {run.kills} {kind} kills at {run.at_rows} rows, {run.failures} failures: "
        f"{total} rows, {missing} missing, {doubled} doubled  ({time.monotonic() - began_s:.0f} s)"
    )
    result = Result(kind, delivery, run.kills, total, missing, doubled)
    for fault in result.faults():
        say(f"          {fault}")
    return result


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where rows are missing or doubled, a run killed nothing, or all of them too little."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--entries", type=int, default=2_000_000)
    parser.add_argument(
        "--batch", type=int, help=f"entries a micro-batch; of {BATCHES} (files: {FILE_BATCHES}) otherwise"
    )
    parser.add_argument("--kills", type=int, default=2, help="of the driver, a run")
    parser.add_argument("--executor-kills", type=int, default=2, help="a run on local-cluster")
    parser.add_argument("--task-kills", type=int, default=12, help="of a process that writes as a task does, a run")
    parser.add_argument("--disturbances", type=int, default=3, help="failovers, or moves of slots, a run")
    parser.add_argument("--least-kills", type=int, default=20, help="in all runs together, or they prove nothing")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--delivery", choices=DELIVERIES, nargs="+", default=DELIVERIES)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS, help="what is killed; all, if not given")
    parser.add_argument("--redis", action="store_true", help="copy at a real Redis")
    parser.add_argument("--drive", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=json.loads, help=argparse.SUPPRESS)
    words = parser.parse_args(arguments)
    if words.drive:
        drive(words.drive)
        return 0
    if words.write:
        write_batches(words.write)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that what was started is stopped too
    results: list[Result] = []
    single = [kind for kind in KINDS if kind in words.only and kind not in (FAILOVER, SLOTS)]
    for kinds in (single, *([kind] for kind in (FAILOVER, SLOTS) if kind in words.only)):
        if not kinds:
            continue
        with deployed(kinds[0], words.redis) as deployment:
            fill(deployment, words.entries)
            for seed in words.seeds:
                for delivery in words.delivery:
                    for kind in kinds:
                        if (kind, delivery) != (TASK, PARQUET):  # it stands for a task of our own sink
                            results.append(one_run(words, deployment, kind, delivery, seed))
    return judged(results, words.least_kills)


@contextlib.contextmanager
def deployed(kind: str, is_redis: bool) -> Iterator[Deployment]:
    """What is disturbed in the runs of a kind: Penstock, or Redis; a cluster is of Redis always."""
    with tempfile.TemporaryDirectory(prefix="chaos-log-", ignore_cleanup_errors=True) as log:
        if kind == FAILOVER:
            with failing_over(Path(log), is_redis) as found:
                yield found
        elif kind == SLOTS:
            with moving(Path(log)) as found:
                yield found
        else:
            start = reference_server() if is_redis else running_server("--appendonly", "no", dir=log)
            with start as server:
                port = server if isinstance(server, int) else server.port
                yield Deployment(f"{LOCALHOST}:{port}", redis.Redis(LOCALHOST, port, socket_timeout=300))


def judged(results: Sequence[Result], least_kills: int) -> int:
    """The exit code, after a line about all runs: how many kills of which processes, and whether each run is right."""
    kills = Counter[str]()
    for result in results:
        kills[result.kind] += result.kills
    told = ", ".join(f"{count} {kind}s" for kind, count in kills.items())
    faulty = sum(bool(result.faults()) for result in results)
    enough = kills.total() >= least_kills
    verdict = (
        f"{faulty} RUNS FAILED" if faulty else "every row once" if enough else f"TOO FEW: {least_kills} are needed"
    )
    say(f"{len(results)} runs, {kills.total()} kills ({told}): {verdict}")
    return 0 if enough and not faulty else 1


if __name__ == "__main__":
    sys.exit(main())
