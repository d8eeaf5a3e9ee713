"""Clients that end their side, or are told the end: they get their replies, and are clients until they have them.

By TCP, a unix socket and TLS, on both event loops: whatever the end, the size of the reply before it, and the reading.
"""

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import pytest
import redis

from tests.support.doors import Doors, open_doors

TRIES: Final = 10_000
LARGE: Final = 30_000_000  # more than the system keeps for a connection, so that the server keeps the rest
AT_ONCE: Final = 2**18
NO_WAITING: Final = "normal 1000000000 0 0"  # with a limit, the end is handled before the reply is read


class Link:
    """A client's connection, encrypted or not, that can end its side and read on.

    (Python's SSLSocket cannot say that it ends and read on.)
    """

    def __init__(self, plain: socket.socket, context: ssl.SSLContext | None) -> None:
        self._plain = plain
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arriving, self._leaving, server_hostname="localhost") if context else None
        if self._tls is not None:
            self._do(self._tls.do_handshake)

    def _do(self, step: Callable[[], object]) -> object:
        """A step of TLS, with as many bytes as it needs."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._pass_on()
                came = self._plain.recv(AT_ONCE)
                self._arriving.write(came) if came else self._arriving.write_eof()
                continue
            self._pass_on()
            return done

    def _pass_on(self) -> None:
        if self._leaving.pending:
            self._plain.sendall(self._leaving.read())

    def send(self, sent: bytes) -> None:
        if self._tls is not None:
            self._tls.write(sent)
            sent = self._leaving.read()
        self._plain.sendall(sent)

    def receive(self) -> bytes:
        """What comes next; empty at the end, which is an end of TLS where there is TLS."""
        tls = self._tls
        if tls is None:
            return self._plain.recv(AT_ONCE)
        try:
            return bytes(self._do(lambda: tls.read(AT_ONCE)))  # type: ignore[call-overload]  # object: bytes here
        except ssl.SSLZeroReturnError:
            return b""

    def end(self) -> None:
        """Say that nothing more is sent: by TLS where there is TLS."""
        if self._tls is None:
            self.finish()
            return
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:
            self._pass_on()

    def finish(self) -> None:
        """End this side of the connection below TLS."""
        self._plain.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._plain.close()


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with open_doors(request.param, tmp_path_factory.mktemp("doors")) as opened:
        asker = redis.Redis(port=opened.server.port)
        asker.set("ten", "x" * 10)
        asker.set("large", "x" * LARGE)
        asker.config_set("client-output-buffer-limit", NO_WAITING)
        yield opened


WAYS: Final[dict[str, Callable[[Doors], Link]]] = {
    "tcp": lambda doors: Link(doors.tcp(), None),
    "unix": lambda doors: Link(doors.unix(), None),
    "tls": lambda doors: Link(socket.create_connection(("127.0.0.1", doors.tls_port), 60), doors.context),
}


def quit_it(link: Link, _: int) -> bytes:
    link.send(b"QUIT\r\n")
    return b"+OK\r\n"


def half_close(link: Link, _: int) -> bytes:
    link.end()
    return b""


def half_close_below_tls(link: Link, _: int) -> bytes:
    link.finish()
    return b""


def send_no_request(link: Link, _: int) -> bytes:
    link.send(b"*x\r\n")
    return b"-ERR Protocol error: invalid multibulk length\r\n"


def kill_itself(link: Link, number: int) -> bytes:
    link.send(b"CLIENT KILL ID %d SKIPME no\r\n" % number)
    return b":1\r\n"


ENDS: Final = [quit_it, half_close, send_no_request, kill_itself]
CASES: Final = [  # the way in, the protocol, and how the client ends
    pytest.param(way, protocol, end, id=f"{way}-{protocol}-{end.__name__}", marks=[pytest.mark.slow] if is_slow else [])
    for way, protocol, is_slow in (("tcp", 2, False), ("tcp", 3, True), ("unix", 3, False), ("unix", 2, True),
                                   ("tls", 2, False), ("tls", 3, True))
    for end in [*ENDS, *([half_close_below_tls] if way == "tls" else [])]
]  # fmt: skip
ASKED: Final = {  # a request, and its reply
    "no reply": (b"", b""),
    "10 bytes": (b"GET ten\r\n", b"$10\r\n%b\r\n" % (b"x" * 10)),
    "30 MB": (b"GET large\r\n", b"$%d\r\n%b\r\n" % (LARGE, b"x" * LARGE)),
}

LASTS: Final = b"EVAL 'while true do end' 0\r\n"
KILLED: Final = rb"-ERR [^\r]* killed by user [^\r]*\r\n"


def begin(link: Link, protocol: int) -> int:
    """Choose the protocol; the client's id."""
    link.send(b"HELLO %d\r\nCLIENT ID\r\n" % protocol)
    said = link.receive()
    while not (said.endswith(b"\r\n") and said[:-2].rpartition(b"\r\n")[2].startswith(b":")) or b"modules" not in said:
        said += link.receive()
    return int(said[:-2].rpartition(b":")[2])


def rest(link: Link) -> bytes:
    """Everything until the server closes."""
    pieces = []
    while piece := link.receive():
        pieces.append(piece)
    return b"".join(pieces)


def is_client(asker: redis.Redis, number: int) -> bool:
    return bool(asker.execute_command("CLIENT", "LIST", "ID", number))


def unsent_bytes(asker: redis.Redis, number: int) -> int:
    return sum(int(one["omem"]) for one in asker.client_list(client_id=[number]))


def is_busy(asker: redis.Redis) -> bool:
    try:
        asker.ping()
    except redis.ResponseError:
        return True
    return False


def until(condition: Callable[[], bool]) -> None:
    for _ in range(TRIES):
        if condition():
            return
    raise AssertionError("it does not happen")


@pytest.mark.parametrize("asked", ["no reply", "10 bytes", pytest.param("30 MB", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("way", "protocol", "end"), CASES)
def test_a_client_that_ends_gets_its_replies_whole_and_the_end_if_it_reads_at_once(
    doors: Doors, way: str, protocol: int, end: Callable[[Link, int], bytes], asked: str
) -> None:
    request, answer = ASKED[asked]
    with closing(WAYS[way](doors)) as link:
        number = begin(link, protocol)
        link.send(request) if request else None
        last = end(link, number)

        assert rest(link) == answer + last
    asker = redis.Redis(port=doors.server.port)
    until(lambda: not is_client(asker, number))


@pytest.mark.parametrize(("way", "protocol", "end"), CASES)
def test_a_client_that_ends_is_one_until_it_has_read_its_replies(
    doors: Doors, way: str, protocol: int, end: Callable[[Link, int], bytes]
) -> None:
    request, answer = ASKED["30 MB"]
    asker = redis.Redis(port=doors.server.port)
    with closing(WAYS[way](doors)) as link:
        number = begin(link, protocol)
        link.send(request)
        last = end(link, number)
        until(lambda: unsent_bytes(asker, number) > LARGE // 2)
        for _ in range(3):
            asker.ping()

        assert is_client(asker, number)
        assert rest(link) == answer + last
        until(lambda: not is_client(asker, number))


@pytest.mark.parametrize(("way", "protocol", "end"), CASES)
def test_the_output_limit_holds_for_a_client_that_has_ended_and_never_reads(
    doors: Doors, way: str, protocol: int, end: Callable[[Link, int], bytes]
) -> None:
    asker = redis.Redis(port=doors.server.port)
    with closing(WAYS[way](doors)) as link:
        number = begin(link, protocol)
        link.send(ASKED["30 MB"][0])
        end(link, number)
        until(lambda: unsent_bytes(asker, number) > LARGE // 2)
        asker.config_set("client-output-buffer-limit", f"normal {LARGE // 4} 0 0")
        until(lambda: not is_client(asker, number))
        asker.config_set("client-output-buffer-limit", NO_WAITING)


@pytest.mark.parametrize("asked", ["no reply", "10 bytes"])
@pytest.mark.parametrize(("way", "protocol", "end"), CASES)
def test_a_client_that_ends_and_never_reads_a_small_reply_is_closed(
    doors: Doors, way: str, protocol: int, end: Callable[[Link, int], bytes], asked: str
) -> None:
    request, answer = ASKED[asked]
    asker = redis.Redis(port=doors.server.port)
    with closing(WAYS[way](doors)) as link:
        number = begin(link, protocol)
        link.send(request) if request else None
        last = end(link, number)
        until(lambda: not is_client(asker, number))

        assert rest(link) == answer + last


@pytest.mark.parametrize(("way", "protocol"), [("tcp", 2), ("unix", 3), ("tls", 3)])
def test_what_a_client_does_not_read_is_counted(doors: Doors, way: str, protocol: int) -> None:
    asker = redis.Redis(port=doors.server.port)
    with closing(WAYS[way](doors)) as link:
        number = begin(link, protocol)
        link.send(ASKED["30 MB"][0])
        until(lambda: unsent_bytes(asker, number) > LARGE // 2)


@pytest.mark.parametrize(("before", "behind", "came"), [
    pytest.param(b"", b"", b"*", id="alone"),
    pytest.param(b"GET ten\r\n", b"PING\r\nQUIT\r\n", ASKED["10 bytes"][1] + b"*+PONG\r\n+OK\r\n", id="amid others"),
    pytest.param(b"MULTI\r\n", b"GET ten\r\nEXEC\r\n", b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*" + ASKED["10 bytes"][1],
                 id="in a transaction"),
    pytest.param(b"CLIENT REPLY OFF\r\n", b"", b"", id="without replies"),
])  # fmt: skip
@pytest.mark.parametrize(("way", "end"), [("tcp", half_close), ("unix", half_close), ("tls", half_close),
                                          ("tls", half_close_below_tls)])  # fmt: skip
def test_a_client_that_ends_while_its_script_runs_gets_the_replies_once_it_is_over(
    doors: Doors, way: str, end: Callable[[Link, int], bytes], before: bytes, behind: bytes, came: bytes
) -> None:
    asker = redis.Redis(port=doors.server.port)
    asker.config_set("busy-reply-threshold", 1)
    with closing(WAYS[way](doors)) as link:
        number = begin(link, 2)
        link.send(before + LASTS + behind)
        end(link, number)
        until(lambda: is_busy(asker))
        for _ in range(3):
            is_busy(asker)
        asker.script_kill()

        assert re.sub(KILLED, b"*", rest(link)) == came
        until(lambda: not is_client(asker, number))
