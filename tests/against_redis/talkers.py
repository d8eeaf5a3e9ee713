"""What several clients do in a random dialogue: they track keys, or they are clients of a cluster of one.

Their requests about values are those of the makers (`typed.py`); what chance decides, and what waits, is left out.
"""

import random
from typing import ClassVar, Final

from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hashes import Hashes
from tests.against_redis.makers.lists import Lists
from tests.against_redis.makers.scripts import Scripts
from tests.against_redis.makers.sets import Sets
from tests.against_redis.makers.shared import OWN, SHARED, Maker
from tests.against_redis.makers.sortedsets import SortedSets
from tests.against_redis.makers.sorting import Sorting
from tests.against_redis.makers.strings import Strings
from tests.against_redis.scenes import Event
from tests.against_redis.typed import Mixture
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.table_requests import TableRequests, Vocabulary

TALKERS: Final = 4  # of the stage's clients
PREFIXES: Final = ("t", "l", "h", "s", "z", "t1", "any", "x", "nothing")
SLOTS: Final = ("15891", "11826", "0", "16383")  # the first two are those of {t} and {u}
UNBROKEN: Final = ("PREFIX", "REDIRECT", "UNSUBSCRIBE", "SUNSUBSCRIBE")  # answered twice; own numbers; no order
HINDRANCES: Final = {  # directives, with the value that refuses nothing first
    "min-replicas-to-write": ("0", "0", "1"), "maxmemory": ("0", "0", "1"), "replica-serve-stale-data": ("yes", "no"),
}  # fmt: skip
CHANGES: Final = ("CONFIG", "REPLICAOF")
FLAGS: Final = ("no-writes", "allow-oom", "allow-stale", "allow-cross-slot-keys")
CALLS: Final = (
    "return 1", "return redis.call('GET', 't1')", "return redis.pcall('SET', 't1', '2')",
    "return redis.call('DEL', 't1')", "return redis.pcall('ECHO', 'x')", "return redis.pcall('PUBLISH', 'news', 'x')",
    "return {redis.pcall('PFCOUNT', 'p1')}",
)  # fmt: skip
LIBRARY: Final = (
    "#!lua name=hindered\nlocal function f() return redis.pcall('SET', 't1', 'f') end\n"
    "redis.register_function('w', f)\n"
    "redis.register_function{function_name='r', callback=f, flags={'no-writes'}}\n"
    "redis.register_function{function_name='s', callback=f, flags={'no-writes', 'allow-stale'}}\n"
    "redis.register_function{function_name='o', callback=f, flags={'allow-oom'}}"
)
UNKNOWN: Final = ("x", "0" * 40)  # nodes
KEYS: Final = frozenset(word for words in (*OWN.values(), SHARED) for word in words)


class Talker(Mixture):
    """Events of some clients. `directives`: what the server is started with."""

    directives: ClassVar[dict[str, str]] = {}
    makers_of_values: ClassVar[tuple[type[Maker], ...]] = (Anything, Hashes, Lists, Scripts, Sets, SortedSets, Strings)
    weights: ClassVar[dict[str, int]]

    def __init__(self, chance: random.Random, known: Known) -> None:
        super().__init__(chance, known, self.makers_of_values)
        self._table = TableRequests(chance, self.words())

    def words(self) -> Vocabulary:
        """What fills the requests of `weights`."""
        raise NotImplementedError

    @staticmethod
    def opening() -> list[Event]:
        """Events that make both sides equal: their replies do not count."""
        return []

    @staticmethod
    def looks() -> list[Event]:
        """What is asked at the end."""
        return [Event(0, (("RESET",), ("DBSIZE",), ("KEYS", "*")))]

    def events(self, count: int) -> list[Event]:
        chance = self.chance
        made = [Event(client, (("HELLO", self.of("2", "3")),)) for client in range(TALKERS)]
        while len(made) < count:
            client = chance.randrange(TALKERS)
            if chance.random() < 0.01:
                made.append(Event(client))
                continue
            requests = [tuple(request) for request in self._some()]
            if requests and chance.random() < 0.3:
                made.append(Event(client, tuple(requests)))
            else:
                made += [Event(client, (request,)) for request in requests]
        return made

    def _some(self) -> list[Request]:
        """One or more requests for one client."""
        if self.chance.random() < 0.3:
            names, weights = list(self.weights), list(self.weights.values())
            request = self._table.of_command(self.chance.choices(names, weights)[0])
            return [self._table.broken(request, UNBROKEN) if self.chance.random() < 0.05 else request]
        requests = self.requests(self.chance.choice((1, 1, 1, 3)))
        return [request for request in requests if not self.shapes.maker_by_chance(request) and not _may_grow(request)]


def _may_grow(request: Request) -> bool:
    """BITFIELD with OVERFLOW FAIL: Redis notifies no client of a string that only grew (docs/differences.md)."""
    return request[0] == "BITFIELD" and "FAIL" in [word.upper() for word in request]


class Tracking(Talker):
    """Clients that track keys in every way, and redirect their messages to one another."""

    weights: ClassVar[dict[str, int]] = {
        "CLIENT|TRACKING": 10, "CLIENT|CACHING": 6, "CLIENT|TRACKINGINFO": 3, "CLIENT|GETREDIR": 1, "SUBSCRIBE": 2,
        "UNSUBSCRIBE": 2, "RESET": 1, "PUBLISH": 1, "FLUSHALL": 1, "CLIENT|ID": 1,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        return Vocabulary(
            {
                "client-id": ("{id:0}", "{id:1}", "{id:2}", "{id:3}", "0", "999999", "x"),
                "prefix": self._prefix, "channel": ("__redis__:invalidate", "__redis__:invalidate", "news"),
                "message": ("hello",),
            },
            {"REDIRECT": 0.3, "PREFIX": 0.15, "BCAST": 0.25, "OPTIN": 0.15, "OPTOUT": 0.15, "NOLOOP": 0.3, "OFF": 0.3,
             "UNSUBSCRIBE channel": 1},  # of none: in no order
        )  # fmt: skip

    def _prefix(self, request: Request) -> str:
        """None that begins with another of the same request: Redis answers that twice."""
        free = [one for one in PREFIXES if not any(one[:1] == other[:1] for other in request)]
        return self.chance.choice(free)


class Hindered(Talker):
    """Clients of a server that refuses much: a replica without a master, one that wants replicas, or more memory."""

    weights: ClassVar[dict[str, int]] = {
        "CONFIG|SET": 8, "REPLICAOF": 3, "EVAL": 20, "EVAL_RO": 6, "EVALSHA": 2, "EVALSHA_RO": 1, "FCALL": 8,
        "FCALL_RO": 4, "MULTI": 5, "EXEC": 5, "PUBLISH": 1, "PFADD": 1, "PFCOUNT": 2, "PING": 1, "FUNCTION|STATS": 1,
        "SCRIPT|EXISTS": 1,
    }  # fmt: skip
    free: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("REPLICAOF", "NO", "ONE"),
        *[("CONFIG", "SET", name, values[0]) for name, values in HINDRANCES.items()],
    )

    @staticmethod
    def opening() -> list[Event]:
        return [
            Event(
                0,
                (
                    *Hindered.free,
                    ("FLUSHALL",),
                    ("SCRIPT", "FLUSH"),
                    ("FUNCTION", "FLUSH"),
                    ("FUNCTION", "LOAD", "REPLACE", LIBRARY),
                ),
            )
        ]

    @staticmethod
    def looks() -> list[Event]:
        return [Event(0, (("RESET",), *Hindered.free)), *Talker.looks()]

    def words(self) -> Vocabulary:
        return Vocabulary(
            {
                "parameter": tuple(HINDRANCES), "CONFIG|SET value": lambda request: self.of(*HINDRANCES[request[-1]]),
                "host": ("127.0.0.1",), "port": ("1",), "script": self._script, "numkeys": ("0",),
                "function": ("w", "r", "s", "o", "nosuch"),
                "sha1": ("e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0" * 40),
                "key": ("t1", "p1"), "element": ("a", "b"), "channel": ("news",), "message": ("hello",),
                "string": ("a",),
            },
            {"key": 0, "arg": 0, "NO": 1, "host-port": 1},
            most={"CONFIG|SET data": 1},
        )  # fmt: skip

    def events(self, count: int) -> list[Event]:
        """The server's state is changed by a client that is in no transaction."""
        made = super().events(count)
        return [Event(TALKERS, one.requests) if one.requests and one.requests[0][0] in CHANGES else one for one in made]

    def _script(self, request: Request) -> str:
        flags = ",".join(flag for flag in FLAGS if self.chance.random() < 0.35)
        return self.of("", "#!lua\n", f"#!lua flags={flags}\n", "#!other\n") + self.of(*CALLS)


class Cluster(Talker):
    """Clients of the only node of a cluster: keys of one slot or of several, and slots that are not served."""

    directives: ClassVar[dict[str, str]] = {"cluster_enabled": "yes"}
    makers_of_values = (*Talker.makers_of_values, Sorting)
    weights: ClassVar[dict[str, int]] = {
        "CLUSTER|KEYSLOT": 2, "CLUSTER|COUNTKEYSINSLOT": 2, "CLUSTER|GETKEYSINSLOT": 2, "CLUSTER|SLOTS": 1,
        "CLUSTER|SHARDS": 1, "CLUSTER|NODES": 1, "CLUSTER|LINKS": 1, "CLUSTER|MYID": 1, "CLUSTER|REPLICAS": 1,
        "CLUSTER|COUNT-FAILURE-REPORTS": 1, "CLUSTER|ADDSLOTS": 3, "CLUSTER|DELSLOTS": 2, "CLUSTER|ADDSLOTSRANGE": 1,
        "CLUSTER|DELSLOTSRANGE": 1, "CLUSTER|SETSLOT": 2, "CLUSTER|FORGET": 1, "CLUSTER|REPLICATE": 1,
        "SSUBSCRIBE": 4, "SUNSUBSCRIBE": 4, "SPUBLISH": 6, "PUBSUB|SHARDCHANNELS": 2, "PUBSUB|SHARDNUMSUB": 2,
        "SUBSCRIBE": 1, "UNSUBSCRIBE": 1, "PUBLISH": 2, "RESET": 1, "READONLY": 1, "READWRITE": 1, "ASKING": 1,
        "FLUSHALL": 1,
    }  # fmt: skip

    @staticmethod
    def opening() -> list[Event]:
        """All slots are served, and a slot that is not concerns no other client."""
        slots = [("CLUSTER", "ADDSLOTSRANGE", "0", "16383"), *[("CLUSTER", "ADDSLOTS", slot) for slot in SLOTS]]
        return [Event(0, (("CONFIG", "SET", "cluster-require-full-coverage", "no"), *slots))]

    def words(self) -> Vocabulary:
        return Vocabulary(
            {
                "slot": (*SLOTS, "16384", "-1", "x"), "start-slot": (*SLOTS, "x"), "end-slot": (*SLOTS, "16384"),
                "CLUSTER|DELSLOTSRANGE end-slot": lambda request: request[-1],
                "key": ("{t}t1", "{u}t1", "t1", "l1", "", "{}"),
                "shardchannel": ("{t}news", "{u}news", "news"),  # one a slot: several are left in no order
                "channel": ("{t}news", "news", "other"), "message": ("hello",), "pattern": ("*news",),
                "node-id": UNKNOWN, "importing": UNKNOWN, "migrating": UNKNOWN, "node": UNKNOWN,
                "count": ("0", "100", "-1", "x"),
            },
            {"STABLE": 3, "UNSUBSCRIBE channel": 1, "SUNSUBSCRIBE shardchannel": 1},  # of none: in no order
        )  # fmt: skip

    def requests(self, count: int) -> list[Request]:
        """As others make them, mostly with keys of one slot."""
        return [self._tagged(request) for request in super().requests(count)]

    def _tagged(self, request: Request) -> Request:
        roll = self.chance.random()
        tags = ("{t}",) if roll < 0.7 else ("{u}",) if roll < 0.85 else ("{t}", "{u}", "")
        return [self.chance.choice(tags) + word if word in KEYS else word for word in request]
