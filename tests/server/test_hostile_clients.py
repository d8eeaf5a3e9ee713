"""Clients that mean harm, at a running server: what they get, and that the server goes on."""

from collections.abc import Iterator

import pytest

from tests.support.deployments import until
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Bulk, Connection, Integer, Simple

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--appendonly", "no") as own:
        yield own


def connect(server: ServerProcess) -> Connection:
    return Connection("127.0.0.1", server.port, PATIENCE_S)


@pytest.mark.parametrize(
    "first", [b"POST / HTTP/1.1\r\n", b"post / HTTP/1.1\r\n", b"Host: localhost\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n"]
)
def test_a_request_of_a_web_browser_is_closed_and_nothing_behind_it_is_run(server: ServerProcess, first: bytes) -> None:
    with connect(server) as client, connect(server) as other:
        other.ask("SET", "key", "kept")
        client.send_raw(first + b"\r\nSET key stolen\r\n")
        rest = client.rest()

        assert b"OK" not in rest
        assert other.ask("GET", "key") == Bulk(b"kept")


def test_a_server_without_descriptors_goes_on_and_lets_clients_in_again() -> None:
    limited = ("sh", "-c", 'ulimit -n 100; exec "$@"', "sh")
    with running_server("--appendonly", "no", wrapper=limited) as server, connect(server) as first:
        crowd = [connect(server) for _ in range(150)]
        assert first.ask("PING") == Simple(b"PONG")
        for client in crowd:
            client.close()
        until(lambda: clients(first) == 1, "a client that has left is not forgotten")
        with connect(server) as late:
            assert late.ask("DBSIZE") == Integer(0)


def clients(client: Connection) -> int:
    listed = client.ask("CLIENT", "LIST")
    assert isinstance(listed, Bulk)
    return listed.text.count(b"\n")
