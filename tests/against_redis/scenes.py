"""Random scenes with several clients: readers that wait, and everything that may wake, fail or pass them over."""

import random
from dataclasses import dataclass
from typing import Final

from tests.support.random_words import Request
from tests.support.reference_knowledge import Known

CLIENTS: Final = 8  # number 0 lets things happen, the others read
PLACES: Final = (("k", "g"), ("kl", "g"), ("kl", "gh"), ("klm", "gh"))  # the keys and groups of a scene
OTHER_KEYS: Final = ("k", "l", "m", "n", "text")
CONSUMERS: Final = ("a", "b", "c")
LONG_MS: Final = ("0", "0", "60000")
SHORT_MS: Final = 150
SHORT_S: Final = str(SHORT_MS / 1000)
CLAIM_MS: Final = 60
CLAIM_PATIENCE_MS: Final = 350  # Redis looks ten times a second
SOON: Final = 5  # events between a short wait's beginning and the event that waits for its end


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens: a client's requests, sent at once; or, of no requests, it goes and comes back.

    wait_ms: instead, so much time goes by. A client that is blocked when its requests are due does not send them.
    `{id:2}` in a request stands for the number that the server gave client 2.
    """

    client: int = 0
    requests: tuple[tuple[str, ...], ...] = ()
    wait_ms: int = 0
    look_of: str = ""

    def __str__(self) -> str:
        if self.look_of:
            return self.look_of
        if self.wait_ms:
            return f"        {self.wait_ms} ms go by"
        said = " | ".join(" ".join(word or "''" for word in request) for request in self.requests)
        return f"client {self.client}: {said or 'goes, and comes again'}"


class Scenes:
    """Scenes from one source of chance."""

    def __init__(self, chance: random.Random, known: Known) -> None:
        self._chance = chance
        self._known = known
        self._last = 0  # the latest id's first half
        self._keys, self._groups = PLACES[0]
        self._violence = 0.0  # how often a key, and each client that waits for it, meets something worse than a write

    def scene(self, length: int = 30) -> list[Event]:
        self._last = 0
        self._violence = self._chance.choice((0.02, 0.05, 0.2))
        self._keys, self._groups = self._chance.choice(PLACES)
        events = [self._does(["XGROUP", "CREATE", key, group, "0", "MKSTREAM"]) for key in "klm" for group in "gh"]
        events += [Event(client, (("HELLO", "3"),)) for client in range(1, CLIENTS) if self._chance.random() < 0.4]
        due = 0
        for _ in range(length):
            event = self._event()
            events.append(event)
            if due or any(str(SHORT_MS) in request for request in event.requests):
                due += 1
            if due > SOON:
                events.append(Event(wait_ms=SHORT_MS))
                due = 0
        if due:
            events.append(Event(wait_ms=SHORT_MS))
        if self._known.since(8, 4) and self._chance.random() < 0.1:
            events += self._claiming()
        return events

    @staticmethod
    def looks() -> list[Event]:
        """What is asked at the end."""
        return [looks_at(number) for number in "01"]

    def _of(self, *words: str) -> str:
        return self._chance.choice(words)

    def _maybe(self, probability: float, *words: str) -> list[str]:
        return list(words) if self._chance.random() < probability else []

    def _key(self) -> str:
        return self._of(*self._keys)

    def _does(self, *requests: list[str]) -> Event:
        return Event(0, tuple(map(tuple, requests)))

    def _event(self) -> Event:
        roll = self._chance.random()
        if roll < 0.4:
            return self._reader()
        if roll < 0.43:
            return Event(self._chance.randrange(1, CLIENTS))
        if roll < 0.47:
            ends = self._maybe(0.5, self._of("TIMEOUT", "ERROR"))
            return self._does(["CLIENT", "UNBLOCK", f"{{id:{self._chance.randrange(1, CLIENTS)}}}", *ends])
        if roll < 0.53:
            inner = [self._change() for _ in range(self._chance.randrange(1, 5))]
            return self._does(["MULTI"], *inner, ["EXEC"])
        if roll < 0.73:
            return self._false_alarm()
        if roll < 0.8:
            return self._does(*self._look())
        return self._does(self._change())

    def _false_alarm(self) -> Event:
        """A key's readers are tried, and find nothing; perhaps the consumer of one was just deleted."""
        key = self._key()
        self._last += 1
        new_id = f"{self._last}-0"
        added = ["XADD", key, new_id, "f", "v"]
        alarm = self._chance.choice((
            [["MULTI"], added, ["XDEL", key, new_id], ["EXEC"]],
            [["MULTI"], added, ["XTRIM", key, "MAXLEN", "0"], ["EXEC"]],
            [["XGROUP", "CREATE", key, "other", "0"], ["XGROUP", "DESTROY", key, "other"]],
        ))  # fmt: skip
        if self._chance.random() < 0.3:
            alarm.insert(0, ["XGROUP", "DELCONSUMER", key, self._of(*self._groups), self._of(*CONSUMERS)])
        return self._does(*alarm)

    # -- readers ----------------------------------------------------------------------------------------------------

    def _reader(self) -> Event:
        client = self._chance.randrange(1, CLIENTS)
        count = self._chance.choice((1, 1, 1, 2, 2, 3))
        keys = [self._key()] if count == 1 else self._chance.sample(self._keys, min(count, len(self._keys)))
        block = ["BLOCK", self._of(*LONG_MS) if self._chance.random() < 0.97 else str(SHORT_MS)]
        most = self._maybe(0.5, "COUNT", self._of("1", "1", "2", "3"))
        if self._chance.random() < 0.25:
            last = "+" if self._known.since(7, 4) else "$"
            places = [self._of("$", "$", "0", last, str(self._last)) for _ in keys]
            return Event(client, (("XREAD", *most, *block, "STREAMS", *keys, *places),))
        claim = self._maybe(0.2, "CLAIM", "3600000") if self._known.since(8, 4) else []
        options = [*most, *block, *self._maybe(0.15, "NOACK"), *claim]
        places = [">" if self._chance.random() < 0.97 else "0" for _ in keys]
        read = (
            "XREADGROUP",
            "GROUP",
            self._of(*self._groups),
            self._of(*CONSUMERS),
            *options,
            "STREAMS",
            *keys,
            *places,
        )
        return Event(client, (read,))

    def _claiming(self) -> list[Event]:
        """At last: one reader waits for a delivery to become old enough to be claimed; others are tried beside it."""
        first, *others = self._chance.sample(range(1, CLIENTS), 3)
        filled = [["XADD", "z", f"{number}-0", "f", "v"] for number in range(1, self._chance.randrange(2, 7))]
        made = [*filled, ["XGROUP", "CREATE", "z", "g", "0"], ["XREADGROUP", "GROUP", "g", "x", "STREAMS", "z", ">"]]
        count = self._maybe(0.7, "COUNT", self._of("1", "2"))
        readers = [Event(first, (_waiting_for_z("a", *count, "CLAIM", str(CLAIM_MS)),))]
        readers += [Event(client, (_waiting_for_z("b", *self._maybe(0.5, "CLAIM", "3600000")),)) for client in others]
        self._chance.shuffle(readers)
        return [self._does(*made), *readers, self._does(["XDEL", "z", "2-0"]), Event(wait_ms=CLAIM_PATIENCE_MS)]

    # -- what happens to keys and groups ----------------------------------------------------------------------------

    def _change(self) -> list[str]:
        key, group = self._key(), self._of(*self._groups)
        if self._chance.random() < self._violence:
            return self._key_change(key)
        roll = self._chance.random()
        if roll < 0.4:
            self._last += 1
            return ["XADD", key, f"{self._last}-0", "f", "v"]
        if roll < 0.75:
            return self._group_change(key, group)
        return self._pending_change(key, group)

    def _group_change(self, key: str, group: str) -> Request:
        return self._chance.choice((
            ["XGROUP", "DESTROY", key, group if self._chance.random() < 0.3 else "nobody"],
            ["XGROUP", "SETID", key, group, self._of("0", "$")],
            ["XGROUP", "DELCONSUMER", key, group, self._of(*CONSUMERS)],
            ["XGROUP", "DELCONSUMER", key, group, self._of(*CONSUMERS)],
            ["XGROUP", "CREATE", key, group, self._of("0", "$"), "MKSTREAM"],
            ["XGROUP", "CREATE", key, group, self._of("0", "$"), "MKSTREAM"],
            ["XGROUP", "CREATECONSUMER", key, group, self._of(*CONSUMERS)],
        ))  # fmt: skip

    def _pending_change(self, key: str, group: str) -> Request:
        ids = [f"{self._chance.randrange(1, self._last + 2)}-0" for _ in range(3)]
        idle = self._maybe(0.3, "IDLE", "7230000")
        how = [*idle, *self._maybe(0.3, "FORCE"), *self._maybe(0.3, "JUSTID")]
        return self._chance.choice((
            ["XCLAIM", key, group, self._of(*CONSUMERS), "0", *ids, *how],
            ["XACK", key, group, *ids],
            ["XDEL", key, *ids],
            ["XTRIM", key, "MAXLEN", self._of("0", "1", "3")],
            ["XREADGROUP", "GROUP", group, self._of(*CONSUMERS), *self._maybe(0.5, "COUNT", "1"), "STREAMS", key, ">"],
            ["XSETID", key, f"{self._last}-0"],
        ))  # fmt: skip

    def _key_change(self, key: str) -> Request:
        other = self._of(*OTHER_KEYS)
        return self._chance.choice((
            ["DEL", key], ["UNLINK", key], ["RENAME", key, other], ["RENAME", other, key], ["SET", key, "x"],
            ["COPY", other, key, "REPLACE"], ["COPY", key, other, *self._maybe(0.5, "REPLACE")], ["SET", "text", "x"],
            ["MOVE", key, "1"], ["SWAPDB", "0", "1"], ["FLUSHALL", *self._maybe(0.5, "ASYNC")], ["FLUSHDB"],
            ["PEXPIREAT", key, "1"], ["COPY", key, other, "DB", "1", "REPLACE"],
            ["SELECT", self._of("0", "0", "0", "1")],
        ))  # fmt: skip

    def _look(self) -> list[Request]:
        key = self._key()
        return self._chance.choice(([["XINFO", "STREAM", key, "FULL", "COUNT", "0"]], list(looks((key,)))))


def _waiting_for_z(consumer: str, *options: str) -> tuple[str, ...]:
    return ("XREADGROUP", "GROUP", "g", consumer, "BLOCK", "0", *options, "STREAMS", "z", ">")


def looks_at(database: str) -> Event:
    """The event that asks for all there is to see in a database."""
    return Event(0, (("SELECT", database), *map(tuple, looks())), look_of=f"a look at database {database}")


def looks(keys: tuple[str, ...] = ("k", "l", "m", "n", "z")) -> list[Request]:
    """Requests that show all there is to see of some streams."""
    asked: list[Request] = []
    for key in keys:
        asked += [["XINFO", "STREAM", key, "FULL", "COUNT", "0"], ["XINFO", "GROUPS", key], ["XRANGE", key, "-", "+"]]
        for group in "gh":
            asked += [["XINFO", "CONSUMERS", key, group], ["XPENDING", key, group, "-", "+", "100"]]
    return asked
