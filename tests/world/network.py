"""A network: bytes arrive late and in pieces, a connection breaks at any moment, and a peer may read nothing."""

import asyncio
import errno
import hashlib
import random
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.world.loop import WorldLoop

if TYPE_CHECKING:
    from tests.world.process import Machine, Process

HOST: Final = "127.0.0.1"
TICK_S: Final = 1e-7  # from one piece to the next
CUT_S: Final = 0.5  # between two tries to connect over a network that is cut
ROOM: Final = 100_000  # bytes that the network takes of a peer that does not read


class Way:
    """One direction of a connection: what is sent arrives in order, each piece after a time of its own."""

    def __init__(self, network: "Network", arrived: Callable[[bytes], None]) -> None:
        self._network = network
        self._arrived = arrived
        self.free_s = 0.0  # when the last piece arrives
        self._held: list[Callable[[], None]] = []  # what came while the network was cut
        self.is_cut: Callable[[], bool] = lambda: False
        self.is_stopped = False  # what arrives is kept until it is read
        self.kept: list[bytes] = []

    def send(self, data: bytes) -> None:
        chance = self._network.chance
        self._network.note(data)
        while data:
            size = len(data) if chance.random() < 0.8 else chance.randrange(1, len(data) + 1)
            self._later(data[:size])
            data = data[size:]

    def end(self, call: Callable[[], None]) -> None:
        """Call a function behind everything that was sent."""
        self._network.loop.call_at(self._arrival(), self.come, call)

    def come(self, call: Callable[[], None]) -> None:
        """Something arrives, unless the network is cut: then it does once it is whole again."""
        if self._held or self.is_cut():
            self._held.append(call)
            self._network.holding[self] = None
        else:
            call()

    def go_on(self) -> None:
        """The network is whole again."""
        held, self._held = self._held, []
        for call in held:
            self.come(call)

    def read_on(self) -> None:
        """Read what was kept, and what comes."""
        self.is_stopped = False
        kept, self.kept = self.kept, []
        for data in kept:
            self._arrived(data)

    def _later(self, data: bytes) -> None:
        self._network.loop.call_at(self._arrival(), self.come, partial(self._arrive, data))

    def _arrival(self) -> float:
        self.free_s = max(self.free_s + TICK_S, self._network.loop.time() + self._network.latency_s())
        return self.free_s

    def _arrive(self, data: bytes) -> None:
        if self.is_stopped:
            self.kept.append(data)
        else:
            self._arrived(data)


class ServerTransport:
    """The server's end, which its Connection writes to."""

    def __init__(self, connected: "Connected", port: int) -> None:
        self._connected = connected
        self._port = port
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self.is_ended = False

    def write(self, data: bytes) -> None:
        if not self.is_ended:
            self._connected.to_client(bytes(data))

    def close(self) -> None:
        self._connected.close_by_server()

    abort = close

    def is_closing(self) -> bool:
        return self.is_ended

    def get_extra_info(self, name: str, default: object = None) -> Any:
        """The socket is a real one, so that the server may ask the system whether the peer is there."""
        if name == "socket":
            if self._sockets is None:
                self._sockets = socket.socketpair()
                if self._connected.is_known_to_be_gone:
                    self._sockets[1].close()
            return self._sockets[0]
        return {"peername": (HOST, self._port), "sockname": (HOST, 6379)}.get(name, default)

    def peer_is_gone(self) -> None:
        """The system has learned it."""
        if self._sockets is not None:
            self._sockets[1].close()

    def peer_is_half_gone(self) -> None:
        """The system has learned that it sends no more."""
        self.get_extra_info("socket")
        assert self._sockets is not None, "it was just made"
        self._sockets[1].shutdown(socket.SHUT_WR)

    def forget(self) -> None:
        """Close the descriptors."""
        if self._sockets is not None:
            for one in self._sockets:
                one.close()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0, "the connection wants to hear of every byte that waits"

    def get_write_buffer_size(self) -> int:
        return self._connected.unsent

    def pause_reading(self) -> None:
        self._connected.requests.is_stopped = True

    def resume_reading(self) -> None:
        self._connected.loop.call_soon(self._connected.requests.read_on)


class Connected:
    """A connection between a client and a process.

    lost_at_s: when the server's system learned that the client is gone. The server reads that a little later, as its
    loop does that has other sockets to read first.
    """

    def __init__(self, network: "Network", process: "Process", client: "ClientEnd", port: int) -> None:
        self.network = network
        self.loop = network.loop
        self.process = process
        self.client = client
        self.transport = ServerTransport(self, port)
        self.requests = Way(network, self._requests_arrive)
        self.replies = Way(network, self._replies_arrive)
        self.requests.is_cut = self.replies.is_cut = partial(network.is_cut, client.place, process.machine.name)
        self.is_known_to_be_gone = False
        self.lost_at_s = float("inf")
        self.unsent = 0
        self.protocol: Any = None

    def open(self) -> None:
        """At the server's system: the client's connection is accepted."""
        self.process.connected[self] = None
        self.process.guard(self._open)

    def _open(self) -> None:
        self.protocol = self.process.new_connection()
        self.protocol.connection_made(self.transport)

    # -- to the server ------------------------------------------------------------------------------------------------

    def _requests_arrive(self, data: bytes) -> None:
        if not self.transport.is_ended and self.protocol is not None:
            self.process.guard(self.protocol.data_received, data)

    def reset(self) -> None:
        """The client is gone: the server's system hears of it, and its loop after that."""
        self.client.is_open = False
        self.loop.call_later(self.network.latency_s(), self.requests.come, self._learn)

    def half_close(self) -> None:
        """The client sends no more, and reads on."""
        self.requests.end(self._input_ends)

    def _input_ends(self) -> None:
        if not self.transport.is_ended and not self.is_known_to_be_gone and self.protocol is not None:
            self.transport.peer_is_half_gone()
            self.process.guard(self.protocol.eof_received)

    def _learn(self) -> None:
        self.is_known_to_be_gone = True
        self.lost_at_s = min(self.lost_at_s, self.loop.time())
        self.transport.peer_is_gone()
        self.loop.call_later(self.network.latency_s(), self._lose)

    def _lose(self) -> None:
        if not self.transport.is_ended:
            self.transport.is_ended = True
            self._end_at_server()

    def _end_at_server(self) -> None:
        if self.protocol is not None:
            self.process.guard(self.protocol.connection_lost, None)
        self.process.connected.pop(self, None)
        self.loop.call_soon(self.transport.forget)

    # -- to the client ------------------------------------------------------------------------------------------------

    def to_client(self, data: bytes) -> None:
        self.unsent += len(data)
        self.replies.send(data)
        if self.replies.is_stopped and self.unsent > ROOM and self.protocol is not None:
            self.protocol.pause_writing()

    def _replies_arrive(self, data: bytes) -> None:
        was_over = self.unsent > ROOM
        self.unsent -= len(data)
        if was_over and self.unsent <= ROOM and not self.transport.is_ended:
            self.process.guard(self.protocol.resume_writing)
        if self.client.is_open and self.client.connected is self:
            self.client.received(data)

    def _end_at_client(self) -> None:
        if self.client.connected is self:
            self.client.ended()

    def close_by_server(self) -> None:
        """The server closes, or its process ends: the client reads what was sent, and then the end."""
        if not self.transport.is_ended:
            self.transport.is_ended = True
            self.replies.end(self._end_at_client)
            self.loop.call_soon(self._end_at_server)


class ClientEnd:
    """A client's end. `received` and `ended` are its own. `place`: where it is, as partitions see it."""

    place = ""

    def __init__(self) -> None:
        self.is_open = False
        self.connected: Connected | None = None

    def received(self, data: bytes) -> None:
        raise NotImplementedError

    def ended(self) -> None:
        raise NotImplementedError


class Network:
    """Connects clients with processes. `latency_s` is that of one piece."""

    def __init__(self, loop: WorldLoop, chance: random.Random) -> None:
        self.loop = loop
        self.chance = chance
        self.slowness_s = chance.choice((0.0005, 0.002, 0.01))
        self._ports = 40_000
        self.machines: dict[int, Machine] = {}  # that servers find by their ports
        self.cuts: set[frozenset[str]] = set()  # pairs of places between which nothing arrives
        self.holding: dict[Way, None] = {}
        self.links_made_s: list[float] = []  # when servers connected with servers
        self._bytes = hashlib.blake2b(digest_size=16)

    def note(self, data: bytes) -> None:
        """Something is sent, by a client or a server."""
        self._bytes.update(b"%.9f %d " % (self.loop.time(), len(data)))
        self._bytes.update(data)

    def digest(self) -> str:
        """Of all bytes that were sent, and when: worlds of one number have the same."""
        return self._bytes.hexdigest()

    def latency_s(self) -> float:
        return self.chance.expovariate(1 / self.slowness_s)

    def is_cut(self, one: str, other: str) -> bool:
        return bool(self.cuts) and frozenset((one, other)) in self.cuts

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Nothing arrives between these places any more, and everything between others does again."""
        self.cuts = {frozenset(pair) for pair in pairs}
        holding, self.holding = self.holding, {}
        for way in holding:
            way.go_on()

    async def connect(self, find: "Callable[[], Process | None]", client: ClientEnd) -> Connected:
        """ConnectionRefusedError where no process is alive by then."""
        await asyncio.sleep(self.latency_s())
        process = find()
        while process is not None and self.is_cut(client.place, process.machine.name):
            await asyncio.sleep(CUT_S)
            process = find()
        if process is None or not process.is_listening:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self._ports += 1
        connected = Connected(self, process, client, self._ports)
        connected.open()
        return connected
