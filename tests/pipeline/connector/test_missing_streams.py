"""Streams that a query names and that are not there: told of, and never created."""

import json
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection import missing_streams
from penstock.pipeline.connector.connection.connection_options import Keys
from penstock.pipeline.connector.connection.missing_streams import MissingStreams
from penstock.pipeline.connector.source import shared_reader
from penstock.pipeline.errors import DataLoss, PipelineError
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.driving import Query, read

MODES: list[dict[str, str]] = [{}, {"group": "g", "groupMode": "shared", "consumer": "spark"}]
BOTH_MODES = pytest.mark.parametrize("mode", MODES, ids=["cursor", "shared"])
NAMED = Keys(("s", "t"), None, 0)


@BOTH_MODES
def test_a_mistyped_stream_is_warned_of_and_counted_and_not_created(
    server: redis.Redis, endpoint: str, mode: dict[str, str]
) -> None:
    server.xadd("orders", {"n": 1})
    with pytest.warns(UserWarning, match="these are not there: 'ordres'"):
        query = Query(endpoints=endpoint, stream="orders,ordres", **mode)
        query.plan()
    told = query.reader.reportLatestOffset()
    query.stop()

    assert told["metrics"]["streamsMissing"] == 1
    assert server.keys() == [b"orders"]


@BOTH_MODES
def test_a_stream_that_is_missing_ends_a_query_that_wants_it(
    server: redis.Redis, endpoint: str, mode: dict[str, str]
) -> None:
    server.xadd("orders", {"n": 1})
    query: Query | None = None
    with pytest.raises(PipelineError, match=r"these are not there: 'ordres' \(failOnMissingStream"):
        query = Query(endpoints=endpoint, stream="orders,ordres", failOnMissingStream="true", **mode)
        query.plan()
    if query is not None:
        query.stop()


@pytest.mark.filterwarnings("ignore:of the streams")
@BOTH_MODES
def test_a_stream_that_is_missing_is_read_from_its_first_entry_once_it_is_there(
    server: redis.Redis, endpoint: str, mode: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_reader, "JOIN_MISSING_S", 0.0)
    query = Query(endpoints=endpoint, stream="s", **mode)
    assert query.batch() is None
    server.xadd("s", {"n": 1}, "1-1")

    assert query.ids() == ["1-1"]
    assert query.reader.reportLatestOffset()["metrics"]["streamsMissing"] == 0
    query.stop()


def test_a_batch_tells_of_the_streams_that_it_did_not_find(server: redis.Redis, endpoint: str) -> None:
    server.xadd("s", {"n": 1}, "1-1")

    with pytest.warns(UserWarning, match="these are not there: 't'"):
        assert len(read(endpoints=endpoint, stream="s,t")) == 1
    with pytest.raises(PipelineError, match="these are not there: 't'"):
        read(endpoints=endpoint, stream="s,t", failOnMissingStream="true")


def test_a_missing_stream_is_warned_of_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(missing_streams, "now_s", lambda: clock[0])
    watched = MissingStreams(NAMED, False)
    told: list[str] = []
    monkeypatch.setattr(missing_streams.warnings, "warn", lambda text, **_: told.append(text))

    for seconds in (0, 30, 60, 61, 121):
        clock[0] = 1_000.0 + seconds
        watched.look({b"s"})

    text = "of the streams that 'stream' names these are not there: 't'"
    assert told == [text, f"{text} (for 1 min)", f"{text} (for 2 min)"]
    assert watched.count == 1


def test_many_missing_streams_are_counted_in_the_warning() -> None:
    with pytest.warns(UserWarning, match="'5' and 3 more"):
        MissingStreams(Keys(tuple("12345678"), None, 0), False).look(())


# -- bounds by stream -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": {"a": 2}}, ["a2", "a3", "b1", "b2", "b3"]),
        ({"startingTimestamp": {"a": "1970-01-01T00:00:00.003Z", "*": 2}}, ["a3", "b2", "b3"]),
        ({"endingTimestamp": {"a": 2, "b": 3}}, ["a1", "b1", "b2"]),
        ({"endingId": {"a": "2-0", "*": "1"}}, ["a1", "a2", "b1"]),
        ({"endingId": {"a": "latest", "b": "1-0"}}, ["a1", "a2", "a3", "b1"]),
        ({"startingId": {"a": "2-0"}, "endingTimestamp": {"b": 3}}, ["a2", "a3", "b1", "b2"]),
    ],
)
def test_a_batch_begins_and_ends_where_each_stream_is_told_to(
    server: redis.Redis, endpoint: str, options: dict[str, Any], expected: list[str]
) -> None:
    for stream in "ab":
        for ms in (1, 2, 3):
            server.xadd(stream, {"n": ms}, f"{ms}-0")
    given = {name: json.dumps(by_stream) for name, by_stream in options.items()}

    rows = read(endpoints=endpoint, stream="a,b", **given)

    assert sorted(row["_stream"] + row["_id"].removesuffix("-0") for row in rows) == expected


# -- streams that a pattern finds while its query runs ----------------------------------------------------------------

PATTERN = {"streamPattern": "t*", "startingId": "earliest", "discoveryInterval": "0"}


@BOTH_MODES
@pytest.mark.parametrize("restarts", [False, True], ids=["runs", "starts again"])
def test_what_was_taken_from_a_stream_before_the_pattern_found_it_is_told_of(
    mode: dict[str, str], restarts: bool
) -> None:
    server = Server()
    server.ask("XADD", "t1", "1-1", "n", 1)
    with reached(server):
        ending = Query(**PATTERN, **mode)
        going_on = Query(**PATTERN, failOnDataLoss="certain", **mode | {"group": "h"})
        for stream in (ending, going_on):
            assert stream.ids() == ["1-1"]
        for seq in range(1, 11):
            server.ask("XADD", "t2", f"1-{seq}", "n", seq)
        server.ask("XTRIM", "t2", "MAXLEN", 3)
        server.ask("XADD", "t3", "1-20", "n", 1)
        for stream in (ending, going_on):
            if restarts:
                stream.start_driver()

        with pytest.raises(DataLoss, match=r"'t2': the pattern found .* at most 7 unread ones"):
            ending.batch()
        with pytest.warns(UserWarning, match="at most 7"):
            assert going_on.ids() == ["1-8", "1-9", "1-10", "1-20"]
        assert going_on.run_to_end() == []
        assert going_on.reader.missing()["entriesMissingByCause"] == {"uncounted": 7}
