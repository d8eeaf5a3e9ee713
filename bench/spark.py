"""The pipeline on Spark: rows a second read and written, commands of an idle query, how soon an entry is a row.

Servers, Spark and this program share the machine's processors, so the figures are for comparing servers in one session:
each measure is taken of every server in turn. Beside the rates stand CPU microseconds a row: of the server, of Spark's
JVM, of its Python workers, and apart from these of the JVM's compilers (JIT), which Spark needs once and not for a row.
Rounds in which they are still busy are dropped. Spark's workers import this module for the two baselines.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow
import redis
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructType

from bench.costs import SparkRow as Row
from bench.costs import in_turns
from bench.servers import LOCALHOST, ROOT, Candidate, cpu_ns, running
from bench.servers import Server as Process
from penstock.pipeline.connector.connection.client import Access, Client
from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import write_task
from penstock.pipeline.connector.source.batch_reader import BatchReader
from penstock.pipeline.connector.source.entry_pages import Page, decode, from_lists
from penstock.pipeline.connector.source.range_splitter import exclusive
from penstock.pipeline.connector.source.readers import stream_reader
from penstock.pipeline.connector.source.source_options import read_entries
from penstock.pipeline.session import session
from penstock.storage.streams import ids

FORMAT: Final = "redis_streams"
COLUMNS: Final = "_id string, carrier string, flight string, dest string, delay string"
MAP: Final = "_stream string, _id string, _timestamp timestamp, fields map<string,string>"
NAMES: Final = (b"carrier", b"flight", b"dest", b"delay")
KEYS: Final = 2_000
FEW: Final = "few"  # the stream that the baselines read
BASELINE: Final = 10  # they are so slow that they read a tenth
FETCH: Final = 2_000
WRITTEN_AT_ONCE: Final = 20_000
REWRITE_POLL_S: Final = 0.1
TICKS: Final = os.sysconf("SC_CLK_TCK")
ROWS: Final = 2_000_000  # of a measure, at the least, unless --entries or --quick says otherwise
COMPILERS: Final = (b"C1 Compiler", b"C2 Compiler")  # first letters of the threads' names

Table = dict[str, dict[str, Row]]  # measure -> server -> figures


class Server:
    """A server, its client for preparing, and its address as the connector's options have it."""

    def __init__(self, process: Process) -> None:
        self.name = process.name
        self.directory = process.directory
        self.client = redis.Redis(LOCALHOST, process.port, socket_timeout=300)
        self.endpoint = f"{LOCALHOST}:{process.port}"
        self._pid = process.pid

    @property
    def address(self) -> Any:
        return read_entries({"stream": "s", "endpoints": self.endpoint}, False).servers.endpoints[0]

    def cpu_s(self) -> float:
        return cpu_ns(self._pid) / 1e9

    def commands(self) -> int:
        return int(self.client.info("stats")["total_commands_processed"])

    def knows(self, command: str) -> bool:
        return bool(self.client.command_list(pattern=command))

    def fill(self, entries: int, keys: list[str]) -> None:
        """Add entries by the connector's own sink, without Spark: to all keys in turn."""
        options = read_sink({"endpoints": self.endpoint, "delivery": "at-least-once"}, False)
        for first in range(0, entries, WRITTEN_AT_ONCE):
            rows = columns(range(first, min(first + WRITTEN_AT_ONCE, entries)), keys)
            write_task(options, Task("fill", 0, 0), [pyarrow.record_batch(rows)])

    def write_log(self, entries: int) -> None:
        """Make the log one of so many entries added, and nothing else."""
        self.client.flushall()
        self.client.bgrewriteaof()
        while any(self.client.info("persistence")[f"aof_rewrite_{what}"] for what in ("in_progress", "scheduled")):
            time.sleep(REWRITE_POLL_S)
        self.fill(entries, ["s"])


def columns(numbers: Iterable[int], keys: list[str]) -> dict[str, list[str]]:
    rows = [
        (keys[number % len(keys)], f"UA{number % 30:02}", str(number), f"LAX{number % 7}", str(number * 7 % 300))
        for number in numbers
    ]
    return dict(zip(("_stream", *(name.decode() for name in NAMES)), map(list, zip(*rows, strict=True)), strict=True))


@contextmanager
def spark_session(master: str) -> Iterator[Any]:
    os.environ["PYTHONPATH"] = str(ROOT)  # for Spark's workers
    settings = {"spark__driver__memory": "1g", "spark__ui__enabled": "false", "spark__driver__host": LOCALHOST}
    # A compiler's thread that ends would take its CPU time along.
    settings["spark__driver__extraJavaOptions"] = "-XX:-UseDynamicNumberOfCompilerThreads"
    spark = session(master, "bench", **settings, spark__ui__showConsoleProgress="false")
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TupleSource)
    spark.dataSource.register(RedisPySource)
    try:
        yield spark
    finally:
        spark.stop()


# -- the baselines of reading: the same tasks as `redis_streams`, read in other ways ----------------------------------


class _Baseline(BatchReader):
    def read(self, partition: Any) -> Iterator[Any]:
        for id_range in partition.ranges:
            place = self.endpoint(id_range.endpoint)
            after, upto = exclusive(id_range.after), ids.text(id_range.upto)
            with ExitStack() as stack:
                fetch = self.fetcher(place, stack)
                while entries := fetch(id_range.key, after, upto):
                    yield from self.rows(entries)
                    after = b"(" + entries[-1][0]

    def fetcher(self, place: Any, stack: ExitStack) -> Callable[..., Any]:
        raise NotImplementedError

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        raise NotImplementedError


class TupleReader(_Baseline):
    """Row tuples, which Spark turns into record batches itself."""

    def fetcher(self, place: Any, stack: ExitStack) -> Callable[..., Any]:
        client = stack.enter_context(Client(place, self.options.servers.access))
        return lambda key, after, upto: client.call("XRANGE", key, after, upto, "COUNT", FETCH)

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        for entry_id, words in entries:
            values = dict(zip(words[::2], words[1::2], strict=True))
            yield (entry_id.decode(), *[values[name].decode() for name in NAMES])


class RedisPyReader(_Baseline):
    """redis-py, and record batches made of its lists."""

    def fetcher(self, place: Any, stack: ExitStack) -> Callable[..., Any]:
        client = stack.enter_context(redis.Redis(place.host, place.port))
        return lambda key, after, upto: client.xrange(key, after, upto, FETCH)

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        columns = [[entry[0] for entry in entries], *([values[name] for _, values in entries] for name in NAMES)]
        arrays = [pyarrow.array(column, pyarrow.binary()).cast(pyarrow.string()) for column in columns]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=[word.split()[0] for word in COLUMNS.split(", ")])


class TupleSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bench_tuples"

    def reader(self, schema: Any) -> Any:
        return TupleReader(read_entries(self.options, streaming=False), schema)


class RedisPySource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bench_redis_py"

    def reader(self, schema: Any) -> Any:
        return RedisPyReader(read_entries(self.options, streaming=False), schema)


# -- reading: rows a second into Spark's `noop` sink, beside both baselines -------------------------------------------


def read(candidates: Sequence[Candidate], entries: int, rounds: int, samples: int, master: str) -> dict[str, Table]:
    """What one core decodes; rates and CPU of reading; commands of idle queries; from XADD to foreachBatch."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="bench-spark-") as folder:
        both = [
            [Server(stack.enter_context(running(candidate, "--appendonly", "no"))) for _ in range(2)]
            for candidate in candidates
        ]
        decoded = decoding(both[0][0], entries)
        for some in both:
            for server in some:
                server.fill(entries, ["one"])
            some[0].fill(entries // BASELINE, [FEW])
            some[0].fill(entries, [f"k{number}" for number in range(KEYS)])
        spark = stack.enter_context(spark_session(master))
        rates = dict(reading(spark, both, entries, rounds))
        firsts = [some[0] for some in both]
        idle_queries = {
            f"idle, {keys} keys": {server.name: idle(spark, server, keys, Path(folder)) for server in firsts}
            for keys in (2, 200)
        }
        delays = {server.name: latency(spark, server, samples, Path(folder)) for server in firsts}
        found = {"decoding": decoded, "rates": rates, "idle": idle_queries, "latency": {"XADD to foreachBatch": delays}}
        found["memory"] = {"memory": {"-": memory_mb()}}
        found["many"] = {f"{MANY:,} streams": {server.name: many_streams(server) for server in firsts}}
        for name in ("idle", "latency", "memory", "many"):
            for measure, of_server in found[name].items():
                print(measure, of_server, flush=True)
        return found


def decoding(server: Server, entries: int) -> Table:
    """Entries that one core decodes in a second of CPU time, without server or Spark."""
    server.fill(FETCH, ["s"])
    with Client(server.address, Access()) as raw:
        reply = raw.framed(b"*4\r\n$6\r\nXRANGE\r\n$1\r\ns\r\n$1\r\n-\r\n$1\r\n+\r\n")
        lists = [raw.call("XRANGE", "s", "-", "+")]
    found: Table = {}
    ways: dict[str, Callable[[], Page]] = {
        "columns": partial(decode, reply),
        "columns from parsed lists": partial(from_lists, lists),
    }
    for name, work in ways.items():
        rounds = max(entries // FETCH, 1)
        began_s = time.process_time()
        for _ in range(rounds):
            page = work()
            page.texts(page.id_at), page.texts(page.value_at)
        rate = rounds * FETCH / (time.process_time() - began_s)
        found[f"decode, {name}"] = {"-": {"entries_s": rate}}
        print(f"decode, {name}: {rate / 1e6:.2f} M entries/s of CPU", flush=True)
    return found


def reading(spark: Any, both: list[list[Server]], entries: int, rounds: int) -> Iterator[tuple[str, dict[str, Row]]]:
    def frame(source: str, ddl: str, some: list[Server], **options: str) -> Callable[[], Any]:
        endpoints = ",".join(server.endpoint for server in some)
        reader = spark.read.format(source).schema(ddl).options(endpoints=endpoints, minPartitions="4", **options)
        return lambda: reader.load()

    pending = "stream string, id string, consumer string, idle_ms bigint, deliveries bigint"
    for some in both:
        first = some[0].client
        first.xgroup_create("one", "g", "0")
        while first.xreadgroup("g", "alice", {"one": ">"}, count=10_000):
            pass
    one, few, keys = {"stream": "one"}, {"stream": FEW}, {"streamPattern": "k*"}
    for measure, source, ddl, servers, rows, options in (
        ("1 key, columns", FORMAT, COLUMNS, 1, entries, one),
        ("1 key, fields map", FORMAT, MAP, 1, entries, one),
        ("2,000 keys, columns", FORMAT, COLUMNS, 1, entries, keys),
        ("2 endpoints, columns", FORMAT, COLUMNS, 2, 2 * entries, one),
        ("1 key, row tuples", "bench_tuples", COLUMNS, 1, entries // BASELINE, few),
        ("1 key, redis-py", "bench_redis_py", COLUMNS, 1, entries // BASELINE, few),
        ("pending entries", FORMAT, pending, 1, entries, one | {"table": "pending"}),
    ):
        runs = {}
        for some in both:
            asked = some[:servers]
            made = frame(source, ddl, asked, **options)
            runs[some[0].name] = partial(reading_cost, made, rows, asked)
        of_server = in_turns(runs, rounds)
        show(measure, of_server)
        yield measure, of_server


def reading_cost(made: Callable[[], Any], rows: int, asked: list[Server]) -> Row:
    return cost(lambda: to_nowhere(made()), rows, asked)


def to_nowhere(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


# -- what a row costs -------------------------------------------------------------------------------------------------


def cost(action: Callable[[], None], rows: float, asked: list[Server]) -> Row:
    """Rows a second of an action, and the CPU time of a row in server, JVM, its compilers and workers."""

    def servers_s() -> float:
        return sum(server.cpu_s() for server in asked)

    before, servers_before_s, began_s = spark_used_s(), servers_s(), time.perf_counter()
    action()
    spent_s, used_s, after = time.perf_counter() - began_s, servers_s() - servers_before_s, spark_used_s()
    # A worker that Spark has ended is not in `after`: what it used in between is lost, and nothing else.
    used = {"server": used_s} | {
        name: sum(now_s - before[name].get(pid, 0.0) for pid, now_s in of_pid.items()) for name, of_pid in after.items()
    }
    return {"rate": rows / spent_s} | {f"{name}_us": seconds / rows * 1e6 for name, seconds in used.items()}


def show(measure: str, of_server: dict[str, Row]) -> None:
    print(f"{measure:30}", *(f"{name} {told(row)}" for name, row in of_server.items()), sep="\n  ", flush=True)


def told(row: Row) -> str:
    used = ", ".join(f"{name.removesuffix('_us')} {row[name]:.2f}" for name in row if name.endswith("_us"))
    rates = f"{row['rate']:,.0f} ({row['lowest']:,.0f} to {row['highest']:,.0f}) a second"
    return f"{rates}; us of one: {used}; {row['dropped']:.0f} rounds dropped; load {os.getloadavg()[0]:.1f}"


def spark_used_s() -> dict[str, dict[int, float]]:
    """CPU seconds so far by process: of Spark's JVM, of its compilers, and of the Python processes that the JVM has."""
    found: dict[int, tuple[int, float, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        found[int(folder.name)] = (int(words[1]), sum(map(int, words[11:13])) / TICKS, command)
    jvms = {pid for pid, (parent, _, command) in found.items() if parent == os.getpid() and b"java" in command}
    ours = set(jvms)
    while more := {pid for pid, (parent, _, _) in found.items() if parent in ours} - ours:
        ours |= more
    compilers_s = {pid: compilers_used_s(pid) for pid in jvms}
    return {
        "jvm": {pid: found[pid][1] - compilers_s[pid] for pid in jvms},
        "jit": compilers_s,
        "workers": {pid: found[pid][1] for pid in ours - jvms},
    }


def memory_mb() -> Row:
    """What Spark's JVM has in memory, and its largest Python worker."""

    def largest(pids: Iterable[int]) -> float:
        sizes = [0]
        for pid in pids:
            with suppress(OSError):  # it has ended meanwhile
                sizes.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        return max(sizes) / 1e6

    used = spark_used_s()
    return {"jvm_mb": largest(used["jvm"]), "worker_mb": largest(used["workers"])}


def compilers_used_s(pid: int) -> float:
    """CPU seconds of a JVM's compiler threads."""
    ticks = 0
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            name, _, rest = stat.read_bytes().partition(b"(")[2].rpartition(b")")
        except OSError:
            continue  # it has ended meanwhile
        if name.startswith(COMPILERS):
            ticks += sum(map(int, rest.split()[11:13]))
    return ticks / TICKS


# -- idle, and soon ---------------------------------------------------------------------------------------------------

IDLE_S: Final = 10.0
FIRST_PROGRESS_S: Final = 60.0


def idle(spark: Any, server: Server, keys: int, folder: Path) -> Row:
    """Commands a second of a query that gets nothing new."""
    names = [f"idle{number}" for number in range(keys)]
    server.fill(keys, names)
    frame = spark.readStream.format(FORMAT).options(endpoints=server.endpoint, stream=",".join(names)).load()
    checkpoint = str(folder / f"{server.name}{keys}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    deadline_s = time.monotonic() + FIRST_PROGRESS_S
    while query.lastProgress is None and time.monotonic() < deadline_s:
        time.sleep(1)
    time.sleep(2)
    before, began_s = server.commands(), time.perf_counter()
    time.sleep(IDLE_S)
    spent_s = time.perf_counter() - began_s
    rate = (server.commands() - before - 1) / spent_s
    if query.exception() is not None:
        raise query.exception()
    query.stop()
    return {"commands_s": rate}


MANY: Final = 10_000
TRIES: Final = 9  # the least of them counts


def many_streams(server: Server) -> Row:
    """CPU of the driver's Python and of the server, in ms, and bytes of an offset, for a query of MANY streams.

    `look` asks for the state of each; `poll` waits at the server for what is new, and is unblocked at once; `new` plans
    a batch of one entry. Without Spark.
    """
    names = [f"many:{number:05}" for number in range(MANY)]
    server.client.flushall()
    server.fill(2 * MANY, names)
    options = {"endpoints": server.endpoint, "streamPattern": "many:*", "startingId": "latest", "pollTimeout": "1ms"}
    reader: Any = stream_reader(options, StructType().add("_id", StringType()))
    offset = reader.initialOffset()

    def poll() -> None:
        assert reader.latestOffset(offset, ReadAllAvailable()) == offset
        reader.reportLatestOffset()

    def new() -> None:
        nonlocal offset
        end = reader.latestOffset(offset, ReadAllAvailable())
        reader.reportLatestOffset()
        assert len(reader.partitions(offset, end)) == 1
        offset = end

    found: Row = {}
    poll()
    for name, work in (("look", reader.refresh_states), ("poll", poll), ("new", new)):
        spent = []
        for _ in range(TRIES):
            if work is new:
                server.client.xadd(names[77], {"n": 1})
            began_s, server_began_s = time.process_time(), server.cpu_s()
            work()
            spent.append((time.process_time() - began_s, server.cpu_s() - server_began_s))
        found[f"{name}_ms"], found[f"{name}_server_ms"] = (min(one) * 1e3 for one in zip(*spent, strict=True))
    found["offset_bytes"] = len(json.dumps(offset))
    reader.stop()
    return found


WARM_SAMPLES: Final = 3


def latency(spark: Any, server: Server, samples: int, folder: Path) -> Row:
    """From the id's millisecond, which the server gives, to the entry's row in foreachBatch; and what a batch takes.

    `offset_ms` is the connector's part of `batch_ms` before the tasks: what is new, and where it is split.
    """
    ages_ms: list[float] = []

    def take(frame: Any, _: int) -> None:
        rows = frame.select("_id").collect()
        now_ms = time.time() * 1000
        ages_ms.extend(now_ms - int(row._id.partition("-")[0]) for row in rows)

    frame = spark.readStream.format(FORMAT).options(endpoints=server.endpoint, stream="lat").load()
    checkpoint = str(folder / f"{server.name}-latency")
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint).start()
    for _ in range(samples + WARM_SAMPLES):
        seen = len(ages_ms)
        server.client.xadd("lat", {"n": 1})
        deadline_s = time.monotonic() + 30
        while len(ages_ms) == seen and time.monotonic() < deadline_s:
            time.sleep(0.05)
    batches = [one.durationMs for one in query.recentProgress if one.numInputRows][WARM_SAMPLES:]
    query.stop()
    warm = sorted(ages_ms[WARM_SAMPLES:])
    return {
        "p50_ms": statistics.median(warm),
        "p99_ms": warm[min(int(len(warm) * 0.99), len(warm) - 1)],
        "batch_ms": statistics.median(one["triggerExecution"] for one in batches),
        "offset_ms": statistics.median(one["latestOffset"] for one in batches),
    }


# -- writing: rows a second in each delivery, dead letters and acknowledgements a second, MB/s of log read ------------
#
# Rows have four fields of about 100 bytes together and are made by Spark as they are written.

DELIVERIES: Final = ("exactly-once", "at-least-once", "idmp")
READ_AT_ONCE: Final = 5_000
LOG_SHARE: Final = 4  # the log that is read has a quarter of the rows written: some hundred MB


def write(candidates: Sequence[Candidate], rows: int, letters: int, turns: int, policy: str, master: str) -> Table:
    """Rates and CPU by measure and server; without a log (`policy` "off") none is read."""
    log = ("--appendonly", "no") if policy == "off" else ("--appendonly", "yes", "--appendfsync", policy)
    flags = (*log, "--aof-timestamp-enabled", "yes", "--aof-use-rdb-preamble", "no")
    with ExitStack() as stack:
        servers = [Server(stack.enter_context(running(candidate, *flags))) for candidate in candidates]
        spark = stack.enter_context(spark_session(master))
        measures: dict[str, partial[Row]] = {
            f"rows written, {delivery}": partial(written, spark, delivery, rows) for delivery in DELIVERIES
        }
        measures["dead letters moved"] = partial(moved, spark, letters)
        measures["entries acknowledged"] = partial(acknowledged, spark, letters)
        if policy != "off":
            measures["MB of log read by one task"] = partial(log_read, spark, 1)
            measures["MB of log read by two tasks"] = partial(log_read, spark, 2)
        found: Table = {}
        for measure, once in measures.items():
            if once.func is log_read:
                for server in servers:
                    server.write_log(rows // LOG_SHARE)
            able = [server for server in servers if "idmp" not in measure or server.knows("XCFGSET")]
            found[measure] = in_turns({server.name: partial(once, server) for server in able}, turns)
            show(measure, found[measure])
        return found


def sink(frame: Any, server: Server) -> Any:
    return frame.write.format(FORMAT).option("endpoints", server.endpoint).mode("append")


def written(spark: Any, delivery: str, rows: int, server: Server) -> Row:
    frame = spark.range(0, rows, 1, 4).selectExpr(
        "id AS number", "concat('item-', id % 1000) AS sku", "id * 0.25D AS price", "repeat('x', 60) AS note"
    )
    server.client.delete("s")
    found = cost(sink(frame, server).option("stream", "s").option("delivery", delivery).save, rows, [server])
    assert server.client.xlen("s") == rows
    return found


def held(spark: Any, server: Server, count: int) -> Any:
    """A frame of the ids of so many entries that alice holds."""
    server.client.delete("p", "p:dead")
    with server.client.pipeline(transaction=False) as pipeline:
        for number in range(count):
            pipeline.xadd("p", {"number": number, "note": "x" * 60}, f"{number + 1}-0")
        pipeline.xgroup_create("p", "g", "0")
        for _ in range(0, count, READ_AT_ONCE):
            pipeline.xreadgroup("g", "alice", {"p": ">"}, count=READ_AT_ONCE)
        pipeline.execute()
    columns = "'p' AS stream", "'g' AS `group`", "concat(id + 1, '-0') AS id", "7L AS deliveries"
    return spark.range(0, count, 1, 2).selectExpr(*columns)


def moved(spark: Any, letters: int, server: Server) -> Row:
    frame = held(spark, server, letters)
    found = cost(sink(frame, server).option("operation", "deadletter").save, letters, [server])
    assert server.client.xlen("p:dead") == letters
    assert server.client.xpending("p", "g")["pending"] == 0
    return found


def acknowledged(spark: Any, letters: int, server: Server) -> Row:
    frame = held(spark, server, letters)
    found = cost(sink(frame, server).option("operation", "ack").save, letters, [server])
    assert server.client.xpending("p", "g")["pending"] == 0
    return found


def log_read(spark: Any, tasks: int, server: Server) -> Row:
    """MB a second of this server's log, read in one piece or in eight."""
    path = server.directory / "appendonlydir"
    size = sum(file.stat().st_size for file in path.glob("*.aof"))
    reader = spark.read.format(FORMAT).option("table", "aof")
    frame = reader.option("splitBytes", 0 if tasks == 1 else size // 8 + 1).load(str(path))
    return cost(lambda: to_nowhere(frame), size / 1e6, [server])
