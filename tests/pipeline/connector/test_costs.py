"""The round trips of each step of reading and writing are those of the table of costs in docs/pipeline.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import commit_batch, write_task
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.driving import Query

PAGE = Path(__file__).parents[3] / "docs" / "pipeline.md"
ROW = re.compile(r"^\| (an? [^|]+) \| (\d+) \|", re.MULTILINE)
STREAMS = ("a", "b", "c")
SHARED = {"group": "g", "groupMode": "shared", "consumer": "spark"}


class Counting(Server):
    """Counts round trips, of which a request that waits for entries before they come is none."""

    def __init__(self) -> None:
        super().__init__()
        self.trips = 0

    def answer(self, payload: bytes) -> bytes:
        self.trips += 1
        return super().answer(payload)

    def since(self) -> int:
        found, self.trips = self.trips, 0
        return found

    def add(self, entries: int) -> None:
        for stream in STREAMS:
            for number in range(entries):
                self.ask("XADD", stream, "*", "n", number)


@pytest.fixture
def server() -> Iterator[Counting]:
    server = Counting()
    server.add(1)
    with reached(server):
        yield server


def planned(server: Counting, **options: str) -> tuple[int, int]:
    """The round trips of a batch's plan, and of the look of the idle query after it."""
    query = Query(stream=",".join(STREAMS), startingId="earliest", **options)
    query.run_to_end()
    query.reader._idle = False  # it does not wait
    server.add(20)
    server.since()
    query.plan()
    plan = server.since()
    query.run_to_end()
    server.since()
    query.plan()
    return plan, server.since()


def written(server: Counting, delivery: str) -> tuple[int, int]:
    """The round trips of a task of 5,000 rows in a query's second batch, and of the batch's commit."""
    options = read_sink({"stream": "out", "delivery": delivery}, False)
    for batch in range(2):
        server.since()
        rows = pa.record_batch({"n": list(range(5_000 * batch, 5_000 * (batch + 1)))})
        done = write_task(options, Task(delivery, batch, 0, follows=True), [rows])
        task = server.since()
        commit_batch(options, [done], batch)
    return task, server.since()


def test_the_table_of_costs_says_what_is_counted(server: Counting) -> None:
    plan, idle = planned(server)
    exactly_once, commit = written(server, "exactly-once")

    assert {step: int(trips) for step, trips in ROW.findall(PAGE.read_text())} == {
        "a batch is planned": plan,
        "a limited batch is planned": planned(server, maxEntriesPerTrigger="30")[0],
        "an idle query looks": idle,
        "a shared batch is planned": planned(server, **SHARED)[0],
        "a shared batch is planned with claimMinIdle": planned(server, **SHARED | {"group": "h", "claimMinIdle": "1h"})[
            0
        ],
        "a task writes 5,000 rows, exactly once": exactly_once,
        "a task writes 5,000 rows, at least once": written(server, "at-least-once")[0],
        "a task writes 5,000 rows, IDMP": written(server, "idmp")[0],
        "a batch is committed, exactly once": commit,
    }
