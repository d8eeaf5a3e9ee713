"""Broken requests: a real Redis ends them with the same words.

Each goes in one piece: Redis 8.6.3 says nothing, for ever, about a bad argument header that comes in a later read than
its request's first line. Ours speaks up, so that a split changes nothing.
"""

from collections.abc import Iterator

import pytest

from penstock.errors import ProtocolError
from penstock.protocol.limits import Limits
from penstock.protocol.request_reader import RequestReader
from tests.protocol.test_request_reader import CASES
from tests.support import wire
from tests.support.reference_server import LOCALHOST, NoReference, reference_server

BROKEN = [(name, data) for name, data, _, error in CASES if error is not None]
WAITING = [(name, data) for name, data, requests, error in CASES if error is None and not requests]
UNAUTHENTICATED = [b"*11\r\n", b"*1\r\n$16385\r\n", b"*2147483648\r\n", b"*1\r\n$536870913\r\n", b"POST\r\n"]


@pytest.fixture(scope="module")
def guarded_port() -> Iterator[int]:
    """The port of a Redis that wants a password."""
    try:
        with reference_server() as port, wire.Connection(LOCALHOST, port) as owner:
            owner.ask("CONFIG", "SET", "requirepass", "pw")
            yield port
    except NoReference as absence:
        pytest.skip(str(absence))


def last_words(data: bytes, limits: Limits) -> bytes:
    """How a connection that sent this ends, as a reply; empty when it is closed in silence."""
    reader = RequestReader(limits)
    reader.feed(data)
    with pytest.raises(ProtocolError) as refused:
        while reader.take(1):
            pass
    return b"-ERR Protocol error: " + refused.value.text + b"\r\n" if refused.value.text else b""


def last_words_of(port: int, data: bytes) -> bytes:
    with wire.Connection(LOCALHOST, port) as client:
        client.send_raw(data)
        _before, mark, words = client.rest().rpartition(b"-ERR Protocol error: ")
        return mark + words


@pytest.mark.parametrize("data", [data for _, data in BROKEN], ids=[name for name, _ in BROKEN])
def test_a_broken_request_ends_as_in_redis(reference_port: int, data: bytes) -> None:
    assert last_words(data, Limits()) == last_words_of(reference_port, data)


@pytest.mark.parametrize("data", UNAUTHENTICATED)
def test_before_authentication_large_requests_end_as_in_redis(guarded_port: int, data: bytes) -> None:
    assert last_words(data, Limits(authenticated=False)) == last_words_of(guarded_port, data)


@pytest.mark.parametrize("data", [data for _, data in WAITING], ids=[name for name, _ in WAITING])
def test_an_unfinished_request_is_waited_for_as_in_redis(reference_port: int, data: bytes) -> None:
    with wire.Connection(LOCALHOST, reference_port) as client:
        client.send_raw(data)
        assert client.is_silent()
