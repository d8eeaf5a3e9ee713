"""The judge of producers, workers and a server, on journals and logs in which something went wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from penstock.pipeline import jobs
from penstock.pipeline.schemas import AOF

CLEAN_PRODUCER = ["sent 1-0 0", "lost ConnectionError", "found 2-0 1", "sent 3-0 2"]
CLEAN_WORKER = ["processed 1-0 0 1 new 10", "processed 2-0 1 1 new 10", "acked 1-0 20", "acked 2-0 20"]
RESCUER = ["processed 3-0 2 2 claim 30", "acked 3-0 40"]
CLEAN_LOG = [
    *[f"XADD s {number + 1}-0 serial {number}" for number in range(3)],
    "XCLAIM s g w 0 1-0 2-0 3-0 TIME 1000 RETRYCOUNT 1 FORCE JUSTID LASTID 3-0",
    "XNACK s g FAIL IDS 1 3-0 RETRYCOUNT 1 FORCE",
    "XCLAIM s g r 0 3-0 TIME 2000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0",
    "XACK s g 1-0 2-0",
    "XACK s g 3-0",
]


@pytest.fixture
def verdict(spark: Any, tmp_path: Path) -> Callable[..., dict[str, int]]:
    """What is not zero and should be, or is told and not judged, of journals and a log's lines."""

    def judged(producer: list[str], worker: list[str], lines: list[str], torn: str = "") -> dict[str, int]:
        written = {"producer": producer, "worker": worker, "rescuer": RESCUER}
        for name, said in written.items():
            (tmp_path / f"{name}.journal").write_text("".join(line + "\n" for line in said) + torn)
        rows = [
            ("log", 1, at, None, 0, words[0], words[1].encode(), [word.encode() for word in words[1:]], False)
            for at, words in enumerate(line.split() for line in lines)
        ]
        log = spark.createDataFrame(rows, AOF)
        found = jobs.audit(log, jobs.journals(spark, str(tmp_path)), "s", "g").collect()
        return {row.check: row.entries for row in found if row.entries and row.must_be_zero}

    return judged


def test_a_run_in_which_nothing_went_wrong(verdict: Any) -> None:
    assert verdict(CLEAN_PRODUCER, CLEAN_WORKER, CLEAN_LOG, torn="processed 9-0 9 1 new 1") == {}


def test_an_entry_that_the_log_does_not_have_is_lost(verdict: Any) -> None:
    assert verdict([*CLEAN_PRODUCER, "sent 4-0 3"], CLEAN_WORKER, CLEAN_LOG) == {
        "lost: a producer was told, the log has none": 1
    }


def test_work_that_was_done_twice_without_a_redelivery_and_work_that_was_not_done(verdict: Any) -> None:
    worker = ["processed 1-0 0 1 new 10", "processed 1-0 0 1 new 11", "acked 1-0 20"]

    assert verdict(CLEAN_PRODUCER, worker, CLEAN_LOG) == {
        "lost: not pending, and never processed": 1,
        "processed twice without a redelivery": 1,
        "acknowledged and never processed": 1,
    }


def test_entries_sent_twice_and_out_of_order(verdict: Any) -> None:
    producer = ["sent 2-0 1", "sent 1-0 0", "sent 3-0 2"]

    assert verdict(producer, CLEAN_WORKER, [*CLEAN_LOG, "XADD s 4-0 serial 2", "XADD s 5-0 serial 3"]) == {
        "out of order: a producer's later entry has a lower id": 1,
        "lost: not pending, and never processed": 2,
        "sent twice": 1,
    }


def test_an_acknowledged_entry_that_came_back(verdict: Any) -> None:
    worker = [*CLEAN_WORKER, "processed 2-0 1 2 claim 21"]
    again = "XCLAIM s g r 0 2-0 TIME 3000 RETRYCOUNT 2 FORCE JUSTID LASTID 3-0"

    assert verdict(CLEAN_PRODUCER, worker, [*CLEAN_LOG, again]) == {
        "delivered after its acknowledgement, by the log": 1,
        "delivered after its acknowledgement, by the journals": 1,
        "left pending": 1,
    }
