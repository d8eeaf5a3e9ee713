"""Random dialogues of several clients beside a real Redis: all that each of them is sent, event by event.

`talkers.py` makes the events: clients that track keys, clients of a cluster of one. None waits in them and no time
goes by, so every event has its replies, and what others are told of it, before the next one.
"""

import contextlib
import random
import re
import time
from typing import Final

from tests.against_redis.blocked_clients import InEngine, Mismatch, OverTcp, Replies, Stage, shown, values_of
from tests.against_redis.scenes import CLIENTS, Event
from tests.against_redis.talkers import Talker
from tests.against_redis.typed import Shapes, in_order
from tests.support.compared_sides import PATIENCE_S, wall_ms
from tests.support.engines import settings_with
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.shrinking import without
from tests.support.wire import Array, Bulk, Integer, Map, Push, Simple, Value, Verbatim

EVENTS: Final = 300  # of a dialogue
FLUSHES: Final = ("FLUSHALL", "FLUSHDB")
QUEUED: Final = Simple(b"QUEUED")

_NODE: Final = re.compile(rb"[0-9a-f]{40}")
_PORTS: Final = re.compile(rb":\d+@\d+")
_ID: Final = re.compile(r"\{id:(\d)\}")


class Listener:
    """One side of a dialogue.

    `_names` has the numbers that the server gave to connections; `_queued` what each client has queued since MULTI.
    """

    def __init__(self, stage: Stage, port: int, shapes: Shapes) -> None:
        self._stage = stage
        self._shapes = shapes
        self._port = port
        self._names: dict[int, bytes] = {}
        self._queued: dict[int, list[Request]] = {}

    def begin(self) -> None:
        self._stage.clear()
        self._queued.clear()
        self._names.clear()
        for client in range(CLIENTS):
            self._name(client)

    def _name(self, client: int, what: bytes = b"client %d") -> None:
        self._names[self._stage.number(client)] = what % client

    def after(self, event: Event) -> Replies:
        """What each client is sent after an event, made comparable."""
        if event.requests:
            requests = [[_ID.sub(self._number, word) for word in request] for request in event.requests]
            self._stage.send(event.client, requests, wall_ms())
        else:
            self._name(event.client, b"client %d, who left")
            self._queued.pop(event.client, None)
            self._stage.leave(event.client, wall_ms())
            self._name(event.client)
        found = self._replies(event)
        requests_left = iter(event.requests)
        for client, values in found.items():
            for at, value in enumerate(values):
                answered = () if client != event.client or isinstance(value, Push) else next(requests_left, ())
                values[at] = self._shown(client, list(answered), value)
            if client != event.client and all(isinstance(value, Push) or _is_invalidation(value) for value in values):
                values.sort(key=repr)  # one connection may get what is for several: in no order after a flush
        return found

    def _number(self, named: re.Match[str]) -> str:
        return str(self._stage.number(int(named[1])))

    def _replies(self, event: Event) -> Replies:
        """As they came; the event's client has its reply to a FLUSHALL, though Redis sends it from another thread."""
        found: dict[int, bytes] = {}
        may_be_late = any(name in FLUSHES for name, *_ in event.requests)
        patience = time.monotonic() + PATIENCE_S * may_be_late
        while True:
            for client, raw in self._stage.replies().items():
                found[client] = found.get(client, b"") + raw
            values = {client: values_of(raw) for client, raw in found.items()}
            answers = [value for value in values.get(event.client, []) if not isinstance(value, Push)]
            if len(answers) >= len(event.requests) or time.monotonic() > patience:
                return values

    # -- made comparable --------------------------------------------------------------------------------------------

    def _shown(self, client: int, request: Request, value: Value) -> Value:
        """A reply, or (of no request) what a client is told."""
        name = request[0].upper() if request else ""
        queued = self._queued.get(client)
        if name == "EXEC" and queued is not None:
            del self._queued[client]
            if not isinstance(value, Array) or len(value.elements) != len(queued):
                return value
            return Array(tuple(map(self._comparable, queued, value.elements)))
        if value == QUEUED and queued is not None:
            queued.append(request)
            return value
        if name == "MULTI" and value == Simple(b"OK"):
            self._queued[client] = []
        elif name in ("DISCARD", "RESET") and isinstance(value, Simple):
            self._queued.pop(client, None)
        return self._comparable(request, value) if request or _is_broken(value) else value

    def _comparable(self, request: Request, value: Value) -> Value:
        name = request[0].upper() if request else "CLIENT"
        if name == "CLIENT":
            return self._named(value, self._names)
        if name == "CLUSTER":
            value = self._named(value, {self._port: b"port"})
        if name == "PUBSUB" or _is_listing_of_keys(request):
            return in_order(value)
        return self._shapes.of(request, value)

    def _named(self, value: Value, names: dict[int, bytes]) -> Value:
        """Numbers, ids and ports that the server chose, by what they are."""
        match value:
            case Integer(number):
                return Bulk(names[number]) if number in names else value
            case Bulk(text):
                return Bulk(_PORTS.sub(b":port", _NODE.sub(b"node", text)))
            case Verbatim(kind, text):
                return Verbatim(kind, _PORTS.sub(b":port", _NODE.sub(b"node", text)))
            case Array(elements) | Push(elements):
                return type(value)(tuple(self._named(one, names) for one in elements))
            case Map(pairs):
                return Map(tuple((name, self._named(held, names)) for name, held in pairs))
        return value


def _is_broken(value: Value) -> bool:
    """Whether a client is told that the one is gone to which its messages went."""
    return isinstance(value, Push) and value.elements[0] == Bulk(b"tracking-redir-broken")


def _is_invalidation(value: Value) -> bool:
    """Whether a client of RESP2 is told of changed keys, its own or those of a client that redirects to it."""
    return isinstance(value, Array) and value.elements[:2] == (Bulk(b"message"), Bulk(b"__redis__:invalidate"))


def _is_listing_of_keys(request: Request) -> bool:
    return [word.upper() for word in request[:2]] == ["CLUSTER", "GETKEYSINSLOT"]


class Conversation:
    """Both sides of dialogues of one kind."""

    def __init__(self, theirs: Listener, ours: Listener, talker: type[Talker]) -> None:
        self._theirs = theirs
        self._ours = ours
        self._talker = talker
        self.handled = 0

    def first_mismatch(self, events: list[Event]) -> Mismatch | None:
        self._theirs.begin()
        self._ours.begin()
        for event in self._talker.opening():
            self._theirs.after(event)
            self._ours.after(event)
        for event in [*events, *self._talker.looks()]:
            self.handled += len(event.requests)
            theirs, ours = self._theirs.after(event), self._ours.after(event)
            if theirs != ours:
                return Mismatch(str(event), theirs, ours)
        return None

    def shortest(self, events: list[Event], found: Mismatch) -> tuple[list[Event], Mismatch]:
        """The shortest dialogue found that still differs, and how; the given one where it does not again."""

        def differs(fewer: list[Event]) -> bool:
            return self.first_mismatch(fewer) is not None

        handled = self.handled
        if differs(events):
            events = without(events, differs)
            found = self.first_mismatch(events) or found
        self.handled = handled
        return events, found


def compare(port: int, known: Known, seed: str, requests: int, talker: type[Talker]) -> tuple[int, str]:
    """Dialogues with one seed until so many requests were sent; how many were, and the first difference as a text."""
    theirs = OverTcp(port)
    ours = InEngine(settings_with(**talker.directives))
    shapes = talker(random.Random(seed), known).shapes
    conversation = Conversation(
        Listener(theirs, port, shapes), Listener(ours, settings_with().number("port"), shapes), talker
    )
    number = 0
    with contextlib.closing(theirs):
        while conversation.handled < requests:
            named = f"{seed}/{number}"
            number += 1
            events = talker(random.Random(named), known).events(EVENTS)
            found = conversation.first_mismatch(events)
            if found is not None:
                return conversation.handled, shown(named, *conversation.shortest(events, found))
    return conversation.handled, ""
