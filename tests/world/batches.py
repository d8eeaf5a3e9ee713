"""A query of the pipeline under a small model of Spark's micro-batches, and the judge of its rows: each once.

Planning, tasks, ledger and commits are the connector's own, without a JVM; they run in fibers. A checkpoint is the
offsets that were planned and the number of batches that were committed. Tasks die amid their rows, and drivers between
any two steps: the next one goes on by the checkpoint.
"""

import asyncio
import re
from collections import Counter as Counts
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import SinkOptions, read_sink
from penstock.pipeline.connector.sink.sink_writer import Written, commit_batch, write_task
from penstock.pipeline.errors import DataLoss, PipelineError
from tests.pipeline.driving import Query
from tests.world.actors import OK, REFUSED, Actor, Write
from tests.world.client import Client
from tests.world.fibers import Fiber, connector_in, current
from tests.world.memory import used_bytes
from tests.world.process import Machine

if TYPE_CHECKING:
    from tests.world.world import World

FEED: Final = b"feed"
ROWS: Final = "_id string, n bigint"
DRAIN_S: Final = 60.0
IS_TOLD: Final = "(marker '"  # of an error that names the marker which has other rows
TOLD: Final = re.compile(r"(\d+)(?: of \d+)? entries|at most (\d+)")  # in a warning of missing entries
UNKNOWN: Final = "not known how many"
DEADLY_PAGES: Final = (0, 0, 1, 5, 30)  # after which a task dies
DEADLY_WAITS: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 25)  # for replies, after which a task dies
LATEST: Final = 5  # entries of which one is deleted beside a trim
SHOWN: Final = 5


class TaskDies(Exception):
    """The process of a task, or the driver, ends."""


class RowFeeder(Actor):
    """Adds rows with numbers; at times the stream is trimmed, and an entry deleted that could hide the trim."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        self.added: list[Write] = []
        self.trimmed_s: list[float] = []
        self._trims = self.chance.random() < 0.3

    async def step(self) -> None:
        if self._trims and self.chance.random() < 0.02:
            await self._trim()
        writes = [self.begin(b"%d" % self._next(at), []) for at in range(self.chance.choice((1, 3, 20)))]
        self.added += writes
        await self.all_of([(b"XADD", FEED, b"*", b"n", write.name) for write in writes], writes)

    async def _trim(self) -> None:
        self.trimmed_s.append(self.world.loop.time())
        requests: list[tuple[bytes, ...]] = [(b"XTRIM", FEED, b"MAXLEN", b"%d" % self.chance.choice((0, 5, 50)))]
        known = [write.reply for write in self.added[-LATEST:] if write.outcome == OK]
        if known and self.chance.random() < 0.5:
            requests.insert(0, (b"XDEL", FEED, self.chance.choice(known)))
        replies = await self.all_of(requests, [None] * len(requests))
        self.world.story.tell(self.name, f"{requests}: {replies}")

    def _next(self, at: int) -> int:
        return self.number * 1_000_000 + len(self.added) + at


class BatchQuery(Actor):
    """Reads the rows and writes them into a stream of its own, batch after batch. told: entries reported as missing."""

    def __init__(self, world: "World", machine: Machine, number: int) -> None:
        super().__init__(world, machine, number)
        machine.reading = used_bytes  # the ledger asks INFO memory: the system says another number each time
        chance = self.chance
        self.sink = f"rows:{number}"
        self.told = 0
        self.warned: list[str] = []
        self.problem = ""  # with which it ended the last time
        self._options = {
            "stream": FEED.decode(), "startingId": "earliest", "failOnDataLoss": "false", "retryTimeout": "3s",
            "fetchSize": chance.choice(("1", "5", "100")), "minPartitions": chance.choice(("1", "2", "3")),
        }  # fmt: skip
        if chance.random() < 0.5:
            self._options["maxEntriesPerTrigger"] = chance.choice(("5", "50"))
        if chance.random() < 0.3:
            # Queries that share a group share its entries: each has one of its own, and each row.
            self._options |= {"group": f"g{number}", "groupMode": "shared", "consumer": f"spark{number}"}
        self.began_s = float("inf")  # when its first batch was planned: what was trimmed before is not its loss
        self._query: Query | None = None
        self._committed = 0

    async def step(self) -> None:
        await self.attempt()

    async def read_freely(self) -> None:
        """A new driver reads what is left, with pages and batches as large as they come."""
        await self._blocking(self._restart)
        options = self._options if self._query is None else self._query.options
        options["fetchSize"] = "1000"
        options.pop("maxEntriesPerTrigger", None)

    async def attempt(self) -> bool:
        """One micro-batch, from where the checkpoint is; whether there is more to do."""
        try:
            goes_on: bool = await self._blocking(self._trigger)
        except (TaskDies, PipelineError) as problem:
            self.problem = f"{type(problem).__name__} {problem}"
            self.world.story.tell(self.name, f"ends at batch {self._committed}: {self.problem}")
            if isinstance(problem, DataLoss):
                self.warned.append(str(problem))
            await self._blocking(self._restart)
            return True
        return goes_on

    async def _blocking(self, work: Callable[[], Any]) -> Any:
        fiber = Fiber(work)
        try:
            return await fiber.run()
        finally:
            self.warned += [text for text in fiber.warned if "these are not there" not in text]

    def _restart(self) -> None:
        """A new driver, with the same checkpoint."""
        if self._query is not None and self._query.reader is not None:
            self._note(self._query)
            self._query.stop()
            self._query.reader = None

    def _note(self, query: Query) -> None:
        missing = query.reader.missing()["entriesMissingByCause"]
        self.told = max(self.told, sum(missing.values()))

    def _trigger(self) -> bool:
        if self._query is None:
            self._query = Query(ROWS, **self._options)
        query = self._query
        if query.reader is None:
            query.start_driver()
        if self._committed == len(query.log) - 1 and query.plan() is None:
            return False
        self.began_s = min(self.began_s, self.world.loop.time())
        self._maybe_die("after planning")
        number, sink = self._committed, {"stream": self.sink, "pipeline": "3", "retryTimeout": "3s"}
        found = read_sink(sink | {"failOnDataLoss": "false", "markerBatches": "4"}, False)
        messages = []
        for partition, task in enumerate(query.tasks()):
            while True:
                try:
                    name = Task(f"q{self.number}", number, partition, follows=True)
                    messages.append(self._written(found, name, self._pages(task)))
                    break
                except TaskDies:
                    self.world.story.tell(self.name, f"task {partition} of batch {number} is run again")
        commit_batch(found, messages, number)
        self._maybe_die("before Spark's commit")
        self._committed += 1
        self._note(query)
        self.world.story.tell(self.name, f"batch {number} is committed: {len(messages)} tasks")
        return True

    def _written(self, found: SinkOptions, name: Task, pages: Generator[Any, None, None]) -> Written:
        return write_task(found, name, pages)

    def _pages(self, task: Any) -> Generator[Any, None, None]:
        assert self._query is not None, "it has planned the task"
        dies_at = self.chance.choice(DEADLY_PAGES) if self._fails(0.2) else -1
        with closing(self._query.reader.read(task)) as found:
            for at, page in enumerate(found):
                yield pa.record_batch({"n": page.column("n")})
                if at == dies_at:
                    raise TaskDies

    def _maybe_die(self, where: str) -> None:
        if self._fails(0.05):
            raise TaskDies(where)

    def _fails(self, likelihood: float) -> bool:
        return self.world.is_loaded and self.chance.random() < likelihood


class FragileQuery(BatchQuery):
    """Its tasks die amid their requests: what they have sent is written or not, and a page is written in part."""

    def _written(self, found: SinkOptions, name: Task, pages: Generator[Any, None, None]) -> Written:
        fiber = current()
        if self._fails(0.3):
            fiber.waits_left, fiber.death = self.chance.choice(DEADLY_WAITS), TaskDies
        try:
            return super()._written(found, name, pages)
        finally:
            fiber.waits_left = float("inf")


def within(world: "World") -> AbstractContextManager[None]:
    """The connector's sockets and clocks are this world's."""
    return connector_in(world.network, world.machine)


async def judge(world: "World", client: Client) -> list[str]:
    objections: list[str] = []
    writes = {write.name: write for actor in world.actors if isinstance(actor, RowFeeder) for write in actor.added}
    trims = [at_s for actor in world.actors if isinstance(actor, RowFeeder) for at_s in actor.trimmed_s]
    for actor in world.actors:
        if isinstance(actor, BatchQuery):
            objections += await _judge_of(world, client, actor, writes, trims)
    return objections[:SHOWN]


async def _judge_of(
    world: "World", client: Client, query: BatchQuery, writes: dict[bytes, Write], trims: list[float]
) -> list[str]:
    """Let the query read what is left, then compare its rows with what was added."""
    await query.read_freely()
    until_s = world.loop.time() + DRAIN_S
    while await query.attempt():
        if world.loop.time() > until_s:
            # A batch was to be run again, and its entries are trimmed.
            is_told = bool(trims) and IS_TOLD in query.problem
            is_excused = is_told or world.keeping().may_forget
            return [] if is_excused else [f"{query.name} does not come to an end: {query.problem}"]
        await asyncio.sleep(0.1)
    rows = Counts(fields[1] for _, fields in await client.ask(b"XRANGE", query.sink.encode(), b"-", b"+"))
    if world.keeping().may_forget:
        return []  # the server may have gone back behind what the checkpoint has
    objections = [f"row {name.decode()} is there {count} times" for name, count in rows.items() if count > 1]
    objections += [f"row {name.decode()} was refused, and is there" for name in rows if _is_refused(writes.get(name))]
    ahead_s = query.began_s if trims and min(trims) < query.began_s else 0.0
    missing = [
        name for name, write in writes.items() if write.outcome == OK and write.sent_s >= ahead_s and name not in rows
    ]
    if missing and not (trims and len(missing) <= max(query.told, _told_in(query.warned))):
        objections.append(f"{query.name}: {len(missing)} rows are missing ({missing[:3]}), told of {query.told}")
    if not (trims or world.keeping().may_have_shown) and (query.told or query.warned):
        objections.append(f"{query.name} tells of a loss, and nothing was taken: {query.told} {query.warned[:1]}")
    return objections


def _told_in(warnings: list[str]) -> float:
    """How many missing entries warnings tell of: a crash takes the metrics of a task, which warns, too."""
    if any(UNKNOWN in text for text in warnings):
        return float("inf")
    return sum(int(one or other) for text in warnings for one, other in TOLD.findall(text))


def _is_refused(write: Write | None) -> bool:
    return write is None or write.outcome == REFUSED
