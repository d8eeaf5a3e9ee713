"""Clients of a server that is going to be killed: each keeps a journal of what it sent and what was answered."""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import hiredis

from tests.crash.requests import Request, Requests
from tests.support.wire import pack

UNFINISHED = object()
REPLY_S = 60.0


class Link:
    """A plain blocking connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), REPLY_S)
        self._reader = hiredis.Reader(notEnoughData=UNFINISHED)

    def send(self, requests: list[Request]) -> None:
        self._socket.sendall(b"".join(pack(*request) for request in requests))

    def reply(self) -> object:
        """ConnectionError where the server has gone."""
        while (value := self._reader.gets()) is UNFINISHED:
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionError("the server has gone")
            self._reader.feed(received)
        return value

    def ask(self, *words: bytes) -> object:
        self.send([list(words)])
        return self.reply()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def linked(port: int) -> Iterator[Link]:
    link = Link(port)
    try:
        yield link
    finally:
        link.close()


def is_trouble(reply: object) -> bool:
    """Whether a change was refused because of the log."""
    return isinstance(reply, Exception) and "MISCONF" in str(reply)


class Loader(threading.Thread):
    """One client: sends batches until the server goes, the log is in trouble, or it is told to stop."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.stops = False
        self.met_trouble = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with linked(self._port) as link:
                self.load(link)
        except ConnectionError:
            self.met_trouble = True  # the log could not be written (`always` closes the connection), or the end came
        except BaseException as failure:
            self.failure = failure

    def load(self, link: Link) -> None:
        raise NotImplementedError


class PrivateLoader(Loader):
    """Works on keys of its own: what is left of them must be what its first n requests lead to.

    `sent` are its requests; the first `answered` of them had a reply that is to be relied on.
    """

    def __init__(self, port: int, prefix: str, database: int, chance: random.Random) -> None:
        super().__init__(port)
        self.prefix = prefix
        self.database = database
        self._requests = Requests(chance, prefix)
        self.sent: list[Request] = []
        self.answered = 0

    def load(self, link: Link) -> None:
        batch = [[b"SELECT", b"%d" % self.database], *self._requests.opening()]
        while not self.stops and not self.met_trouble:
            self.sent += batch
            link.send(batch)
            for _ in batch:
                self.met_trouble |= is_trouble(link.reply())
                self.answered += not self.met_trouble
            batch = self._requests.batch()


class SharedLoader(Loader):
    """Adds to, reads from and acknowledges in a stream that others use too; ids are the server's.

    added: number of an entry to its id, once answered; `numbered` were sent. Of the rest a set of ids each:
    delivered to it, acknowledged for sure, acknowledgement sent. `pairs` transactions were sent, `whole` answered.
    """

    def __init__(self, port: int, prefix: str, consumer: str, chance: random.Random) -> None:
        super().__init__(port)
        self.prefix = prefix.encode()
        self.consumer = consumer.encode()
        self._chance = chance
        self.numbered = 0
        self.added: dict[int, bytes] = {}
        self.delivered: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.acknowledging: set[bytes] = set()
        self.pairs = 0
        self.whole = 0

    def load(self, link: Link) -> None:
        link.ask(b"XGROUP", b"CREATE", self.prefix + b"shared", b"g", b"0", b"MKSTREAM")  # by the first loader
        while not self.stops and not self.met_trouble:
            self._chance.choice((self._add, self._read, self._acknowledge, self._pair))(link)

    def _asked(self, link: Link, *words: bytes) -> object:
        """A reply to rely on, or None."""
        reply = link.ask(*words)
        self.met_trouble |= is_trouble(reply)
        return None if isinstance(reply, Exception) else reply

    def _add(self, link: Link) -> None:
        number = self.numbered
        self.numbered += 1
        reply = self._asked(link, b"XADD", self.prefix + b"shared", b"*", self.consumer, b"%d" % number)
        if reply is not None:
            assert isinstance(reply, bytes)
            self.added[number] = reply

    def _read(self, link: Link) -> None:
        wait = (b"BLOCK", b"20") if self._chance.random() < 0.5 else ()
        count = b"%d" % self._chance.choice((1, 3, 10))
        group = (b"XREADGROUP", b"GROUP", b"g", self.consumer, b"COUNT", count)
        reply = self._asked(link, *group, *wait, b"STREAMS", self.prefix + b"shared", b">")
        if reply is not None:
            assert isinstance(reply, list)
            self.delivered |= {entry[0] for entry in reply[0][1]}

    def _acknowledge(self, link: Link) -> None:
        held = sorted(self.delivered - self.acknowledging)
        ids = self._chance.sample(held, min(len(held), self._chance.choice((1, 2, 10))))
        if ids:
            self.acknowledging |= set(ids)
            if self._asked(link, b"XACK", self.prefix + b"shared", b"g", *ids) is not None:
                self.acknowledged |= set(ids)

    def _pair(self, link: Link) -> None:
        self.pairs += 1
        count, stream = self.prefix + b"count", self.prefix + b"pairs"
        link.send([[b"MULTI"], [b"INCR", count], [b"XADD", stream, b"*", b"f", b"v"], [b"EXEC"]])
        replies = [link.reply() for _ in range(4)]
        self.met_trouble |= any(map(is_trouble, replies))
        self.whole += isinstance(replies[-1], list)


class Rewriter(Loader):
    """Asks for a rewriting again and again, so that crashes meet some."""

    def __init__(self, port: int, chance: random.Random) -> None:
        super().__init__(port)
        self._chance = chance
        self._pause = threading.Event()

    def load(self, link: Link) -> None:
        while not self.stops:
            self._pause.wait(self._chance.random() * 0.3)
            link.ask(b"BGREWRITEAOF")
