"""The sink: the writers that Spark calls, and what each task does with its rows."""

import contextlib
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Access, Client, Endpoint
from penstock.pipeline.connector.connection.cluster import ClusterClient, connect
from penstock.pipeline.connector.sink import (
    commits,
    dead_letters,
    idempotent_writes,
    ledger,
    pending_operations,
    placement,
    slots,
)
from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.partition_marks import PartitionMark
from penstock.pipeline.connector.sink.resp_columns import as_bytes
from penstock.pipeline.connector.sink.row_encoder import ENDPOINT, STREAM, Encoded, Encoder
from penstock.pipeline.connector.sink.sink_options import (
    ACK,
    ADD,
    AT_LEAST_ONCE,
    DEADLETTER,
    EXACTLY_ONCE,
    IDMP,
    MEMORY,
    NACK,
    NOMKSTREAM,
    SinkOptions,
    read_sink,
)
from penstock.pipeline.connector.worker import keep_modules
from penstock.pipeline.errors import OptionError, PipelineError, ShortErrors

QUERY_PROPERTY: Final = "sql.streaming.queryId"  # local properties of a task: not in Spark's documentation
BATCH_PROPERTY: Final = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """The result of one task. `skipped` counts rows that an earlier try had written, `dropped` those of NOMKSTREAM.

    `marks` has the task's marks in the ledger, by endpoint and tag, and `newest` the last committed batch that it saw
    there; `runs` are the run ids of the servers, if nothing else identifies the server that was written to.
    """

    query: str
    rows: int
    skipped: int = 0
    partition: int = 0
    placement: str = placement.RENDEZVOUS
    marks: Mapping[str, Mapping[str, ledger.Written]] = field(default_factory=dict)
    newest: Mapping[str, commits.Newest] = field(default_factory=dict)
    runs: Mapping[str, bytes] = field(default_factory=dict)
    dropped: int = 0


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "BatchWriter":
    """The writer of one job. OptionError for options or a schema that cannot be written."""
    found = read_sink(options, overwrite)
    check_schema(found, schema)
    return BatchWriter(found)


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> "StreamWriter":
    """The writer of a streaming query. OptionError as above."""
    found = read_sink(options, overwrite)
    check_schema(found, schema)
    return StreamWriter(found)


def check_schema(options: SinkOptions, schema: StructType) -> None:
    """OptionError for columns that are missing, or that have no text."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    if options.operation == ADD:
        Encoder(options, arrow.names, arrow.types)
    else:
        pending_operations.Columns(options, arrow.names)
    if ENDPOINT in arrow.names and not pa.types.is_string(arrow.field(ENDPOINT).type):
        raise OptionError("the column '_endpoint' is to be a string: the name of one of 'endpoints'")


class BatchWriter(ShortErrors, DataSourceArrowWriter):
    """The writer of a batch job. The job's name is made here once, and is the same in every try of every task.

    With `txnAppId` and `txnVersion` the job is a batch of that application: a job that is run again writes nothing.
    """

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.job, self.batch = f"job-{uuid.uuid4().hex}", 0
        if options.transaction is not None:
            application, self.batch = options.transaction
            self.job = f"txn-{application}/{options.stream or STREAM}"  # each stream has its versions, like a table

    def write(self, iterator: Iterator[Any]) -> Written:
        context = TaskContext.get()
        assert context is not None, "Spark calls this in a task"
        return write_task(self.options, Task(self.job, self.batch, context.partitionId()), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        warn_of_dropped(self.options, messages)
        keeps = self.options.transaction is not None
        if keeps or self.options.acks != MEMORY:
            commit_batch(self.options, messages, self.batch)
        if not keeps:
            self._forget(len(messages), self.options.servers.access)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """The markers go, if they can: what fails here would hide from the user why the job failed."""
        if self.options.transaction is None:
            with contextlib.suppress(PipelineError, ReplyError):
                self._forget(len(messages), replace(self.options.servers.access, retry_s=0.0))

    def _forget(self, partitions: int, access: Access) -> None:
        if uses_ledger(self.options) or self.options.acks != MEMORY:
            for endpoint in self.options.servers.endpoints:
                with connect(endpoint, access) as client:
                    if isinstance(client, ClusterClient):
                        slots.delete_markers(client, self.job, partitions)
                    else:
                        ledger.delete_markers(client, self.job, partitions)


class StreamWriter(ShortErrors, DataSourceStreamArrowWriter):
    """The writer of a streaming query. Its tasks learn the batch from Spark's task properties."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        return write_task(self.options, streaming_task(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        warn_of_dropped(self.options, messages)
        commit_batch(self.options, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Does nothing: when the batch is run again its tasks find the rows that were written."""


def warn_of_dropped(options: SinkOptions, messages: Iterable[WriterCommitMessage | None]) -> None:
    """Warn of rows that were not written because their streams do not exist (option nomkstream).

    A marker counts a task's rows with those that were dropped: of rows that are skipped, nothing tells which were.
    """
    tasks = [message for message in messages if isinstance(message, Written)]
    dropped, skipped = sum(one.dropped for one in tasks), sum(one.skipped for one in tasks)
    if dropped:
        warnings.warn(
            f"{dropped} of {sum(one.rows for one in tasks)} rows were not written: their streams are not there, and "
            "nomkstream makes none",
            stacklevel=2,
        )
    if skipped and NOMKSTREAM in options.before_id and uses_ledger(options):
        warnings.warn(
            f"earlier tries of tasks have dealt with {skipped} rows of the batch: how many of these were not written "
            "because their streams were not there (nomkstream) is not known",
            stacklevel=2,
        )


def commit_batch(options: SinkOptions, messages: Iterable[WriterCommitMessage | None], batch: int) -> None:
    """All tasks of a batch are done: note it at every server, and wait for what `acks` asks for."""
    tasks = [message for message in messages if isinstance(message, Written)]
    if not tasks:
        return
    query, names = tasks[0].query, tuple(options.servers.by_name())
    if depends_on_partitions(options):
        with connect(options.servers.endpoints[0], options.servers.access) as client:
            ledger.refuse_other_partitioning(client, query, batch, len(tasks))
    if not (uses_ledger(options) or options.acks != MEMORY):
        return
    for endpoint in options.servers.endpoints:
        with connect(endpoint, options.servers.access) as client:
            if uses_ledger(options):
                ledger.refuse_other_partitioning(client, query, batch, len(tasks))
                written = {one.partition: one.marks[endpoint.name] for one in tasks if endpoint.name in one.marks}
                marks = {partition: ledger.Written.of(parts) for partition, parts in written.items()}
                done = commits.Commit(batch, len(tasks), names, tasks[0].placement, marks)
                known = {one.newest.get(endpoint.name, ()) for one in tasks}
                commits.unbroken(partial(commits.commit, options, client, query, done, written, known))
            else:
                runs = {one.runs.get(endpoint.name) for one in tasks}
                commits.unbroken(partial(commits.confirm_run, options, client, query, runs))


def streaming_task() -> Task:
    """Which task of a streaming query this is; PipelineError if Spark does not say."""
    context = TaskContext.get()
    assert context is not None, "Spark calls this in a task"
    query, batch = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
    if not query or not batch:
        raise PipelineError(
            f"this Spark does not tell its tasks which batch they write (the properties {QUERY_PROPERTY} and "
            f"{BATCH_PROPERTY}), so nothing can be written exactly once: use delivery=at-least-once in foreachBatch"
        )
    return Task(query, int(batch), context.partitionId(), follows=True)


def uses_ledger(options: SinkOptions) -> bool:
    return options.operation == ADD and options.delivery == EXACTLY_ONCE and not options.own_ids


def depends_on_partitions(options: SinkOptions) -> bool:
    """Whether the keys of rows are those of their partition."""
    return options.operation == ADD and options.delivery == IDMP and options.idempotency_column is None


# -- in a task --------------------------------------------------------------------------------------------------------


def write_task(options: SinkOptions, task: Task, batches: Iterable[Any]) -> Written:
    """Write all rows of a task."""
    keep_modules()
    writers: dict[tuple[str, int | None], EndpointWriter | pending_operations.Operation] = {}
    clients = {one.name: connect(one, options.servers.access) for one in options.servers.endpoints}
    before = commits.Before(placement.RENDEZVOUS, {}, {})
    clusters: dict[str, slots.ClusterTask] = {}
    marks: dict[str, dict[str, ledger.Written]] = {}
    rows, runs = 0, {}
    partition_mark = None
    try:
        if depends_on_partitions(options) and task.follows:
            partition_mark = PartitionMark(next(iter(clients.values())), task, options.marker_age_ms)
        if uses_ledger(options):
            before = commits.look(options, clients, task)
        elif options.acks != MEMORY:
            runs = {name: commits.run_ids(client) for name, client in clients.items()}
        clusters.update(_cluster_tasks(options, task, before, clients))
        for batch in batches:
            rows += batch.num_rows
            for endpoint, part in routed(options, batch, before.placement):
                cluster = clusters.get(endpoint.name)
                parts = [(None, part)] if cluster is None else cluster.parts(part)
                for slot, some in parts:
                    place = endpoint.name, slot
                    if place not in writers:
                        client = clients[endpoint.name] if slot is None else clusters[endpoint.name].client.at(slot)
                        writers[place] = _endpoint_writer(options, task, client, batch.schema, before)
                    writers[place].put(some)
        for (name, _), writer in writers.items():
            writer.end()
            made = writer.ledger if isinstance(writer, EndpointWriter) else None
            if made is not None and made.done.rows:
                marks.setdefault(name, {})[made.tag] = made.done.written
        for cluster in clusters.values():
            cluster.end()
        if partition_mark is not None:
            partition_mark.end(rows, sum(one.sum for one in writers.values() if isinstance(one, EndpointWriter)))
        if uses_ledger(options):  # an earlier try may have written rows to an endpoint for which this one had none
            for name, client in clients.items():
                if name not in clusters and (name, None) not in writers:
                    before.ledger(options, client, task).end()
                before.refuse_other_rows(task, name, marks.get(name, {}))
    finally:
        for client in clients.values():
            client.close()
    skipped = sum(writer.skipped for writer in writers.values())
    dropped = sum(one.dropped for one in writers.values() if isinstance(one, EndpointWriter))
    return Written(task.query, rows, skipped, task.partition, before.placement, marks, before.newest, runs, dropped)


def _cluster_tasks(
    options: SinkOptions, task: Task, before: commits.Before, clients: Mapping[str, Client]
) -> dict[str, slots.ClusterTask]:
    """A task's work at the endpoints that are clusters; for a committed batch no slots are noted."""

    def ledger_of(client: Client) -> ledger.Ledger:
        return before.ledger(options, client, task)

    return {
        name: slots.ClusterTask(
            client, options, task, ledger_of if uses_ledger(options) and name not in before.batches else None
        )
        for name, client in clients.items()
        if isinstance(client, ClusterClient)
    }


def _endpoint_writer(
    options: SinkOptions, task: Task, client: Client, schema: Any, before: commits.Before
) -> "EndpointWriter | pending_operations.Operation":
    match options.operation:
        case operation if operation == ACK:
            return pending_operations.Ack(client, options, schema.names)
        case operation if operation == NACK:
            return pending_operations.Nack(client, options, schema.names)
        case operation if operation == DEADLETTER:
            return dead_letters.DeadLetters(client, options, schema.names)
        case _:
            return EndpointWriter(client, options, task, schema, before)


class EndpointWriter:
    """Writes a task's rows to one endpoint by XADD, with the delivery that the options name."""

    def __init__(self, client: Client, options: SinkOptions, task: Task, schema: Any, before: commits.Before) -> None:
        self._client = client
        self._options = options
        self._encoder = Encoder(options, schema.names, schema.types)
        self._known: set[bytes] = set()
        self._dropped = 0
        self.ledger: ledger.Ledger | None = None
        self._own_ids: idempotent_writes.OwnIds | None = None
        self._put: Callable[[Any, Encoded], None]
        if options.own_ids:
            self._own_ids = idempotent_writes.OwnIds(client, bool(options.trim))
            self._put = self._put_own_ids
        elif options.delivery == EXACTLY_ONCE:
            self.ledger = before.ledger(options, client, task)
            self._put = self._put_once
        elif options.delivery == AT_LEAST_ONCE:
            self._put = self._put_plain
        else:
            self._memory = idempotent_writes.IdmpSettings(client, NOMKSTREAM not in options.before_id)
            self._content_keys = idempotent_writes.ContentKeys(
                task.query.removeprefix("job-"), task.partition, task.batch
            )
            self._put = self._put_idempotent

    @property
    def skipped(self) -> int:
        found = self.ledger or self._own_ids
        return 0 if found is None else found.skipped

    @property
    def sum(self) -> int:
        """Of the rows, if their keys are made of them."""
        return self._content_keys.sum if depends_on_partitions(self._options) else 0

    @property
    def dropped(self) -> int:
        found = self.ledger or self._own_ids
        return self._dropped if found is None else found.dropped

    def put(self, batch: Any) -> None:
        """Write a batch's rows."""
        rows = self._encoder.encode(batch)
        self._put(batch, rows)

    def end(self) -> None:
        if self.ledger is not None:
            self.ledger.end()

    def _put_once(self, batch: Any, rows: Encoded) -> None:
        assert self.ledger is not None, "made with this delivery"
        new = [key for key in self._encoder.keys_of(rows) if key not in self._known]
        if self._client.shares:
            self._client.call("UNWATCH")  # what others watch: their next transaction watches it again
        if new or self._client.shares:
            self.ledger.refuse_other_types(new)
            self._known.update(new)
        self.ledger.write(rows, self._encoder.requests(rows), self._options.pipeline)

    def _put_own_ids(self, batch: Any, rows: Encoded) -> None:
        assert self._own_ids is not None, "made with this option"
        self._own_ids.write(self._encoder, rows, self._options.pipeline)

    def _put_plain(self, batch: Any, rows: Encoded) -> None:
        self._send(self._encoder.requests(rows), rows.count)

    def _put_idempotent(self, batch: Any, rows: Encoded) -> None:
        column = self._options.idempotency_column
        keys = self._encoder.keys_of(rows)
        self._memory.prepare(keys)
        for key in keys:
            self._memory.count(key, rows.count // len(keys))
        found = self._content_keys.of(rows) if column is None else idempotent_writes.ColumnKeys(column).of(batch)
        self._send(self._encoder.requests(rows, *found), rows.count)

    def _send(self, requests: Any, count: int) -> None:
        first = 0
        while first < count:
            behind = requests.step(first, self._options.pipeline)
            replies = self._client.exchange(bytes(requests.between(first, behind)), behind - first, retry=True)
            idempotent_writes.check_written(replies, requests, first)
            self._dropped += replies.count(None)
            first = behind


# -- several endpoints ------------------------------------------------------------------------------------------------


def routed(options: SinkOptions, batch: Any, placed: str) -> Iterator[tuple[Endpoint, Any]]:
    """The rows of a batch by endpoint: the column `_endpoint` names it, or the key's place, by placement.py."""
    endpoints = options.servers.endpoints
    all_names = tuple(options.servers.by_name())
    column = next((name for name in (ENDPOINT, "endpoint") if name in batch.schema.names), None)
    if column == "endpoint" and options.operation == ADD:
        column = None  # then it is a field like any other
    if column is not None:
        by_name = options.servers.by_name()
        names = batch.column(column)
        for name in names.unique().to_pylist():
            if name not in by_name:
                raise PipelineError(f"the endpoint {name!r} of a row is none of 'endpoints': {', '.join(by_name)}")
        for endpoint in endpoints:
            yield from _chosen(batch, pc.equal(names, endpoint.name), endpoint)
    elif len(endpoints) == 1:
        yield endpoints[0], batch
    elif options.operation != ADD:
        raise PipelineError("with several endpoints the rows need a column 'endpoint' that says where they are pending")
    elif options.stream is not None:
        yield endpoints[placement.place(options.stream.encode(), all_names, placed)], batch
    else:
        keys = as_bytes(batch.column(STREAM)).dictionary_encode()
        if keys.null_count:
            raise PipelineError(f"{STREAM} must not be null")
        places = [placement.place(key, all_names, placed) for key in keys.dictionary.to_pylist()]
        of_key = pa.array(places, pa.int64())
        of_row = of_key.take(keys.indices)
        for at, endpoint in enumerate(endpoints):
            yield from _chosen(batch, pc.equal(of_row, at), endpoint)


def _chosen(batch: Any, mask: Any, endpoint: Endpoint) -> Iterator[tuple[Endpoint, Any]]:
    part = batch.filter(mask)
    if part.num_rows:
        yield endpoint, part
