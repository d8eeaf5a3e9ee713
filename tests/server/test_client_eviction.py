"""maxmemory-clients closes the clients that take most (Redis 8.6.3, live); what a client may queue is bounded."""

import pytest

from tests.support.fake_server import Client, FakeServer

MEGABYTE = 1 << 20


def unfinished(size: int) -> bytes:
    """The beginning of a request: it waits in the server."""
    return b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (2 * size) + b"x" * size


def evicted(server: FakeServer) -> int:
    return server.engine.statistics.evicted_clients


def closed(*clients: Client) -> list[bool]:
    return [client.transport.aborted for client in clients]


def test_the_largest_clients_are_closed_first() -> None:
    server = FakeServer(maxmemory_clients="8mb")
    small, large, middle = server.connect(), server.connect(), server.connect()
    small.says(unfinished(MEGABYTE))
    large.says(unfinished(5 * MEGABYTE))
    middle.says(unfinished(4 * MEGABYTE))

    assert closed(small, large, middle) == [False, True, False]
    assert b"evicted_clients:1\r\n" in server.connect().says(b"INFO stats\r\n")


def test_a_lower_limit_holds_for_clients_that_are_there() -> None:
    server = FakeServer(maxmemory_clients="8mb")
    small, large, admin = server.connect(), server.connect(), server.connect()
    small.says(unfinished(MEGABYTE))
    large.says(unfinished(5 * MEGABYTE))
    admin.says(b"CONFIG SET maxmemory-clients 2mb\r\n")

    assert closed(small, large, admin) == [False, True, False]


def test_a_client_that_asked_for_it_is_counted_but_not_closed() -> None:
    server = FakeServer(maxmemory_clients="4mb")
    kept, other = server.connect(), server.connect()
    kept.says(b"CLIENT NO-EVICT ON\r\n")
    kept.says(unfinished(5 * MEGABYTE))
    other.says(unfinished(MEGABYTE))

    assert closed(kept, other) == [False, True]
    assert evicted(server) == 1


def test_a_percentage_is_of_maxmemory() -> None:
    server = FakeServer(maxmemory="100gb", maxmemory_clients="10%")

    assert server.turn.client_eviction.limit == 10 << 30


@pytest.mark.parametrize("value", ["0", "0%", "50%"])
def test_without_a_limit_no_client_is_closed(value: str) -> None:
    server = FakeServer(maxmemory_clients=value)
    client = server.connect()
    client.says(unfinished(5 * MEGABYTE))

    assert (closed(client), server.turn.client_eviction.limit) == ([False], 0)


def test_a_tiny_limit_lets_a_client_change_it() -> None:
    server = FakeServer(maxmemory_clients="1")

    assert server.connect().says(b"CONFIG SET maxmemory-clients 0\r\n") == b"+OK\r\n"


@pytest.mark.parametrize(
    "requests",
    [
        b"MULTI\r\n" + b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n%b\r\n" % (b"x" * 200_000),
        b"SUBSCRIBE " + b" ".join([b"c%d" % number for number in range(3000)]) + b"\r\n",
        b"PSUBSCRIBE " + b" ".join([b"c%d*" % number for number in range(3000)]) + b"\r\n",
        b"SSUBSCRIBE " + b" ".join([b"c%d" % number for number in range(3000)]) + b"\r\n",
        b"WATCH " + b" ".join([b"c%d" % number for number in range(3000)]) + b"\r\n",
        b"HIMPORT PREPARE fields " + b" ".join([b"c%d" % number for number in range(3000)]) + b"\r\n",
        b"\r\n".join([b"HIMPORT PREPARE fields%d a" % number for number in range(3000)]) + b"\r\n",
        b"CLIENT TRACKING ON BCAST " + b" ".join([b"PREFIX c%04d" % number for number in range(3000)]) + b"\r\n",
        b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$200000\r\n%b\r\n" % (b"x" * 200_000),
    ],
    ids=["MULTI", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "WATCH", "HIMPORT", "HIMPORT, many", "BCAST", "SETNAME"],
)
def test_whatever_a_client_makes_the_server_keep_for_it_counts(requests: bytes) -> None:
    server = FakeServer(maxmemory_clients="150kb")
    client = server.connect()
    client.says(requests)

    assert closed(client) == [True]


@pytest.mark.parametrize("leave", [b"DISCARD\r\n", b"EXEC\r\n", b"UNSUBSCRIBE\r\nUNWATCH\r\nDISCARD\r\n", b"RESET\r\n"])
def test_what_is_kept_no_longer_counts_no_longer(leave: bytes) -> None:
    server = FakeServer()
    client = server.connect()
    client.says(b"WATCH a b c\r\nSUBSCRIBE x y\r\nUNSUBSCRIBE\r\nMULTI\r\nSET k v\r\n" + leave)

    session = client.session
    assert (session.queued_bytes, session.watched_bytes, session.subscribed_bytes) == (0, 0, 0)


@pytest.mark.parametrize("leave", [
    b"HIMPORT DISCARD one\r\nHIMPORT DISCARD two\r\n", b"HIMPORT DISCARDALL\r\n", b"RESET\r\n",
])  # fmt: skip
def test_fields_that_are_forgotten_or_prepared_again_count_no_longer(leave: bytes) -> None:
    client = FakeServer().connect()
    client.says(b"HIMPORT PREPARE one a b c\r\nHIMPORT PREPARE two a\r\nHIMPORT PREPARE one d\r\n" + leave)

    assert client.session.fieldset_bytes == 0


def test_replies_that_a_client_does_not_read_count() -> None:
    server = FakeServer(maxmemory_clients="4mb", client_output_buffer_limit="normal 100mb 0 0")
    slow = server.connect(slow=True)
    server.connect().says(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n%b\r\n" % (b"x" * 1_000_000))
    slow.says(b"GET k\r\n" * 5)
    server.connect().says(b"PING\r\n")

    assert closed(slow) == [True]


def test_a_transaction_may_not_have_more_than_the_query_buffer() -> None:
    server = FakeServer(client_query_buffer_limit="1mb")
    client = server.connect()
    client.says(b"MULTI\r\n")
    for _ in range(11):
        client.says(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n%b\r\n" % (b"x" * 100_000))

    assert closed(client) == [True]
    assert server.engine.statistics.query_buffer_disconnections == 1


def test_debug_shows_how_many_clients_take_how_much() -> None:
    server = FakeServer(maxmemory_clients="8mb")
    server.settings.force("enable-debug-command", "yes")
    server.connect().says(unfinished(MEGABYTE + 1000))

    shown = server.connect().says(b"DEBUG CLIENT-EVICTION\r\n").decode()
    assert "bucket    1048576 -    2097151: tot-mem:    1049" in shown
    assert shown.count("bucket") == 19
