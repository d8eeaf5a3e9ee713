"""Blocked clients that go while the server looks away: what is pushed then goes to clients that are there, or stays.

The server's process is stopped while clients go and elements are pushed. So it learns of both at once, in any order.
"""

import random
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest
import redis

from tests.support.blocking_requests import SETUP, WAITING, Waiting
from tests.support.doors import Doors, open_doors
from tests.support.seeds import seeds

AT_ONCE: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close resets the connection
MOST_CLIENTS: Final = 6
TRIES: Final = 10_000


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with open_doors(request.param, tmp_path_factory.mktemp("doors")) as opened:
        yield opened


# -- how a client goes ------------------------------------------------------------------------------------------------


def close(link: socket.socket) -> None:
    link.close()


def reset(link: socket.socket) -> None:
    """By TCP; a unix socket is closed."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    link.close()


def half_close(link: socket.socket) -> None:
    """The client would still read; Redis frees it all the same."""
    link.shutdown(socket.SHUT_WR)


def close_behind_a_request(link: socket.socket) -> None:
    """Bytes that the server has not read stand before the end."""
    link.sendall(b"PING\r\n")
    link.close()


def be_killed(link: socket.socket) -> None:
    """Another process has the only descriptor of the connection, and is killed."""
    held = socket.socket(fileno=link.detach())
    holder = subprocess.Popen(["sleep", "1000"], pass_fds=[held.fileno()])
    held.close()
    holder.kill()
    holder.wait()


WAYS_TO_GO: Final[list[Callable[[socket.socket], None]]] = [
    close, reset, half_close, close_behind_a_request, be_killed,
]  # fmt: skip


# -- what happens -----------------------------------------------------------------------------------------------------


def wait_until_blocked(client: redis.Redis, count: int) -> None:
    for _ in range(TRIES):
        if client.info("clients")["blocked_clients"] == count:
            return
    raise AssertionError(f"there are never {count} blocked clients")


def received(link: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer where the connection ends."""
    answer = b""
    while len(answer) < size and (piece := link.recv(size - len(answer))):
        answer += piece
    return answer


def line(text: str) -> bytes:
    return text.encode() + b"\r\n"


def left_in(client: redis.Redis, case: Waiting) -> int:
    """How many elements no client was given."""
    if case.setup == SETUP:
        return int(client.xlen("queue")) - int(client.xpending("queue", "g")["pending"])
    return int(client.zcard("queue") if client.type("queue") == b"zset" else client.llen("queue"))


def take_leave(ways: list[Callable[[socket.socket], None] | None], links: list[socket.socket]) -> list[socket.socket]:
    """Clients go, each in its way; those that have none stay, and are returned."""
    for way, link in zip(ways, links, strict=True):
        if way is not None:
            way(link)
    return [link for way, link in zip(ways, links, strict=True) if way is None]


@pytest.mark.parametrize("seed", seeds(quick=6, full=50))
def test_what_is_pushed_while_clients_go_is_given_to_those_that_stay_or_to_none(doors: Doors, seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice(list(WAITING.values()))
    asker = redis.Redis(port=doors.server.port)
    asker.flushall()
    asker.execute_command(*case.setup.split())
    opens = chance.choices([doors.tcp, doors.unix, doors.tls], k=chance.randint(1, MOST_CLIENTS))
    ways = chance.choices([None, *WAYS_TO_GO], k=len(opens))
    pushed = chance.randint(1, MOST_CLIENTS)

    with ExitStack() as opened:
        pusher = opened.enter_context(doors.tcp())
        links = [opened.enter_context(door()) for door in opens]
        for count, link in enumerate(links, 1):
            link.sendall(line(case.request))
            wait_until_blocked(asker, count)
        doors.stop()
        staying = take_leave(ways, links)
        pusher.sendall(b"".join(line(case.push(number)) for number in range(1, pushed + 1)) + b"PING\r\n")
        doors.go_on()

        told = b""
        while not told.endswith(b"+PONG\r\n"):
            told += pusher.recv(65536)
        served = [received(link, len(case.answer(1))) for link in staying[:pushed]]
        assert served == [case.answer(number) for number in range(1, len(served) + 1)]
        assert left_in(asker, case) == pushed - len(served)
    wait_until_blocked(asker, 0)
