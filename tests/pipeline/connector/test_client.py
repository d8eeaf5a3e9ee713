"""The blocking client, against a server that misbehaves on command, and against real ones."""

import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Access, Client, Endpoint, packed, parsed
from penstock.pipeline.errors import ServerGone
from tests.support.certificates import Authority
from tests.support.reference_server import LOCALHOST, free_port
from tests.support.server_process import running_server

HELLO = packed("CLIENT", "ID")


@pytest.fixture
def scripted() -> Iterator[Callable[..., Client]]:
    """A server that serves one connection after the other, each by a script: what to wait for, what to send."""
    listener = socket.create_server((LOCALHOST, 0))
    threads: list[threading.Thread] = []

    def serve(scripts: tuple[list[tuple[bytes, bytes]], ...]) -> None:
        for script in scripts:
            connection, _ = listener.accept()
            with connection:
                for expected, answer in [(HELLO, b":1\r\n"), *script]:
                    got = b""
                    while len(got) < len(expected) and (more := connection.recv(len(expected) - len(got))):
                        got += more
                    if len(got) < len(expected):
                        return  # the client has gone
                    connection.sendall(answer if got == expected else b"-ERR unexpected %d\r\n" % len(got))

    def start(*scripts: list[tuple[bytes, bytes]], **access: Any) -> Client:
        threads.append(threading.Thread(target=serve, args=(scripts,), daemon=True))
        threads[0].start()
        given = {"retry_s": 5.0, "read_s": 5.0, **access}
        return Client(Endpoint("main", LOCALHOST, listener.getsockname()[1]), Access(**given))

    yield start
    threads[0].join(5)
    listener.close()


def test_a_read_is_sent_again_when_the_connection_breaks(scripted: Callable[..., Client]) -> None:
    client = scripted([(packed("GET", "k"), b"$5\r\nhal")], [(packed("GET", "k"), b"$5\r\nwhole\r\n")])

    assert client.call("GET", "k") == b"whole"
    client.close()


def test_a_write_is_not_sent_twice(scripted: Callable[..., Client]) -> None:
    client = scripted([(packed("INCR", "k"), b"")])

    with pytest.raises(ServerGone, match="the connection broke amid a write"):
        client.call("INCR", "k", retry=False)
    client.close()


def test_a_server_that_is_loading_is_asked_again(scripted: Callable[..., Client]) -> None:
    ask = packed("PING")
    client = scripted([(ask, b"-LOADING wait\r\n")], [(ask, b"+PONG\r\n")])

    assert client.call("PING") == b"PONG"
    client.close()


def test_a_refusal_is_raised_alone_and_stands_in_its_place_among_others(scripted: Callable[..., Client]) -> None:
    client = scripted([(packed("A"), b"-ERR no\r\n"), (packed("A") + packed("B"), b"-ERR no\r\n:1\r\n")])

    with pytest.raises(ReplyError):
        client.call("A")
    refused, one = client.pipeline([["A"], ["B"]])
    assert (refused.text, one) == (b"ERR no", 1)
    client.close()


def test_a_time_out_is_told_with_the_options_that_would_change_it(scripted: Callable[..., Client]) -> None:
    client = scripted([(packed("PING") + b"more", b"")], read_s=0.05, retry_s=0.0)

    with pytest.raises(ServerGone, match=r"readTimeout 0\.05 s, retryTimeout 0 s"):
        client.call("PING")
    client.close()


def test_a_client_travels_without_its_connection() -> None:
    with running_server("--appendonly", "no") as server:
        client = Client(Endpoint("main", LOCALHOST, server.port), Access())
        assert client.call("PING") == b"PONG"
        other = pickle.loads(pickle.dumps(client))
        assert other.call("PING") == b"PONG"
        assert other.connection_id != client.connection_id
        client.close(), other.close()


def test_a_server_with_tls_is_asked_with_the_certificates_that_redis_cli_takes(tmp_path: Path) -> None:
    authority, port = Authority(tmp_path, is_bare=True), free_port()
    own = authority.sign("server")
    files = ["--tls-cert-file", str(own.certificate), "--tls-key-file", str(own.key)]
    files += ["--tls-ca-cert-file", str(authority.file)]
    with running_server("--appendonly", "no", "--tls-port", str(port), *files):
        names = Access(tls=True, tls_ca=str(authority.file), tls_cert=str(own.certificate), tls_key=str(own.key))
        client = Client(Endpoint("main", LOCALHOST, port), names)
        assert client.call("PING") == b"PONG"
        client.close()


def test_passwords_users_and_databases() -> None:
    with running_server("--appendonly", "no", "--requirepass", "secret") as server:
        place = Endpoint("main", LOCALHOST, server.port)
        with Client(place, Access(password="secret", db=3)) as client:
            assert client.call("SET", "k", "v") == b"OK"
            assert b"db=3" in client.call("CLIENT", "INFO")
        with Client(place, Access(username="default", password="secret")) as client:
            assert client.call("GET", "k") is None
        with Client(place, Access(password="wrong")) as client, pytest.raises(ServerGone, match="WRONGPASS"):
            client.call("PING")
        with Client(place, Access()) as client, pytest.raises(ReplyError, match="NOAUTH"):
            client.call("PING")


def test_more_is_sent_and_received_than_any_buffer_holds(server: Any, server_port: int) -> None:
    value = b"x" * 10_000
    with Client(Endpoint("main", LOCALHOST, server_port), Access()) as client:
        replies = client.pipeline([["ECHO", value]] * 3_000)
        assert len(replies) == 3_000 and set(replies) == {value}


def test_framed_replies_are_the_bytes_as_they_came(server: Any, server_port: int) -> None:
    with Client(Endpoint("main", LOCALHOST, server_port), Access()) as client:
        raw = client.framed(packed("ECHO", b"$3\r\na\r\n") + packed("PING") + packed("NOSUCH"))
        assert parsed(raw)[:2] == [b"$3\r\na\r\n", b"PONG"]
        assert raw.startswith(b"$7\r\n$3\r\na\r\n\r\n+PONG\r\n-ERR unknown command")


def test_what_is_sent_ahead_is_asked_once(server: Any, server_port: int) -> None:
    asked = packed("ECHO", "a")
    with Client(Endpoint("main", LOCALHOST, server_port), Access()) as client:
        client.framed(asked)
        server.config_resetstat()
        client.send_ahead(asked)
        assert client.framed(asked) == b"$1\r\na\r\n"

    assert server.info("commandstats")["cmdstat_echo"]["calls"] == 2  # the word, and the frame


def test_another_request_amid_those_sent_ahead_gets_its_own_reply(server: Any, server_port: int) -> None:
    asked = packed("ECHO", "a")
    with Client(Endpoint("main", LOCALHOST, server_port), Access()) as client:
        client.framed(asked)
        client.send_ahead(asked)
        assert client.call("ECHO", "b", retry=False) == b"b"
        client.send_ahead(asked)
        assert client.framed(packed("ECHO", "c")) == b"$1\r\nc\r\n"
        assert client.framed(asked) == b"$1\r\na\r\n"


def test_what_was_sent_ahead_on_a_connection_that_broke_is_sent_again(server: Any, server_port: int) -> None:
    asked = packed("ECHO", "a")
    with Client(Endpoint("main", LOCALHOST, server_port), Access()) as client:
        client.call("PING")
        server.client_kill_filter(_id=client.connection_id)
        client.send_ahead(asked)
        assert client.framed(asked) == b"$1\r\na\r\n"
