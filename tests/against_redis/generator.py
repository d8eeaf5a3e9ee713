"""Random requests: every stream command, option and id form, broken arguments, and what else touches keys.

The command table gives them their form (tests/support/table_requests.py), this module their words. A seed gives the
same requests again. Ids are small or far in the future; idle times are whole or half minutes, and the idle times that
are asked for half a minute away from what entries can have by then.
"""

import random
from typing import Final

from tests.against_redis.exclusions import IDMP_SINCE, XSETID_SINCE
from tests.support.random_words import JUNK, Request
from tests.support.reference_knowledge import Known
from tests.support.table_requests import TableRequests, Vocabulary, Words

KEYS: Final = ("s1", "s2", "s3", "{t}s4", "text", "nokey")
STREAMS: Final = ("s1", "s1", "s1", "s2", "s2", "s3", "{t}s4")
GROUPS: Final = ("g1", "g1", "g2", "g3", "")
CONSUMERS: Final = ("a", "b", "c", "", "d d")
DATABASES: Final = ("0", "0", "0", "1", "1", "2", "16", "-1", "x")
FAR_MS: Final = 9_000_000_000_000
FAR_S: Final = str(FAR_MS // 1000)
IDLES: Final = ("0", "0", "0", "90000", "3630000", "-5", "99999999999999")
MOMENTS: Final = ("1", "1600000000000", str(FAR_MS), str(FAR_MS), str(FAR_MS + 100_000), "0", "-1", "x")
VALUES: Final = ("1", "x", "", "-5", "9223372036854775807")
PRODUCERS: Final = ("p", "p", "q", "")
IIDS: Final = ("i", "i", "j", "k", "")
UNCUT: Final = (
    "MULTI",
    "EXEC",
    "DISCARD",
    "BLOCK",
    "HELLO",
    "PEXPIREAT",
    "XIDMPRECORD",
    "XCFGSET",
    "CONFIG",
    "SCAN",
    "IFDEQ",
    "IFDNE",
    "DELREF",
)  # of a digest that is none, with GET, Redis answers twice

WEIGHTS: Final = {  # how often each command is asked
    "XADD": 28, "XTRIM": 8, "XDEL": 10, "XDELEX": 6, "XACKDEL": 8, "XREADGROUP": 24, "XREAD": 10, "XACK": 12,
    "XCLAIM": 16, "XAUTOCLAIM": 10, "XPENDING": 12, "XRANGE": 4, "XREVRANGE": 4, "XGROUP|CREATE": 5, "XGROUP|SETID": 3,
    "XGROUP|DESTROY": 1, "XGROUP|CREATECONSUMER": 2, "XGROUP|DELCONSUMER": 2, "XGROUP|HELP": 1, "XINFO|STREAM": 9,
    "XINFO|GROUPS": 4, "XINFO|CONSUMERS": 3, "XSETID": 4, "XCFGSET": 2, "XIDMPRECORD": 2, "XLEN": 2,
    "DEL": 1, "UNLINK": 1, "COPY": 1, "RENAME": 1, "RENAMENX": 1, "EXISTS": 1, "TYPE": 1, "TOUCH": 1,
    "OBJECT|ENCODING": 1, "KEYS": 1, "DBSIZE": 1, "SCAN": 1, "SET": 1, "GET": 1, "GETDEL": 1, "MGET": 1, "STRLEN": 1,
    "APPEND": 1, "INCR": 1, "DECRBY": 1, "SETNX": 1, "MSET": 1, "PEXPIREAT": 1, "PERSIST": 1, "PEXPIRETIME": 1,
    "EXPIRETIME": 1, "TTL": 1, "PTTL": 1, "EXPIREAT": 1, "SELECT": 3, "MOVE": 1, "SWAPDB": 1,
}  # fmt: skip
CONSUMER_COMMANDS: Final = ("XGROUP|CREATECONSUMER", "XGROUP|DELCONSUMER", "XINFO|CONSUMERS")
LATEST: Final = "XNACK"  # what no reference knows: asked where both must refuse it


class Generator(TableRequests):
    """Requests from one source of chance, for a server of which it is known what it knows."""

    def __init__(self, chance: random.Random, known: Known) -> None:
        super().__init__(chance)
        self.known = known
        self.junk = [word for word in JUNK if word != "+" or known.since(7, 4)]
        self._waiting: list[Request] = []  # the rest of a transaction
        # A producer with an XADD refused because ids are exhausted is forgotten by a job once a second: a scenario
        # has producers, or exhausted ids.
        self._has_producers = known.since(8, 6) and chance.random() < 0.5
        self._blocks = False  # inside MULTI, where BLOCK does not wait
        # A trim with DELREF drops what is pending of entries that were deleted before; a Redis keeps it: a scenario has
        # such trims, or what deletes entries and keeps references.
        self._trims_references = known.since(8, 2) and chance.random() < 0.2
        self.vocabulary = self._words()
        self._commands = {name: weight for name, weight in WEIGHTS.items() if self._may_be_sent(name)}
        if known.may_be_sent(""):
            self._commands[LATEST] = 1
        if self._trims_references:
            for name in ("XDEL", "XDELEX", "XACKDEL"):
                self._commands.pop(name, None)

    def request(self) -> Request:
        """The next request; one in twenty is broken."""
        if self._waiting:
            return self._waiting.pop(0)
        if self.chance.random() < 0.015:
            return self.transaction()
        request = self.whole()
        return self.broken(request, UNCUT) if self.chance.random() < 0.05 else request

    def requests(self, count: int) -> list[Request]:
        return [self.request() for _ in range(count)]

    def whole(self) -> Request:
        """A request that is not broken and opens no transaction."""
        if self.chance.random() < 0.01:
            return self.connection()
        names, weights = list(self._commands), list(self._commands.values())
        return self.of_command(self.chance.choices(names, weights)[0])

    def step(self) -> list[Request]:
        """A request, or a whole transaction."""
        requests = [self.request(), *self._waiting]
        self._waiting = []
        return requests

    def _may_be_sent(self, name: str) -> bool:
        if name == "XSETID" and self.known.version < XSETID_SINCE:
            return False
        if name in CONSUMER_COMMANDS and not self.known.since(7, 2):
            return False
        return self.known.may_be_sent(name.partition("|")[0])

    def _chance_since(self, probability: float, major: int, minor: int) -> float:
        """How likely a word is that came with a version: hardly, where the reference refuses it."""
        if not self.known.since(major, minor):
            return 0
        return probability if self.known.version >= (major, minor, 0) else probability * 0.1

    # -- words ------------------------------------------------------------------------------------------------------

    def _words(self) -> Vocabulary:
        references = self._chance_since(0.4, 8, 2)
        budget = self._chance_since(0.03, 8, 10)
        words: dict[str, Words] = {
            "key": self._key, "newkey": self._key, "source": self._key, "destination": self._key, "group": self._group,
            "consumer": CONSUMERS, "id": self._id, "start": self._start, "end": self._end, "count": self._small,
            "pid": PRODUCERS, "iid": IIDS, "min-idle-time": IDLES, "milliseconds": self._wait,
            "threshold": self._threshold, "last-id": self._id, "max-deleted-id": self._id, "lastid": self._id,
            "XADD id": self._new_id, "XADD field": ("ab", "ab", "a", "abc", "zz"), "XADD value": self._value,
            "XADD count": ("0", "1", "3", "4", "8", "100", "-1"), "XTRIM count": ("0", "1", "3", "4", "8", "100", "-1"),
            "entries-added": ("0", "5", "50", "-1"), "entries-read": ("0", "3", "-1", "-2", "100"),
            "duration": ("100", "1000", "86400", "0", "86401", "x"), "maxsize": ("1", "2", "100", "10001"),
            "maxcount": ("1", "100", "x"), "stream-id": self._record_id,
            "XREAD id": self._read_place, "XREADGROUP id": self._group_read_place,
            "XREADGROUP min-idle-time": ("0", "0", "90000", "3600000"), "XPENDING count": self._pending_count,
            "XCLAIM ms": IDLES, "XCLAIM unix-time-milliseconds": ("0", "30000", "1600000000000", "99999999999999"),
            "XCLAIM count": ("0", "5", "-1", "9223372036854775807"), "XGROUP|CREATE id": self._group_place,
            "XGROUP|SETID id": self._group_place,
            "KEYS pattern": ("*", "s?", "s[12]"), "SCAN pattern": self._key, "cursor": ("0",), "SCAN count": ("1000",),
            "SCAN type": ("stream", "string"), "index": DATABASES, "db": DATABASES, "destination-db": DATABASES,
            "index1": DATABASES, "index2": DATABASES, "value": VALUES, "decrement": VALUES, "ifeq-value": VALUES,
            "ifne-value": VALUES, "ifdeq-digest": ("0" * 16,), "ifdne-digest": ("0" * 16,),
            "SET unix-time-milliseconds": (str(FAR_MS), str(FAR_MS), "0", "-1", "x"),
            "unix-time-milliseconds": MOMENTS, "unix-time-seconds": (FAR_S,), "SET key": self._string_key,
            "MSET key": ("text", "text", "number"), "string": VALUES,
        }  # fmt: skip
        trims = 1.0 if self._trims_references else 0.0
        for name in ("GET", "GETDEL", "STRLEN", "APPEND", "INCR", "DECRBY", "SETNX"):
            words[f"{name} key"] = self._read_key
        return Vocabulary(
            words,
            {
                "condition": references, "SET condition": 0.3, "PEXPIREAT condition": 0.3, "EXPIREAT condition": 0.3,
                "XADD NOMKSTREAM": 0.1, "XADD trim": 0.25, "LIMIT": self._limit_chance, "XADD *": 0.3,
                "idmp": self._chance_since(0.15, 8, 6) if self._has_producers else 0, "MAXCOUNT": budget,
                "MAXSIZE": budget, "BLOCK": lambda _: 0.3 if self._blocks else 0.02, "COUNT": 0.6, "SCAN COUNT": 1,
                "SCAN MATCH": 1, "CLAIM": self._chance_since(0.25, 8, 4), "NOACK": 0.1, "XCLAIM TIME": 0.1,
                "XCLAIM LASTID": 0.1, "XCLAIM IDLE": 0.3, "XCLAIM FORCE": 0.5, "XCLAIM JUSTID": 0.3, "filters": 0.6,
                "XADD condition": trims or references, "XTRIM condition": trims or references,
                "XADD DELREF": trims, "XTRIM DELREF": trims, "XADD KEEPREF": 1 - trims, "XTRIM KEEPREF": 1 - trims,
                "XADD ACKED": 1 - trims, "XTRIM ACKED": 1 - trims, "MKSTREAM": 0.6, "FULL": 0.6,
                "full-block": 0.6, "SET EX": 0, "SET PX": 0,
            },
            {"XACK id": 9, "XCLAIM id": 5, "XDEL id": 5, "XDELEX id": 5, "XACKDEL id": 5, "XREAD key": 2,
             "XREADGROUP key": 2},
            version=self.known.version if self.known.version < (9, 0, 0) else (99, 0, 0),
        )  # fmt: skip

    def key(self) -> str:
        return self.of(*KEYS) if self.chance.random() < 0.1 else self.of(*STREAMS)

    def group(self) -> str:
        return self.of("nog", *GROUPS) if self.chance.random() < 0.1 else self.of(*GROUPS)

    def id(self) -> str:
        roll = self.chance.random()
        if roll < 0.7:
            return f"{self.chance.randrange(1, 40)}-{self.chance.randrange(0, 3)}"
        if roll < 0.85:
            return str(self.chance.randrange(0, 40))
        if roll < 0.97:
            return self.far_id()
        highest = "5" if self._has_producers else "18446744073709551615-18446744073709551615"
        return self.of("0", "0-0", "007-1", highest, "18446744073709551616-0", "5-", "-5", "abc")

    def far_id(self) -> str:
        return f"{FAR_MS + self.chance.randrange(0, 5)}-{self.chance.randrange(0, 12)}"

    def _key(self, _: Request) -> str:
        return self.key()

    def _group(self, _: Request) -> str:
        return self.group()

    def _id(self, _: Request) -> str:
        return self.id()

    def _start(self, _: Request) -> str:
        return self.of("-", "-", "0", self.id(), "(" + self.id(), "+")

    def _end(self, _: Request) -> str:
        return self.of("+", "+", self.id(), "(" + self.id(), "-")

    def _small(self, _: Request) -> str:
        return str(self.chance.randrange(-1, 8))

    def _pending_count(self, request: Request) -> str:
        return self.of("10", self._small(request))

    def _string_key(self, _: Request) -> str:
        """SET puts a string where a stream was: seldom."""
        return self.of(*STREAMS) if self.chance.random() < 0.1 else "text"

    def _read_key(self, _: Request) -> str:
        return self.of("text", "text", "number", self.key())

    def _threshold(self, request: Request) -> str:
        strategy = next(word for word in reversed(request) if word.upper() in ("MAXLEN", "MINID"))
        return self.of("0", "1", "3", "5", "10", "20", "50", "-1") if strategy.upper() == "MAXLEN" else self.id()

    def _limit_chance(self, request: Request) -> float:
        return 0.4 if "~" in request else 0.03

    def _wait(self, _: Request) -> str:
        """Inside MULTI nothing waits; elsewhere only what is refused is sent."""
        if self._blocks:
            return self.of("0", "100", "-1", "x")
        longest = "9223372036854775807" if self.known.since(7, 2) else "x"  # Redis 7.0 waits so long
        return self.of("-1", "x", longest, "1.5")

    def _new_id(self, request: Request) -> str:
        """`*` and `ms-*` often: of a stream that has ids in the future they make ids that all servers agree on."""
        if any(word.upper() in ("IDMP", "IDMPAUTO") for word in request):
            return self.of("*", "*", "*", "*", "5-*")
        roll = self.chance.random()
        if roll < 0.02:
            return f"{FAR_MS + 2}-1"
        if roll < 0.3:
            return self.of(f"{FAR_MS}-*", f"{FAR_MS + 1}-*", "30-*", "5-*")
        return f"{self.chance.randrange(1, 40)}-{self.chance.randrange(0, 3)}" if roll < 0.8 else self.id()

    def _value(self, _: Request) -> str:
        letters = "x" * self.chance.randrange(0, 90)
        return self.of("1", "-7", "300", "70000", "5000000000", letters, "05", "y" * 700)

    def _record_id(self, _: Request) -> str:
        return self.of(self.far_id(), self.far_id(), "x")

    def _read_place(self, _: Request) -> str:
        return self.of("0", "$", "+" if self.known.since(7, 4) else "$", self.id())

    def _group_read_place(self, _: Request) -> str:
        return self.of(">", ">", ">", "0", self.id())

    def _group_place(self, _: Request) -> str:
        return self.of("0", "$", "-", "+", self.id(), self.id())

    # -- connections and transactions -------------------------------------------------------------------------------

    def connection(self) -> Request:
        made = [
            ["HELLO", "2"],
            ["HELLO", "3"],
            ["HELLO", "4"],
            ["PING"],
            ["ECHO", "x"],
            ["FOO", "bar", "a\r\nb"],
            ["UNWATCH"],
            ["FLUSHDB"],
        ]
        made += [["CONFIG", "SET", "stream-node-max-entries", self.of("2", "5", "100", "0")]]
        made += [["CONFIG", "SET", "stream-node-max-bytes", self.of("100", "1000", "4096", "0")]]
        if self.known.version >= IDMP_SINCE:
            made += [["CONFIG", "SET", "stream-idmp-maxsize", self.of("1", "2", "100", "0", "10001")]]
            made += [["CONFIG", "SET", "stream-idmp-duration", self.of("100", "86400", "0", "86401")]]
        return self.chance.choice(made)

    def transaction(self) -> Request:
        """MULTI, a few requests, and an end; watched keys, wrong endings and broken requests among them."""
        self._blocks = True
        queued = [self.whole() for _ in range(self.chance.randrange(0, 6))]
        self._blocks = False
        if self.chance.random() < 0.1 and queued:
            queued[-1] = self.broken(queued[-1], UNCUT)
        end = self.of("EXEC", "EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")
        watched = self.maybe(0.3, self.key(), self.key())
        between = [self.whole()] if watched and self.chance.random() < 0.5 else []
        watching = [["WATCH", *watched], *between] if watched else []
        requests: list[Request] = [*watching, ["MULTI"], *queued, [end]]
        self._waiting = requests[1:]
        return requests[0]


def with_new_only(request: Request) -> Request:
    """A read of a group that asks for new entries: no log carries what a read of its history changes."""
    words = [word.upper() for word in request]
    if words[0] != "XREADGROUP" or "STREAMS" not in words:
        return request
    half = words.index("STREAMS") + 1
    places = (len(request) - half) // 2
    return [*request[: half + places], *[">"] * places]
