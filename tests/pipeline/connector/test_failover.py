"""Reading and writing where another server takes a server's place: by Sentinels, or one of several addresses."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow
import redis
from pyspark.sql import functions

from penstock.pipeline.connector.connection.client import Access, Client
from penstock.pipeline.connector.connection.connection_options import read_endpoint
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import Task, write_task
from penstock.pipeline.errors import ServerGone
from tests.pipeline.chaos_deployments import parquet_rows
from tests.pipeline.driving import Query, to_its_end
from tests.support.deployments import MASTER, Watched, catch_up, replicate, until, watched_pair
from tests.support.reference_server import LOCALHOST, NoReference, free_port
from tests.support.server_process import running_server

TASK = Task("5e55-query", 7, 3)
DELIVERIES = ["exactly-once", "at-least-once"]
AT_ONCE = ("--appendonly", "no", "--repl-diskless-sync-delay", "0")  # a replica has its copy


def rows(*numbers: int) -> Any:
    return pyarrow.record_batch({"n": [str(number) for number in numbers]})


def written(client: redis.Redis) -> list[int]:
    return [int(fields[b"n"]) for _, fields in client.xrange("s")]


@pytest.fixture(params=["redis", "penstock"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    try:
        with watched_pair(request.param, tmp_path) as found:
            yield found
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.mark.chaos
def test_a_master_that_its_sentinels_replace_without_a_kill_is_followed_by_the_tests(pair: Watched) -> None:
    before = pair.master
    with pair.client() as client:
        catch_up(client)
    pair.sentinels.clients[0].execute_command("SENTINEL", "FAILOVER", MASTER)
    until(lambda: redis.Redis(LOCALHOST, before.port).role()[0] == b"slave", "the master stays the master")

    with pair.client() as client:
        assert client.role()[0] == b"master"
    assert pair.replica is before


@pytest.mark.chaos
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_reading_and_writing_go_on_when_the_master_is_killed(pair: Watched, delivery: str) -> None:
    with pair.client() as client:
        client.xadd("s", {"n": 0})
    options = {"endpoints": pair.endpoint, "stream": "s"}
    cursor = Query("_id string, n int", startingId="earliest", **options)
    shared = Query("_id string, n int", startingId="earliest", group="g", groupMode="shared", **options)
    read: dict[str, list[int]] = {"cursor": [], "shared": []}

    def batches() -> Iterator[Any]:
        yield rows(*range(1, 100))
        for name, query in (("cursor", cursor), ("shared", shared)):
            read[name] += [row["n"] for row in query.batch() or ()]
        cursor.plan()
        pair.fail_over()
        yield rows(*range(100, 200))

    write_task(read_sink({**options, "delivery": delivery, "pipeline": "10"}, False), TASK, batches())
    read["shared"] += [row["n"] for row in shared.batch() or ()]  # none where the connection breaks amid a read
    for name, query in (("cursor", cursor), ("shared", shared)):
        read[name] += [row["n"] for row in query.run_to_end()]
        query.stop()

    with pair.client() as client:
        assert written(client) == list(range(200))
    assert read == {"cursor": list(range(200)), "shared": list(range(200))}


def held_at(row: int, here: Path, go_on: Path) -> Any:
    """A column that stops where it comes to a row, says so by one file, and goes on when there is another."""

    def hold(number: int) -> int:
        if number == row:
            here.touch()
            while not go_on.exists():
                time.sleep(0.05)
        return number

    return functions.udf(hold, "int")


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("pair", "mode"),
    [("redis", {}), ("penstock", {"group": "g", "groupMode": "shared"})],
    indirect=["pair"],
    ids=["redis-cursor", "penstock-shared"],
)
def test_rows_are_in_parquet_once_when_the_master_is_killed_at_a_row(
    spark: Any, pair: Watched, mode: dict[str, str], tmp_path: Path
) -> None:
    filler = b"x" * 8_000  # more bytes than are on the way between the task's reader and the stage after it
    with pair.client() as client, client.pipeline() as pipe:
        for number in range(3_000):
            pipe.xadd("s", {"n": number, "filler": filler})
        pipe.execute()
        catch_up(client)  # Sentinels may replace a master that is only busy, and no row is to be lost by that
    here, go_on, files = tmp_path / "here", tmp_path / "go-on", tmp_path / "rows"
    options = {"endpoints": pair.endpoint, "stream": "s", "startingId": "earliest", "fetchSize": "50", **mode}

    def start(**trigger: Any) -> Any:
        frame = spark.readStream.format("redis_streams").schema("n int, filler string").options(**options).load()
        frame = frame.withColumn("n", held_at(700, here, go_on)("n"))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(**trigger).start(str(files))

    with ThreadPoolExecutor(1) as pool:
        copied = pool.submit(to_its_end, start)
        try:
            until(lambda: here.exists() or copied.done(), "no task comes to the row")
            pair.fail_over()
        finally:
            go_on.touch()
        copied.result()
    with pair.client() as client:
        client.xadd("s", {"n": 3_000, "filler": "after"})
    to_its_end(start)

    assert here.exists()
    assert sorted(map(int, parquet_rows(files))) == list(range(3_001))


# -- several addresses ------------------------------------------------------------------------------------------------


def test_of_several_addresses_the_one_of_the_master_is_taken(server: redis.Redis, server_port: int) -> None:
    server.xadd("s", {"n": 1}, "1-1")
    with running_server(*AT_ONCE) as other, redis.Redis(LOCALHOST, other.port) as promoted:
        replicate(promoted, server_port)
        places = f"{LOCALHOST}:{free_port()};{LOCALHOST}:{other.port};{LOCALHOST}:{server_port}"
        query = Query(endpoints=places, stream="s", startingId="earliest")
        sink = read_sink({"endpoints": places, "stream": "s"}, False)

        def batches() -> Iterator[Any]:
            yield rows(2, 3)
            catch_up(server)
            promoted.replicaof("NO", "ONE")
            server.replicaof(LOCALHOST, other.port)
            yield rows(4, 5)

        try:
            assert query.ids() == ["1-1"]
            write_task(sink, TASK, batches())
            catch_up(promoted)

            assert len(query.ids() or ()) == 4
            assert written(promoted) == [1, 2, 3, 4, 5]
        finally:
            query.stop()
            server.replicaof("NO", "ONE")


@pytest.mark.parametrize("retry", [True, False])
def test_a_write_that_a_replica_refuses_goes_to_the_master_or_is_known_to_have_failed(
    server: redis.Redis, server_port: int, retry: bool
) -> None:
    with running_server(*AT_ONCE) as other, redis.Redis(LOCALHOST, other.port) as promoted:
        replicate(promoted, server_port)
        endpoint = read_endpoint(f"{LOCALHOST}:{server_port};{LOCALHOST}:{other.port}")
        with Client(endpoint, Access()) as client:
            client.call("SET", "k", 0)
            catch_up(server)
            promoted.replicaof("NO", "ONE")
            server.replicaof(LOCALHOST, other.port)
            try:
                try:
                    client.call("INCR", "k", retry=retry)
                except ServerGone:
                    assert not retry
                assert int(client.call("GET", "k")) == int(retry)
            finally:
                server.replicaof("NO", "ONE")


def test_sentinels_that_do_not_know_the_name_are_told_of(server: redis.Redis, server_port: int) -> None:
    with (
        Client(read_endpoint(f"sentinel://{LOCALHOST}:{server_port}/main"), Access(retry_s=0.0)) as client,
        pytest.raises(ServerGone, match="is no Sentinel"),
    ):
        client.call("PING")
    with (
        Client(read_endpoint(f"sentinel://{LOCALHOST}:{free_port()}/main"), Access(retry_s=0.0)) as client,
        pytest.raises(ServerGone, match="no Sentinel answers"),
    ):
        client.call("PING")
