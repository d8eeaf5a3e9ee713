"""What a query's committed batches are good for: a server that went back, a checkpoint that did, acks, transactions."""

from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
import redis

from penstock import cli
from penstock.pipeline.connector.connection.client import Client
from penstock.pipeline.connector.sink import placement
from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import BatchWriter, commit_batch, write_task
from penstock.pipeline.errors import DataLoss, OptionError, PipelineError
from tests.support.reference_server import LOCALHOST, NoReference, reference_server
from tests.support.server_process import running_server

COMMITS = "__spark:q:commits"


def write(endpoint: str, batch: int, *parts: list[int], **options: str) -> list[Any]:
    """A batch of a query of which all batches before were committed: its tasks, and the driver's commit."""
    found = read_sink({"endpoints": endpoint, "stream": "s"} | options, False)
    tasks = enumerate(pa.record_batch({"n": part}) for part in parts)
    messages: list[Any] = [write_task(found, Task("q", batch, at, follows=True), [rows]) for at, rows in tasks]
    commit_batch(found, messages, batch)
    return messages


def numbers(server: redis.Redis) -> list[int]:
    return [int(fields[b"n"]) for _, fields in server.xrange("s")]


# -- a server that went back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [LOCALHOST, "localhost"], ids=["same address", "another address"])
def test_a_server_that_lost_a_committed_batch_ends_the_query(
    server: redis.Redis, server_port: int, endpoint: str, host: str
) -> None:
    write(endpoint, 0, [1, 2])
    kept = {key: server.dump(key) for key in server.scan_iter()}
    write(endpoint, 1, [3], [4])
    server.flushall()
    for key, payload in kept.items():
        server.restore(key, 0, payload)

    with pytest.raises(DataLoss, match="the last batch that it knows is 0, and batch 1 was committed"):
        write(f"{host}:{server_port}", 2, [5])
    assert numbers(server) == [1, 2]


def test_a_server_that_lost_everything_is_told_once_where_the_query_goes_on(server: redis.Redis, endpoint: str) -> None:
    write(endpoint, 0, [1])
    server.flushall()

    with pytest.warns(UserWarning, match="it knows none of this query's batches, and batch 0 was committed"):
        write(endpoint, 1, [2], failOnDataLoss="false")
    write(endpoint, 2, [3])
    assert numbers(server) == [2, 3]


def test_a_server_that_goes_back_amid_a_batch_does_not_commit_it(server: redis.Redis, endpoint: str) -> None:
    found = read_sink({"endpoints": endpoint, "stream": "s"}, False)
    written = write_task(found, Task("q", 0, 0, follows=True), [pa.record_batch({"n": [1]})])
    server.flushall()

    with pytest.raises(PipelineError, match="went back amid batch 0: partition 0 had written 1 rows"):
        commit_batch(found, [written], 0)
    write(endpoint, 0, [1])
    assert numbers(server) == [1]


def test_a_query_of_before_there_were_committed_batches_goes_on(server: redis.Redis, endpoint: str) -> None:
    server.xadd("__spark:q:5", {"crc": "0" * 16}, "7-3")
    write(endpoint, 7, [1])

    assert numbers(server) == [1]
    assert server.xrange(COMMITS)[0][1][b"placed"] == b"crc32"


# -- a checkpoint that went back --------------------------------------------------------------------------------------


def test_batches_of_a_restored_checkpoint_that_are_written_are_skipped(server: redis.Redis, endpoint: str) -> None:
    for batch in range(4):
        write(endpoint, batch, [2 * batch], [2 * batch + 1])
    again = [write(endpoint, batch, [2 * batch], [2 * batch + 1]) for batch in (1, 2, 3)]
    write(endpoint, 4, [8])

    assert [sum(message.skipped for message in messages) for messages in again] == [2, 2, 2]
    assert numbers(server) == list(range(9))


@pytest.mark.parametrize(
    "parts",
    [([2, 9],), ([2, 3, 4],), ([2],), ([2, 3], [4]), ([], [2, 3])],
    ids=["another row", "more", "fewer", "another partition", "in another partition"],
)
def test_a_batch_of_a_restored_checkpoint_that_differs_is_refused(
    server: redis.Redis, endpoint: str, parts: tuple[list[int], ...]
) -> None:
    for batch in range(3):
        write(endpoint, batch, [2 * batch, 2 * batch + 1])

    with pytest.raises(PipelineError, match="penstock pipeline markers --query q --remove"):
        write(endpoint, 1, *parts)
    assert numbers(server) == list(range(6))


def test_a_batch_that_is_older_than_the_markers_is_refused(server: redis.Redis, endpoint: str) -> None:
    for batch in range(5):
        write(endpoint, batch, [batch], markerBatches="2")

    with pytest.raises(PipelineError, match=r"batch 4 has been written already, .* older than markerBatches"):
        write(endpoint, 1, [1])
    assert server.xlen(COMMITS) == 2


def test_markers_expire(server: redis.Redis, endpoint: str) -> None:
    write(endpoint, 0, [1], [2], markerAge="1h")

    lives = [server.pttl(key) for key in server.keys("__spark:*")]
    assert len(lives) == 3
    assert 3_000_000 < min(lives) <= max(lives) <= 3_600_000


def test_a_server_that_may_evict_markers_is_named() -> None:
    flags = ("--appendonly", "no", "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru")
    text = r"maxmemory-policy allkeys-lru .* may evict the markers"
    with running_server(*flags) as other, pytest.warns(UserWarning, match=text):
        write(f"{LOCALHOST}:{other.port}", 0, [1])


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_shows_markers_and_removes_those_of_a_query(
    server: redis.Redis, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for batch in range(3):
        write(endpoint, batch, [1, 2], [3])
    server.xadd("__spark:other:0", {"crc": "0" * 16}, "1-3")

    assert cli.main(["pipeline", "markers", "--endpoint", endpoint]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table[1:] == [
        [endpoint, "other", "1", "0", "-", "-", "-"],
        [endpoint, "q", "2", "2", "0", "to", "2", "3", "90.0", "d"],
    ]
    assert cli.main(["pipeline", "markers", "--endpoint", endpoint, "--query", "q", "--remove"]) == 0
    assert capsys.readouterr().out == "removed 3 markers of the query q\n"
    assert server.keys("__spark:*") == [b"__spark:other:0"]
    assert cli.main(["pipeline", "markers", "--endpoint", endpoint, "--remove"]) == 1
    assert "--remove needs --query" in capsys.readouterr().err


# -- acks -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["penstock", "redis"])
def logging(request: pytest.FixtureRequest) -> Any:
    """The endpoint of a server with a log that is synced each second."""
    flags = ("--appendonly", "yes", "--appendfsync", "everysec", "--repl-diskless-sync-delay", "0")
    if request.param == "penstock":
        with running_server(*flags) as server:
            yield f"{LOCALHOST}:{server.port}"
    else:
        try:
            with reference_server(*flags) as port:
                yield f"{LOCALHOST}:{port}"
        except NoReference as absence:
            pytest.skip(str(absence))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once", "idmp"])
def test_a_batch_is_committed_when_the_disk_has_it(logging: str, delivery: str) -> None:
    for batch in range(2):
        write(logging, batch, [1, 2], [3], acks="disk", delivery=delivery)

    with redis.Redis(LOCALHOST, int(logging.rpartition(":")[2])) as client:
        assert client.xlen("s") == 6


def test_a_server_without_a_log_or_replicas_cannot_confirm(logging: str) -> None:
    with redis.Redis(LOCALHOST, int(logging.rpartition(":")[2])) as client:
        with pytest.raises(PipelineError, match="0 of the 1 replicas that acks asks for confirmed"):
            write(logging, 0, [1], acks="replicas:1", readTimeout="300ms")
        client.config_set("appendonly", "no")
        with pytest.raises(PipelineError, match="acks=disk is not possible with this server: ERR WAITAOF"):
            write(logging, 0, [1], acks="disk")
        write(logging, 0, [1])
        assert client.xlen("s") == 1


def test_a_batch_is_committed_when_its_replicas_have_it(logging: str) -> None:
    port = logging.rpartition(":")[2]
    with running_server("--appendonly", "no", "--replicaof", f"{LOCALHOST} {port}") as replica:
        write(logging, 0, [1, 2], acks="replicas:1")
        with redis.Redis(LOCALHOST, replica.port) as client:
            assert numbers(client) == [1, 2]
            assert client.exists(COMMITS) == 1


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("is_done", [True, False], ids=["the reply is lost", "the request is lost"])
def test_a_connection_that_breaks_amid_a_commit_is_no_matter(
    server: redis.Redis, endpoint: str, delivery: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = Client._exchange_once
    breaks = iter([True])

    def breaking(self: Client, payload: bytes, count: int, wait_s: float) -> Any:
        if b"PEXPIRE" not in payload or b":commits" not in payload or not next(breaks, False):
            return exchange(self, payload, count, wait_s)
        if is_done:
            exchange(self, payload, count, wait_s)
        raise ConnectionResetError("gone")

    monkeypatch.setattr(Client, "_exchange_once", breaking)
    server.config_set("appendfsync", "always")
    server.config_set("appendonly", "yes")
    try:
        for batch in range(2):
            write(endpoint, batch, [batch], delivery=delivery, acks="disk")
    finally:
        server.config_set("appendonly", "no")

    assert numbers(server) == [0, 1]
    assert next(breaks, None) is None
    assert server.xlen(COMMITS) == (2 if delivery == "exactly-once" else 1)


def test_a_server_that_was_started_again_amid_a_batch_confirms_nothing(tmp_path: Any) -> None:
    flags = ("--appendonly", "yes", "--appendfsync", "always")
    with running_server(*flags, dir=tmp_path) as first:
        options = {"stream": "s", "delivery": "at-least-once", "acks": "disk"}
        found = read_sink(options | {"endpoints": f"a={LOCALHOST}:{first.port}"}, False)
        written = write_task(found, Task("q", 0, 0), [pa.record_batch({"n": [1]})])
    with running_server(*flags, dir=tmp_path) as second:
        found = read_sink(options | {"endpoints": f"a={LOCALHOST}:{second.port}"}, False)
        with pytest.raises(PipelineError, match="was started again, or another one has taken its place"):
            commit_batch(found, [written], 0)


@pytest.mark.parametrize("acks", ["all", "replicas", "replicas:0", "replicas:x", "disk:1"])
def test_other_acks_are_refused(acks: str) -> None:
    with pytest.raises(OptionError, match="memory, disk, or replicas:N"):
        read_sink({"stream": "s", "acks": acks}, False)


# -- transactions of an application -----------------------------------------------------------------------------------


def save(endpoint: str, version: int, *parts: list[int], **options: str) -> int:
    """A batch job, as foreachBatch starts it; the number of rows that were there already."""
    given = {"endpoints": endpoint, "stream": "s", "txnAppId": "copy", "txnVersion": str(version)}
    writer = BatchWriter(read_sink(given | options, False))
    tasks = enumerate(pa.record_batch({"n": part}) for part in parts)
    messages: list[Any] = [write_task(writer.options, Task(writer.job, writer.batch, at), [one]) for at, one in tasks]
    writer.commit(messages)
    return sum(message.skipped for message in messages)


def test_a_job_of_a_version_that_is_written_writes_nothing(server: redis.Redis, endpoint: str) -> None:
    assert [save(endpoint, version, [version, 9], [8]) for version in (0, 1, 0, 1, 5, 5)] == [0, 0, 3, 3, 0, 3]
    assert sorted(numbers(server)) == [0, 1, 5, 8, 8, 8, 9, 9, 9]


def test_each_stream_and_each_application_has_its_own_versions(server: redis.Redis, endpoint: str) -> None:
    written = [save(endpoint, 0, [1]), save(endpoint, 0, [1], stream="t"), save(endpoint, 0, [1], txnAppId="other")]

    assert (written, server.xlen("s"), server.xlen("t")) == ([0, 0, 0], 2, 1)


def test_a_version_with_other_rows_is_refused(server: redis.Redis, endpoint: str) -> None:
    save(endpoint, 3, [1, 2])

    with pytest.raises(PipelineError, match="committed with 2 rows in this task, and now it has 2, or other ones"):
        save(endpoint, 3, [1, 3])
    assert numbers(server) == [1, 2]


@pytest.mark.parametrize(
    "options", [{"txnAppId": "a"}, {"txnVersion": "1"}, {"txnAppId": "a", "txnVersion": "1", "delivery": "idmp"}]
)
def test_half_a_transaction_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="txnAppId"):
        read_sink({"stream": "s"} | options, False)


# -- several endpoints ------------------------------------------------------------------------------------------------


def test_one_more_endpoint_takes_its_share_of_the_keys_and_no_other_key_moves() -> None:
    keys = [f"user:{at}".encode() for at in range(30_000)]
    two = [placement.place(key, ("a", "b"), placement.RENDEZVOUS) for key in keys]
    three = [placement.place(key, ("a", "b", "c"), placement.RENDEZVOUS) for key in keys]
    moved = [at for at, key in enumerate(keys) if two[at] != three[at]]

    assert 0.30 < len(moved) / len(keys) < 0.37
    assert {three[at] for at in moved} == {2}
    assert 0.45 < two.count(0) / len(keys) < 0.55


def test_an_endpoint_may_be_added_and_taken_away_between_two_batches(server: redis.Redis, endpoint: str) -> None:
    with running_server("--appendonly", "no") as other:
        both = f"a={endpoint},b={LOCALHOST}:{other.port}"
        for batch, endpoints in enumerate([f"a={endpoint}", both, f"a={endpoint}", both]):
            write(endpoints, batch, [batch])
        with redis.Redis(LOCALHOST, other.port) as client:
            assert sorted(numbers(server) + numbers(client)) == [0, 1, 2, 3]


def test_a_query_that_placed_its_keys_in_the_old_way_keeps_its_endpoints(server: redis.Redis, endpoint: str) -> None:
    with running_server("--appendonly", "no") as other, running_server("--appendonly", "no") as third:
        both = f"a={endpoint},b={LOCALHOST}:{other.port}"
        server.xadd("__spark:q:0", {"crc": "0" * 16}, "7-3")
        for batch in (7, 8):
            write(both, batch, [batch])

        for others in (f"{both},c={LOCALHOST}:{third.port}", ",".join(reversed(both.split(",")))):
            with pytest.raises(PipelineError, match="placed its keys by their CRC32 among the endpoints a, b"):
                write(others, 9, [9])
