"""Random scenes with several clients that wait for lists and sorted sets, and all that may wake or pass them over."""

import random
from typing import Final

from tests.against_redis.scenes import CLIENTS, SHORT_MS, SHORT_S, SOON, Event
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known

LISTS: Final = ("k", "k", "k", "l", "l", "m")
SORTED: Final = ("z", "z", "y")
OTHERS: Final = ("k", "l", "m", "z", "y", "n", "text")
LONG: Final = ("0", "0", "0", "60", "59.5", "1e2")
ITEMS: Final = ("a", "b", "c", "d")


class QueueScenes:
    """Scenes from one source of chance."""

    def __init__(self, chance: random.Random, known: Known) -> None:
        self._chance = chance
        self._known = known
        self._violence = 0.0  # how often a key meets something worse than a push

    def scene(self, length: int = 30) -> list[Event]:
        self._violence = self._chance.choice((0.02, 0.1, 0.3))
        events = [Event(client, (("HELLO", "3"),)) for client in range(1, CLIENTS) if self._chance.random() < 0.4]
        due = 0
        for _ in range(length):
            event = self._event()
            events.append(event)
            if due or any(SHORT_S in request for request in event.requests):
                due += 1
            if due > SOON:
                events.append(Event(wait_ms=SHORT_MS))
                due = 0
        if due:
            events.append(Event(wait_ms=SHORT_MS))
        return events

    @staticmethod
    def looks() -> list[Event]:
        """What is asked at the end: everything in two databases."""
        asked: list[tuple[str, ...]] = []
        for number in "01":
            asked.append(("SELECT", number))
            asked += [("LRANGE", key, "0", "-1") for key in "klmn"]
            asked += [("ZRANGE", key, "0", "-1", "WITHSCORES") for key in "zy"]
            asked += [("DBSIZE",)]
        return [Event(0, tuple(asked), look_of="a look at everything")]

    def _of(self, *words: str) -> str:
        return self._chance.choice(words)

    def _does(self, *requests: Request) -> Event:
        return Event(0, tuple(map(tuple, requests)))

    def _event(self) -> Event:
        roll = self._chance.random()
        if roll < 0.45:
            return Event(self._chance.randrange(1, CLIENTS), (tuple(self._waiting()),))
        if roll < 0.48:
            return Event(self._chance.randrange(1, CLIENTS))
        if roll < 0.51:
            return self._does(["CLIENT", "UNBLOCK", f"{{id:{self._chance.randrange(1, CLIENTS)}}}"])
        if roll < 0.66:
            inner = [self._change() for _ in range(self._chance.randrange(1, 5))]
            return self._does(["MULTI"], *inner, ["EXEC"])
        return self._does(self._change())

    def _waiting(self) -> Request:
        timeout = self._of(*LONG) if self._chance.random() < 0.97 else SHORT_S
        lists = [self._of(*LISTS) for _ in range(self._chance.choice((1, 1, 2, 3)))]
        if self._chance.random() < 0.25:
            keys = [self._of(*SORTED, "k") for _ in range(self._chance.choice((1, 1, 2)))]
            most = ["COUNT", "2"] if self._chance.random() < 0.5 else []
            return self._chance.choice((
                [self._of("BZPOPMIN", "BZPOPMAX"), *keys, timeout],
                ["BZMPOP", timeout, str(len(keys)), *keys, self._of("MIN", "MAX"), *most],
            ))  # fmt: skip
        ends = [self._of("LEFT", "RIGHT"), self._of("LEFT", "RIGHT")]
        most = ["COUNT", self._of("1", "2", "3")] if self._chance.random() < 0.5 else []
        return self._chance.choice((
            [self._of("BLPOP", "BRPOP"), *lists, timeout], [self._of("BLPOP", "BRPOP"), *lists, timeout],
            ["BLMOVE", self._of(*LISTS), self._of(*LISTS, "text"), *ends, timeout],
            ["BRPOPLPUSH", self._of(*LISTS), self._of(*LISTS), timeout],
            ["BLMPOP", timeout, str(len(lists)), *lists, ends[0], *most],
        ))  # fmt: skip

    def _change(self) -> Request:
        key = self._of(*LISTS)
        if self._chance.random() < self._violence:
            return self._key_change(key)
        items = [self._of(*ITEMS) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        return self._chance.choice((
            ["RPUSH", key, *items], ["LPUSH", key, *items], ["RPUSH", key, *items], ["LPUSHX", key, *items],
            ["LPOP", key], ["RPOP", key, "2"], ["LMOVE", key, self._of(*LISTS), "LEFT", "RIGHT"],
            ["LTRIM", key, "1", "0"], ["LREM", key, "0", "a"],
            ["ZADD", self._of(*SORTED), self._of("1", "2", "3"), *items[:1]],
            ["ZADD", self._of(*SORTED), "5", items[0]],
        ))  # fmt: skip

    def _key_change(self, key: str) -> Request:
        other = self._of(*OTHERS)
        return self._chance.choice((
            ["DEL", key], ["RENAME", key, other], ["RENAME", other, key], ["SET", key, "x"], ["SET", "text", "x"],
            ["COPY", other, key, "REPLACE"], ["COPY", key, other], ["MOVE", key, "1"], ["SWAPDB", "0", "1"],
            ["FLUSHALL"], ["PEXPIREAT", key, "1"], ["COPY", key, other, "DB", "1", "REPLACE"],
            ["XADD", key, "5-*", "f", "v"],
            ["SADD", key, "a"], ["SELECT", self._of("0", "0", "0", "1")],
        ))  # fmt: skip
