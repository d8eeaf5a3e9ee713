"""Random histories of a query that writes exactly once, and of the server it writes to, with a naive model.

Tasks and the driver's commit are the connector's own, without Spark; the server is an engine in this process. A
checkpoint is a list of planned batches and the number of those that were committed. The server may go back to what it
was at any step before, whole, as after a crash or a failover; the checkpoint may be replaced by an older copy.
"""

import random
import warnings
from collections import Counter
from typing import Any

import pyarrow as pa

from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import commit_batch, write_task
from penstock.pipeline.errors import DataLoss, PipelineError
from tests.pipeline.connector.loss_history import Server, reached

RESTARTS = 6  # of a query that ends with an error


class TaskDies(Exception):
    """The process of a task ends amid its rows."""


class SinkHistory:
    """One seed's history; `rows` is what the stream has at the end, `committed` what the checkpoint says is written."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.server = Server()
        self.fails_on_loss = self.chance.random() < 0.5
        self.planned: list[list[list[int]]] = []  # batches, of partitions, of rows
        self.done = 0  # batches that are committed
        self.steps: list[str] = []
        self.went_back = self.was_restored = False
        self.losses: list[str] = []  # that were told of
        self.refusals: list[str] = []
        self._kept: dict[bytes, bytes] = {}
        self._checkpoint: tuple[list[list[list[int]]], int] = ([], 0)

    @property
    def committed(self) -> Counter[int]:
        return Counter(row for batch in self.planned[: self.done] for part in batch for row in part)

    @property
    def rows(self) -> Counter[int]:
        return Counter(int(fields[1]) for _, fields in self.server.ask("XRANGE", "s", "-", "+"))

    def run(self) -> "SinkHistory":
        with reached(self.server), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(self.chance.randint(2, 7)):
                self._disturb(0.3)
                if self.chance.random() < 0.08:
                    self._restore()
                self._try_batch()
            self.steps.append("last batch")
            for _ in range(RESTARTS):
                if self._try_batch(calm=True):
                    break
            self.losses += [str(one.message) for one in caught]
        return self

    def _try_batch(self, calm: bool = False) -> bool:
        """Whether a batch was written and committed; else the query ends, and is started again by the next call."""
        if self.done == len(self.planned):
            self._plan()
        try:
            self._batch(self.planned[self.done], calm)
        except TaskDies:
            return False
        except DataLoss as loss:
            self.losses.append(str(loss))
            return False
        except PipelineError as refusal:
            self.refusals.append(str(refusal))
            return False
        if not calm and self.chance.random() < 0.1:
            self.steps.append("driver dies before Spark's commit")
            return False
        self.done += 1
        return True

    def _plan(self) -> None:
        first = sum(len(part) for batch in self.planned for part in batch)
        rows = list(range(first, first + self.chance.randint(0, 9)))
        count = self.chance.randint(1, 3)
        self.planned.append([rows[at::count] for at in range(count)])

    def _batch(self, parts: list[list[int]], calm: bool) -> None:
        number = self.done
        self.steps.append(f"batch {number}: {parts}")
        options = {"stream": "s", "pipeline": "2", "failOnDataLoss": str(self.fails_on_loss)}
        found = read_sink(options | {"markerBatches": "4"}, False)
        messages: list[Any] = []
        for partition, rows in enumerate(parts):
            self._disturb(0 if calm else 0.1)
            self.server.ask("UNWATCH")  # each task has a connection of its own
            pages = self._pages(rows, calm)
            messages.append(write_task(found, Task("q", number, partition, follows=True), pages))
        self._disturb(0 if calm else 0.1)
        self.server.ask("UNWATCH")
        commit_batch(found, messages, number)

    def _pages(self, rows: list[int], calm: bool) -> Any:
        for at in range(0, len(rows), 3):
            yield pa.record_batch({"n": rows[at : at + 3]})
            if not calm and self.chance.random() < 0.05:
                self.steps.append("task dies")
                raise TaskDies
            self._disturb(0 if calm else 0.05)

    # -- what happens -------------------------------------------------------------------------------------------------

    def _disturb(self, chance: float) -> None:
        if self.chance.random() >= chance:
            return
        act = self.chance.choice([self._keep, self._keep, self._go_back, self._back_up])
        self.steps.append(act.__name__)
        act()

    def _keep(self) -> None:
        self._kept = {key: self.server.ask("DUMP", key) for key in self.server.ask("KEYS", "*")}

    def _go_back(self) -> None:
        self.went_back = True
        self.server.ask("FLUSHALL")
        for key, payload in self._kept.items():
            self.server.ask("RESTORE", key, 0, payload)

    def _back_up(self) -> None:
        self._checkpoint = list(self.planned), self.done

    def _restore(self) -> None:
        """The newest batch of the copy may be planned and not committed; what was planned later is planned anew."""
        self.steps.append("_restore")
        self.was_restored = True
        self.planned, self.done = list(self._checkpoint[0]), self._checkpoint[1]
