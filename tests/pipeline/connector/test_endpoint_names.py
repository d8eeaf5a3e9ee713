"""Offsets name streams, not addresses: a server that has moved is read where its stream was left."""

import json
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection.connection_options import read_endpoint
from penstock.pipeline.connector.source.offsets import EndpointNames
from penstock.pipeline.errors import DataLoss, PipelineError
from tests.pipeline.driving import Query
from tests.support.deployments import replicate
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server

SHARED = {"group": "g", "groupMode": "shared", "consumer": "spark", "startingId": "earliest"}
MODES: list[dict[str, str]] = [{}, SHARED]
BOTH_MODES = pytest.mark.parametrize("mode", MODES, ids=["cursor", "shared"])


def moved(query: Query, endpoints: str) -> Query:
    """The query with another spelling of its servers, as after a restart."""
    query.stop()
    query.options["endpoints"] = endpoints
    query.start_driver()
    return query


def rewritten(query: Query, known: str, name: str) -> None:
    """The query's log as if its server had had another name in it."""
    text = json.dumps(query.log)
    assert f'"{known}": {{' in text
    query.log[:] = json.loads(text.replace(f'"{known}": {{', f'"{name}": {{'))


@BOTH_MODES
def test_a_server_with_another_address_is_read_on(
    server: redis.Redis, server_port: int, endpoint: str, mode: dict[str, str]
) -> None:
    server.xadd("s", {"n": 1}, "1-1")
    query = Query(endpoints=endpoint, stream="s", **{"startingId": "earliest", **mode})
    assert query.ids() == ["1-1"]
    server.xadd("s", {"n": 2}, "1-2")

    assert moved(query, f"localhost:{server_port}").ids() == ["1-2"]
    assert LOCALHOST not in json.dumps(query.log)
    query.stop()


@BOTH_MODES
@pytest.mark.parametrize("name", ["", "main="], ids=["no name", "a name"])
def test_a_checkpoint_with_addresses_in_it_is_read(
    server: redis.Redis, endpoint: str, mode: dict[str, str], name: str
) -> None:
    server.xadd("s", {"n": 1}, "1-1")
    query = Query(endpoints=endpoint, stream="s", **{"startingId": "earliest", **mode})
    assert query.ids() == ["1-1"]
    rewritten(query, "", "old-host:7000")
    server.xadd("s", {"n": 2}, "1-2")

    assert moved(query, f"{name}{endpoint}").ids() == ["1-2"]
    query.stop()


def test_a_batch_that_was_planned_before_the_server_moved_has_the_same_rows(
    server: redis.Redis, server_port: int, endpoint: str
) -> None:
    server.xadd("s", {"n": 1}, "1-1")
    query = Query(endpoints=endpoint, stream="s", startingId="earliest")
    query.plan()
    rewritten(query, "", endpoint)
    server.xadd("s", {"n": 2}, "1-2")

    assert [row["_id"] for row in moved(query, f"localhost:{server_port}").run()] == ["1-1"]
    query.stop()


def test_a_promoted_replica_is_read_on(server: redis.Redis, server_port: int, endpoint: str) -> None:
    server.xadd("s", {"n": 1}, "1-1")
    query = Query(endpoints=endpoint, stream="s", startingId="earliest")
    assert query.ids() == ["1-1"]
    with running_server("--appendonly", "no") as other, redis.Redis(LOCALHOST, other.port) as promoted:
        replicate(promoted, server_port)
        promoted.replicaof("NO", "ONE")
        promoted.xadd("s", {"n": 2}, "1-2")

        assert moved(query, f"{LOCALHOST}:{other.port}").ids() == ["1-2"]
        query.stop()


@pytest.mark.parametrize("entries", [0, 1], ids=["without the stream", "with a shorter one"])
def test_another_server_behind_the_same_name_is_a_loss(server: redis.Redis, endpoint: str, entries: int) -> None:
    for number in range(1, 4):
        server.xadd("s", {"n": number}, f"1-{number}")
    query = Query(endpoints=f"main={endpoint}", stream="s", startingId="earliest")
    assert query.ids() == ["1-1", "1-2", "1-3"]
    server.xadd("s", {"n": 4}, "1-4")
    query.plan()
    with running_server("--appendonly", "no") as other, redis.Redis(LOCALHOST, other.port) as client:
        for number in range(entries):
            client.xadd("s", {"n": number}, f"1-{number + 1}")
        moved(query, f"main={LOCALHOST}:{other.port}")

        with pytest.raises(DataLoss, match="the stream"):
            query.plan()
        query.stop()


def names_of(endpoints: str) -> EndpointNames:
    return EndpointNames([read_endpoint(word) for word in endpoints.split(",")])


@pytest.mark.parametrize(
    ("endpoints", "written", "read"),
    [
        ("h:1", "", "h:1"),
        ("h:1", "other:2", "h:1"),
        ("a=h:1", "a", "a"),
        ("a=h:1", "", "a"),
        ("a=h:1", "b", "a"),
        ("a=h:1,b=h:2", "b", "b"),
        ("a=h:1,b=h:2", "h:2", "b"),
        ("h:1,h:2", "h:2", "h:2"),
    ],
)
def test_a_name_in_an_offset_means_one_of_the_endpoints(endpoints: str, written: str, read: str) -> None:
    offset: dict[str, Any] = {"v": 1, "at": {written: {"s": ["1-0", 1]}}, "missing": {"trimmed": 1}}

    assert names_of(endpoints).read(offset) == offset | {"at": {read: {"s": ["1-0", 1]}}}


@pytest.mark.parametrize(
    ("endpoints", "written", "advice"),
    [
        ("a=h:1,b=h:2", "", "Give that server a name"),
        ("a=h:1,b=h:2", "c", "keep its name: c=host:port"),
        ("h:1,h:2", "h:3", "keep its name: h:3=host:port"),
    ],
)
def test_a_server_of_the_checkpoint_that_is_none_of_the_endpoints_ends_the_query(
    endpoints: str, written: str, advice: str
) -> None:
    with pytest.raises(PipelineError, match=advice):
        names_of(endpoints).read({"v": 1, "at": {written: {"s": ["1-0", 1]}}})
