"""What strangers can take of the ports that speak HTTP, and of the server's descriptors by any port."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
import redis
from aiohttp import web

from penstock.observe import http_server
from penstock.observe.http_server import HttpServer
from penstock.server.turns.turn import Turn
from tests.support import deployments
from tests.support.certificates import Authority
from tests.support.engines import settings_with
from tests.support.scraping import free_port, serving_metrics
from tests.support.server_process import ServerProcess, running_server

PATIENCE_S: Final = 60.0
SLOW: Final = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
FEW_FILES: Final = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
LONG_ENOUGH: Final = 1000  # connections: more than there are descriptors


@contextmanager
def served(most: int, request_s: float = PATIENCE_S) -> Iterator[int]:
    """The port of a server in this process that answers `hello`, but never at /late."""

    async def hello(request: web.Request) -> web.Response:
        http.know(request)
        return web.Response(text="hello")

    async def late(request: web.Request) -> web.StreamResponse:
        http.know(request)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await asyncio.Event().wait()
        return answer

    def app(loop: asyncio.AbstractEventLoop) -> web.Application:
        made = web.Application()
        made.router.add_get("/", hello)
        made.router.add_get("/late", late)
        return made

    http = HttpServer("metrics", settings_with(metrics_port="0"), most, request_s)
    http.start(cast(Turn, SimpleNamespace()), app)
    try:
        yield http.port
    finally:
        http.stop()


def connected(port: int, sent: bytes = b"") -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    link.sendall(sent)
    return link


def begun(port: int) -> socket.socket:
    """A connection with a request that is being answered, without an end."""
    link = connected(port, b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
    while not link.recv(65536).endswith(b"\r\n\r\n"):
        continue
    return link


def everything(link: socket.socket) -> bytes:
    """What comes until the other side closes."""
    parts = []
    with link, suppress(ConnectionResetError):
        while part := link.recv(65536):
            parts.append(part)
    return b"".join(parts)


def asked(port: int, path: str = "/", *headers: str) -> tuple[int, str]:
    """The status of a GET, and the answer's text."""
    lines = [f"GET {path} HTTP/1.1", *(headers or ("Host: localhost",)), "", ""]
    head, _, body = everything(connected(port, "\r\n".join(lines).encode())).partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


# -- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", SLOW], ids=["silent", "slow"])
def test_a_connection_is_ended_when_its_time_is_over(sent: bytes) -> None:
    with served(4, request_s=0.0) as port:
        assert everything(connected(port, sent)) == b""


def test_a_sweep_ends_no_connection_that_has_just_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SWEEP_S", 0.0)  # one in each turn of the loop, so also amid the accepting
    with served(4) as port, begun(port):
        assert [asked(port) for _ in range(20)] == [(200, "hello")] * 20


def test_a_connection_carries_one_request() -> None:
    with served(4) as port:
        answer = everything(connected(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2))

    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close" in answer


def test_silent_connections_keep_no_request_out() -> None:
    with served(4) as port, ExitStack() as stack:
        silent = [stack.enter_context(connected(port, SLOW)) for _ in range(9)]

        assert asked(port) == (200, "hello")
        assert everything(silent[0]) == b""


def test_requests_that_are_being_answered_are_not_ended_for_new_connections() -> None:
    with served(2) as port, ExitStack() as stack:
        late = [stack.enter_context(begun(port)) for _ in range(2)]
        assert everything(connected(port, SLOW)) == b""
        for link in late:
            link.settimeout(0)
            with pytest.raises(BlockingIOError):
                link.recv(1)


def test_requests_of_closed_connections_take_no_place() -> None:
    with served(2) as port:
        for _ in range(2):
            begun(port).close()
        answers = (everything(connected(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")) for _ in range(1000))

        assert next(filter(None, answers)).startswith(b"HTTP/1.1 200 ")  # once the server has seen that they are gone


# -- descriptors ------------------------------------------------------------------------------------------------------


@pytest.fixture
def few_files(tmp_path: Path) -> Iterator[tuple[ServerProcess, dict[str, int]]]:
    """A server that may have 256 descriptors, with a port of each kind."""
    ports = {name: free_port() for name in ("port", "metrics-port", "console-port", "tls-port")}
    pair = Authority(tmp_path).sign("server")
    papers = ["--tls-cert-file", str(pair.certificate), "--tls-key-file", str(pair.key), "--tls-auth-clients", "no"]
    flags = [word for name, port in ports.items() for word in (f"--{name}", str(port))]
    with running_server(*flags, *papers, "--save", "", dir=tmp_path, wrapper=FEW_FILES) as server:
        yield server, ports


def once_over(client: redis.Redis, running: str) -> Any:
    """INFO persistence, once the field `running` is 0."""
    deployments.until(lambda: not client.info("persistence")[running], "it does not end")
    return client.info("persistence")


SLOWLY = [pytest.param((name,), marks=pytest.mark.slow) for name in ("console-port", "port", "tls-port")]


@pytest.mark.parametrize("names", [("metrics-port",), (), *SLOWLY], ids=str)
def test_the_server_can_write_its_files_whatever_its_ports_are_asked(
    few_files: tuple[ServerProcess, dict[str, int]], names: tuple[str, ...]
) -> None:
    server, ports = few_files
    with redis.Redis(port=server.port) as client, ExitStack() as stack:
        client.set("k", "v")
        for name in names or ports:
            for _ in range(LONG_ENOUGH // 4):
                link = stack.enter_context(connected(ports[name], SLOW if name != "port" else b""))
                link.setblocking(False)

        assert client.save()
        assert client.bgsave()
        saved = once_over(client, "rdb_bgsave_in_progress")
        assert client.bgrewriteaof()
        rewritten = once_over(client, "aof_rewrite_in_progress")

    assert (saved["rdb_last_bgsave_status"], rewritten["aof_last_bgrewrite_status"]) == ("ok", "ok")


# -- clients that get the metrics --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metrics_port() -> Iterator[int]:
    with ExitStack() as stack:
        yield serving_metrics(stack)[1]


@pytest.fixture(scope="module")
def guarded_port() -> Iterator[int]:
    with ExitStack() as stack:
        yield serving_metrics(stack, "--metrics-password", "se:cret")[1]


def basic(words: str) -> str:
    return "Authorization: Basic " + b64encode(words.encode()).decode()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9121", "[::1]", "[::1]:9121", "192.0.2.7"])
def test_without_a_password_metrics_are_there_under_an_address(metrics_port: int, host: str) -> None:
    status, text = asked(metrics_port, "/metrics", f"Host: {host}")

    assert (status, "\nredis_up 1.0\n" in text) == (200, True)


@pytest.mark.parametrize(
    "host", ["evil.example", "penstock:9121", "127.0.0.1.evil.example", "localhost.evil", "", "[", "\xff"]
)
def test_without_a_password_metrics_are_not_there_under_a_name(metrics_port: int, host: str) -> None:
    status, text = asked(metrics_port, "/metrics", f"Host: {host}")

    assert status in (400, 403)
    assert "redis_up" not in text


def test_a_request_that_names_no_host_is_refused(metrics_port: int) -> None:
    assert asked(metrics_port, "/metrics", "Accept: text/plain")[0] in (400, 403)


def test_another_path_says_where_the_metrics_are(metrics_port: int) -> None:
    assert asked(metrics_port, "/nothing") == (404, "the metrics are at /metrics\n")


@pytest.mark.parametrize("login", [basic("prometheus:se:cret"), basic(":se:cret"), "Authorization: Bearer se:cret"])
def test_the_password_opens_the_metrics_under_every_name(guarded_port: int, login: str) -> None:
    status, text = asked(guarded_port, "/metrics", "Host: penstock:9121", login)

    assert (status, "\nredis_up 1.0\n" in text) == (200, True)


@pytest.mark.parametrize(
    "login",
    [
        "Accept: */*", basic("se:cret"), basic("x:secret"), basic("nothing"), "Authorization: Bearer",
        "Authorization: Basic ?", "Authorization: Basic \xff", "Authorization: Bearer secret\xff", "Authorization:",
        "Authorization: Digest x",
    ],
)  # fmt: skip
def test_without_the_right_password_there_are_no_metrics(guarded_port: int, login: str) -> None:
    status, text = asked(guarded_port, "/metrics", "Host: localhost", login)

    assert status == 401
    assert "redis_up" not in text
