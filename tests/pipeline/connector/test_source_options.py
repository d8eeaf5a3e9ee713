"""Options: what they mean, and what a mistake is told."""

from typing import Any

import pytest

from penstock.pipeline.connector.connection.client import Endpoint
from penstock.pipeline.connector.connection.connection_options import read_endpoint
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.source.source_options import Entries, read_entries
from penstock.pipeline.errors import OptionError
from penstock.storage.streams import ids


def batch(**options: str) -> Entries:
    return read_entries({"stream": "s", **options}, streaming=False)


@pytest.mark.parametrize(
    ("word", "endpoint"),
    [
        ("db", Endpoint("db:6379", "db", 6379)),
        ("db:7000", Endpoint("db:7000", "db", 7000)),
        ("main=10.0.0.1:7000", Endpoint("main", "10.0.0.1", 7000)),
        ("[::1]:7000", Endpoint("::1:7000", "::1", 7000)),
        ("six=[::1]", Endpoint("six", "::1", 6379)),
    ],
)
def test_endpoints(word: str, endpoint: Endpoint) -> None:
    assert read_endpoint(word) == endpoint


@pytest.mark.parametrize("word", ["", ":7000", "db:", "db:port", "db:0", "db:70000", "=db:1", "::1:7000", "a=b=:1"])
def test_what_is_no_endpoint(word: str) -> None:
    with pytest.raises(OptionError, match="host:port"):
        read_endpoint(word)


@pytest.mark.parametrize(
    ("word", "milliseconds"),
    [("500ms", 500), ("10s", 10_000), ("1.5m", 90_000), ("2h", 7_200_000), ("1d", 86_400_000), ("7", 7)],
)
def test_durations(word: str, milliseconds: int) -> None:
    assert OptionReader({"wait": word}, "test").duration_ms("wait", None) == milliseconds


@pytest.mark.parametrize(
    ("word", "milliseconds"),
    [
        ("1795214535211", 1795214535211),
        ("2026-11-20T10:00Z", 1795168800000),
        ("2026-11-20T10:00+01:00", 1795165200000),
        ("2026-11-20T10:00:00.123", 1795168800123),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_timestamps(word: str, milliseconds: int) -> None:
    assert OptionReader({"at": word}, "test").moment_ms("at", word) == milliseconds


def test_names_are_options_in_any_case() -> None:
    assert batch(MAXPARTITIONS="3", minpartitions="2").sizing.max_partitions == 3


def test_more_partitions_are_wanted_than_the_default_allows() -> None:
    assert batch(minPartitions="100").sizing.max_partitions == 100


def test_the_end_of_a_batch_is_an_id_or_the_moment_before_a_time() -> None:
    assert batch().end.at == ids.MAX
    assert batch(endingId="5").end.at == ids.parse(b"5", ids.HALF)
    assert batch(endingTimestamp="5").end.at == ids.parse(b"4", ids.HALF)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"steam": "s"}, "knows no option 'steam': did you mean 'stream'"),
        ({"qwertz": "s"}, "it takes claimMinIdle, connectTimeout"),
        ({"streamPattern": "*"}, "exactly one of"),
        ({"fetchSize": "many"}, "'fetchSize' of the batch source is to be a whole number, not 'many'"),
        ({"fetchSize": "0"}, "at least 1"),
        ({"failOnDataLoss": "maybe"}, "true, certain or false"),
        ({"pollTimeout": "soon"}, "duration"),
        ({"startingTimestamp": "yesterday"}, "ISO time"),
        ({"startingTimestamp": "1", "startingId": "1-1"}, "only one"),
        ({"startingId": "first"}, "earliest, latest, group or an id"),
        ({"startingId": "{"}, "no JSON"),
        ({"startingId": '{"s": "1-1", "t": "2-2"}'}, "names the stream 't', which is not among those of 'stream'"),
        ({"startingTimestamp": '{"s": "soon"}'}, "ISO time"),
        ({"endingTimestamp": '{"t": 7}'}, "'endingTimestamp' names the stream 't'"),
        ({"endingId": '{"s": "x"}'}, "latest or an id"),
        ({"endingId": "{"}, "no JSON"),
        ({"endingId": "x"}, "latest or an id"),
        ({"endingId": "1", "endingTimestamp": "1"}, "only one"),
        ({"groupMode": "both"}, "cursor, shared"),
        ({"startingId": "group"}, "need the option 'group'"),
        ({"claimMinIdle": "1s", "group": "g"}, "need 'groupMode' shared"),
        ({"groupMode": "shared", "group": "g"}, "streaming source's"),
        ({"endpoints": "a=x:1,a=y:1"}, "every endpoint once"),
        ({"username": "u"}, "'password'"),
        ({"minPartitions": "9", "maxPartitions": "3"}, "at most maxPartitions"),
        ({"stream": "[1]"}, "JSON array of names"),
        ({"table": "entires"}, "one of entries, pending"),
    ],
)
def test_a_mistake_is_told(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told.replace("(", r"\(")):
        batch(**options)


def test_a_stream_query_has_no_end() -> None:
    with pytest.raises(OptionError, match="no end"):
        read_entries({"stream": "s", "endingId": "5"}, streaming=True)


def test_a_password_is_never_shown() -> None:
    mistake: Any = OptionReader({"password": "secret"}, "test").mistake("password", "is wrong")
    assert "secret" not in str(mistake)


def test_sparks_own_options_are_let_through() -> None:
    assert batch(checkpointLocation="x", path="y").keys.names == ("s",)
