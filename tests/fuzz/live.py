"""Attacks on a live server: each input is the bytes of one connection, which then says that no more will come."""

import random
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

from tests.fuzz.hostile_requests import HostileRequests, opening, packed
from tests.fuzz.judge import MEGABYTE, PATIENCE_S, Failure, Judge, Stopwatch
from tests.fuzz.limit import Found, Limit
from tests.support.server_process import running_server

Maker = Callable[[HostileRequests], bytes]

LONGEST_WORD: Final = 16 * MEGABYTE
MOST_MEMORY: Final = 512 * MEGABYTE  # keys of at most LONGEST_WORD each, their replies, and what the allocators keep
FLAGS: Final = (
    "--proto-max-bulk-len", str(LONGEST_WORD), "--client-query-buffer-limit", str(2 * LONGEST_WORD),
    "--appendfsync", "no", "--busy-reply-threshold", "200", "--save", "",
)  # fmt: skip
OPENED_EVERY: Final = 20
INPUTS_A_SERVER: Final = 2000
SILENCE_S: Final = 0.1
REQUESTS: Final = 12
MUTATIONS: Final = (0, 1, 1, 2, 5)
FRAMES: Final = (
    b"*", b"$", b"*-1\r\n", b"*0\r\n", b"*2147483647\r\n", b"*2147483648\r\n", b"*1000000\r\n", b"$-1\r\n", b"$0\r\n",
    b"$16777216\r\n", b"$16777217\r\n", b"$9223372036854775808\r\n", b"*1\r\n$4\r\n", b"\r\n", b"\n", b"\r", b"\x00",
    b"*01\r\n", b"*+1\r\n", b"$+3\r\n", b"$ 3\r\n", b'"', b"'", b'"\\xz"\r\n', b"+OK\r\n", b":1\r\n", b"~3\r\n",
    b">2\r\n", b"POST / HTTP/1.1\r\n", b"Host: a\r\n", b"PING\r\n", b"A" * 70_000,
)  # fmt: skip


def commands(made: HostileRequests) -> bytes:
    """Well-formed requests with hostile arguments; at times all of them in MULTI."""
    requests = made.requests(REQUESTS)
    if made.chance.random() < 0.1:
        requests = [[b"MULTI"], *requests, [b"EXEC"]]
    if made.chance.random() < 0.2:
        requests.insert(0, [b"HELLO", b"3"])
    return packed(requests)


def wire(made: HostileRequests) -> bytes:
    """Requests with bytes that were altered, cut, doubled or mixed with frames that lie."""
    chance = made.chance
    content = bytearray(packed(made.requests(4)))
    for _ in range(chance.choice(MUTATIONS)):
        at = chance.randrange(len(content) + 1)
        how = chance.randrange(5)
        if how == 0:
            content[at:at] = chance.choice(FRAMES)
        elif how == 1:
            content[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 2:
            del content[at : at + chance.choice((1, 2, 10, 1000))]
        elif how == 3:
            content[at:at] = content[chance.randrange(len(content) + 1) :][: chance.choice((1, 5, 50))]
        else:
            del content[at:]
    return bytes(content)


def attack(judge: Judge, content: bytes) -> None:
    """Send the bytes, read what comes until the server closes. Failure where a client waits too long for that."""
    lasts = Stopwatch(judge.server.pid)
    unsent = memoryview(content)
    with socket.create_connection(("127.0.0.1", judge.server.port), judge.patience_s * 8) as link:
        link.setblocking(False)
        if not unsent:
            link.shutdown(socket.SHUT_WR)
        while True:
            readable, writable, _ = select.select([link], [link] if unsent else [], [], SILENCE_S)
            try:
                if readable and not link.recv(MEGABYTE):
                    return
                if writable:
                    unsent = unsent[link.send(unsent[:65536]) :]
                    if not unsent:
                        link.shutdown(socket.SHUT_WR)
            except (ConnectionError, OSError):  # it was closed: what the watcher is told decides
                judge.asked("PING")
                return
            if not readable and not writable:
                judge.asked("PING")
                if lasts.seconds() > 5 * judge.patience_s:
                    raise Failure("the connection is neither answered nor closed")


def attack_server(part: str, maker: Maker, seed: str, limit: Limit, patience_s: float = PATIENCE_S) -> Iterator[Found]:
    """Attack servers, a new one after each failure."""
    number = 0
    goes_on = limit.more()
    while goes_on:
        with running_server(*FLAGS) as server, closing(Judge(server, patience_s, MOST_MEMORY)) as judge:
            for _ in range(INPUTS_A_SERVER):
                number += 1
                content = maker(HostileRequests(random.Random(f"{seed}/{number}")))
                try:
                    if number % OPENED_EVERY == 1:
                        attack(judge, packed(opening()))
                    attack(judge, content)
                    judge.asked("PING")
                    judge.look()
                except Failure as failure:
                    goes_on = limit.more()
                    yield Found(part, f"{seed}/{number}", str(failure), content)
                    break
                goes_on = limit.more()
                if not goes_on:
                    break


def replay(contents: list[bytes], patience_s: float) -> str:
    """Send inputs to one server, one after the other; how it failed, or empty."""
    with running_server(*FLAGS) as server, closing(Judge(server, patience_s, MOST_MEMORY)) as judge:
        try:
            for content in contents:
                attack(judge, packed(opening()))
                attack(judge, content)
                judge.asked("PING")
                judge.look()
        except Failure as failure:
            return str(failure)
    return ""
