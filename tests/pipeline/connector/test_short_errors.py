"""What a user sees of a mistake: one sentence, and none of our frames before it."""

import ssl
import traceback
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.sql import types

from penstock.pipeline.connector.connection.client import Access, Client, Endpoint
from penstock.pipeline.connector.datasource import StreamsDataSource
from penstock.pipeline.connector.sink.sink_writer import BatchWriter, batch_writer
from penstock.pipeline.errors import OptionError, PipelineError, ServerGone
from tests.pipeline.driving import schema
from tests.support.reference_server import LOCALHOST

UNREACHABLE = {"endpoints": f"{LOCALHOST}:1", "stream": "s", "retryTimeout": "0"}
ROWS = types.StructType().add("n", types.LongType())


def frames(error: PipelineError) -> list[str]:
    """What Spark would show before the sentence, but for the caller's own frame."""
    assert error.__cause__ is None
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]


def test_a_mistyped_option_is_one_sentence() -> None:
    source = StreamsDataSource({"stream": "s", "fetchsise": "3"})
    with pytest.raises(OptionError) as caught:
        source.reader(schema("_id string"))

    assert str(caught.value) == "the batch source knows no option 'fetchsise': did you mean 'fetchSize'?"
    assert frames(caught.value) == ["call"]


def test_a_table_whose_options_spark_has_lost_says_what_keeps_them() -> None:
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW v USING redis_streams"):
        StreamsDataSource({}).reader(schema("_id string"))


def test_a_server_that_is_not_there_is_one_sentence_in_planning_and_in_tasks(
    server: redis.Redis, endpoint: str
) -> None:
    server.xadd("s", {"n": 1})
    reader: Any = StreamsDataSource({**UNREACHABLE, "endpoints": f"a={endpoint}"}).reader(schema("_id string"))
    tasks = reader.partitions()
    lost: Any = StreamsDataSource({**UNREACHABLE, "endpoints": f"a={LOCALHOST}:1"}).reader(schema("_id string"))
    for call in (lost.partitions, lambda: list(lost.read(tasks[0]))):
        with pytest.raises(ServerGone, match=r"does not answer: .*Connection refused") as caught:
            call()
        assert frames(caught.value)[-1] == "call"
        assert len(frames(caught.value)) <= 2


def test_a_job_that_failed_says_why_although_its_markers_cannot_be_removed() -> None:
    writer = batch_writer(UNREACHABLE, ROWS, False)
    assert isinstance(writer, BatchWriter)

    writer.abort([None])  # Spark would tell of this instead


@pytest.mark.parametrize(
    ("access", "failure", "hint"),
    [
        (Access(), ConnectionResetError("it closed the connection"), "may be one with TLS"),
        (Access(tls=True), TimeoutError("handshake"), "may be one without TLS"),
        (Access(tls=True), ssl.SSLError("wrong version number"), "may be one without TLS"),
        (Access(tls=True), ssl.SSLCertVerificationError("self-signed"), "the option tlsCa names the file"),
    ],
    ids=["plain to TLS", "TLS to plain", "no TLS in the reply", "a stranger's certificate"],
)
def test_what_may_be_wrong_with_tls_is_said(
    access: Access, failure: Exception, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise failure

    monkeypatch.setattr(Client, "_connect", refused)
    monkeypatch.setattr("time.sleep", lambda _: None)
    client = Client(Endpoint("a", LOCALHOST, 1), Access(tls=access.tls, retry_s=0.0))
    with pytest.raises(ServerGone, match=hint):
        client.call("PING")


@pytest.mark.parametrize("tls", ["true", "false"])
def test_nothing_is_said_of_tls_where_no_server_listens(tls: str) -> None:
    reader: Any = StreamsDataSource({**UNREACHABLE, "tls": tls}).reader(schema("_id string"))
    with pytest.raises(ServerGone) as caught:
        reader.partitions()

    assert "TLS" not in str(caught.value)


def test_a_certificate_without_a_known_authority_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def refused(*_: object) -> None:
        tries.append(1)
        raise ssl.SSLCertVerificationError("self-signed")

    monkeypatch.setattr(Client, "_connect", refused)
    with pytest.raises(ServerGone):
        Client(Endpoint("a", LOCALHOST, 1), Access(tls=True, retry_s=60.0)).call("PING")

    assert len(tries) == 1
