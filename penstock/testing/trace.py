"""The requests of the clients in this process, and the replies."""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import hiredis

from penstock.clock import Clock

NO_REPLY: Final = "(none yet)"
MOST_ASKED: Final = 10_000  # requests of one client without a reply: CLIENT REPLY OFF
LONGEST_SHOWN: Final = 200  # characters of a request or reply in `str()`


class Exchange(NamedTuple):
    """One request and its reply. A message that answers no request (pub/sub, MONITOR) has an empty request.

    client: the port that CLIENT LIST shows of it. at_ms: unix time in ms at which the request was sent. reply: as
    hiredis reads it, an error as an exception; NO_REPLY while it is awaited.
    """

    client: int
    at_ms: int
    request: tuple[bytes, ...]
    reply: Any

    def __str__(self) -> str:
        words = " ".join([repr(word)[1:] for word in self.request]) or "(message)"
        return f"{self.client} {_short(words)} -> {_short(repr(self.reply))}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


@dataclass(slots=True)
class _Asked:
    """A request that waits for its reply."""

    at_ms: int
    request: tuple[bytes, ...]


class Trace:
    """The latest exchanges of all clients, in the order of their replies. At most `most` are kept; None: all."""

    def __init__(self, clock: Clock, most: int | None) -> None:
        self._clock = clock
        self._done: deque[Exchange] = deque(maxlen=most)
        self._clients: dict[int, ClientTrace] = {}

    def client(self, port: int) -> "ClientTrace":
        """The trace of a new client."""
        made = self._clients[port] = ClientTrace(port, self._clock, self._done, self._clients)
        return made

    @property
    def exchanges(self) -> list[Exchange]:
        """The requests with replies, then those without."""
        waiting = [
            Exchange(client.port, asked.at_ms, asked.request, NO_REPLY)
            for client in self._clients.values()
            for asked in client.asked
        ]
        return [*self._done, *waiting]

    def clear(self) -> None:
        """Forget what was answered."""
        self._done.clear()


class ClientTrace:
    """Reads one client's requests and replies, and adds them to the trace."""

    def __init__(self, port: int, clock: Clock, done: deque[Exchange], clients: "dict[int, ClientTrace]") -> None:
        self._clients = clients
        self.port = port
        self.asked: deque[_Asked] = deque(maxlen=MOST_ASKED)
        self._clock = clock
        self._done = done
        self._requests = hiredis.Reader()
        self._replies = hiredis.Reader(notEnoughData=NO_REPLY)

    def sent(self, requests: bytes) -> None:
        """The client sent so much. Inline requests, which no library sends, are not traced."""
        self._requests.feed(requests)
        now_ms = self._clock.now_us() // 1000
        with suppress(hiredis.ProtocolError):
            while words := self._requests.gets():
                self.asked.append(_Asked(now_ms, tuple(words)))

    def command_asked(self) -> bytes:
        """The name, in upper case, of the command that is to be answered next; empty if there is none."""
        return bytes(self.asked[0].request[0]).upper() if self.asked else b""

    def received(self, replies: bytes) -> None:
        """The server sent so much."""
        self._replies.feed(replies)
        while (reply := self._replies.gets()) is not NO_REPLY:
            is_message = isinstance(reply, hiredis.PushNotification) or not self.asked
            asked = _Asked(self._clock.now_us() // 1000, ()) if is_message else self.asked.popleft()
            self._done.append(Exchange(self.port, asked.at_ms, asked.request, reply))

    def ended(self) -> None:
        """The connection is closed: what was asked is not answered."""
        for asked in self.asked:
            self._done.append(Exchange(self.port, asked.at_ms, asked.request, ConnectionError("closed")))
        self._clients.pop(self.port, None)
