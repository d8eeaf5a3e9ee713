"""The flights of 2013 through one group that Spark shares with two ordinary workers.

One worker gives cancelled flights back, the other is killed on the way and does not come back: Spark takes over what
they leave. What Spark has read becomes delays for each carrier and hour, in Parquet and in a second stream
(flights_pipeline.toml says how). Then the server's log is read as a table: how long it took until a flight was
delivered again, as a chart; and all journals are joined with it. The exit code is 1 unless every flight
was processed, none without need twice, nothing is left pending and the pipeline's table of rows balances.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import redis
from pyspark.errors import PySparkException
from tqdm import tqdm

from examples.audit.audit_spark import audit, is_clean
from examples.audit.journals import journals as read_journals
from examples.flights.data import ALL_FLIGHTS, archive
from examples.flights.server import Server, penstock
from examples.flights.wire import GROUP, STREAM, connect
from penstock.pipeline import session
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.runner import balance, pipeline_file
from penstock.pipeline.runner.runner import Runner

DESCRIPTION: Final = Path(__file__).with_suffix(".toml")
PRODUCERS: Final = ("producer-1", "producer-2")
WORKERS: Final = {"worker": "plain", "refuser": "refuser"}
VICTIM: Final = "worker"
KILL_AT: Final = 0.5
TRIGGER: Final = "1 second"
LOOK_S: Final = 1.0
STALL_S: Final = 300
SPARKS_OWN: Final = "spark"


class Play:
    """Server, producers, workers and the pipeline, in one folder."""

    def __init__(self, spark: Any, flights: int, directory: Path, quiet: bool) -> None:
        self._spark = spark
        self._flights = flights
        self._directory = directory
        self._server = Server([*penstock(), "--aof-timestamp-enabled", "yes"], directory)
        self._client = connect(self._server.port, "director")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._bar = tqdm(total=flights, unit=" flights", unit_scale=True, disable=quiet)
        os.environ["FLIGHTS_FOLDER"] = str(directory / "pipeline")
        os.environ["FLIGHTS_TRIGGER"] = TRIGGER
        os.environ["FLIGHTS_ENDPOINT"] = f"127.0.0.1:{self._server.port}"
        os.environ["FLIGHTS_AIRLINES"] = str(archive().with_name("airlines.csv"))

    def run(self) -> list[balance.Stage]:
        """The pipeline's table of rows, when the group has nothing left to do."""
        self._server.start()
        try:
            self._client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
            runner = Runner(self._spark, pipeline_file.read(DESCRIPTION), lambda _: None)
            runner.start(TRIGGER)
            for name, character in WORKERS.items():
                self._start("worker", name, "--character", character)
            for share, name in enumerate(PRODUCERS):
                self._start("producer", name, *self._share(share))
            self._until_drained(runner)
            runner.stop()
            for process in self._processes.values():  # a victim that never held anything is among them
                process.terminate()
                process.wait(30)
            return runner.run()  # what the last batches have left to publish
        finally:
            self._bar.close()
            for process in self._processes.values():
                process.kill()
                process.wait()
            self._server.stop()

    def _until_drained(self, runner: Runner) -> None:
        done, changed_s = 0, time.monotonic()
        while True:
            runner.wait(LOOK_S)
            now = self._done()
            self._bar.update(now - done)
            if now != done:
                done, changed_s = now, time.monotonic()
            if time.monotonic() > changed_s + STALL_S:
                raise RuntimeError(f"nothing has happened for {STALL_S} seconds")
            for name, process in self._processes.items():
                if process.poll() and name != VICTIM:
                    raise RuntimeError(f"{name} ended with exit code {process.returncode}; see {name}.log")
            if done > KILL_AT * self._flights and self._processes[VICTIM].poll() is None:
                self._kill_if_it_holds_something(done)
            if done == self._flights and all(self._processes[name].poll() == 0 for name in PRODUCERS):
                return

    def _kill_if_it_holds_something(self, done: int) -> None:
        """The worker is held still for a look, so that the moment does not pass."""
        victim = self._processes[VICTIM]
        victim.send_signal(signal.SIGSTOP)
        held = self._client.xpending_range(STREAM, GROUP, min="-", max="+", count=1_000, consumername=VICTIM)
        if held:
            victim.kill()
            victim.wait()
            self._bar.write(f"{done:>9,}  {VICTIM} killed with {len(held)} flights in hand", file=sys.stderr)
        else:
            victim.send_signal(signal.SIGCONT)

    def _done(self) -> int:
        """Flights that were read and acknowledged."""
        (group,) = self._client.xinfo_groups(STREAM)
        return int(group["entries-read"] or 0) - int(group["pending"])

    def _share(self, share: int) -> list[str]:
        return ["--flights", str(self._flights), "--of", str(len(PRODUCERS)), "--share", str(share)]

    def _start(self, module: str, name: str, *words: str) -> None:
        command = [sys.executable, "-m", f"examples.flights.{module}", "--port", str(self._server.port)]
        command += ["--name", name, "--journal", str(self._directory / f"{name}.journal"), *words]
        with (self._directory / f"{name}.log").open("ab") as said:
            self._processes[name] = subprocess.Popen(command, stdout=said, stderr=said)


def journals(spark: Any, directory: Path, deliveries: Any) -> Any:
    """All journals: Spark's own is its table of clean rows, with the count of the delivery that brought each."""
    from pyspark.sql import functions as f

    folder = str(directory / "pipeline")
    rows = [
        spark.read.option("recursiveFileLookup", "true").parquet(f"{folder}/{name}").select("_id")
        for name in ("clean", "quarantine")
    ]
    count = deliveries.where(f.col("consumer") == SPARKS_OWN).groupBy("id").agg(f.max("deliveries").alias("deliveries"))
    own = rows[0].union(rows[1]).withColumnRenamed("_id", "id").join(count, "id", "left")
    columns = {
        name: f.lit(None).cast(kind) for name, kind in (("line", "bigint"), ("serial", "string"), ("at_ns", "bigint"))
    }
    own = own.withColumns(columns).withColumns({"actor": f.lit(SPARKS_OWN), "verb": f.lit("processed")})
    return read_journals(spark, str(directory)).unionByName(own)


def judge(spark: Any, directory: Path) -> bool:
    """Draw the chart, print the verdict; whether it is clean."""
    from pyspark.sql import functions as f

    from penstock.pipeline.jobs import jobs
    from penstock.pipeline.jobs.plot import chart

    log = jobs.log(spark, str(directory)).persist()
    latency = jobs.redelivery_latency(log).where(f"stream = '{STREAM}'").persist()
    print("\nflights that were delivered again, and after how many milliseconds:")
    latency.groupBy("cause", "consumer").agg(
        f.count("*").alias("flights"),
        f.median("latency_ms").alias("median_ms"),
        f.max("latency_ms").alias("longest_ms"),
    ).orderBy("cause", "consumer").show()
    chart(
        latency,
        ("latency_ms",),
        "cause",
        "from one delivery of a flight to the next",
        str(directory / "redelivery.png"),
    )
    verdict = audit(log, journals(spark, directory, jobs.deliveries(log)), STREAM, GROUP)
    verdict.show(50, truncate=False)
    return is_clean(verdict)


def main() -> int:
    parser = argparse.ArgumentParser(prog="flights_pipeline", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flights", type=int, default=ALL_FLIGHTS, help="how many, from the first day on")
    parser.add_argument(
        "--keep", type=Path, default=Path("flights-spark"), help="log, journals and tables (flights-spark)"
    )
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    chosen = parser.parse_args()
    if chosen.keep.exists() and any(chosen.keep.iterdir()):
        print(
            f"flights_pipeline: {chosen.keep} holds an earlier run: remove it, or name another with --keep",
            file=sys.stderr,
        )
        return 1
    chosen.keep.mkdir(parents=True, exist_ok=True)
    directory = chosen.keep.resolve()
    try:
        spark = session.session(
            chosen.master,
            "flights",
            spark__driver__memory="1g",
            spark__ui__enabled="false",
            spark__ui__showConsoleProgress="false",
            spark__driver__host="127.0.0.1",
            spark__driver__bindAddress="127.0.0.1",
            spark__sql__session__timeZone="UTC",
            spark__sql__shuffle__partitions="2",
        )
        spark.sparkContext.setLogLevel("ERROR")
        began_s = time.monotonic()
        stages = Play(spark, chosen.flights, directory, chosen.quiet).run()
        print(balance.table("the pipeline's rows", stages))
        print(f"{time.monotonic() - began_s:,.1f} s for {chosen.flights:,} flights")
        clean = judge(spark, directory)
        spark.stop()
    except (OSError, RuntimeError, PipelineError, PySparkException, redis.RedisError) as reason:
        print(f"flights_pipeline: {reason}\nwhat there is of logs and journals: {directory}", file=sys.stderr)
        return 1
    print(f"delays by carrier and hour: {directory / 'pipeline' / 'published'}\nchart: {directory / 'redelivery.png'}")
    return 0 if clean and all(stage.balances for stage in stages) else 1


if __name__ == "__main__":
    sys.exit(main())
