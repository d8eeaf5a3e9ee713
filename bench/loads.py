"""The loads: what is prepared on an empty server, which requests are timed, how many are on the way at once.

`prepare` makes the requests that a number of timed ones need, `timed` the timed ones. Ids are given wherever a load
allows it, so that every server answers the same bytes.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bench import scripts
from bench.servers import COMPILED, PLAIN, Request

STREAM: Final = b"stream"
GROUP: Final = b"group"
FIRST_MS: Final = 1_700_000_000_000
ENTRIES_A_MS: Final = 10
VALUE: Final = b"v" * 64
SHORT: Final = b"v" * 16
READ_AT_ONCE: Final = 1000
CYCLE: Final = 10

Requests = Iterator[Request]


def nothing(_: int) -> Requests:
    return iter(())


@dataclass(frozen=True, slots=True)
class Load:
    """A pipelined load: `requests` are timed in a round, `batch` of them on the way at once over one connection.

    `log` is an appendfsync policy, "" for no log. A `cycle` uses replies: each batch of XADD * is followed by one
    XREADGROUP of as many, and by one XACK of what it returned. `floor_*` are the highest acceptable ratios of CPU time
    to the better of Redis and Valkey, `goal` the ratio that is aimed at; 0 where there is none. `of_many_streams`: the
    ids that servers make for it are of several streams.
    """

    name: str
    timed: Callable[[int], Requests]
    prepare: Callable[[int], Requests] = nothing
    requests: int = 20_000
    batch: int = 100
    log: str = ""
    cycle: bool = False
    floor_compiled: float = 0.0
    floor_plain: float = 0.0
    goal: float = 0.0
    of_many_streams: bool = False

    def floor(self, build: str) -> float:
        return {PLAIN: self.floor_plain, COMPILED: self.floor_compiled}.get(build, 0.0)


def entry_id(number: int) -> bytes:
    return b"%d-%d" % (FIRST_MS + number // ENTRIES_A_MS, number % ENTRIES_A_MS)


# -- what is prepared -------------------------------------------------------------------------------------------------


def entries(count: int) -> Requests:
    """A stream of so many entries and a group that has read none."""
    for number in range(count):
        yield b"XADD", STREAM, entry_id(number), b"field", VALUE
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"


def empty(_: int) -> Requests:
    """An empty stream and its group."""
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"


def delivered(count: int) -> Requests:
    """Such a stream, all of it delivered to one consumer, a thousand entries at a time."""
    yield from entries(count)
    for _ in range(-(-count // READ_AT_ONCE)):
        yield read(READ_AT_ONCE)


def pool(size: int, prepare: Callable[[int], Requests]) -> Callable[[int], Requests]:
    """The same preparation whatever the number of requests."""
    return lambda _: prepare(size)


def hundreds(prepare: Callable[[int], Requests]) -> Callable[[int], Requests]:
    """A hundred entries for each request."""
    return lambda count: prepare(100 * count)


def tens(prepare: Callable[[int], Requests]) -> Callable[[int], Requests]:
    """Ten entries for each request."""
    return lambda count: prepare(10 * count)


# -- what is timed ----------------------------------------------------------------------------------------------------


def repeated(*request: bytes) -> Callable[[int], Requests]:
    """The same request again and again."""
    return lambda count: iter([request] * count)


def numbered(request: Callable[[int], Request]) -> Callable[[int], Requests]:
    """Each request made from its number."""
    return lambda count: map(request, range(count))


def read(count: int, consumer: bytes = b"alice", start: bytes = b">") -> Request:
    return b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"%d" % count, b"STREAMS", STREAM, start


def hundred_ids(number: int, pool_size: int) -> tuple[bytes, ...]:
    """The number-th hundred of the ids of a pool; behind its end from its start again."""
    first = number * 100 % pool_size
    return tuple([entry_id(first + offset) for offset in range(100)])


POOL: Final = 20_000


def claim(number: int, *options: bytes) -> Request:
    """XCLAIM of a hundred ids; the consumer changes with every pass over the pool."""
    consumer = b"bob" if number * 100 // POOL % 2 == 0 else b"carol"
    return b"XCLAIM", STREAM, GROUP, consumer, b"0", *hundred_ids(number, POOL), *options


def autoclaim(number: int, *options: bytes) -> Request:
    consumer = b"bob" if number * 100 // POOL % 2 == 0 else b"carol"
    start = entry_id(number * 100 % POOL)
    return b"XAUTOCLAIM", STREAM, GROUP, consumer, b"0", start, b"COUNT", b"100", *options


def acknowledge(number: int) -> Request:
    return b"XACK", STREAM, GROUP, entry_id(number)


def acknowledge_hundred(number: int) -> Request:
    return b"XACK", STREAM, GROUP, *[entry_id(number * 100 + offset) for offset in range(100)]


def release_hundred(number: int) -> Request:
    return (
        b"XNACK", STREAM, GROUP, b"FAIL", b"IDS", b"100", *[entry_id(number * 100 + offset) for offset in range(100)],
    )  # fmt: skip


def every_second(number: int) -> Request:
    """XDEL of every second entry."""
    return b"XDEL", STREAM, entry_id(number * 2)


def delete_ten(number: int) -> Request:
    return b"XDEL", STREAM, *[entry_id(number * 10 + offset) for offset in range(10)]


def acknowledge_and_delete(number: int, count: int) -> Request:
    """XACKDEL of the number-th `count` entries."""
    given = [entry_id(number * count + offset) for offset in range(count)]
    return b"XACKDEL", STREAM, GROUP, b"IDS", b"%d" % count, *given


def range_of_hundred(number: int) -> Request:
    return b"XRANGE", STREAM, entry_id(number * 100 % POOL), b"+", b"COUNT", b"100"


def read_after(number: int) -> Request:
    return b"XREAD", b"COUNT", b"100", b"STREAMS", STREAM, entry_id(number * 100 % (POOL - 100))


def mixed(count: int) -> Requests:
    """Four short commands in turn, so that no two neighbours are of one command."""
    for number in range(count):
        name = b"key%d" % (number // 4 % 25)
        yield (
            (b"SET", name, SHORT), (b"GET", name), (b"XADD", STREAM, b"MAXLEN", b"100", b"*", b"field", SHORT),
            (b"XACK", STREAM, GROUP, entry_id(0)),
        )[number % 4]  # fmt: skip


STREAMS: Final = 100


def each_stream(number: int) -> bytes:
    return b"stream%d" % (number % STREAMS)


def many_streams(_: int) -> Requests:
    """Empty streams, each with its group."""
    for number in range(STREAMS):
        yield b"XGROUP", b"CREATE", each_stream(number), GROUP, b"0", b"MKSTREAM"


def many_delivered(count: int) -> Requests:
    """Streams with so many entries together, all of them delivered to one consumer."""
    yield from many_streams(count)
    for number in range(count):
        yield b"XADD", each_stream(number), entry_id(number), b"field", VALUE
    for number in range(STREAMS):
        yield b"XREADGROUP", b"GROUP", GROUP, b"alice", b"STREAMS", each_stream(number), b">"


IN_TRANSACTION: Final = 100


def transactions(count: int) -> Requests:
    """MULTI, a hundred XADDs, EXEC."""
    for number in range(count):
        place = number % (IN_TRANSACTION + 2)
        yield (b"MULTI",) if place == 0 else (b"EXEC",) if place > IN_TRANSACTION else ADD_TRIMMING


# -- other types: small values under a hundred keys -------------------------------------------------------------------

KEYS: Final = 100
SCRIPT: Final = b"redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"
SCRIPT_SHA: Final = hashlib.sha1(SCRIPT).hexdigest().encode()
LIBRARY: Final = b"""#!lua name=bench
redis.register_function('same', function(keys, args)
    redis.call('SET', keys[1], args[1])
    return redis.call('GET', keys[1])
end)
"""


def key(number: int) -> bytes:
    return b"key%d" % (number % KEYS)


def strings(_: int) -> Requests:
    for number in range(KEYS):
        yield b"SET", key(number), SHORT


def lists(count: int) -> Requests:
    """An element for each request."""
    for number in range(count):
        yield b"RPUSH", key(number), SHORT


def loaded(_: int) -> Requests:
    yield b"SCRIPT", b"LOAD", SCRIPT
    yield b"FUNCTION", b"LOAD", b"REPLACE", LIBRARY


def in_tens(request: Callable[[int], Request]) -> Callable[[int], Requests]:
    """MULTI, ten requests, EXEC."""

    def timed(count: int) -> Requests:
        for number in range(0, count - TEN - 1, TEN + 2):
            yield (b"MULTI",)
            yield from map(request, range(number, number + TEN))
            yield (b"EXEC",)

    return timed


TEN: Final = 10
DEPTH: Final = 16

# name -> a request from its number, what is prepared, the goal
TYPES: Final[dict[str, tuple[Callable[[int], Request], Callable[[int], Requests], float]]] = {
    "set": (lambda n: (b"SET", key(n), SHORT), nothing, 1.0),
    "get": (lambda n: (b"GET", key(n)), strings, 1.0),
    "incr": (lambda n: (b"INCR", key(n)), nothing, 1.0),
    "lpush": (lambda n: (b"LPUSH", key(n), SHORT), nothing, 1.0),
    "rpop": (lambda n: (b"RPOP", key(n)), lists, 1.0),
    "hset": (lambda n: (b"HSET", key(n), b"field%d" % (n // KEYS % 10), SHORT), nothing, 1.0),
    "sadd": (lambda n: (b"SADD", key(n), b"member%d" % (n // KEYS)), nothing, 1.0),
    "zadd": (lambda n: (b"ZADD", key(n), b"%d" % (n * 7919 % 1000), b"member%d" % (n // KEYS)), nothing, 1.0),
    "set-ex": (lambda n: (b"SET", key(n), SHORT, b"EX", b"100"), nothing, 1.0),
    "expire": (lambda n: (b"EXPIRE", key(n), b"%d" % (100 + n % 900)), strings, 1.0),
    "evalsha": (lambda n: (b"EVALSHA", SCRIPT_SHA, b"1", key(n), SHORT), loaded, 1.3),
    "fcall": (lambda n: (b"FCALL", b"same", b"1", key(n), SHORT), loaded, 1.3),
}

FIVE: Final = tuple([word for number in range(5) for word in (b"field%d" % number, SHORT)])
ADD: Final = (b"XADD", STREAM, b"*", b"field", VALUE)
ADD_FIVE: Final = (b"XADD", STREAM, b"*", *FIVE)
ADD_TRIMMING: Final = (b"XADD", STREAM, b"MAXLEN", b"~", b"10000", b"*", b"field", VALUE)
LARGE: Final = 5  # the batch of requests with a hundred entries each


# What a worker of a user with few rights does.
RESTRICTED: Final = (
    "xadd-1-field", "xreadgroup-1", "xreadgroup-10", "xreadgroup-100", "xclaim-100", "xack-1", "xack-100", "cycle",
)  # fmt: skip

LOADS: Final = (
    Load("xreadgroup-100", numbered(lambda _: read(100)), hundreds(entries), 1000, LARGE,
         floor_compiled=0.2, floor_plain=0.25, goal=0.15),
    Load("xread-100", numbered(read_after), pool(POOL, entries), 2000, LARGE,
         floor_compiled=0.45, floor_plain=0.5, goal=0.15),
    Load("xrange-100", numbered(range_of_hundred), pool(POOL, entries), 2000, LARGE,
         floor_compiled=0.45, floor_plain=0.5, goal=0.15),
    Load("history-100", repeated(*read(100, start=b"0")), pool(POOL, delivered), 1500, LARGE,
         floor_compiled=0.4, floor_plain=0.75, goal=0.2),
    Load("xreadgroup-1", numbered(lambda _: read(1)), entries, 20_000, 100,
         floor_compiled=0.9, floor_plain=1.5, goal=0.5),
    Load("xreadgroup-10", numbered(lambda _: read(10)), tens(entries), 8_000, 50,
         floor_compiled=0.9, floor_plain=1.5, goal=0.5),
    Load("xclaim-100", numbered(claim), pool(POOL, delivered), 800, LARGE,
         floor_compiled=0.6, floor_plain=1.0, goal=0.4),
    Load("xclaim-100-justid", numbered(lambda n: claim(n, b"JUSTID")), pool(POOL, delivered), 800, LARGE,
         floor_compiled=0.9, floor_plain=1.3, goal=0.4),
    Load("xautoclaim-100", numbered(autoclaim), pool(POOL, delivered), 800, LARGE,
         floor_compiled=0.6, floor_plain=1.0, goal=0.4),
    Load("xautoclaim-100-justid", numbered(lambda n: autoclaim(n, b"JUSTID")), pool(POOL, delivered), 800, LARGE,
         floor_compiled=0.9, floor_plain=1.3, goal=0.4),
    Load("xack-100", numbered(acknowledge_hundred), hundreds(delivered), 1000, LARGE,
         floor_compiled=1.8, floor_plain=2.4, goal=1.0),
    Load("xack-1", numbered(acknowledge), delivered, 40_000, 100,
         floor_compiled=1.6, floor_plain=2.2, goal=1.0),
    Load("xadd-1-field", repeated(*ADD), requests=40_000, floor_compiled=2.2, floor_plain=2.5, goal=1.0),
    Load("xadd-5-fields", repeated(*ADD_FIVE), requests=40_000, floor_compiled=1.7, floor_plain=2.2, goal=1.0),
    Load("xadd-maxlen", repeated(*ADD_TRIMMING), requests=40_000),
    Load("cycle", repeated(*ADD), empty, 24_000, CYCLE, cycle=True,
         floor_compiled=1.1, floor_plain=1.5, goal=0.7),
    Load("cycle-everysec", repeated(*ADD), empty, 24_000, CYCLE, cycle=True, log="everysec",
         floor_compiled=0.8, floor_plain=1.1, goal=0.5),
    Load("cycle-always", repeated(*ADD), empty, 6_000, CYCLE, cycle=True, log="always"),
    Load("xadd-1-everysec", repeated(*ADD), requests=40_000, log="everysec"),
    Load("xadd-1-always", repeated(*ADD), requests=20_000, log="always"),
    Load("xpending-summary", repeated(b"XPENDING", STREAM, GROUP), pool(POOL, delivered), 10_000, 100, goal=1.0),
    Load("xpending-100", repeated(b"XPENDING", STREAM, GROUP, b"-", b"+", b"100"), pool(POOL, delivered), 800, LARGE,
         goal=1.0),
    Load("xpending-idle-10", repeated(b"XPENDING", STREAM, GROUP, b"IDLE", b"1", b"-", b"+", b"10"),
         pool(POOL, delivered), 5_000, 50, goal=1.0),
    Load("history-10", repeated(*read(10, start=b"0")), pool(POOL, delivered), 5_000, 50, goal=1.0),
    Load("xinfo-full", repeated(b"XINFO", b"STREAM", STREAM, b"FULL"), pool(POOL, delivered), 2_000, 20, goal=1.0),
    Load("xdel-1", numbered(every_second), lambda count: entries(2 * count), 20_000, 100, goal=1.0),
    Load("xdel-10", numbered(delete_ten), tens(entries), 4_000, 50, goal=1.0),
    Load("xackdel-1", numbered(lambda n: acknowledge_and_delete(n, 1)), delivered, 20_000, 100, goal=1.0),
    Load("xackdel-10", numbered(lambda n: acknowledge_and_delete(n, 10)), tens(delivered), 4_000, 50, goal=1.0),
    Load("xnack-100", numbered(release_hundred), hundreds(delivered), 500, LARGE),
    *(Load(f"{name}-{DEPTH}", numbered(request), prepare, batch=DEPTH, goal=goal)
      for name, (request, prepare, goal) in TYPES.items()),
    *(Load(f"{name}-transaction", in_tens(request), prepare, 2000 * (TEN + 2), TEN + 2, goal=goal)
      for name, (request, prepare, goal) in TYPES.items()),
    *(Load(f"script-{name}", numbered(scripts.calls_of(code, key)), scripts.loaded(code, [*map(key, range(KEYS))]),
           4_000, DEPTH, goal=1.3)
      for name, code in scripts.SCRIPTS.items()),
    Load(f"xadd-streams-{DEPTH}", numbered(lambda n: (b"XADD", each_stream(n), *ADD[2:])), many_streams, 20_000, DEPTH,
         goal=1.0, of_many_streams=True),
    Load(f"xadd-ids-{DEPTH}", numbered(lambda n: (b"XADD", STREAM, entry_id(n), *ADD[3:])), nothing, 20_000, DEPTH,
         goal=1.0),
    Load(f"xack-streams-{DEPTH}", numbered(lambda n: (b"XACK", each_stream(n), GROUP, entry_id(n))), many_delivered,
         20_000, DEPTH, goal=1.0),
    Load("mixed-100", mixed, empty),
    Load("transaction-100", transactions, requests=102 * 200, batch=IN_TRANSACTION + 2),
    Load("ping", repeated(b"PING"), requests=40_000),
)  # fmt: skip
