"""A script for several clients, held with a real Redis and with an engine: all the bytes that each client gets."""

import socket
import time

import hiredis

from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.shell_words import split
from tests.support.wire import pack

PATIENCE_S = 2.0
SILENCE_S = 0.05  # how long nothing more may come at the end

Received = dict[str, bytes]


def received(port: int, script: list[str]) -> tuple[Received, Received]:
    """What each client gets of a Redis and of an engine.

    A line of the script is a client's name and a request: `b3 PUBLISH news hello`. The name's digit is the protocol.
    A line is sent when Redis has sent every client as many bytes as the engine has so far.
    """
    ours, theirs = _Here(), _There(port)
    try:
        for line in script:
            name, _, request = line.partition(" ")
            words = tuple(word.encode() for word in split(request))
            ours.send(name, words)
            theirs.send(name, words)
            theirs.read(ours.got, PATIENCE_S)
        theirs.read({name: got + b"?" for name, got in ours.got.items()}, SILENCE_S)
    finally:
        theirs.close()
    return theirs.got, ours.got


class _Here:
    def __init__(self) -> None:
        self._engine = make_engine()
        self._clients: dict[str, Dialogue] = {}
        self.got: Received = {}

    def send(self, name: str, words: tuple[bytes, ...]) -> None:
        if name not in self._clients:
            self._clients[name] = Dialogue(self._engine)
            self._clients[name](f"HELLO {name[-1]}")
            self.got[name] = b""
        self.got[name] += self._clients[name].words(*words)
        for other, client in self._clients.items():
            self.got[other] += b"".join(
                [sent for session, sent in self._engine.clients.outgoing if session is client.session]
            )
        self._engine.clients.outgoing.clear()


class _There:
    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: dict[str, socket.socket] = {}
        self.got: Received = {}

    def send(self, name: str, words: tuple[bytes, ...]) -> None:
        if name not in self._clients:
            client = self._clients[name] = socket.create_connection(("127.0.0.1", self._port), PATIENCE_S)
            client.sendall(pack("HELLO", name[-1]))
            reader = hiredis.Reader(notEnoughData=Ellipsis)
            while reader.gets() is Ellipsis:
                reader.feed(client.recv(65536))
            self.got[name] = b""
        self._clients[name].sendall(pack(*words))

    def read(self, expected: Received, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        for name, client in self._clients.items():
            while len(self.got[name]) < len(expected[name]) and (left_s := deadline - time.monotonic()) > 0:
                client.settimeout(left_s)
                try:
                    chunk = client.recv(65536)
                except TimeoutError:
                    break
                if not chunk:
                    break
                self.got[name] += chunk

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
