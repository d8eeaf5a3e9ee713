"""How fast Spark reads streams: Penstock and a real Redis side by side, in one session.

`python -m bench.pipeline_read` fills both with the same entries of four fields and measures, in rows a second into
Spark's `noop` sink: one key, 2,000 keys, two endpoints; the record batches of `redis_streams` beside row tuples and
beside redis-py in the executors; pending entries scanned. Then commands a second of an idle query, and the time from
XADD to foreachBatch. The first query of all is not counted: it starts Spark's Python workers.

Both servers, Spark and this program share the machine: CPU microseconds a row, of the server, of Spark's JVM and of
its Python workers, stand beside each rate: two processors cannot do more rows than their sum allows.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import redis
from pyspark.sql.datasource import DataSource

from bench.servers import OURS, PLAIN, REDIS, Pythons, running
from penstock.pipeline.connector.connection.client import Access, Client, Word
from penstock.pipeline.connector.source.batch_reader import BatchReader
from penstock.pipeline.connector.source.entry_pages import decode, from_lists
from penstock.pipeline.connector.source.range_splitter import exclusive
from penstock.pipeline.connector.source.source_options import read_entries
from penstock.pipeline.session import session
from penstock.storage.streams import ids
from tests.reference import LOCALHOST

COLUMNS = "_id string, carrier string, flight string, dest string, delay string"
NAMES = (b"carrier", b"flight", b"dest", b"delay")
FETCH = 2_000
TICKS = os.sysconf("SC_CLK_TCK")


# -- what it is compared with -----------------------------------------------------------------------------------------


class _Baseline(BatchReader):
    """The same tasks as `redis_streams`, read in another way."""

    def read(self, partition: Any) -> Iterator[Any]:
        for piece in partition.pieces:
            place = self.endpoint(piece.endpoint)
            after, upto = exclusive(piece.after), ids.text(piece.upto)
            with ExitStack() as open_now:
                fetch = self.fetcher(place, open_now)
                while entries := fetch(piece.key, after, upto):
                    yield from self.rows(entries)
                    after = b"(" + entries[-1][0]

    def fetcher(self, place: Any, open_now: ExitStack) -> Callable[..., Any]:
        raise NotImplementedError

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        raise NotImplementedError


class TupleReader(_Baseline):
    """Row tuples, which Spark turns into record batches itself."""

    def fetcher(self, place: Any, open_now: ExitStack) -> Callable[..., Any]:
        client = open_now.enter_context(Client(place, self.options.servers.access))
        return lambda key, after, upto: client.call("XRANGE", key, after, upto, "COUNT", FETCH)

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        for entry_id, words in entries:
            fields = dict(zip(words[::2], words[1::2], strict=True))
            yield (entry_id.decode(), *[fields[name].decode() for name in NAMES])


class RedisPyReader(_Baseline):
    """redis-py, and record batches made of its lists."""

    def fetcher(self, place: Any, open_now: ExitStack) -> Callable[..., Any]:
        client = open_now.enter_context(redis.Redis(place.host, place.port))
        return lambda key, after, upto: client.xrange(key, after, upto, FETCH)

    def rows(self, entries: list[Any]) -> Iterator[Any]:
        columns = [[entry[0] for entry in entries], *([fields[name] for _, fields in entries] for name in NAMES)]
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


# -- servers ----------------------------------------------------------------------------------------------------------


class Server:
    """One of the servers: where it is, and what it has spent."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.client = redis.Redis(LOCALHOST, port, socket_timeout=120)
        self.endpoint = f"{LOCALHOST}:{port}"

    def cpu_s(self) -> float:
        told = self.client.info("cpu")
        return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])

    def commands(self) -> int:
        return int(self.client.info("stats")["total_commands_processed"])

    def fill(self, entries: int, keys: list[str]) -> None:
        with Client(_endpoint(self), Access()) as client:
            for first in range(0, entries, FETCH):
                numbers = range(first, min(first + FETCH, entries))
                client.pipeline([["XADD", keys[number % len(keys)], "*", *_fields(number)] for number in numbers])


def _fields(number: int) -> list[Word]:
    carrier, flight, dest, delay = NAMES
    return [carrier, b"UA%02d" % (number % 30), flight, number, dest, b"LAX%d" % (number % 7), delay, number * 7 % 300]


@contextmanager
def servers(names: list[str], count: int, pythons: Pythons) -> Iterator[dict[str, list[Server]]]:
    """So many of each, without a log: what is measured is reading."""
    with ExitStack() as started:
        yield {
            name: [
                Server(name, started.enter_context(running(name, "--appendonly", "no", pythons=pythons)).port)
                for _ in range(count)
            ]
            for name in names
        }


def spent_s() -> dict[str, float]:
    """CPU seconds of Spark so far: its JVM, and the Python processes that the JVM has."""
    found: dict[int, tuple[int, float, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        with_children = sum(map(int, words[11:15])) / TICKS  # those that have ended
        found[int(folder.name)] = (int(words[1]), with_children, command)
    totals = {"JVM": 0.0, "workers": 0.0}
    jvms = {pid for pid, (parent, _, command) in found.items() if parent == os.getpid() and b"java" in command}
    ours = set(jvms)
    while more := {pid for pid, (parent, _, _) in found.items() if parent in ours} - ours:
        ours |= more
    for pid in ours:
        totals["JVM" if pid in jvms else "workers"] += found[pid][1]
    return totals


# -- measuring --------------------------------------------------------------------------------------------------------


def rate(frame: Callable[[], Any], rows: int, some: list[Server], rounds: int) -> str:
    """Rows a second into the noop sink, the best of so many rounds, and the CPU time of a row in it."""

    def all_spent_s() -> dict[str, float]:
        return {"server": sum(server.cpu_s() for server in some), **spent_s()}

    best_s, cost = float("inf"), ""
    for _ in range(rounds):
        before, began_s = all_spent_s(), time.perf_counter()
        frame().write.format("noop").mode("overwrite").save()
        took_s, after = time.perf_counter() - began_s, all_spent_s()
        if took_s < best_s:
            best_s = took_s
            cost = ", ".join(f"{name} {(after[name] - before[name]) / rows * 1e6:.2f}" for name in after)
    return f"{rows / best_s / 1000:6.0f} k rows/s; us a row: {cost}; load {os.getloadavg()[0]:.1f}"


def decoding(entries: int) -> None:
    """What one core decodes, in CPU time, without server or Spark."""
    with running(PLAIN, "--appendonly", "no") as process:
        server = Server(PLAIN, process.port)
        server.fill(FETCH, ["s"])
        raw = Client(_endpoint(server), read_entries({"stream": "s"}, False).servers.access)
        reply = raw.framed(b"*4\r\n$6\r\nXRANGE\r\n$1\r\ns\r\n$1\r\n-\r\n$1\r\n+\r\n")
        lists = [raw.call("XRANGE", "s", "-", "+")]
        raw.close()
    for name, work in (("columns", lambda: decode(reply)), ("columns from parsed lists", lambda: from_lists(lists))):
        rounds = max(entries // FETCH, 1)
        began_s = time.process_time()
        for _ in range(rounds):
            page = work()
            page.texts(page.id_at), page.texts(page.value_at)
        print(f"decode, {name}: {rounds * FETCH / (time.process_time() - began_s) / 1e6:.2f} M entries/s of CPU")


def _endpoint(server: Server) -> Any:
    return read_entries({"stream": "s", "endpoints": server.endpoint}, False).servers.endpoints[0]


def reads(spark: Any, some: list[Server], entries: int, rounds: int) -> None:
    name, first = some[0].name, some[0]

    def load(source: str, ddl: str, endpoints: str, **options: str) -> Callable[[], Any]:
        return lambda: (
            spark.read.format(source)
            .schema(ddl)
            .option("endpoints", endpoints)
            .options(minPartitions="4", **options)
            .load()
        )

    both = ",".join(server.endpoint for server in some)
    default = "_stream string, _id string, _timestamp timestamp, fields map<string,string>"
    for what, frame, rows, asked in (
        ("1 key, columns", load("redis_streams", COLUMNS, first.endpoint, stream="one"), entries, some[:1]),
        ("1 key, fields map", load("redis_streams", default, first.endpoint, stream="one"), entries, some[:1]),
        ("2,000 keys, columns", load("redis_streams", COLUMNS, first.endpoint, streamPattern="k*"), entries, some[:1]),
        ("2 endpoints, columns", load("redis_streams", COLUMNS, both, stream="one"), 2 * entries, some),
        ("1 key, row tuples", load("bench_tuples", COLUMNS, first.endpoint, stream="one"), entries, some[:1]),
        ("1 key, redis-py", load("bench_redis_py", COLUMNS, first.endpoint, stream="one"), entries, some[:1]),
    ):
        print(f"{name:9} {what:22} {rate(frame, rows, asked, rounds)}", flush=True)


def pending(spark: Any, server: Server, entries: int, rounds: int) -> None:
    server.client.xgroup_create("one", "g", "0")
    while server.client.xreadgroup("g", "alice", {"one": ">"}, count=10_000):
        pass
    columns = "stream string, id string, consumer string, idle_ms bigint, deliveries bigint"
    reader = spark.read.format("redis_streams").options(table="pending", endpoints=server.endpoint, stream="one")

    def frame() -> Any:
        return reader.schema(columns).option("minPartitions", "4").load()

    print(f"{server.name:9} {'pending entries':22} {rate(frame, entries, [server], rounds)}", flush=True)


def idle(spark: Any, server: Server, keys: int, folder: Path) -> None:
    names = [f"idle{number}" for number in range(keys)]
    server.fill(keys, names)
    frame = spark.readStream.format("redis_streams").options(endpoints=server.endpoint, stream=",".join(names)).load()
    checkpoint = str(folder / f"{server.name}{keys}")
    query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    give_up_s = time.monotonic() + 60
    while query.lastProgress is None and time.monotonic() < give_up_s:
        time.sleep(1)
    time.sleep(2)
    before, began_s = server.commands(), time.perf_counter()
    time.sleep(10)
    spent_s = time.perf_counter() - began_s
    print(f"{server.name:9} idle, {keys} keys: {(server.commands() - before - 1) / spent_s:.1f} commands/s", flush=True)
    if query.exception() is not None:
        raise query.exception()
    query.stop()


def latency(spark: Any, server: Server, samples: int, folder: Path) -> None:
    """From the id's millisecond, which the server gives, to the entry's row in foreachBatch."""
    spent: list[float] = []

    def take(frame: Any, number: int) -> None:
        rows = frame.select("_id").collect()
        now_ms = time.time() * 1000
        spent.extend(now_ms - int(row._id.partition("-")[0]) for row in rows)

    query = _stream(spark, server, "lat", folder / f"{server.name}-latency", take)
    for _ in range(samples):
        seen = len(spent)
        server.client.xadd("lat", {"n": 1})
        deadline_s = time.monotonic() + 30
        while len(spent) == seen and time.monotonic() < deadline_s:
            time.sleep(0.05)
    query.stop()
    warm = sorted(spent[3:])
    p99 = warm[min(int(len(warm) * 0.99), len(warm) - 1)]
    print(f"{server.name:9} XADD to foreachBatch: p50 {statistics.median(warm):.0f} ms, p99 {p99:.0f} ms", flush=True)


def _stream(spark: Any, server: Server, stream: str, checkpoint: Path, take: Callable[[Any, int], None]) -> Any:
    frame = spark.readStream.format("redis_streams").options(endpoints=server.endpoint, stream=stream).load()
    return frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).start()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline_read", description="Reading with Spark.")
    parser.add_argument("--entries", type=int, default=1_000_000, help="in one key, and as many in 2,000")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--samples", type=int, default=60, help="of the latency")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--servers", nargs="+", default=[PLAIN, REDIS], choices=[*OURS, REDIS])
    parser.add_argument("--server-python", type=Path, default=Path(sys.executable), help="what runs the plain source")
    args = parser.parse_args()
    decoding(args.entries)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    with servers(args.servers, 2, Pythons(plain=args.server_python)) as both, tempfile.TemporaryDirectory() as folder:
        for some in both.values():
            for server in some:
                server.fill(args.entries, ["one"])
            some[0].fill(args.entries, [f"k{number}" for number in range(2_000)])
        print(f"filled; load average {os.getloadavg()[0]:.1f}", flush=True)
        settings = {"spark__driver__memory": "1g", "spark__ui__enabled": "false", "spark__driver__host": LOCALHOST}
        settings["spark__ui__showConsoleProgress"] = "false"
        spark = session(args.master, "bench", **settings)
        spark.sparkContext.setLogLevel("ERROR")
        spark.dataSource.register(TupleSource)
        spark.dataSource.register(RedisPySource)
        warm = (
            spark.read.format("redis_streams").options(endpoints=both[args.servers[0]][0].endpoint, stream="one").load()
        )
        warm.write.format("noop").mode("overwrite").save()
        for some in both.values():
            reads(spark, some, args.entries, args.rounds)
            pending(spark, some[0], args.entries, args.rounds)
        for some in both.values():
            for keys in (2, 200):
                idle(spark, some[0], keys, Path(folder))
            latency(spark, some[0], args.samples, Path(folder))
        print(f"load average {os.getloadavg()[0]:.1f}")
        spark.stop()


if __name__ == "__main__":
    # Spark's workers find the baselines' classes by their module's name, which must not be __main__.
    from bench.pipeline_read import main as by_name

    by_name()
