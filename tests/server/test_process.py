"""A real server process, on both event loops: signals, sockets, the log, the clients people use."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import pytest
import redis
import redis.asyncio
from _pytest.fixtures import SubRequest

from tests.support.builds import two_loopbacks
from tests.support.no_retry import NO_RETRY
from tests.support.server_process import ServerProcess, running_server

LOOPS = ["uvloop", "asyncio"]
LOG = ("--appendfsync", "always")


@pytest.fixture(scope="module", params=LOOPS)
def server(request: SubRequest) -> Iterator[ServerProcess]:
    """One server for the tests that do not end it."""
    with running_server(*LOG, environment={"PENSTOCK_LOOP": request.param}) as process:
        yield process


@pytest.fixture
def link(server: ServerProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        yield raw


def received(link: socket.socket, count: int) -> bytes:
    """So many bytes, or what came before the end."""
    answer = b""
    while len(answer) < count:
        part = link.recv(count - len(answer))
        if not part:
            break
        answer += part
    return answer


def asked(server: ServerProcess, text: bytes) -> bytes:
    """Everything that is answered to a client that sends no more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(text)
        raw.shutdown(socket.SHUT_WR)
        return received(raw, 2**30)


# -- the loop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
def test_the_event_loop_can_be_chosen(loop: str) -> None:
    with running_server(environment={"PENSTOCK_LOOP": loop}) as process:
        assert redis.Redis(port=process.port).info("server")["multiplexing_api"] == loop


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_a_long_pipeline_is_answered_to_a_client_that_then_closes_its_side(server: ServerProcess) -> None:
    assert asked(server, b"PING\r\n" * 20_000) == b"+PONG\r\n" * 20_000


def test_a_client_may_send_everything_before_it_reads_anything(server: ServerProcess, link: socket.socket) -> None:
    link.sendall(b"SET big %b\r\n" % (b"x" * 60_000))
    received(link, 5)
    link.sendall(b"GET big\r\n" * 2000 + b"ECHO %b\r\n" % (b"y" * 60_000) * 100)

    one, other = len(b"$60000\r\n\r\n") + 60_000, len(b"$60000\r\n\r\n") + 60_000
    assert len(received(link, 2000 * one + 100 * other)) == 2000 * one + 100 * other


def test_a_pipeline_longer_than_the_query_buffer_is_answered(server: ServerProcess) -> None:
    client = redis.Redis(port=server.port)
    before = client.config_get("client-query-buffer-limit")
    client.config_set("client-query-buffer-limit", 2**20)
    word = b"x" * 1000
    answered = asked(server, b"ECHO %b\r\n" % word * 3000)
    client.config_set("client-query-buffer-limit", str(before["client-query-buffer-limit"]))

    assert answered == b"$1000\r\n%b\r\n" % word * 3000


def test_a_word_of_many_megabytes_comes_back(server: ServerProcess, link: socket.socket) -> None:
    word = os.urandom(2**23)
    link.sendall(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%b\r\n" % (len(word), word))

    assert received(link, len(word) + 12) == b"$%d\r\n%b\r\n" % (len(word), word)


def test_bad_bytes_are_answered_and_then_the_connection_ends(server: ServerProcess, link: socket.socket) -> None:
    link.sendall(b"PING\r\n*1\r\n!\r\n")

    assert received(link, 2**20) == b"+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n"


def test_quit_ends_the_connection(server: ServerProcess, link: socket.socket) -> None:
    link.sendall(b"QUIT\r\n")

    assert received(link, 2**20) == b"+OK\r\n"


def test_a_blocked_reader_is_served_over_the_network(server: ServerProcess, link: socket.socket) -> None:
    link.sendall(b"XREAD BLOCK 0 STREAMS parked $\r\nPING\r\n")
    other = redis.Redis(port=server.port)
    blocked_until(other, 1)
    other.xadd("parked", {"f": "v"}, id="1-0")

    answer = b"*1\r\n*2\r\n$6\r\nparked\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n+PONG\r\n"
    assert received(link, len(answer)) == answer


def test_a_blocked_reader_that_vanishes_is_forgotten(server: ServerProcess) -> None:
    other = redis.Redis(port=server.port)
    with socket.create_connection(("127.0.0.1", server.port)) as reader:
        reader.sendall(b"XREAD BLOCK 0 STREAMS vanishing $\r\n")
        blocked_until(other, 1)
    blocked_until(other, 0)


def blocked_until(client: redis.Redis, count: int) -> None:
    """Ask until so many clients wait."""
    for _ in range(10_000):
        if client.info("clients")["blocked_clients"] == count:
            return
    raise AssertionError("no client came, or none went")


def test_a_deadline_is_kept(server: ServerProcess) -> None:
    assert redis.Redis(port=server.port).xread({"nothing": "$"}, block=50) in ([], {})


# -- the clients people use -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_produces_and_consumes(server: ServerProcess, protocol: int) -> None:
    client = redis.Redis(port=server.port, protocol=protocol, decode_responses=True)
    client.flushall()
    client.xgroup_create("jobs", "workers", mkstream=True)
    added = client.xadd("jobs", {"n": "1"})
    client.xreadgroup("workers", "alice", {"jobs": ">"}, count=10, block=100)

    assert client.ping()
    assert client.xpending("jobs", "workers")["pending"] == 1
    assert client.xack("jobs", "workers", added) == 1


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_asyncio_talks_to_it(server: ServerProcess, protocol: int) -> None:
    async def conversation() -> list[object]:
        async with redis.asyncio.Redis(port=server.port, protocol=protocol) as client:
            return [await client.ping(), await client.echo("hi")]

    assert asyncio.run(conversation()) == [True, b"hi"]


def test_a_redis_py_pipeline_of_many_thousand_requests_is_answered(server: ServerProcess) -> None:
    pipeline = redis.Redis(port=server.port).pipeline(transaction=False)
    for number in range(5000):
        pipeline.echo(str(number))

    assert pipeline.execute() == [b"%d" % number for number in range(5000)]


# -- its life ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
def test_a_terminated_server_has_answered_and_kept_everything(tmp_path: Path, loop: str) -> None:
    environment = {"PENSTOCK_LOOP": loop}
    with running_server("--appendfsync", "everysec", dir=tmp_path, environment=environment) as first:
        added = redis.Redis(port=first.port).xadd("s", {"f": "v"})
        code = first.stop()
    with running_server(dir=tmp_path, environment=environment) as second:
        kept = redis.Redis(port=second.port).xrange("s")

    assert (code, kept) == (0, [(added, {b"f": b"v"})])


def test_a_killed_server_has_kept_what_it_acknowledged(tmp_path: Path) -> None:
    with running_server(*LOG, dir=tmp_path) as first:
        pipeline = redis.Redis(port=first.port).pipeline(transaction=False)
        for number in range(2000):
            pipeline.xadd("s", {"n": number})
        added = pipeline.execute()
        first.kill()
    with running_server(dir=tmp_path) as second:
        assert [entry for entry, _ in redis.Redis(port=second.port).xrange("s") or ()] == added


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_server_in_good_order(number: Signals) -> None:
    with running_server() as process:
        os.kill(process.pid, number)

        assert process.wait() == 0
        assert process.lines[-1].endswith("# Redis is now ready to exit, bye bye...")


def test_blocked_readers_do_not_keep_a_server_from_ending() -> None:
    with running_server() as process, socket.create_connection(("127.0.0.1", process.port)) as reader:
        reader.sendall(b"XREAD BLOCK 0 STREAMS s $\r\n")
        blocked_until(redis.Redis(port=process.port), 1)

        assert process.stop() == 0
        assert reader.recv(100) == b""


def test_shutdown_ends_the_server() -> None:
    with running_server() as process:
        redis.Redis(port=process.port, retry=NO_RETRY).shutdown()

        assert process.wait() == 0


def test_a_unix_socket_serves_beside_no_port(tmp_path: Path) -> None:
    path = tmp_path / "p.sock"
    with running_server("--unixsocket", str(path), "--unixsocketperm", "700") as process:
        client = redis.Redis(unix_socket_path=str(path))

        assert (process.port, client.ping()) == (0, True)
        assert client.client_info()["addr"] == f"{path}:0"
        process.stop()
        assert not path.exists()


def test_the_port_can_be_moved_while_the_server_runs() -> None:
    with running_server() as process, socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        free = finder.getsockname()[1]
        finder.close()
        client = redis.Redis(port=process.port)
        client.config_set("port", free)

        assert redis.Redis(port=free).ping()
        assert client.ping()


def test_a_port_that_is_taken_is_not_moved_to() -> None:
    with running_server() as process, running_server() as other:
        client = redis.Redis(port=process.port)
        with pytest.raises(redis.ResponseError, match="Unable to listen on this port"):
            client.config_set("port", other.port)

        assert redis.Redis(port=process.port).ping()


def test_a_change_that_is_refused_for_a_taken_port_leaves_passwords_and_log_as_they_are() -> None:
    """What another directive of the request would do has no way back: a password is forgotten, a log is given up."""
    with running_server() as process, running_server() as other:
        client = redis.Redis(port=process.port)
        client.execute_command("ACL", "SETUSER", "default", ">two")
        before = client.acl_list(), sorted(process.directory.rglob("*")), client.config_get("*")
        with pytest.raises(redis.ResponseError, match="Unable to listen on this port"):
            client.execute_command(
                "CONFIG", "SET", "requirepass", "x", "appendonly", "no", "timeout", "9", "port", other.port
            )

        assert (client.acl_list(), sorted(process.directory.rglob("*")), client.config_get("*")) == before


def test_an_address_that_is_not_ours_is_not_moved_to() -> None:
    with running_server() as process:
        client = redis.Redis(port=process.port)
        with pytest.raises(redis.ResponseError, match="Failed to bind to specified addresses"):
            client.config_set("bind", "192.0.2.254")

        assert redis.Redis(port=process.port).ping()


@pytest.mark.parametrize("name", [b"\xff\xfe", b"x" * 300, b"a\x00b"])
def test_bytes_that_are_no_address_are_not_moved_to(name: bytes) -> None:
    with running_server() as process:
        client = redis.Redis(port=process.port)
        with pytest.raises(redis.ResponseError, match="Failed to bind to specified addresses"):
            client.execute_command("CONFIG", "SET", "bind", name)

        assert redis.Redis(port=process.port).ping()


@two_loopbacks
def test_the_address_can_be_changed_to_one_that_contains_it() -> None:
    with running_server() as process:
        client = redis.Redis(port=process.port)
        client.config_set("bind", "*")

        assert redis.Redis(host="127.0.0.2", port=process.port).ping()


def test_a_second_server_at_the_same_port_does_not_start(tmp_path: Path) -> None:
    with running_server() as first, pytest.raises(AssertionError, match="cannot listen on"):
        running_server("--port", str(first.port), dir=tmp_path).__enter__()

    assert list(Path(tmp_path).iterdir()) == []


def test_the_pidfile_is_there_while_the_server_is(tmp_path: Path) -> None:
    path = tmp_path / "penstock.pid"
    with running_server("--pidfile", str(path)) as process:
        written = int(path.read_text())
        process.stop()

    assert (written, path.exists()) == (process.pid, False)
