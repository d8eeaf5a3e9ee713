"""Scenes with several clients played on both sides: which are woken, in which order, with what, and what is left.

After every event both sides come to rest before the next one, and each event has a millisecond of its own: so a time
that a reply names tells which event set it, and is compared as that event's number.
"""

import contextlib
import random
import re
import select
import socket
import time
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.engine.session import Session
from tests.against_redis.comparable_replies import ComparableReplies
from tests.against_redis.queue_scenes import QueueScenes
from tests.against_redis.scenes import CLAIM_MS, CLIENTS, SHORT_MS, SHORT_S, Event, Scenes
from tests.support.compared_sides import BUFFER, PATIENCE_S, Piped, handled, wall_ms
from tests.support.engines import make_engine
from tests.support.first_difference import lines
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.same_result import listed
from tests.support.shrinking import without
from tests.support.wire import Bulk, Incomplete, Integer, Value, pack, parse

Replies: TypeAlias = dict[int, list[Value]]  # by client

ATTEMPTS: Final = 5
MARGIN_MS: Final = 60  # how near a deadline an event may come
LATE_MS: Final = 50  # a timeout's precision
BLOCKED: Final = (b"blocked_clients", b"total_blocking_keys", b"total_blocking_keys_on_nokey")

_ID: Final = re.compile(r"\{id:(\d)\}")


class TooSlow(Exception):
    """The machine was so busy that a deadline came near before its turn: the scene says nothing."""


class Stage(Protocol):
    """Some clients of one server."""

    def clear(self) -> None:
        """Everything is forgotten, and all clients are new."""

    def send(self, client: int, requests: list[Request], now_ms: int) -> None: ...

    def leave(self, client: int, now_ms: int) -> None:
        """A client goes, and a new one takes its number."""

    def let_pass(self, now_ms: int) -> None:
        """Time went by, until now."""

    def replies(self) -> dict[int, bytes]:
        """What each client has received since the last call, once nothing more comes by itself."""

    def number(self, client: int) -> int:
        """The client's number at the server."""


class OverTcp:
    """The clients of a server process: a real Redis, or a real Penstock."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._control = Piped(port)
        self._clients: dict[int, socket.socket] = {}
        self._numbers: dict[int, int] = {}

    def close(self) -> None:
        self._control.close()
        for client in self._clients.values():
            client.close()

    def clear(self) -> None:
        for client in self._clients.values():
            client.close()
        self._settle()
        self._control.ask("FLUSHALL")
        for number in range(CLIENTS):
            self._connect(number)

    def _connect(self, client: int) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port), PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(pack("CLIENT", "ID"))
        number = parse(connection.recv(BUFFER))[0]
        assert isinstance(number, Integer), "CLIENT ID answers a number"
        self._clients[client] = connection
        self._numbers[client] = number.number

    def send(self, client: int, requests: list[Request], now_ms: int) -> None:
        self._clients[client].sendall(b"".join([pack(*request) for request in requests]))

    def leave(self, client: int, now_ms: int) -> None:
        self._clients[client].close()
        self._settle()
        self._connect(client)

    def let_pass(self, now_ms: int) -> None:
        pass

    def _settle(self) -> None:
        """Two turns of the server's loop: in the first it reads what was sent, and writes to those that it woke."""
        for _ in range(2):
            self._control.ask("PING")

    def replies(self) -> dict[int, bytes]:
        self._settle()
        names = {connection: client for client, connection in self._clients.items()}
        found: defaultdict[int, bytes] = defaultdict(bytes)
        while ready := select.select(list(names), [], [], 0)[0]:
            for connection in ready:
                chunk: bytes = connection.recv(BUFFER)
                if not chunk:
                    raise ConnectionError("the server closed the connection")
                found[names[connection]] += chunk
        return dict(found)

    def number(self, client: int) -> int:
        return self._numbers[client]


class InEngine:
    """The sessions of an engine in this process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._clock = ManualClock(wall_ms())
        self._engine = make_engine(self._clock, settings=settings)
        self._sessions: dict[int, Session] = {}
        self._replies: defaultdict[int, bytes] = defaultdict(bytes)

    def clear(self) -> None:
        self._clock.set_ms(wall_ms())
        for session in self._sessions.values():
            self._engine.server.disconnect(session)
        self._sessions = {client: self._engine.server.connect() for client in range(CLIENTS)}
        self._replies.clear()
        self._engine.handle(self._sessions[0], [b"FLUSHALL"])

    def send(self, client: int, requests: list[Request], now_ms: int) -> None:
        for request in requests:
            self._clock.set_ms(now_ms)
            self._replies[client] += handled(self._engine, self._sessions[client], request)
            self._deliver()
        self._engine.end_turn()
        self._deliver()

    def leave(self, client: int, now_ms: int) -> None:
        self._clock.set_ms(now_ms)
        self._engine.server.disconnect(self._sessions[client])
        self._deliver()
        self._sessions[client] = self._engine.server.connect()

    def let_pass(self, now_ms: int) -> None:
        self._clock.set_ms(now_ms)
        self._engine.tick()
        self._deliver()

    def _deliver(self) -> None:
        clients = {session: client for client, session in self._sessions.items()}
        for session, reply in self._engine.clients.outgoing:
            if session in clients:
                self._replies[clients[session]] += reply
        self._engine.clients.outgoing.clear()

    def replies(self) -> dict[int, bytes]:
        found = {client: reply for client, reply in self._replies.items() if reply}
        self._replies.clear()
        return found

    def number(self, client: int) -> int:
        return self._sessions[client].id


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first event after which the sides differ."""

    event: str
    theirs: object
    ours: object


@dataclass(slots=True)
class Play:
    """One scene on both sides at once."""

    theirs: Stage
    ours: Stage
    known: Known
    looks: list[Event]  # the last events
    starts: list[int] = field(default_factory=list)  # when each event began, unix ms
    asked: defaultdict[int, list[Request]] = field(default_factory=lambda: defaultdict(list))  # without a reply yet
    deadlines: list[int] = field(default_factory=list)  # of readers that wait for a short time

    def first_mismatch(self, events: list[Event]) -> Mismatch | None:
        self.theirs.clear()
        self.ours.clear()
        for event in [*events, *self.looks]:
            found = self._after(event)
            if found is not None:
                return Mismatch(str(event), *found)
        waiting = [self._waiting(side) for side in (self.theirs, self.ours)]
        return Mismatch("INFO clients", *waiting) if waiting[0] != waiting[1] else None

    def _after(self, event: Event) -> tuple[Replies, Replies] | None:
        """What both sides answered after an event, where it differs."""
        if event.requests and self.asked[event.client]:
            return None  # it waits
        now_ms = self._begin(event)
        for side in (self.theirs, self.ours):
            if event.wait_ms:
                side.let_pass(now_ms)
            elif event.requests:
                side.send(event.client, [self._named(side, request) for request in event.requests], now_ms)
            else:
                side.leave(event.client, now_ms)
        if not event.requests and not event.wait_ms:
            self.asked[event.client].clear()
        self.asked[event.client] += map(list, event.requests)
        if _says(event, str(SHORT_MS)) or _says(event, SHORT_S):
            self.deadlines.append(now_ms + SHORT_MS)
        theirs, ours = self._replies(self.theirs), self._replies(self.ours)
        if any(wall_ms() > deadline for deadline in self.deadlines):
            raise TooSlow
        shown = self._shown(theirs), self._shown(ours)
        for client, replies in shown[0].items():
            del self.asked[client][: len(replies)]
        return shown if shown[0] != shown[1] else None

    def _replies(self, side: Stage) -> dict[int, bytes]:
        """Each client's replies, client 0's all: it never waits, yet Redis answers a FLUSHALL from another thread."""
        found = side.replies()
        patience = time.monotonic() + PATIENCE_S
        while len(values_of(found.get(0, b""))) < len(self.asked[0]) and time.monotonic() < patience:
            for client, reply in side.replies().items():
                found[client] = found.get(client, b"") + reply
        return found

    def _begin(self, event: Event) -> int:
        """The event's time: a millisecond that no other event has, and far from every deadline."""
        if event.wait_ms:
            until_ms = max([wall_ms() + event.wait_ms, *[deadline + LATE_MS for deadline in self.deadlines]])
            self.starts.append(wall_ms() + 1)
            while wall_ms() < until_ms:
                time.sleep(0.005)
            self.deadlines.clear()
            return wall_ms()
        last_ms = wall_ms()
        while wall_ms() <= last_ms:
            time.sleep(0.0002)
        now_ms = wall_ms()
        if any(now_ms > deadline - MARGIN_MS for deadline in self.deadlines):
            raise TooSlow
        if self.starts and now_ms > self.starts[-1] + CLAIM_MS // 3 and _says(event, str(CLAIM_MS)):
            raise TooSlow
        self.starts.append(now_ms)
        return now_ms

    def _named(self, side: Stage, request: tuple[str, ...]) -> Request:
        return [_ID.sub(lambda found: str(side.number(int(found[1]))), word) for word in request]

    def _shown(self, replies: dict[int, bytes]) -> Replies:
        """Replies made comparable, each by the request that it answers."""
        comparable = ComparableReplies(wall_ms(), self._event_of, self.known.version, self.known.has_texts)
        shown: Replies = {}
        for client, raw in replies.items():
            values = values_of(raw)
            asked = [*self.asked[client], *[["?"]] * len(values)]
            shown[client] = [comparable.reply(request, value) for request, value in zip(asked, values, strict=False)]
        return shown

    def _event_of(self, when_ms: int) -> int:
        """The number of the event that set a time; a time before the first one stays what it is, by the minute."""
        if when_ms < self.starts[0]:
            return when_ms // 60_000
        return bisect_right(self.starts, when_ms) - 1

    def _waiting(self, side: Stage) -> list[bytes]:
        """INFO's numbers of the clients that still wait."""
        side.send(0, [["HELLO", "2"], ["INFO", "clients"]], wall_ms())
        info = values_of(side.replies()[0])[1]
        assert isinstance(info, Bulk), "INFO answers a text"
        return [line for line in info.text.split(b"\r\n") if line.partition(b":")[0] in BLOCKED]


def _says(event: Event, word: str) -> bool:
    """Whether a word of the event's requests is this one."""
    return any(word in request for request in event.requests)


def values_of(raw: bytes) -> list[Value]:
    """Replies as they came, and what was told between them."""
    values, at = [], 0
    while at < len(raw):
        try:
            value, at = parse(raw, at)
        except Incomplete:
            raise AssertionError(f"a reply is cut: {raw[at:]!r}") from None
        values.append(value)
    return values


def first_mismatch(
    theirs: Stage, ours: Stage, known: Known, events: list[Event], looks: list[Event]
) -> Mismatch | None:
    """Play a scene; again, if the machine was too slow for it. TooSlow if it always is."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(TooSlow):
            return Play(theirs, ours, known, looks).first_mismatch(events)
    raise TooSlow


def compare(
    port: int,
    known: Known,
    penstock_port: int,
    seed: str,
    scenes: int,
    kind: type[Scenes] | type[QueueScenes] = Scenes,
) -> tuple[str, str]:
    """Play so many random scenes with one seed; what was done, and the first difference as a text."""
    theirs = OverTcp(port)
    ours: Stage = OverTcp(penstock_port) if penstock_port else InEngine()
    events = slow = 0
    with contextlib.closing(theirs):
        for number in range(scenes):
            named = f"{seed}/{number}"
            scene = kind(random.Random(named), known).scene()
            events += len(scene)
            try:
                found = first_mismatch(theirs, ours, known, scene, kind.looks())
            except TooSlow:
                slow += 1
                continue
            if found is not None:
                return f"{number + 1} scenes", shown(named, *shortest(theirs, ours, known, scene, found, kind.looks()))
    return f"{scenes} scenes, {events} events, {slow} scenes left out because the machine was too busy", ""


def shortest(
    theirs: Stage, ours: Stage, known: Known, scene: list[Event], found: Mismatch, looks: list[Event]
) -> tuple[list[Event], Mismatch]:
    """The shortest scene found that still differs, and how."""

    def differs(events: list[Event]) -> bool:
        with contextlib.suppress(TooSlow):
            return first_mismatch(theirs, ours, known, events, looks) is not None
        return False

    if differs(scene):
        scene = without(scene, differs)
        found = first_mismatch(theirs, ours, known, scene, looks) or found
    return scene, found


def shown(seed: str, scene: list[Event], found: Mismatch) -> str:
    told = [f"seed {seed}", *listed(map(str, scene), len(scene)), f"  after {found.event}"]
    return "\n".join([*told, *lines(found.theirs, found.ours)])
