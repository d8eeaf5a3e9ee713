"""The pipeline's writing side on Spark: rows a second in each delivery, dead letters a second, MB/s of log.

`python -m bench.pipeline_write` measures Penstock and a real Redis in one run, turn by turn, in one `local[2]` session:
server, Spark and its Python processes share the machine's cores, so the figures are for comparing. The first turn of
each is not counted. Rows have four fields of about 100 bytes together and are made by Spark as they are written.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import redis

from bench.servers import OURS, PLAIN, REDIS, Pythons, running
from penstock.pipeline.session import session
from tests.reference import LOCALHOST

FORMAT = "redis_streams"
DELIVERIES = ("exactly-once", "at-least-once", "idmp")
READ_AT_ONCE = 5_000


@contextmanager
def servers(names: list[str], folder: str, logged: bool, pythons: Pythons) -> Iterator[dict[str, int]]:
    """The ports of the servers, by name; each with its data in a folder of its own."""
    keeping = ("--appendonly", "yes" if logged else "no", "--aof-timestamp-enabled", "yes")
    ports = {}
    with ExitStack() as stack:
        for name in names:
            path = Path(folder) / name
            path.mkdir()
            flags = (*keeping, "--aof-use-rdb-preamble", "no", "--dir", str(path))
            ports[name] = stack.enter_context(running(name, *flags, pythons=pythons)).port
        yield ports


class Bench:
    """The turns: each measure is taken of every server before the next turn begins."""

    def __init__(self, spark: Any, ports: dict[str, int], folder: str, words: argparse.Namespace) -> None:
        self._spark = spark
        self._ports = ports
        self._folder = folder
        self._words = words

    def run(self) -> None:
        for delivery in DELIVERIES:
            self._turns(f"rows/s written, {delivery}", lambda name, way=delivery: self._write(name, way))
        self._turns("dead letters/s moved", self._bury)
        self._turns("rows/s acknowledged", self._acknowledge)
        if not self._words.no_log:
            self._turns("MB/s of its log read by one task", lambda name: self._read(name, 1))
            self._turns("MB/s of its log read by two", lambda name: self._read(name, 2))

    def _turns(self, what: str, measure: Callable[[str], float]) -> None:
        taken: dict[str, list[float]] = {name: [] for name in self._ports}
        for _ in range(self._words.turns + 1):
            for name in self._ports:
                taken[name].append(measure(name))
        shown = "   ".join(
            f"{name} {statistics.median(found[1:]):>9,.0f} ({min(found[1:]):,.0f} to {max(found[1:]):,.0f})"
            for name, found in taken.items()
        )
        sys.stdout.write(f"{what:<34} {shown}\n")
        sys.stdout.flush()

    def _sink(self, frame: Any, name: str) -> Any:
        return frame.write.format(FORMAT).option("endpoints", f"{LOCALHOST}:{self._ports[name]}").mode("append")

    def _client(self, name: str) -> redis.Redis:
        return redis.Redis(LOCALHOST, self._ports[name], socket_timeout=300)

    # -- measures -----------------------------------------------------------------------------------------------------

    def _write(self, name: str, delivery: str) -> float:
        rows = self._words.rows
        frame = self._spark.range(0, rows, 1, 4).selectExpr(
            "id AS number", "concat('item-', id % 1000) AS sku", "id * 0.25D AS price", "repeat('x', 60) AS note"
        )
        with self._client(name) as client:
            client.delete("s")
            seconds = timed(self._sink(frame, name).option("stream", "s").option("delivery", delivery).save)
            assert client.xlen("s") == rows
        return rows / seconds

    def _pending(self, client: redis.Redis) -> Any:
        """Entries that alice holds, as a frame of their ids."""
        client.delete("p", "p:dead")
        count = self._words.letters
        with client.pipeline(transaction=False) as pipeline:
            for at in range(count):
                pipeline.xadd("p", {"number": at, "note": "x" * 60}, f"{at + 1}-0")
            pipeline.xgroup_create("p", "g", "0")
            for _ in range(0, count, READ_AT_ONCE):
                pipeline.xreadgroup("g", "alice", {"p": ">"}, count=READ_AT_ONCE)
            pipeline.execute()
        columns = "'p' AS stream", "'g' AS `group`", "concat(id + 1, '-0') AS id", "7L AS deliveries"
        return self._spark.range(0, count, 1, 2).selectExpr(*columns)

    def _bury(self, name: str) -> float:
        with self._client(name) as client:
            frame = self._pending(client)
            seconds = timed(self._sink(frame, name).option("operation", "deadletter").save)
            assert client.xlen("p:dead") == self._words.letters
            assert client.xpending("p", "g")["pending"] == 0
        return float(self._words.letters / seconds)

    def _acknowledge(self, name: str) -> float:
        with self._client(name) as client:
            frame = self._pending(client)
            seconds = timed(self._sink(frame, name).option("operation", "ack").save)
            assert client.xpending("p", "g")["pending"] == 0
        return float(self._words.letters / seconds)

    def _read(self, name: str, tasks: int) -> float:
        """The log that this server has written, in one piece or in many."""
        path = Path(self._folder) / name / "appendonlydir"
        size = sum(file.stat().st_size for file in path.glob("*.aof"))
        reader = self._spark.read.format(FORMAT).option("table", "aof")
        frame = reader.option("splitBytes", 0 if tasks == 1 else size // 8 + 1).load(str(path))
        return size / 1e6 / timed(frame.write.format("noop").mode("overwrite").save)


def timed(action: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    action()
    return time.perf_counter() - began_s


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline_write", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--letters", type=int, default=40_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--no-log", action="store_true", help="the servers write no log; then none is read")
    parser.add_argument("--servers", nargs="+", default=[PLAIN, REDIS], choices=[*OURS, REDIS])
    parser.add_argument("--server-python", type=Path, default=Path(sys.executable), help="what runs the plain source")
    words = parser.parse_args()
    pythons = Pythons(plain=words.server_python)
    spark = session(
        "local[2]",
        "bench",
        spark__driver__memory="1g",
        spark__driver__host=LOCALHOST,
        spark__ui__enabled="false",
        spark__ui__showConsoleProgress="false",
    )
    spark.sparkContext.setLogLevel("ERROR")
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        servers(words.servers, folder, not words.no_log, pythons) as ports,
    ):
        Bench(spark, ports, folder, words).run()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
