"""Random requests: every stream command, option and id form, broken arguments, and what else touches keys.

A seed gives the same requests again. Ids are small or far in the future; idle times are whole or half minutes, and
the idle times that are asked for half a minute away from what entries can have by then.
"""

import random
from collections.abc import Callable
from typing import Final, TypeAlias

from tests.against_redis.exclusions import IDMP_SINCE, XSETID_SINCE
from tests.support.reference_knowledge import Known

Request: TypeAlias = list[str]

KEYS: Final = ("s1", "s2", "s3", "{t}s4", "text", "nokey")
STREAMS: Final = ("s1", "s1", "s1", "s2", "s2", "s3", "{t}s4")
GROUPS: Final = ("g1", "g1", "g2", "g3", "")
CONSUMERS: Final = ("a", "b", "c", "", "d d")
DATABASES: Final = ("0", "0", "0", "1", "1", "2", "16", "-1", "x")
FAR_MS: Final = 9_000_000_000_000
IDLES: Final = ("0", "0", "0", "90000", "3630000", "-5", "99999999999999")
MOMENTS: Final = ("1", "1600000000000", str(FAR_MS), str(FAR_MS), str(FAR_MS + 100_000), "0", "-1", "x")
VALUES: Final = ("1", "x", "", "-5", "9223372036854775807")
PRODUCERS: Final = ("p", "p", "q", "")
IIDS: Final = ("i", "i", "j", "k", "")
JUNK: Final = (
    "", "x", "-1", "0", "1", "+5", "05", "9223372036854775808", "-", "+", "*", "$", ">", "(", "1-1-1", "LIMIT", "COUNT",
    "STREAMS", "~", "=", "a\r\nb", "n\0n", "18446744073709551615", "x" * 130,
)  # fmt: skip
UNCUT: Final = ("MULTI", "EXEC", "DISCARD", "BLOCK", "HELLO", "PEXPIREAT", "XIDMPRECORD", "XCFGSET", "CONFIG", "SCAN")


class Generator:
    """Requests from one source of chance, for a server of which it is known what it knows."""

    def __init__(self, chance: random.Random, known: Known) -> None:
        self.chance = chance
        self.known = known
        self._junk = [word for word in JUNK if word != "+" or known.since(7, 4)]
        self._waiting: list[Request] = []  # the rest of a transaction
        # A producer whose XADD is refused because the ids are exhausted is forgotten by a job once a second: a scenario
        # has producers, or exhausted ids.
        self._has_producers = known.since(8, 6) and chance.random() < 0.5
        self._blocks = False  # inside MULTI, where BLOCK does not wait
        self.makers: list[Callable[[], Request]] = []
        for weight, name, maker in (
            (14, "XADD", self.xadd), (4, "XTRIM", self.xtrim), (5, "XDEL", self.xdel), (3, "XDELEX", self.xdelex),
            (4, "XACKDEL", self.xackdel), (12, "XREADGROUP", self.xreadgroup), (5, "XREAD", self.xread),
            (6, "XACK", self.xack), (8, "XCLAIM", self.xclaim), (5, "XAUTOCLAIM", self.xautoclaim),
            (6, "XPENDING", self.xpending), (4, "XRANGE", self.xrange), (6, "XGROUP", self.xgroup),
            (8, "XINFO", self.xinfo), (2, "XSETID", self.xsetid), (1, "XCFGSET", self.xcfgset),
            (1, "XIDMPRECORD", self.xidmprecord), (1, "XLEN", self.xlen), (2, "DEL", self.keys),
            (2, "SET", self.strings), (2, "PEXPIREAT", self.expiry), (2, "SELECT", self.databases),
            (1, "HELLO", self.connection), (2, "MULTI", self.transaction),
            (1, "", self.latest),
        ):  # fmt: skip
            if known.may_be_sent(name) and (name != "XSETID" or known.version >= XSETID_SINCE):
                self.makers += [maker] * weight

    def request(self) -> Request:
        """The next request; one in twenty is broken."""
        if self._waiting:
            return self._waiting.pop(0)
        request = self.of_makers()
        return self.broken(request) if self.chance.random() < 0.05 else request

    def requests(self, count: int) -> list[Request]:
        return [self.request() for _ in range(count)]

    def of_makers(self) -> Request:
        return self.chance.choice(self.makers)()

    def maybe(self, probability: float, *words: str) -> Request:
        return list(words) if self.chance.random() < probability else []

    def chance_of(self, probability: float, major: int, minor: int) -> float:
        """How likely a word is that came with a version: hardly, where the reference refuses it."""
        if not self.known.since(major, minor):
            return 0
        return probability if self.known.version >= (major, minor, 0) else probability * 0.1

    def of(self, *words: str) -> str:
        return self.chance.choice(words)

    def shuffled(self, *options: Request) -> Request:
        """The options' words, the options in any order."""
        order = list(options)
        self.chance.shuffle(order)
        return [word for option in order for word in option]

    def broken(self, request: Request) -> Request:
        """A request with a word too few, too many, or wrong; what could wait, or see the clock, stays whole."""
        if any(word.upper() in UNCUT for word in request):
            return request
        at = self.chance.randrange(1, len(request) + 1)
        kind = self.chance.randrange(5)
        if kind == 0 and len(request) > 1:
            return request[:-1]
        if kind == 1:
            return [*request[:at], self.of(*self._junk), *request[at:]]
        if kind == 2 and at < len(request):
            return [*request[:at], self.of(*self._junk), *request[at + 1 :]]
        if kind == 3 and at < len(request):
            return [*request[:at], *request[at + 1 :]]
        return [*request[:at], request[at - 1], *request[at:]]

    # -- words ------------------------------------------------------------------------------------------------------

    def key(self) -> str:
        return self.of(*KEYS) if self.chance.random() < 0.1 else self.of(*STREAMS)

    def group(self) -> str:
        return self.of("nog", *GROUPS) if self.chance.random() < 0.1 else self.of(*GROUPS)

    def consumer(self) -> str:
        return self.of(*CONSUMERS)

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

    def ids(self, most: int = 6) -> Request:
        return [self.id() for _ in range(self.chance.randrange(1, most))]

    def start(self) -> str:
        return self.of("-", "-", "0", self.id(), "(" + self.id(), "+")

    def end(self) -> str:
        return self.of("+", "+", self.id(), "(" + self.id(), "-")

    def small(self) -> str:
        return str(self.chance.randrange(-1, 8))

    def references(self) -> Request:
        return self.maybe(self.chance_of(0.4, 8, 2), self.of("KEEPREF", "DELREF", "ACKED", "acked"))

    def trim(self) -> Request:
        strategy = self.of("MAXLEN", "MINID", "maxlen")
        threshold = self.of("0", "1", "3", "5", "10", "20", "50", "-1") if strategy.upper() == "MAXLEN" else self.id()
        words = [strategy, *self.maybe(0.7, self.of("~", "~", "=")), threshold]
        if "~" in words or self.chance.random() < 0.03:
            words += self.maybe(0.4, "LIMIT", self.of("0", "1", "3", "4", "8", "100", "-1"))
        return words

    def count(self) -> Request:
        return self.maybe(0.6, "COUNT", self.small())

    def block(self) -> Request:
        """Inside MULTI nothing waits; elsewhere only what is refused is sent."""
        if self._blocks:
            return self.maybe(0.3, "BLOCK", self.of("0", "100", "-1", "x"))
        longest = "9223372036854775807" if self.known.since(7, 2) else "x"  # Redis 7.0 waits so long
        return self.maybe(0.02, "BLOCK", self.of("-1", "x", longest, "1.5"))

    # -- changing a stream ------------------------------------------------------------------------------------------

    def xadd(self) -> Request:
        key = self.key()
        options = [self.maybe(0.1, "NOMKSTREAM"), self.references(), self.maybe(0.25, *self.trim())]
        if self._has_producers and self.chance.random() < self.chance_of(0.15, 8, 6):
            producer = self.of(*PRODUCERS)
            options.append(self.chance.choice((["IDMP", producer, self.of(*IIDS)], ["IDMPAUTO", producer])))
            return ["XADD", key, *self.shuffled(*options), self.of("*", "*", "*", "*", "5-*"), *self.fields()]
        return ["XADD", key, *self.shuffled(*options), self.new_id(), *self.fields()]

    def new_id(self) -> str:
        """`*` and `ms-*` often: of a stream that has ids in the future they make ids that all servers agree on."""
        roll = self.chance.random()
        if roll < 0.02:
            return f"{FAR_MS + 2}-1"
        if roll < 0.4:
            return self.of("*", "*", f"{FAR_MS}-*", f"{FAR_MS + 1}-*", "30-*", "5-*")
        return f"{self.chance.randrange(1, 40)}-{self.chance.randrange(0, 3)}" if roll < 0.8 else self.id()

    def fields(self) -> Request:
        fields: Request = []
        for name in self.of("ab", "ab", "a", "abc", "zz"):
            letters = "x" * self.chance.randrange(0, 90)
            fields += [name, self.of("1", "-7", "300", "70000", "5000000000", letters, "05", "y" * 700)]
        return fields

    def xtrim(self) -> Request:
        return ["XTRIM", self.key(), *self.trim(), *self.references()]

    def xdel(self) -> Request:
        return ["XDEL", self.key(), *self.ids()]

    def xdelex(self) -> Request:
        ids = self.ids()
        return ["XDELEX", self.key(), *self.references(), "IDS", str(len(ids)), *ids]

    def xackdel(self) -> Request:
        ids = self.ids()
        return ["XACKDEL", self.key(), self.group(), *self.references(), "IDS", str(len(ids)), *ids]

    def xsetid(self) -> Request:
        added = self.maybe(0.4, "ENTRIESADDED", self.of("0", "5", "50", "-1"))
        return ["XSETID", self.key(), self.id(), *added, *self.maybe(0.3, "MAXDELETEDID", self.id())]

    def xcfgset(self) -> Request:
        duration = self.maybe(0.6, "IDMP-DURATION", self.of("100", "1000", "86400", "0", "86401", "x"))
        return [
            "XCFGSET",
            self.key(),
            *self.shuffled(duration, self.maybe(0.5, "IDMP-MAXSIZE", self.of("1", "2", "100", "10001"))),
        ]

    def xidmprecord(self) -> Request:
        return [
            "XIDMPRECORD",
            self.key(),
            self.of(*PRODUCERS),
            self.of(*IIDS),
            self.of(self.far_id(), self.far_id(), "x"),
        ]

    # -- reading ----------------------------------------------------------------------------------------------------

    def xread(self) -> Request:
        keys = [self.key() for _ in range(self.chance.randrange(1, 3))]
        last = "+" if self.known.since(7, 4) else "$"
        places = [self.of("0", "$", last, self.id()) for _ in keys]
        return ["XREAD", *self.shuffled(self.count(), self.block()), "STREAMS", *keys, *places]

    def xreadgroup(self) -> Request:
        keys = [self.key() for _ in range(self.chance.choice((1, 1, 1, 2)))]
        claim = self.maybe(self.chance_of(0.25, 8, 4), "CLAIM", self.of("0", "0", "90000", "3600000"))
        options = self.shuffled(self.count(), self.maybe(0.1, "NOACK"), claim, self.block())
        places = [self.of(">", ">", ">", "0", self.id()) for _ in keys]
        return ["XREADGROUP", "GROUP", self.group(), self.consumer(), *options, "STREAMS", *keys, *places]

    def latest(self) -> Request:
        """What no Redis before 8.8 knows: sent where it is refused."""
        budget = [self.of("MAXCOUNT", "MAXSIZE"), self.of("1", "100", "x")]
        return self.chance.choice((
            ["XNACK", self.key(), self.group(), self.of("FAIL", "FATAL"), "IDS", "1", self.id()],
            ["XREAD", *budget, "STREAMS", self.key(), "0"],
            ["XREADGROUP", "GROUP", self.group(), self.consumer(), *budget, "STREAMS", self.key(), ">"],
        ))  # fmt: skip

    def xrange(self) -> Request:
        if self.chance.random() < 0.5:
            return ["XRANGE", self.key(), self.start(), self.end(), *self.count()]
        return ["XREVRANGE", self.key(), self.end(), self.start(), *self.count()]

    def xlen(self) -> Request:
        return ["XLEN", self.key()]

    # -- groups and what is pending ---------------------------------------------------------------------------------

    def xack(self) -> Request:
        return ["XACK", self.key(), self.group(), *self.ids(10)]

    def xclaim(self) -> Request:
        options = self.shuffled(
            self.maybe(0.3, "IDLE", self.of(*IDLES)),
            self.maybe(0.1, "TIME", self.of("0", "30000", "1600000000000", "99999999999999")),
            self.maybe(0.3, "RETRYCOUNT", self.of("0", "5", "-1", "9223372036854775807")),
            self.maybe(0.5, "FORCE"),
            self.maybe(0.3, "JUSTID"),
            self.maybe(0.1, "LASTID", self.id()),
        )
        return ["XCLAIM", self.key(), self.group(), self.consumer(), self.of(*IDLES), *self.ids(), *options]

    def xautoclaim(self) -> Request:
        options = self.shuffled(self.maybe(0.6, "COUNT", self.small()), self.maybe(0.3, "JUSTID"))
        return ["XAUTOCLAIM", self.key(), self.group(), self.consumer(), self.of(*IDLES), self.start(), *options]

    def xpending(self) -> Request:
        if self.chance.random() < 0.4:
            return ["XPENDING", self.key(), self.group()]
        idle = self.maybe(0.4, "IDLE", self.of(*IDLES))
        consumer = self.maybe(0.4, self.consumer())
        return [
            "XPENDING",
            self.key(),
            self.group(),
            *idle,
            self.start(),
            self.end(),
            self.of("10", self.small()),
            *consumer,
        ]

    def xgroup(self) -> Request:
        roll = self.chance.random()
        place = self.of("0", "$", "-", "+", self.id(), self.id())
        read = self.maybe(0.3, "ENTRIESREAD", self.of("0", "3", "-1", "-2", "100"))
        if roll < 0.4:
            return [
                "XGROUP",
                "CREATE",
                self.key(),
                self.group(),
                place,
                *self.shuffled(self.maybe(0.6, "MKSTREAM"), read),
            ]
        if roll < 0.64:
            return ["XGROUP", "SETID", self.key(), self.group(), place, *read]
        if roll < 0.71:
            return ["XGROUP", "DESTROY", self.key(), self.group()]
        if roll < 0.85 and self.known.since(7, 2):
            return ["XGROUP", "CREATECONSUMER", self.key(), self.group(), self.consumer()]
        if roll < 0.99 and self.known.since(7, 2):
            return ["XGROUP", "DELCONSUMER", self.key(), self.group(), self.consumer()]
        return [self.of("XGROUP", "XINFO"), "HELP"]

    def xinfo(self) -> Request:
        roll = self.chance.random()
        if roll < 0.25:
            return ["XINFO", "STREAM", self.key()]
        if roll < 0.55:
            return ["XINFO", "STREAM", self.key(), "FULL", *self.maybe(0.8, "COUNT", self.of("0", self.small()))]
        if roll < 0.8 or not self.known.since(7, 2):
            return ["XINFO", "GROUPS", self.key()]
        return ["XINFO", "CONSUMERS", self.key(), self.group()]

    # -- keys, databases, connections -------------------------------------------------------------------------------

    def keys(self) -> Request:
        key, other = self.key(), self.key()
        return self.chance.choice((
            ["DEL", key], ["UNLINK", key, other], ["COPY", key, other, *self.maybe(0.5, "REPLACE")],
            ["RENAME", key, other], ["RENAMENX", key, other], ["EXISTS", key, other, key], ["TYPE", key],
            ["TOUCH", key, other],
            ["OBJECT", "ENCODING", key], ["KEYS", self.of("*", "s?", "s[12]")], ["DBSIZE"],
            ["SCAN", "0", "MATCH", key, "COUNT", "1000", *self.maybe(0.5, "TYPE", self.of("stream", "string"))],
            ["COPY", key, other, "DB", self.of(*DATABASES), *self.maybe(0.5, "REPLACE")],
        ))  # fmt: skip

    def strings(self) -> Request:
        key, value = self.of("text", "text", "number", self.key()), self.of(*VALUES)
        kept = self.of(*STREAMS) if self.chance.random() < 0.1 else "text"  # SET puts a string where a stream was
        return self.chance.choice((
            ["SET", kept, value, *self.maybe(0.3, self.of("NX", "XX", "GET", "KEEPTTL", "FOO"))], ["GET", key],
            ["GETDEL", key], ["MGET", key, self.key()], ["STRLEN", key], ["APPEND", key, value], ["INCR", key],
            ["DECRBY", key, value], ["SETNX", key, value], ["MSET", "text", value, "number", value],
        ))  # fmt: skip

    def expiry(self) -> Request:
        key = self.key()
        return self.chance.choice((
            ["PEXPIREAT", key, self.of(*MOMENTS), *self.maybe(0.3, self.of("NX", "XX", "GT", "LT", "FOO"))],
            ["PEXPIREAT", key, str(FAR_MS)], ["PERSIST", key], ["PEXPIRETIME", key], ["EXPIRETIME", key], ["TTL", key],
            ["PTTL", key], ["EXPIREAT", key, str(FAR_MS // 1000)],
        ))  # fmt: skip

    def databases(self) -> Request:
        return self.chance.choice((
            ["SELECT", self.of(*DATABASES)], ["SELECT", "0"], ["SELECT", "0"],
            ["MOVE", self.key(), self.of(*DATABASES)], ["SWAPDB", self.of(*DATABASES), self.of(*DATABASES)],
            ["FLUSHDB"] if self.chance.random() < 0.1 else ["DBSIZE"],
        ))  # fmt: skip

    def connection(self) -> Request:
        made = [
            ["HELLO", "2"],
            ["HELLO", "3"],
            ["HELLO", "4"],
            ["PING"],
            ["ECHO", "x"],
            ["FOO", "bar", "a\r\nb"],
            ["UNWATCH"],
        ]
        made += [["CONFIG", "SET", "stream-node-max-entries", self.of("2", "5", "100", "0")]]
        made += [["CONFIG", "SET", "stream-node-max-bytes", self.of("100", "1000", "4096", "0")]]
        if self.known.version >= IDMP_SINCE:
            made += [["CONFIG", "SET", "stream-idmp-maxsize", self.of("1", "2", "100", "0", "10001")]]
            made += [["CONFIG", "SET", "stream-idmp-duration", self.of("100", "86400", "0", "86401")]]
        return self.chance.choice(made)

    def transaction(self) -> Request:
        """MULTI, a few requests, and an end; watched keys, wrong endings and broken requests among them."""
        makers = [maker for maker in self.makers if maker != self.transaction]
        self._blocks = True
        queued = [self.chance.choice(makers)() for _ in range(self.chance.randrange(0, 6))]
        self._blocks = False
        if self.chance.random() < 0.1 and queued:
            queued[-1] = self.broken(queued[-1])
        end = self.of("EXEC", "EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")
        watched = self.maybe(0.3, self.key(), self.key())
        between = [self.chance.choice(makers)()] if watched and self.chance.random() < 0.5 else []
        watching = [["WATCH", *watched], *between] if watched else []
        requests: list[Request] = [*watching, ["MULTI"], *queued, [end]]
        self._waiting = requests[1:]
        return requests[0]

    def step(self) -> list[Request]:
        """A request, or a whole transaction."""
        requests = [self.request()]
        requests += self._waiting
        self._waiting = []
        return requests
