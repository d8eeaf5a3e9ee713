"""The tests' own client: types told apart, replies cut anywhere, a real server."""

from typing import Any

import pytest

from tests.support import wire
from tests.support.reference_server import LOCALHOST

REPLIES = [
    (b"+OK\r\n", wire.Simple(b"OK")),
    (b"-ERR x\r\n", wire.Error(b"ERR x")),
    (b":-5\r\n", wire.Integer(-5)),
    (b"$2\r\n\r\n\r\n", wire.Bulk(b"\r\n")),
    (b"$-1\r\n", wire.NullBulk()),
    (b"*-1\r\n", wire.NullArray()),
    (b"_\r\n", wire.Null()),
    (b",inf\r\n", wire.Double(b"inf")),
    (b"(123\r\n", wire.BigNumber(b"123")),
    (b"#t\r\n", wire.Boolean(True)),
    (b"!5\r\nERR x\r\n", wire.BulkError(b"ERR x")),
    (b"=7\r\ntxt:abc\r\n", wire.Verbatim(b"txt", b"abc")),
    (b"*2\r\n*0\r\n$0\r\n\r\n", wire.Array((wire.Array(()), wire.Bulk(b"")))),
    (b"~1\r\n:1\r\n", wire.Set((wire.Integer(1),))),
    (b">1\r\n+a\r\n", wire.Push((wire.Simple(b"a"),))),
    (b"%1\r\n$1\r\na\r\n*1\r\n_\r\n", wire.Map(((wire.Bulk(b"a"), wire.Array((wire.Null(),))),))),
    (b"|1\r\n+a\r\n:1\r\n+OK\r\n", wire.Attribute(((wire.Simple(b"a"), wire.Integer(1)),), wire.Simple(b"OK"))),
]


@pytest.mark.parametrize(("data", "value"), REPLIES)
def test_a_reply_is_read_with_its_type(data: Any, value: Any) -> None:
    assert wire.parse(data + b"+more\r\n") == (value, len(data))


@pytest.mark.parametrize("data", [data[:end] for data, _ in REPLIES for end in range(len(data))])
def test_a_cut_reply_is_incomplete(data: Any) -> None:
    with pytest.raises(wire.Incomplete):
        wire.parse(data)


def test_a_cut_text_tells_how_many_bytes_are_missing() -> None:
    with pytest.raises(wire.Incomplete) as cut:
        wire.parse(b"*2\r\n:1\r\n$10\r\nabc")

    assert cut.value.missing == len(b"defghij\r\n")


@pytest.mark.parametrize(
    "data", [b"PONG\r\n", b"#x\r\n", b"_x\r\n", b"$-2\r\n", b"*x\r\n", b"$1\r\nabc\r\n", b"=1\r\na\r\n"]
)
def test_what_is_no_reply_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        wire.parse(data)


def test_values_of_different_types_differ() -> None:
    assert len({value for _, value in REPLIES}) == len(REPLIES)
    bulk: wire.Value = wire.Bulk(b"OK")
    assert bulk != wire.Simple(b"OK")


def test_a_real_server_answers_in_both_protocols(reference_port: int) -> None:
    with wire.Connection(LOCALHOST, reference_port) as client:
        assert client.ask("PING") == wire.Simple(b"PONG")
        assert client.ask("GET", "no such key") == wire.NullBulk()
        assert isinstance(client.ask("HELLO", 3), wire.Map)
        assert client.ask("GET", "no such key") == wire.Null()
        client.send_raw(b"PING\r\nPING\r\n")
        assert client.replies(2) == [wire.Simple(b"PONG")] * 2
        assert client.is_silent()
        client.send("QUIT")
        assert client.rest() == b"+OK\r\n"
