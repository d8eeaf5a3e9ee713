"""Ctrl-C: what a terminal does with SIGINT to `penstock pipeline`."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from penstock.pipeline.interrupt import INTERRUPTED, SENTENCE, Interrupt
from penstock.pipeline.session import missing

PATIENCE_S = 600  # for a busy machine to start Spark; nothing that goes well waits for it
FILE = """
[pipeline]
name = "p"
folder = "out"
trigger = "1 second"
[ingest]
from = "streams"
[ingest.options]
endpoints = "$ENDPOINT"
stream = "s"
startingId = "earliest"
[validate.columns]
n = "bigint not null"
[enrich.columns]
slept = "CASE WHEN n = 2 THEN reflect('java.lang.Thread', 'sleep', 600000L) END"
"""


class FakeSpark:
    """Says what was asked of it; `cancelAllJobs` ends the job that the main thread waits for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled = threading.Event()
        self.sparkContext = self.streams = self
        self.active: list[Any] = []

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        self.asked.append(level)

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        self.asked.append("cancel")
        self.cancelled.set()


def test_a_job_is_cancelled_and_what_it_then_raises_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt, spark = Interrupt(), FakeSpark()

    with interrupt.handled():
        assert interrupt.watch(spark)
        signal.raise_signal(signal.SIGINT)
        spark.cancelled.wait(PATIENCE_S)
        raise RuntimeError("the job was cancelled")

    assert interrupt.is_requested and spark.asked == ["OFF", "cancel"]
    assert capsys.readouterr().err == SENTENCE + "\n"
    assert signal.getsignal(signal.SIGINT) is before
    assert logging.getLogger("py4j").isEnabledFor(logging.ERROR)


def test_a_signal_while_spark_starts_is_seen_once_it_has_started() -> None:
    interrupt = Interrupt()

    with interrupt.handled():
        signal.raise_signal(signal.SIGINT)
        assert not interrupt.watch(FakeSpark())


def test_without_a_signal_nothing_is_dropped() -> None:
    with pytest.raises(RuntimeError, match="a mistake"), Interrupt().handled():
        raise RuntimeError("a mistake")


@pytest.fixture
def running(server: redis.Redis, endpoint: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`penstock pipeline run` in a process group of its own, amid its second batch, which takes ten minutes."""
    lack = missing()
    if lack is not None:
        pytest.skip(lack)
    server.xadd("s", {"n": 1})
    (tmp_path / "p.toml").write_text(FILE)
    environment = os.environ | {"ENDPOINT": endpoint, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "penstock", "pipeline", "run", "p.toml", "--master", "local[2]"]
    command += ["--conf", "spark.sql.shuffle.partitions=1"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=said, stderr=said, start_new_session=True, text=True
        )
    try:
        give_up_s = time.monotonic() + PATIENCE_S
        for place in ("out/clean/batch=00000000", "out/*/rows/offsets/1"):
            while not list(tmp_path.glob(place)):
                assert process.poll() is None and time.monotonic() < give_up_s, (tmp_path / "said").read_text()
                time.sleep(0.1)
            server.xadd("s", {"n": 2})
        time.sleep(1)  # from the batch's offsets to its first task; a signal before that is answered as well
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_a_pipeline_that_runs_ends_with_one_line_and_130(running: subprocess.Popen[str], tmp_path: Path) -> None:
    os.killpg(running.pid, signal.SIGINT)  # what a terminal does: Java and its Python processes get it too

    assert running.wait(PATIENCE_S) == INTERRUPTED
    said = (tmp_path / "said").read_text()
    assert said.count(SENTENCE) == 1
    assert "Traceback" not in said and "Exception" not in said and "ERROR" not in said
    assert said.endswith(SENTENCE + "\n") or said.rstrip().endswith("even")  # a batch's table may still have come
