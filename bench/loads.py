"""The loads: what is prepared, which commands are timed, how many go together.

A row's `prepare` makes the requests that lay the ground for so many commands, its `timed` those that are measured.
Ids are given wherever a load allows it, so that every server answers the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.link import Request

STREAM: Final = b"stream"
GROUP: Final = b"group"
FIRST_MS: Final = 1_700_000_000_000
A_MILLISECOND: Final = 10  # entries of one millisecond
VALUE: Final = b"v" * 64
SHORT: Final = b"v" * 16
READ_AT_ONCE: Final = 1000
CYCLE: Final = 10

Requests = Iterator[Request]
Replies = Sequence[object]


def nothing(_: int) -> Requests:
    return iter(())


@dataclass(frozen=True, slots=True)
class Load:
    """`commands` are timed in a round, `batch` of them on the way at a time over each of `connections`.

    `row` is the line of the table of targets that it belongs to, `log` an appendfsync policy, "" for no log.
    A `cycle` is driven by the replies: batches of [XADD * ..., XREADGROUP] and of the XACKs of what came.
    """

    name: str
    timed: Callable[[int], Requests]
    prepare: Callable[[int], Requests] = nothing
    commands: int = 20_000
    batch: int = 100
    connections: int = 1
    log: str = ""
    cycle: bool = False
    floor_compiled: float = 0.0
    floor_plain: float = 0.0
    goal: float = 0.0


def entry_id(number: int) -> bytes:
    return b"%d-%d" % (FIRST_MS + number // A_MILLISECOND, number % A_MILLISECOND)


# -- the ground -------------------------------------------------------------------------------------------------------


def entries(count: int) -> Requests:
    """A stream of so many entries and a group that has read none."""
    for number in range(count):
        yield b"XADD", STREAM, entry_id(number), b"field", VALUE
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"


def empty(_: int) -> Requests:
    """An empty stream and its group."""
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"


def delivered(count: int) -> Requests:
    """The same, all delivered to one consumer by the thousand."""
    yield from entries(count)
    for _ in range(-(-count // READ_AT_ONCE)):
        yield read(READ_AT_ONCE)


def pool(size: int, ground: Callable[[int], Requests]) -> Callable[[int], Requests]:
    """A ground of one size, whatever the number of commands."""
    return lambda _: ground(size)


def hundreds(ground: Callable[[int], Requests]) -> Callable[[int], Requests]:
    """A ground of a hundred entries a command."""
    return lambda count: ground(100 * count)


def tens(ground: Callable[[int], Requests]) -> Callable[[int], Requests]:
    return lambda count: ground(10 * count)


# -- the commands -----------------------------------------------------------------------------------------------------


def repeated(*request: bytes) -> Callable[[int], Requests]:
    """The same command again and again."""
    return lambda count: iter([request] * count)


def numbered(request: Callable[[int], Request]) -> Callable[[int], Requests]:
    """A command made from its number."""
    return lambda count: map(request, range(count))


def read(count: int, consumer: bytes = b"alice", start: bytes = b">") -> Request:
    return b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"%d" % count, b"STREAMS", STREAM, start


def hundred_ids(number: int, laps_of: int) -> tuple[bytes, ...]:
    """The number-th hundred of the ids of a pool, round and round."""
    first = number * 100 % laps_of
    return tuple([entry_id(first + offset) for offset in range(100)])


POOL: Final = 20_000


def claim(number: int, *options: bytes) -> Request:
    """XCLAIM of a hundred ids; the consumer changes with every lap over the pool."""
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


def middle(number: int) -> Request:
    """XDEL of every second entry, from the middle on."""
    return b"XDEL", STREAM, entry_id(number * 2)


def range_of_hundred(number: int) -> Request:
    return b"XRANGE", STREAM, entry_id(number * 100 % POOL), b"+", b"COUNT", b"100"


def read_after(number: int) -> Request:
    return b"XREAD", b"COUNT", b"100", b"STREAMS", STREAM, entry_id(number * 100 % (POOL - 100))


FIVE: Final = tuple([word for number in range(5) for word in (b"field%d" % number, SHORT)])
ADD: Final = (b"XADD", STREAM, b"*", b"field", VALUE)
ADD_FIVE: Final = (b"XADD", STREAM, b"*", *FIVE)
ADD_CUT: Final = (b"XADD", STREAM, b"MAXLEN", b"~", b"10000", b"*", b"field", VALUE)
IN_BULK: Final = 5  # batch of what answers by the hundred


LOADS: Final = (
    Load("xreadgroup-100", numbered(lambda _: read(100)), hundreds(entries), 1000, IN_BULK,
         floor_compiled=0.2, floor_plain=0.25, goal=0.15),
    Load("xread-100", numbered(read_after), pool(POOL, entries), 2000, IN_BULK,
         floor_compiled=0.45, floor_plain=0.5, goal=0.15),
    Load("xrange-100", numbered(range_of_hundred), pool(POOL, entries), 2000, IN_BULK,
         floor_compiled=0.45, floor_plain=0.5, goal=0.15),
    Load("history-100", repeated(*read(100, start=b"0")), pool(POOL, delivered), 1500, IN_BULK,
         floor_compiled=0.4, floor_plain=0.75, goal=0.2),
    Load("xreadgroup-1", numbered(lambda _: read(1)), entries, 20_000, 100,
         floor_compiled=0.9, floor_plain=1.5, goal=0.5),
    Load("xreadgroup-10", numbered(lambda _: read(10)), tens(entries), 8_000, 50,
         floor_compiled=0.9, floor_plain=1.5, goal=0.5),
    Load("xclaim-100", numbered(claim), pool(POOL, delivered), 800, IN_BULK,
         floor_compiled=0.6, floor_plain=1.0, goal=0.4),
    Load("xclaim-100-justid", numbered(lambda n: claim(n, b"JUSTID")), pool(POOL, delivered), 800, IN_BULK,
         floor_compiled=0.9, floor_plain=1.3, goal=0.4),
    Load("xautoclaim-100", numbered(autoclaim), pool(POOL, delivered), 800, IN_BULK,
         floor_compiled=0.6, floor_plain=1.0, goal=0.4),
    Load("xautoclaim-100-justid", numbered(lambda n: autoclaim(n, b"JUSTID")), pool(POOL, delivered), 800, IN_BULK,
         floor_compiled=0.9, floor_plain=1.3, goal=0.4),
    Load("xack-100", numbered(acknowledge_hundred), hundreds(delivered), 1000, IN_BULK,
         floor_compiled=1.8, floor_plain=2.4, goal=1.0),
    Load("xack-1", numbered(acknowledge), delivered, 40_000, 100,
         floor_compiled=1.6, floor_plain=2.2, goal=1.0),
    Load("xadd-1-field", repeated(*ADD), commands=40_000, floor_compiled=2.2, floor_plain=2.5, goal=1.0),
    Load("xadd-5-fields", repeated(*ADD_FIVE), commands=40_000, floor_compiled=1.7, floor_plain=2.2, goal=1.0),
    Load("xadd-maxlen", repeated(*ADD_CUT), commands=40_000),
    Load("cycle", repeated(*ADD), empty, 24_000, CYCLE, cycle=True,
         floor_compiled=1.1, floor_plain=1.5, goal=0.7),
    Load("cycle-everysec", repeated(*ADD), empty, 24_000, CYCLE, cycle=True, log="everysec",
         floor_compiled=0.8, floor_plain=1.1, goal=0.5),
    Load("cycle-always", repeated(*ADD), empty, 6_000, CYCLE, cycle=True, log="always"),
    Load("xadd-1-everysec", repeated(*ADD), commands=40_000, log="everysec"),
    Load("xadd-1-always", repeated(*ADD), commands=20_000, log="always"),
    Load("xpending-summary", repeated(b"XPENDING", STREAM, GROUP), pool(POOL, delivered), 10_000, 100),
    Load("xpending-100", repeated(b"XPENDING", STREAM, GROUP, b"-", b"+", b"100"), pool(POOL, delivered), 800, IN_BULK),
    Load("xdel-1", numbered(middle), lambda count: entries(2 * count), 20_000, 100),
    Load("xnack-100", numbered(release_hundred), hundreds(delivered), 500, IN_BULK),
    Load("ping", repeated(b"PING"), commands=40_000),
)  # fmt: skip
