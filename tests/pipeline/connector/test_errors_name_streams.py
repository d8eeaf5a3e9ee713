"""What a server refuses is told of with the stream, and with the group, the entry or the row that it was about."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow

from penstock.pipeline.connector.sink.ledger import Task
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.sink.sink_writer import write_task
from penstock.pipeline.errors import PipelineError
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.driving import Query, read

SHARED = {"group": "g", "groupMode": "shared", "consumer": "spark", "startingId": "earliest"}


@pytest.fixture
def fake() -> Iterator[Server]:
    """A server that the connector reaches without a network; its group has a pending entry, and one that is new."""
    server = Server()
    for seq in (1, 2):
        server.ask("XADD", "s", f"1-{seq}", "n", seq)
    server.ask("XGROUP", "CREATE", "s", "g", 0)
    server.ask("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "s", ">")
    with reached(server):
        yield server


def write(columns: dict[str, list[Any]], **options: str) -> Any:
    return write_task(read_sink(options, False), Task("5e55-query", 0, 0), [pyarrow.record_batch(columns)])


def add(**options: str) -> Callable[[], Any]:
    return lambda: write({"n": ["7"]}, stream="s", **options)


def done_to_an_entry(operation: str) -> Callable[[], Any]:
    row = {"stream": ["s"], "group": ["g"], "id": ["1-1"]}
    return lambda: write(row, operation=operation)


def read_in_a_group() -> None:
    stream = Query(stream="s", **SHARED)
    for _ in range(3):
        stream.plan()


@pytest.mark.parametrize(
    ("right", "act", "text"),
    [
        ("-xack", done_to_an_entry("ack"), "stream 's', group 'g': XACK is refused: NOPERM"),
        ("-xnack", done_to_an_entry("nack"), "stream 's', group 'g': XNACK is refused: NOPERM"),
        ("-xclaim", done_to_an_entry("deadletter"), "stream 's', group 'g': XCLAIM is refused: NOPERM"),
        ("-xrange", done_to_an_entry("deadletter"), "key 's': NOPERM"),
        ("-xadd", add(), r"nothing was written\): NOPERM .* \(XADD s \* n 7\)"),
        ("-xadd", add(delivery="at-least-once"), r"refuses a row: NOPERM .* \(XADD s \* n 7\)"),
        ("-xcfgset", add(delivery="idmp"), "the stream b's' cannot be made to tell rows apart: NOPERM"),
        ("-xrange", lambda: read(stream="s"), "key 's': NOPERM"),
        ("-xreadgroup", read_in_a_group, "stream 's': the group 'g' cannot be read: NOPERM"),
        ("-xack", read_in_a_group, "stream 's': a batch is complete and cannot be acknowledged: NOPERM"),
    ],
)
def test_what_a_user_may_not_do_is_told_of_with_its_stream(
    fake: Server, right: str, act: Callable[[], Any], text: str
) -> None:
    fake.ask("ACL", "SETUSER", "default", right)

    with pytest.raises(PipelineError, match=text):
        act()


def test_a_row_that_is_refused_amid_a_transaction_is_shown(fake: Server) -> None:
    fake.ask("XADD", "late", "9-0", "n", 1)
    fake.ask("XSETID", "late", "18446744073709551615-18446744073709551615")

    with pytest.raises(PipelineError, match=r"refused 1, while it wrote the others: .* \(XADD late \* n 8\)"):
        write({"_stream": ["s", "late"], "n": ["7", "8"]})


def test_a_bookmark_that_cannot_be_moved_is_told_of_with_its_stream(fake: Server) -> None:
    stream = Query(stream="s", group="bookmark", startingId="earliest")
    fake.ask("ACL", "SETUSER", "default", "-xgroup|setid")

    with pytest.warns(UserWarning, match="stream 's': group 'bookmark' was not moved: NOPERM"):
        stream.run_to_end()


def test_a_key_that_is_no_text_is_named(fake: Server) -> None:
    fake.ask("XADD", b"\xffs", "1-1", "n", 1)

    with pytest.raises(PipelineError, match=r"the key b'\\xffs' is not UTF-8"):
        read(streamPattern="*")
