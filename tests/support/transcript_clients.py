"""The clients of a transcript: those of an engine in this process, and those of a server over TCP."""

import re
import time
from typing import Protocol

from penstock.clock import MovableClock
from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.engine.session import Session
from tests.support.engines import settings_with
from tests.support.reference_server import wait_for_cluster
from tests.support.transcripts import Step, Transcript
from tests.support.wire import Bulk, Connection, Error, Integer, Value, parse

LOCALHOST = "127.0.0.1"
PATIENCE_S = 30.0
LONGEST_WAIT_MS = 20  # of the timeouts in transcripts that run out
BETWEEN_LOOKS_S = 0.005

# What one transcript may leave behind for the next. Some of it a Redis of today refuses to change: it stays as it is.
RESETS = (
    "PENSTOCK.CLOCK RUN", "RESET", "FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "CONFIG RESETSTAT", "SLOWLOG RESET",
    "CONFIG SET maxmemory 0", "CONFIG SET maxmemory-policy noeviction", "CONFIG SET slowlog-log-slower-than 10000",
    "CONFIG SET stream-node-max-entries 100",
)  # fmt: skip


def settings_for(transcript: Transcript) -> Settings:
    """The settings of an engine that is to hold a transcript."""
    return settings_with(enable_debug_command="yes", cluster_enabled="yes" if transcript.in_cluster else "no")


class Clients(Protocol):
    """Clients by name; each is connected when it is first named."""

    def send(self, step: Step) -> None:
        """Let the step's client send its request."""

    def receive(self, client: str) -> Value:
        """The next that a client is sent; TimeoutError where nothing comes."""

    def wait_until_blocked(self, count: int) -> None:
        """Return once so many clients wait."""


class EngineClients:
    """Clients of an engine, which answers at once."""

    def __init__(self, engine: Engine, resp: int) -> None:
        self._engine = engine
        self._resp = resp
        self._sessions: dict[str, Session] = {}
        self._received: dict[str, bytes] = {}

    def send(self, step: Step) -> None:
        name = step.client
        session = self._session(name)
        self._received[name] += self._engine.handle(session, step.words(lambda other: self._session(other).id))
        self._engine.end_turn()
        self._collect()

    def _session(self, name: str) -> Session:
        if name not in self._sessions:
            self._sessions[name] = self._engine.server.connect("127.0.0.1:50000", "127.0.0.1:6379")
            self._sessions[name].resp = self._resp
            self._received[name] = b""
        return self._sessions[name]

    def _let_time_pass(self) -> None:
        """A request waits as long as it may: nothing else is going to happen."""
        assert isinstance(self._engine.clock, MovableClock)
        self._engine.clock.advance(LONGEST_WAIT_MS)
        self._engine.tick()
        self._collect()

    def _collect(self) -> None:
        for other, session in self._sessions.items():
            mine = [reply for owner, reply in self._engine.clients.outgoing if owner is session]
            self._received[other] += b"".join(mine)
        self._engine.clients.outgoing.clear()
        for killed in self._engine.clients.to_close:
            self._engine.server.disconnect(killed)
        self._engine.clients.to_close.clear()

    def receive(self, client: str) -> Value:
        if not self._received[client]:
            self._let_time_pass()
        if not self._received[client]:
            raise TimeoutError(f"nothing was sent to {client or 'the client'}")
        value, used = parse(self._received[client])
        self._received[client] = self._received[client][used:]
        return value

    def wait_until_blocked(self, count: int) -> None:
        """They are."""

    def close(self) -> None:
        unread = {name: rest for name, rest in self._received.items() if rest}
        assert not unread, f"more was sent than is written down: {unread}"


class ServerClients:
    """Clients of a server over TCP, which is emptied first; all are connected before the first asks."""

    def __init__(self, port: int, resp: int, names: list[str]) -> None:
        self._control = Connection(LOCALHOST, port, PATIENCE_S)
        self._clients = {name: Connection(LOCALHOST, port, PATIENCE_S) for name in names}
        for client in self._clients.values():
            assert not isinstance(client.ask("HELLO", str(resp)), Error)
        wait_for_cluster(self._control)
        for line in RESETS:
            self._control.ask(*line.split())

    def send(self, step: Step) -> None:
        self._clients[step.client].send(*step.words(self._id_of))

    def _id_of(self, name: str) -> int:
        told = self._clients[name].ask("CLIENT", "ID")
        assert isinstance(told, Integer), told
        return told.number

    def receive(self, client: str) -> Value:
        return self._clients[client].reply()

    def rest(self, client: str) -> list[Value]:
        """What comes soon, for a recorder."""
        found: list[Value] = []
        try:
            while True:
                found.append(self._clients[client].reply(0.03))
        except TimeoutError:
            return found

    def wait_until_blocked(self, count: int) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while self.blocked() != count:
            assert time.monotonic() < deadline_s, f"{count} clients should wait"
            time.sleep(BETWEEN_LOOKS_S)

    def blocked(self) -> int:
        told = self._control.ask("INFO", "clients")
        assert isinstance(told, Bulk), told
        found = re.search(rb"blocked_clients:(\d+)", told.text)
        assert found is not None
        return int(found[1])

    def close(self) -> None:
        for client in (*self._clients.values(), self._control):
            client.close()
