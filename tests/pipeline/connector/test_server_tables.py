"""What a server tells of its streams and groups, as rows."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pickle

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import datasource

from penstock.errors import ReplyError
from penstock.pipeline.connector.tables import pending_pages, table_readers
from penstock.pipeline.connector.tables.pending_pages import decode_pending
from penstock.pipeline.errors import OptionError
from tests.pipeline.conftest import REAL_REDIS
from tests.pipeline.connector.test_cursor_reader import fill
from tests.pipeline.connector.test_entry_pages import encoded
from tests.pipeline.driving import rows_of, schema

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
PENDING = (
    "endpoint string, stream string, group string, consumer string, id string, timestamp timestamp, idle_ms bigint"
)
DELIVERED = ", delivered_at timestamp, deliveries bigint, nacked boolean, fatal boolean"
GROUPS = "stream string, group string, consumers bigint, pending bigint, last_delivered_id string, entries_read bigint"
LAG = ", lag bigint, length bigint, last_generated_id string, entries_added bigint"
CONSUMERS = "stream string, group string, consumer string, pending bigint"
STREAMS = "stream string, length bigint, first_id string, last_id string, entries_added bigint, max_deleted_id string"


@pytest.fixture
def table(endpoint: str) -> Any:
    def read(name: str, ddl: str, **options: Any) -> list[tuple[Any, ...]]:
        given = {option: str(value) for option, value in options.items()}
        reader = table_readers.create_reader(name, {"endpoints": endpoint, **given}, schema(ddl))
        return sorted(tuple(row.values()) for row in rows_of(reader, reader.partitions()))

    return read


def test_streams(server: redis.Redis, table: Any) -> None:
    fill(server, "a", 1, 2, 3)
    server.xdel("a", "1-3")
    fill(server, "empty", 1)
    server.xtrim("empty", maxlen=0, approximate=False)
    server.set("text", "is no stream")
    server.xgroup_create("a", "g", "0")

    assert table("streams", STREAMS) == [
        ("a", 2, "1-1", "1-3", 3, "1-3"),
        ("empty", 0, None, "1-1", 1, "0-0"),
    ]
    assert table("streams", "groups bigint", stream="a") == [(1,)]
    assert table("streams", "bytes bigint", stream="a")[0][0] > 0


@pytest.mark.skipif(bool(REAL_REDIS), reason="policies are Penstock's own")
def test_policies_are_told_of_the_streams_and_groups_that_have_them(server: redis.Redis, table: Any) -> None:
    fill(server, "a", 1)
    fill(server, "b", 1)
    server.xgroup_create("a", "g", "0")
    server.xgroup_create("a", "h", "0")
    server.execute_command("PENSTOCK.POLICY", "a", "MAXLEN", "10")
    server.execute_command(
        "PENSTOCK.POLICY", "a", "GROUP", "g", "ACKWAIT", "30000", "MAXDELIVER", "5", "DEADLETTER", "a:dead"
    )

    of_streams = dict(table("streams", "stream string, policy string"))
    of_groups = dict(table("groups", "group string, policy string"))

    assert json.loads(of_streams["a"])["maxlen"] == 10 and of_streams["b"] is None
    assert json.loads(of_groups["g"])["deadletter"] == "a:dead" and of_groups["h"] is None


def test_groups_and_consumers(server: redis.Redis, table: Any) -> None:
    fill(server, "a", 1, 2, 3)
    server.xgroup_create("a", "g", "0")
    server.xgroup_create("a", "h", "$")
    server.xreadgroup("g", "alice", {"a": ">"}, count=2)
    server.xgroup_createconsumer("a", "g", "bob")

    assert table("groups", GROUPS + LAG, group="g") == [("a", "g", 2, 2, "1-2", 2, 1, 3, "1-3", 3)]
    assert table("groups", "group string") == [("g",), ("h",)]
    assert table("consumers", CONSUMERS) == [("a", "g", "alice", 2), ("a", "g", "bob", 0)]


def test_pending_entries_with_their_times(server: redis.Redis, table: Any) -> None:
    fill(server, "a", 1, 2, ms=1000)
    server.xgroup_create("a", "g", "0")
    server.xreadgroup("g", "alice", {"a": ">"})
    server.execute_command("XCLAIM", "a", "g", "bob", 0, "1000-1", "TIME", 1_700_000_000_000, "RETRYCOUNT", 7)
    first, second = table("pending", PENDING.removeprefix("endpoint string, ") + DELIVERED)

    assert first[:5] == ("a", "g", "alice", "1000-2", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert first[7:] == (1, False, False)
    assert second[2:4] == ("bob", "1000-1")
    assert abs((second[6] - datetime.fromtimestamp(1_700_000_000, UTC)).total_seconds()) < 0.1
    assert second[7:] == (7, False, False)


def test_released_and_fatal_entries_are_marked(server: redis.Redis, table: Any) -> None:
    fill(server, "a", 1, 2, 3)
    server.xgroup_create("a", "g", "0")
    server.xreadgroup("g", "alice", {"a": ">"})
    try:
        server.execute_command("XNACK", "a", "g", "FAIL", "IDS", 1, "1-1")
    except redis.ResponseError as refusal:
        pytest.skip(f"this server has no XNACK: {refusal}")
    server.execute_command("XNACK", "a", "g", "FATAL", "IDS", 1, "1-2")
    ddl = "id string, consumer string, idle_ms bigint, nacked boolean, fatal boolean, deliveries bigint"

    released, fatal, held = table("pending", ddl)
    assert released == ("1-1", None, None, True, False, 1)
    assert fatal == ("1-2", None, None, True, True, 2**63 - 1)
    assert held[:2] + held[3:] == ("1-3", "alice", False, False, 1)


def test_columns_that_are_not_asked_for_are_not_made(
    server: redis.Redis, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server, "a", 1, 2)
    server.xgroup_create("a", "g", "0")
    server.xreadgroup("g", "alice", {"a": ">"})
    monkeypatch.delattr(pending_pages.PendingPage, "consumers")
    monkeypatch.delattr(pending_pages.PendingPage, "id_texts")

    assert table("pending", "stream string, deliveries bigint") == [("a", 1), ("a", 1)]


@pytest.fixture
def pushed(server: redis.Redis, endpoint: str) -> Any:
    """What a query with these conditions gets, what Spark still has to look at, and what XPENDING was asked."""
    for stream, group, consumer, numbers in (
        ("a", "g", "alice", (1, 2, 3)),
        ("a", "h", "alice", (1, 2, 3)),
        ("b", "g", "bob", (4,)),
    ):
        fill(server, stream, *([] if server.exists(stream) else numbers))
        server.xgroup_create(stream, group, "0")
        server.xreadgroup(group, consumer, {stream: ">"})
    server.execute_command("XCLAIM", "a", "g", "carol", 0, "1-3", "IDLE", 3_600_000, "RETRYCOUNT", 7)

    def read(*conditions: datasource.Filter) -> tuple[list[str], list[datasource.Filter]]:
        reader: Any = table_readers.create_reader(
            "pending",
            {"endpoints": endpoint, "pushFilters": "true", "fetchSize": "2"},
            schema("stream string, group string, id string"),
        )
        rest = list(reader.pushFilters(list(conditions)))
        tasks = pickle.loads(pickle.dumps(reader.partitions()))
        rows = rows_of(pickle.loads(pickle.dumps(reader)), tasks)
        return sorted(" ".join(row.values()) for row in rows), rest

    return read


OF_G, OF_H, OF_B = ["a g 1-1", "a g 1-2", "a g 1-3"], ["a h 1-1", "a h 1-2", "a h 1-3"], ["b g 1-4"]


@pytest.mark.parametrize(
    ("conditions", "found", "left"),
    [
        ([], [*OF_G, *OF_H, *OF_B], 0),
        ([datasource.EqualTo(("stream",), "b")], OF_B, 0),
        ([datasource.In(("group",), ("h", "i")), datasource.EqualTo(("stream",), "a")], OF_H, 0),
        ([datasource.EqualTo(("consumer",), "carol")], OF_G[2:], 1),
        ([datasource.EqualTo(("consumer",), "nobody")], [], 1),
        ([datasource.GreaterThanOrEqual(("idle_ms",), 3_600_000)], OF_G[2:], 1),
        ([datasource.GreaterThan(("deliveries",), 6)], OF_G[2:], 0),
        ([datasource.LessThan(("deliveries",), 7), datasource.EqualTo(("group",), "g")], [*OF_G[:2], *OF_B], 0),
        ([datasource.EqualTo(("id",), "1-4")], [*OF_G, *OF_H, *OF_B], 1),
    ],
    ids=["none", "stream", "group", "consumer", "no such consumer", "idle", "deliveries", "few deliveries", "not used"],
)
def test_conditions_narrow_what_is_asked(
    conditions: list[datasource.Filter], found: list[str], left: int, pushed: Any
) -> None:
    rows, rest = pushed(*conditions)

    assert rows == found
    assert rest == conditions[len(conditions) - left :]


def test_a_long_pending_list_is_read_by_several_tasks(server: redis.Redis, endpoint: str) -> None:
    expected = fill(server, "a", *range(1, 3001))
    for group in ("g", "h"):
        server.xgroup_create("a", group, "0")
        server.xreadgroup(group, "alice", {"a": ">"})
    options = {"endpoints": endpoint, "minPartitions": "4", "fetchSize": "100"}
    reader = table_readers.create_reader("pending", options, schema("group string, id string"))
    tasks = reader.partitions()
    sizes = [len(rows_of(reader, [task])) for task in tasks]

    assert len(tasks) == 4 and max(sizes) < 2500
    found = rows_of(reader, tasks)
    assert [sorted(row["id"] for row in found if row["group"] == group) for group in ("g", "h")] == [
        sorted(expected)
    ] * 2


def test_pending_entries_with_what_they_hold(server: redis.Redis, table: Any) -> None:
    server.xadd("a", {"x": "1", "y": "\r\n"}, id="1-1")
    server.xadd("a", {"x": "2"}, id="1-2")
    server.xadd("a", {"z": "3"}, id="1-3")
    server.xgroup_create("a", "g", "0")
    server.xreadgroup("g", "alice", {"a": ">"})
    server.xdel("a", "1-2")

    assert table("pending", "id string, fields map<string,string>") == [
        ("1-1", [("x", "1"), ("y", "\r\n")]),
        ("1-2", None),
        ("1-3", [("z", "3")]),
    ]


def test_pending_fields_that_are_not_utf8_end_no_query(server: redis.Redis, table: Any) -> None:
    server.xadd("s", {b"\xffa": b"\xfe"}, "1-0")
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "ann", {"s": ">"})

    assert table("pending", "fields map<string,string>") == [
        ([("\N{REPLACEMENT CHARACTER}a", "\N{REPLACEMENT CHARACTER}")],)
    ]


def test_a_column_that_a_table_does_not_have_is_refused(endpoint: str) -> None:
    with pytest.raises(OptionError, match="no column 'sku'"):
        table_readers.create_reader("groups", {"endpoints": endpoint}, schema("sku string"))
    with pytest.raises(OptionError, match="did you mean 'streamPattern'"):
        table_readers.create_reader("groups", {"streampatern": "*"}, schema("stream string"))


ROW = st.tuples(
    st.builds(b"%d-%d".__mod__, st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 9))),
    st.one_of(st.just(b""), st.binary(max_size=8)),
    st.one_of(st.just(-1), st.integers(0, 2**62)),
    st.one_of(st.just(2**63 - 1), st.integers(0, 10**17)),
)


def replies(rows: list[tuple[Any, ...]]) -> bytes:
    entries = [
        b"*4\r\n" + encoded(entry_id) + encoded(consumer) + b":%d\r\n:%d\r\n" % (idle, count)
        for entry_id, consumer, idle, count in rows
    ]
    return b"*%d\r\n" % len(rows) + b"".join(entries) + encoded([b"1700000000", b"123456"])


@UNHURRIED
@given(st.lists(ROW, max_size=6))
def test_pending_pages_hold_what_a_parser_reads(rows: list[tuple[Any, ...]]) -> None:
    page = decode_pending(replies(rows))

    columns = (
        page.id_texts().to_pylist(),
        page.consumers().to_pylist(),
        page.idle_ms.tolist(),
        page.deliveries.tolist(),
    )
    assert list(zip(*columns, strict=True)) == rows
    assert page.now_ms == 1_700_000_000_123


def test_ordinary_pending_pages_are_never_parsed_word_by_word() -> None:
    rows = [(b"1-1", b"alice", 5, 1), (b"2-11", b"", -1, 3)]

    assert pending_pages._by_columns(replies(rows)) is not None


def test_a_refused_xpending_is_raised() -> None:
    with pytest.raises(ReplyError):
        decode_pending(b"-NOGROUP none\r\n" + encoded([b"1", b"2"]))
