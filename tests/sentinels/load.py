"""Clients through a change of masters: what they were confirmed, and what a server has of it afterwards.

A writer appends numbers to a stream of its own, a reader takes the entries of one stream in a group and acknowledges
nine of ten. Each asks by WAIT how many replicas have what it did; a request that fails is not repeated.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import redis

BOTH = 2  # replicas
WAIT_MS = 300
TURN_S = 0.004
READ_AT_ONCE = 10
LEFT_PENDING = 10  # of so many entries one
GROUP = "workers"
JOBS = "jobs"


class Actor(threading.Thread):
    """Does one thing again and again until it is stopped; after that what it remembers may be read."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(TURN_S):
            try:
                self.act()
            except (redis.RedisError, OSError):
                continue  # no master, or one that does not answer: what was asked is not confirmed

    def act(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._over.set()
        self.join()
        self._client.close()

    def ask(self, *words: object, replicas: int) -> tuple[Any, int]:
        """The reply, and how many replicas confirmed it; a refusal is raised."""
        with self._client.pipeline(transaction=False) as both:
            both.execute_command(*words)
            if replicas:
                both.wait(replicas, WAIT_MS)
            reply, *confirmed = both.execute()
        return reply, confirmed[0] if confirmed else 0


class Writer(Actor):
    """Appends 1, 2, 3 ... to `key`; `confirmed` has each number that was, with the replicas that confirmed it."""

    def __init__(self, client: redis.Redis, key: str, replicas: int) -> None:
        super().__init__(client)
        self.key = key
        self._replicas = replicas
        self._number = 0
        self._last_s = time.monotonic()
        self.longest_s = 0.0  # between two confirmed writes
        self.confirmed: dict[int, int] = {}

    def act(self) -> None:
        self._number += 1
        _, replicas = self.ask("XADD", self.key, "*", "n", self._number, replicas=self._replicas)
        now_s = time.monotonic()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s
        self.confirmed[self._number] = replicas


class Reader(Actor):
    """Reads `JOBS` as a consumer of its group."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        super().__init__(client)
        self._name = name
        self.deliveries: Counter[str] = Counter()
        self.sure: set[str] = set()  # both replicas confirmed that it was delivered
        self.acked: set[str] = set()  # both confirmed that it was acknowledged
        self.asked_to_ack: set[str] = set()

    def act(self) -> None:
        words = ("XREADGROUP", "GROUP", GROUP, self._name, "COUNT", READ_AT_ONCE, "STREAMS", JOBS, ">")
        reply, replicas = self.ask(*words, replicas=BOTH)
        if not reply:
            return
        ids = [entry for entry, _ in next(iter(dict(reply).values()))]
        self.deliveries.update(ids)
        if replicas >= BOTH:
            self.sure.update(ids)
        done = [entry for entry in ids if int(entry.partition("-")[0]) % LEFT_PENDING]
        self.asked_to_ack.update(done)
        if done and self.ask("XACK", JOBS, GROUP, *done, replicas=BOTH)[1] >= BOTH:
            self.acked.update(done)


@dataclass(slots=True)
class Tally:
    """What became of it, over any number of changes of the master."""

    changes: int = 0
    confirmed: Counter[int] = field(default_factory=Counter)  # writes, by the replicas that confirmed them
    lost: Counter[int] = field(default_factory=Counter)
    lost_by_design: int = 0  # of a master that was cut off with a replica that confirmed them
    delivered: int = 0
    delivered_twice: int = 0
    went_back: list[str] = field(default_factory=list)  # what a group no longer knew, though both replicas had it
    longest_s: list[float] = field(default_factory=list)

    def count_writes(self, writer: Writer, client: Any, is_by_design: bool = False) -> None:
        """is_by_design: it wrote to a master that was cut off together with a replica."""
        present = {int(fields["n"]) for _, fields in client.xrange(writer.key)}
        for number, replicas in writer.confirmed.items():
            self.confirmed[replicas] += 1
            if number not in present and is_by_design and 0 < replicas < BOTH:
                self.lost_by_design += 1
            elif number not in present:
                self.lost[replicas] += 1

    def count_reads(self, readers: list[Reader], client: Any) -> None:
        """Compare what readers know with what the group knows."""
        deliveries = sum((reader.deliveries for reader in readers), Counter[str]())
        self.delivered += len(deliveries)
        self.delivered_twice += sum(1 for times in deliveries.values() if times > 1)
        sure = set().union(*(reader.sure for reader in readers))
        acked = set().union(*(reader.acked for reader in readers))
        asked = set().union(*(reader.asked_to_ack for reader in readers))
        rows: list[dict[str, str]] = client.xpending_range(JOBS, GROUP, "-", "+", 1_000_000)
        pending = {row["message_id"] for row in rows}
        position = client.xinfo_groups(JOBS)[0]["last-delivered-id"]
        self.went_back += [f"{entry} is pending again" for entry in acked & pending]
        self.went_back += [f"{entry} is no longer pending" for entry in sure - asked - pending]
        self.went_back += [f"{entry} is behind {position}" for entry in sure if order(entry) > order(position)]


def order(entry: str) -> tuple[int, ...]:
    """An entry ID as numbers."""
    return tuple(map(int, entry.split("-")))
