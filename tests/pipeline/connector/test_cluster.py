"""Reading and writing a cluster: three real nodes, slots that move meanwhile, and a cluster of one Penstock."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow
import redis
from redis.cluster import RedisCluster

from penstock import cli
from penstock.pipeline.connector.connection.client import Access
from penstock.pipeline.connector.connection.cluster import ClusterClient, slot_tag, slots_of
from penstock.pipeline.connector.connection.connection_options import read_endpoint
from penstock.pipeline.connector.sink import commits, ledger, slots
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import Task, commit_batch, write_task
from penstock.pipeline.connector.tables.table_readers import create_reader
from penstock.pipeline.errors import DataLoss, PipelineError, ServerGone
from tests.pipeline.driving import Query, read, rows_of, schema, to_its_end
from tests.support.deployments import Cluster, redis_cluster, until
from tests.support.reference_server import LOCALHOST, NoReference
from tests.support.server_process import running_server

TASK = Task("5e55-query", 7, 3)
KEYS = [f"orders:{number}" for number in range(24)]
COPIES = [f"copy:{number}" for number in range(8)]
DDL = "_stream string, _id string, n int"
SHARED = {"group": "g", "groupMode": "shared", "consumer": "spark"}


class Crash(Exception):
    """The task's process dies."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(redis_cluster(tmp_path_factory.mktemp("cluster")))
        except NoReference as absence:
            pytest.skip(str(absence))
        yield found


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """A cluster that is empty."""
    started.client.flushall(target_nodes=RedisCluster.PRIMARIES)
    return started


def fill(client: Any, keys: list[str], *numbers: int) -> list[tuple[str, int]]:
    for key in keys:
        for number in numbers:
            client.xadd(key, {"n": number}, f"{number}-0")
    return [(key, number) for key in keys for number in numbers]


def found(rows: list[dict[str, Any]] | None) -> list[tuple[str, int]]:
    return sorted((row["_stream"], row["n"]) for row in rows or ())


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [{"stream": ",".join(KEYS)}, {"streamPattern": "orders:*"}], ids=["names", "glob"])
@pytest.mark.parametrize("mode", [{}, SHARED], ids=["cursor", "shared"])
def test_streams_of_all_nodes_are_read(cluster: Cluster, streams: dict[str, str], mode: dict[str, str]) -> None:
    first = fill(cluster.client, KEYS, 1, 2)
    query = Query(DDL, endpoints=cluster.endpoint, startingId="earliest", minPartitions="3", **streams, **mode)

    assert found(query.batch()) == sorted(first)
    assert query.batch() is None
    more = fill(cluster.client, KEYS[::5], 3)
    assert found(query.batch()) == sorted(more)
    query.stop()


def test_a_second_query_of_a_consumers_name_is_noticed_when_the_first_slot_has_moved(cluster: Cluster) -> None:
    fill(cluster.client, KEYS, 1)
    options = {"endpoints": cluster.endpoint, "streamPattern": "orders:*", "startingId": "earliest", **SHARED}
    first, second = Query(DDL, **options), Query(DDL, **options, retryTimeout="500ms")
    assert first.batch() is not None
    cluster.move(slot_tag(0))

    with pytest.raises(PipelineError, match="another query reads group 'g' as 'spark'"):
        second.batch()
    first.stop()
    second.stop()


def test_a_batch_of_many_streams_is_read(cluster: Cluster) -> None:
    written = fill(cluster.client, KEYS, *range(1, 40))
    options = {
        "endpoints": cluster.endpoint,
        "streamPattern": "orders:*",
        "fetchSize": "7",
        "entriesPerPartition": "50",
    }

    assert found(read(DDL, **options)) == sorted(written)


def test_a_long_stream_is_cut_into_tasks(cluster: Cluster) -> None:
    with cluster.client.pipeline() as pipe:
        for number in range(2_000):
            pipe.xadd("s", {"n": number}, f"{number + 1}-0")
        pipe.execute()
    query = Query(DDL, endpoints=cluster.endpoint, stream="s", startingId="earliest", entriesPerPartition="300")
    query.plan()

    assert len(query.tasks()) > 3
    assert [number for _, number in found(query.run())] == list(range(2_000))
    query.stop()


def test_the_pending_entries_of_all_nodes_are_one_table(cluster: Cluster) -> None:
    fill(cluster.client, KEYS, 1, 2, 3)
    for key in KEYS:
        cluster.client.xgroup_create(key, "g", "0")
        cluster.client.xreadgroup("g", "c", {key: ">"}, count=2)
    table = create_reader("pending", {"endpoints": cluster.endpoint}, schema("stream string, id string"))
    groups = create_reader("groups", {"endpoints": cluster.endpoint}, schema("stream string, pending bigint"))

    pending = rows_of(table, table.partitions())
    assert sorted((row["stream"], row["id"]) for row in pending) == sorted(
        (key, one) for key in KEYS for one in ("1-0", "2-0")
    )
    assert {row["stream"]: row["pending"] for row in rows_of(groups, groups.partitions())} == dict.fromkeys(KEYS, 2)


# -- slots that move --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [{}, SHARED], ids=["cursor", "shared"])
def test_a_slot_that_moves_between_the_plan_and_the_task_is_followed(cluster: Cluster, mode: dict[str, str]) -> None:
    written = fill(cluster.client, KEYS, 1, 2)
    query = Query(DDL, endpoints=cluster.endpoint, streamPattern="orders:*", startingId="earliest", **mode)
    query.plan()
    cluster.move(KEYS[0])
    cluster.move(KEYS[7])

    assert found(query.run()) == sorted(written)
    more = fill(cluster.client, KEYS, 3)
    assert found(query.batch()) == sorted(more)
    query.stop()


@pytest.mark.parametrize("mode", [{}, SHARED], ids=["cursor", "shared"])
def test_a_stream_is_read_while_its_slot_is_on_the_move(cluster: Cluster, mode: dict[str, str]) -> None:
    keys = ["{o}:1", "{o}:2", "{o}:3", "other"]
    written = fill(cluster.client, keys, 1, 2)
    query = Query(DDL, endpoints=cluster.endpoint, stream=",".join(keys), startingId="earliest", **mode)
    move = cluster.begin_move("{o}:1")
    carried = move.carry(2)  # one is where it was
    assert len(carried) == 2

    assert found(query.batch()) == sorted(written)
    assert found(read(DDL, endpoints=cluster.endpoint, streamPattern="*")) == sorted(written)
    move.carry()
    move.end()
    more = fill(cluster.client, keys, 3)
    assert found(query.batch()) == sorted(more)
    query.stop()


def test_a_slot_moves_amid_a_page(cluster: Cluster) -> None:
    """Its requests have gone to a node that answers some of them, and says of others where they are."""
    keys = ["{o}:1", "{o}:2", "{p}:3"]
    fill(cluster.client, keys, 1)
    cluster.client.xadd("{o}:1", {"n": "\r\n-MOVED 1 nowhere:1\r\n"}, "5-0")
    client = ClusterClient(read_endpoint(cluster.endpoint), Access())
    payload = b"".join(b"*4\r\n$6\r\nXRANGE\r\n$5\r\n%b\r\n$1\r\n-\r\n$1\r\n+\r\n" % key.encode() for key in keys[:2])
    before = client.framed(payload)
    move = cluster.begin_move("{o}:1")
    move.carry(1)

    assert client.framed(payload) == before
    move.carry()
    assert client.framed(payload) == before
    move.end()
    assert client.framed(payload) == before
    client.close()


# -- writing ----------------------------------------------------------------------------------------------------------


def rows(*numbers: int, keys: list[str] = KEYS) -> Any:
    return pyarrow.record_batch(
        {"_stream": [keys[number % len(keys)] for number in numbers], "n": [str(number) for number in numbers]}
    )


def write(cluster: Cluster, batches: Any, task: Task = TASK, **options: str) -> Any:
    given = {"endpoints": cluster.endpoint, "pipeline": "3", "retryTimeout": "20s", **options}
    return write_task(read_sink(given, False), task, batches)


def numbers(client: Any, keys: list[str] = KEYS) -> list[int]:
    """The field `n` of every entry; in each stream they are in order."""
    columns = [[int(fields[b"n"]) for _, fields in client.xrange(key)] for key in keys]
    assert all(column == sorted(column) for column in columns)
    return sorted(number for column in columns for number in column)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once", "idmp"])
def test_rows_are_written_to_the_streams_of_all_nodes(cluster: Cluster, delivery: str) -> None:
    write(cluster, [rows(*range(50)), rows(), rows(*range(50, 100))], delivery=delivery)

    assert numbers(cluster.client) == list(range(100))


def test_a_task_that_is_tried_again_writes_the_rest(cluster: Cluster) -> None:
    def crashing() -> Iterator[Any]:
        yield rows(*range(60))
        raise Crash

    with pytest.raises(Crash):
        write(cluster, crashing())
    again = write(cluster, [rows(*range(40)), rows(*range(40, 100))])

    assert numbers(cluster.client) == list(range(100))
    assert again.skipped == 60
    assert write(cluster, [rows(*range(100))]).skipped == 100


def test_a_task_that_has_no_rows_for_a_slot_any_more_is_refused(cluster: Cluster) -> None:
    write(cluster, [rows(*range(24))])

    with pytest.raises(PipelineError, match="wrote 1 rows, and now there are only 0"):
        write(cluster, [rows(*range(23))])


def test_of_two_tries_at_once_one_gives_way(cluster: Cluster) -> None:
    def overtaken() -> Iterator[Any]:
        yield rows(*range(30))
        write(cluster, [rows(*range(30)), rows(*range(30, 60))])
        yield rows(*range(30, 60))

    with pytest.raises(PipelineError, match="another try of this task"):
        write(cluster, overtaken())
    assert numbers(cluster.client) == list(range(60))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once", "idmp"])
def test_slots_move_amid_a_task_that_writes(cluster: Cluster, delivery: str) -> None:
    def batches() -> Iterator[Any]:
        yield rows(*range(60))
        cluster.move(KEYS[0])
        yield rows(*range(60, 120))
        cluster.move(KEYS[5])
        cluster.move(KEYS[0])
        yield rows(*range(120, 180))

    write(cluster, batches(), delivery=delivery)

    assert numbers(cluster.client) == list(range(180))


@pytest.mark.parametrize("delivery", ["exactly-once", "idmp"])
def test_a_task_that_is_tried_again_where_slots_have_moved_writes_the_rest(cluster: Cluster, delivery: str) -> None:
    task = Task("5e55-query", 0, 0, follows=True)

    def crashing() -> Iterator[Any]:
        yield rows(*range(60))
        cluster.move(KEYS[5])
        yield rows(*range(60, 90))
        raise Crash

    with pytest.raises(Crash):
        write(cluster, crashing(), task, delivery=delivery)
    for key in (KEYS[0], KEYS[5], "__spark:5e55-query:0"):
        cluster.move(key)
    done = write(cluster, [rows(*range(120))], task, delivery=delivery)
    commit_batch(read_sink({"endpoints": cluster.endpoint, "delivery": delivery}, False), [done], 0)

    assert numbers(cluster.client) == list(range(120))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once", "idmp"])
def test_a_write_waits_while_its_slot_is_on_the_move(cluster: Cluster, delivery: str) -> None:
    keys = ["{o}:1", "{o}:2"]
    ends = []

    def batches() -> Iterator[Any]:
        yield rows(*range(6), keys=keys)
        move = cluster.begin_move("{o}:1")
        move.carry(1)
        ends.append(threading.Timer(0.5, lambda: (move.carry(), move.end())))
        ends[0].start()
        yield rows(*range(6, 12), keys=keys)

    write(cluster, batches(), delivery=delivery)
    ends[0].join()

    assert numbers(cluster.client, keys) == list(range(12))


@pytest.mark.slow
def test_every_row_is_read_and_written_once_while_slots_move(cluster: Cluster) -> None:
    """Copies streams of a cluster to others of it, batch by batch, and moves slots all the time."""
    over = threading.Event()

    def keep_moving() -> None:
        at = 0
        while not over.is_set():
            cluster.move(KEYS[at % len(KEYS)])
            cluster.move(f"copy:{at % 8}")
            at += 5

    moving = threading.Thread(target=keep_moving)
    moving.start()
    try:
        query = Query(
            DDL, endpoints=cluster.endpoint, streamPattern="orders:*", startingId="earliest", discoveryInterval="0ms"
        )
        for batch in range(12):
            write(cluster, [rows(*range(batch * 100, batch * 100 + 100))], Task("producer", batch, 0))
            copied = sorted(number for _, number in found(query.batch()))
            write(cluster, [rows(*copied, keys=COPIES)], Task("copy", batch, 0))
        rest = sorted(row["n"] for row in query.run_to_end())
        write(cluster, [rows(*rest, keys=COPIES)], Task("copy", 12, 0))
        query.stop()
    finally:
        over.set()
        moving.join()

    assert numbers(cluster.client) == list(range(1_200))
    assert numbers(cluster.client, COPIES) == list(range(1_200))


@pytest.mark.chaos
def test_reading_and_writing_go_on_when_a_node_is_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(redis_cluster(tmp_path))
        except NoReference as absence:
            pytest.skip(str(absence))
        replica = cluster.add_replica(tmp_path, stack)
        query = Query(DDL, endpoints=cluster.endpoint, streamPattern="orders:*", discoveryInterval="0ms")
        read_before: list[tuple[str, int]] = []

        def batches() -> Iterator[Any]:
            yield rows(*range(100))
            read_before.extend(found(query.batch()))
            with redis.Redis(LOCALHOST, cluster.nodes[0].port) as master:
                assert master.wait(1, 30_000) == 1
            cluster.nodes[0].kill()
            with redis.Redis(LOCALHOST, replica.port) as client:
                until(lambda: client.role()[0] == b"master", "the replica was not promoted")
            yield rows(*range(100, 200))

        write(cluster, batches(), retryTimeout="40s")
        read_after = found(query.run_to_end())
        query.stop()

        assert sorted(number for _, number in read_before + read_after) == list(range(200))


def test_what_tasks_miss_is_counted(cluster: Cluster) -> None:
    fill(cluster.client, KEYS, *range(1, 6))
    query = Query(
        DDL, endpoints=cluster.endpoint, streamPattern="orders:*", startingId="earliest", failOnDataLoss="false"
    )
    query.plan()
    for key in KEYS:
        cluster.client.xtrim(key, maxlen=4, approximate=False)
    with pytest.warns(UserWarning, match="were trimmed"):
        assert len(query.run()) == 4 * len(KEYS)

    def counted() -> bool:
        query.plan()  # what is missing is told of with a batch of its own, once the nodes have passed it on
        return bool(query.reader.reportLatestOffset()["metrics"]["entriesMissing"] == len(KEYS))

    until(counted, "what tasks missed is not counted")
    query.stop()


# -- markers ----------------------------------------------------------------------------------------------------------


def test_a_marker_is_in_the_slot_of_its_rows() -> None:
    for slot in (0, 1, 5_000, 16_383):
        assert slots_of([ledger.marker_key("query", 3, slot_tag(slot)).encode()]) == [slot]


def test_the_markers_of_a_job_that_is_done_are_deleted(cluster: Cluster) -> None:
    write(cluster, [rows(*range(48))])
    assert len(cluster.client.keys("__spark:*", target_nodes=RedisCluster.PRIMARIES)) == 1 + len(
        set(slots_of([key.encode() for key in KEYS]))
    )
    with ClusterClient(read_endpoint(cluster.endpoint), Access()) as client:
        slots.delete_markers(client, TASK.query, TASK.partition + 1)

    assert cluster.client.keys("__spark:*", target_nodes=RedisCluster.PRIMARIES) == []


# -- committed batches ------------------------------------------------------------------------------------------------


def commit(cluster: Cluster, batch: int, *parts: list[int], **options: str) -> list[Any]:
    """A batch of a query of which all batches before were committed: its tasks, and the driver's commit."""
    tasks = [Task("q", batch, at, follows=True) for at in range(len(parts))]
    messages = [write(cluster, [rows(*part)], task, **options) for task, part in zip(tasks, parts, strict=True)]
    commit_batch(read_sink({"endpoints": cluster.endpoint, **options}, False), messages, batch)
    return messages


def test_batches_of_a_restored_checkpoint_are_compared_and_skipped(cluster: Cluster) -> None:
    parts = [[list(range(at, at + 30)), list(range(at + 30, at + 40))] for at in (0, 40, 80)]
    for batch in range(3):
        commit(cluster, batch, *parts[batch])
    again = [message.skipped for batch in (1, 2) for message in commit(cluster, batch, *parts[batch])]

    assert again == [30, 10, 30, 10]
    for other in ([*range(40, 70)], [*range(70, 79)]), ([*range(40, 70)], [*range(70, 79), 80]):
        with pytest.raises(PipelineError, match="batch 1 was committed with 10 rows in this task, and now it has"):
            commit(cluster, 1, *other)
    commit(cluster, 3, list(range(120, 130)))
    assert numbers(cluster.client) == list(range(130))


@pytest.mark.parametrize("number", range(3))
def test_a_node_that_lost_a_committed_batch_ends_the_query_once(cluster: Cluster, number: int) -> None:
    with redis.Redis(LOCALHOST, cluster.nodes[number].port) as node:
        commit(cluster, 0, list(range(48)))
        kept = {key: node.dump(key) for key in node.scan_iter()}
        commit(cluster, 1, list(range(48, 96)))
        node.flushall()
        for key, payload in kept.items():
            node.restore(key, 0, payload)

    with pytest.raises(DataLoss, match="went back: the last batch that it knows is 0, and batch 1 was committed"):
        commit(cluster, 2, list(range(96, 120)))
    with pytest.warns(UserWarning, match="the last batch that it knows is 0, and batch 1 was committed"):
        commit(cluster, 2, list(range(96, 120)), failOnDataLoss="false")
    commit(cluster, 3, list(range(120, 144)))
    assert set(range(48)) | set(range(96, 144)) <= set(numbers(cluster.client))


@pytest.mark.parametrize("number", range(3))
def test_a_node_that_goes_back_amid_a_batch_is_not_committed(cluster: Cluster, number: int) -> None:
    commit(cluster, 0, list(range(48)))
    written = write(cluster, [rows(*range(48, 96))], Task("q", 1, 0, follows=True))
    with redis.Redis(LOCALHOST, cluster.nodes[number].port) as node:
        node.flushall()

    with pytest.raises(PipelineError, match="went back amid batch 1"):
        commit_batch(read_sink({"endpoints": cluster.endpoint}, False), [written], 1)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once", "idmp"])
def test_a_batch_is_committed_when_the_disk_of_each_node_has_it(cluster: Cluster, delivery: str) -> None:
    nodes = [redis.Redis(LOCALHOST, node.port) for node in cluster.nodes]
    for node in nodes:
        node.config_set("appendfsync", "always")
        node.config_set("appendonly", "yes")
        node.config_resetstat()
    for batch in range(2):
        commit(cluster, batch, list(range(48)), acks="disk", delivery=delivery)
    asked = [node.info("commandstats")["cmdstat_waitaof"]["calls"] for node in nodes]
    for node in nodes:
        node.config_set("appendonly", "no")

    assert min(asked) == 2
    with pytest.raises(PipelineError, match="acks=disk is not possible with this server: ERR WAITAOF"):
        commit(cluster, 2, [1], acks="disk", delivery=delivery)
    with pytest.raises(PipelineError, match="0 of the 1 replicas that acks asks for confirmed"):
        commit(cluster, 2, [1], acks="replicas:1", delivery=delivery, readTimeout="300ms")


def test_nodes_are_asked_again_if_a_slot_moves_meanwhile(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(_options: Any, node: Any) -> None:
        if not asked:
            cluster.move(KEYS[0])
        asked.append(node.tag)

    monkeypatch.setattr(commits, "confirm", confirm)
    commit(cluster, 0, list(range(48)), acks="disk")

    assert len(asked) == 3 + 3 + 1  # the nodes, again, and the node of the batch's entry
    assert len(set(asked)) >= 3


def test_a_node_that_was_started_again_amid_a_batch_confirms_nothing(cluster: Cluster) -> None:
    options = {"acks": "disk", "delivery": "at-least-once"}
    written = write(cluster, [rows(*range(48))], Task("q", 0, 0), **options)
    [(name, runs)] = written.runs.items()
    nodes = [redis.Redis(LOCALHOST, node.port).info("server")["run_id"].encode() for node in cluster.nodes]
    assert sorted(runs.split()) == sorted(nodes)
    written.runs = {name: runs.replace(nodes[1], b"0" * 40)}
    for node in cluster.nodes:
        redis.Redis(LOCALHOST, node.port).config_set("appendonly", "yes")

    with pytest.raises(PipelineError, match="was started again, or another one has taken its place"):
        commit_batch(read_sink({"endpoints": cluster.endpoint, **options}, False), [written], 0)
    for node in cluster.nodes:
        redis.Redis(LOCALHOST, node.port).config_set("appendonly", "no")


def test_the_command_shows_and_removes_the_markers_of_a_cluster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for batch in range(3):
        commit(cluster, batch, list(range(20)), list(range(20, 40)))

    assert cli.main(["pipeline", "markers", "--endpoint", cluster.endpoint]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table[1:] == [[cluster.endpoint, "q", "2", "2", "0", "to", "2", "40", "90.0", "d"]]
    assert cli.main(["pipeline", "markers", "--endpoint", cluster.endpoint, "--query", "q", "--remove"]) == 0
    assert capsys.readouterr().out.startswith("removed ")
    assert cluster.client.keys("__spark:*", target_nodes=RedisCluster.PRIMARIES) == []
    assert sum(cluster.client.xlen(key) for key in KEYS) == 120


# -- operations on pending entries ------------------------------------------------------------------------------------


def test_pending_entries_of_all_nodes_are_acknowledged(cluster: Cluster) -> None:
    fill(cluster.client, KEYS, 1, 2)
    for key in KEYS:
        cluster.client.xgroup_create(key, "g", "0")
        cluster.client.xreadgroup("g", "c", {key: ">"})
    batch = pyarrow.record_batch({"stream": KEYS, "id": ["1-0"] * len(KEYS)})

    write(cluster, [batch], operation="ack", group="g")

    assert [cluster.client.xpending(key, "g")["pending"] for key in KEYS] == [1] * len(KEYS)


def test_dead_letters_go_to_a_stream_in_the_slot_of_theirs(cluster: Cluster) -> None:
    fill(cluster.client, ["orders"], 1, 2)
    cluster.client.xgroup_create("orders", "g", "0")
    cluster.client.xreadgroup("g", "c", {"orders": ">"})
    batch = pyarrow.record_batch({"stream": ["orders"], "id": ["1-0"]})

    with pytest.raises(PipelineError, match=r"deadLetterStream=\{\{key\}\}:dead"):
        write(cluster, [batch], operation="deadletter", group="g")
    write(cluster, [batch], operation="deadletter", group="g", deadLetterStream="{{key}}:dead")

    assert cluster.client.xlen("{orders}:dead") == 1
    assert cluster.client.xpending("orders", "g")["pending"] == 1


# -- clusters of one, and none ----------------------------------------------------------------------------------------


def test_a_cluster_of_one_node_is_read_and_written() -> None:
    with running_server("--appendonly", "no", "--cluster-enabled", "yes") as server:
        endpoint = f"cluster://{LOCALHOST}:{server.port}"
        write_task(read_sink({"endpoints": endpoint, "pipeline": "3"}, False), TASK, [rows(*range(100))])
        with redis.Redis(LOCALHOST, server.port) as client:
            assert numbers(client) == list(range(100))
        for mode in ({}, SHARED):
            query = Query(DDL, endpoints=endpoint, streamPattern="orders:*", startingId="earliest", **mode)
            assert sorted(number for _, number in found(query.batch())) == list(range(100))
            query.stop()


def test_a_server_that_is_no_cluster_is_told_of(server: redis.Redis, server_port: int) -> None:
    with pytest.raises(PipelineError, match="is no node of a cluster"):
        read(endpoints=f"cluster://{LOCALHOST}:{server_port}", stream="s")


def test_a_node_that_is_not_named_as_a_cluster_is_told_of(cluster: Cluster) -> None:
    fill(cluster.client, KEYS, 1)
    node = cluster.endpoint.removeprefix("cluster://").split(";")[0]
    with redis.Redis(LOCALHOST, cluster.nodes[0].port) as client:
        here = [key.decode() for key in client.keys("*")]

    with pytest.raises(PipelineError, match=r"MOVED .*; the server is a node of a cluster: endpoints=cluster:"):
        read(DDL, endpoints=node, stream=",".join(KEYS))
    for mode in ({}, SHARED):
        query = Query(DDL, endpoints=node, stream=",".join(here), startingId="latest", **mode)
        with pytest.raises(PipelineError, match=r"CROSSSLOT .*; the server is a node of a cluster: endpoints=cluster:"):
            query.batch() or query.batch()  # at the latest where it waits
        query.stop()
    with pytest.raises(PipelineError, match=r"MOVED .*; the server is a node of a cluster"):
        write_task(read_sink({"endpoints": node}, False), TASK, [rows(*range(24))])


def test_a_cluster_that_does_not_answer_is_told_of() -> None:
    with pytest.raises(ServerGone, match=f"cluster://{LOCALHOST}:1: the server does not answer"):
        read(endpoints=f"cluster://{LOCALHOST}:1", stream="s", retryTimeout="0")


# -- with Spark -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_query_of_spark_copies_the_streams_of_a_cluster(spark: Any, cluster: Cluster, checkpoint: str) -> None:
    fill(cluster.client, KEYS, 1, 2)
    options = {"endpoints": cluster.endpoint, "streamPattern": "orders:*", "startingId": "earliest"}
    frame = spark.readStream.format("redis_streams").options(**options).schema(DDL).load()
    copies = frame.selectExpr("concat('copy:', _stream) AS _stream", "n")
    writer = copies.writeStream.format("redis_streams").option("endpoints", cluster.endpoint)

    def copy_all() -> None:
        to_its_end(lambda **trigger: writer.option("checkpointLocation", checkpoint).trigger(**trigger).start())

    copy_all()
    fill(cluster.client, KEYS, 3)
    cluster.move(KEYS[0])
    copy_all()

    assert numbers(cluster.client, [f"copy:{key}" for key in KEYS]) == sorted([1, 2, 3] * len(KEYS))


def test_a_job_of_spark_leaves_no_markers_in_a_cluster(spark: Any, cluster: Cluster) -> None:
    frame = spark.range(50).coalesce(1).selectExpr("concat('orders:', id % 24) AS _stream", "id AS n")

    frame.write.format("redis_streams").option("endpoints", cluster.endpoint).mode("append").save()

    assert numbers(cluster.client) == list(range(50))
    assert cluster.client.keys("__spark:*", target_nodes=RedisCluster.PRIMARIES) == []
