"""`python -m bench.longest`: seconds of the server's CPU that each command takes with the largest input it accepts.

A string has 512 MB (proto-max-bulk-len) of random bytes, if the case does not say otherwise. A collection may be as
large as the memory: it has a million elements here, and the time of each such command grows with their number. The
lines are the table in docs/security.md. Each request is sent once, without a log; the server's reply to it is read.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.servers import PLAIN, REDIS, Absent, Candidate, Link, Request, Server, build, cpu_ns, running, usual

STRING_BYTES: Final = (512 << 20) - 64  # what DUMP adds makes it as long as a word may be
PIECE: Final = 16 << 20
MILLION: Final = 1_000_000
SKETCHES: Final = 10_000  # HyperLogLogs
WORDS_AT_ONCE: Final = 10_000
FLAGS: Final = ("--appendonly", "no", "--save", "", "--enable-debug-command", "yes")
LAST_BIT: Final = b"%d" % (8 * STRING_BYTES - 1)

Fill = Callable[[], Iterable[Request]]


@dataclass(frozen=True, slots=True)
class Case:
    """A request that is timed; `text` is what the table shows, the request itself where it is short.

    before: requests that are sent first, their time does not count. The last word of a RESTORE without a text of its
    own is a key: its payload is sent.
    """

    request: Request
    text: str = ""
    before: tuple[Request, ...] = ()

    @property
    def title(self) -> str:
        return self.text or b" ".join(self.request).decode()


@dataclass(frozen=True, slots=True)
class Group:
    """Cases with the same keys; they leave these as they are, but for `d`, which is deleted before each case."""

    name: str
    fill: Fill
    cases: tuple[Case, ...]


def line(text: str, shown: str = "", *before: str) -> Case:
    return Case(tuple(text.encode().split()), shown, tuple(tuple(one.encode().split()) for one in before))


def lines(*texts: str) -> tuple[Case, ...]:
    return tuple(line(text) for text in texts)


def adding(command: bytes, key: bytes, words: Iterator[bytes]) -> Iterator[Request]:
    """Requests that add all words to one key."""
    held = []
    for word in words:
        held.append(word)
        if len(held) == WORDS_AT_ONCE:
            yield (command, key, *held)
            held = []
    if held:
        yield (command, key, *held)


def members(first: int = 0) -> Iterator[bytes]:
    return (b"member:%d" % number for number in range(first, first + MILLION))


# -- strings ----------------------------------------------------------------------------------------------------------


def strings() -> Iterator[Request]:
    chance = random.Random(1)
    for at in range(0, STRING_BYTES, PIECE):
        yield b"APPEND", b"a", chance.randbytes(min(PIECE, STRING_BYTES - at))
    yield b"COPY", b"a", b"b"
    yield b"SETRANGE", b"zeros", b"%d" % (STRING_BYTES - 1), b"\0"
    yield b"BITOP", b"NOT", b"ones", b"zeros"
    chance = random.Random(2)
    for key in (b"left", b"right"):
        yield b"SET", key, bytes(chance.choices(b"abcd", k=11_000))


BIT_FIELDS: Final = tuple(word for at in range(100_000) for word in (b"INCRBY", b"u8", b"#%d" % (at * 5000), b"1"))
STRINGS: Final = (
    *lines("GET a", "STRLEN a", "GETRANGE a 0 -1", "BITCOUNT a", "BITCOUNT a 1 -2 BIT"),
    *lines("BITPOS zeros 1", "BITPOS ones 0"),
    *(line(f"BITOP {name} d a b") for name in ("AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE")),
    *lines("BITOP NOT d a", "BITOP XOR d a b zeros ones"),
    line("BITOP AND d" + " a b" * 1000, "BITOP AND d, two keys a thousand times each"),
    line(f"SETRANGE d {STRING_BYTES - 1} x"),
    line(f"SETBIT d {LAST_BIT.decode()} 1"),
    line(f"BITFIELD d SET u1 {LAST_BIT.decode()} 1"),
    Case((b"BITFIELD", b"d", *BIT_FIELDS), "BITFIELD d, 100,000 INCRBY over 512 MB"),
    Case((b"APPEND", b"d", bytes(STRING_BYTES // 2)), "APPEND d, 256 MB to 256 MB",
         ((b"SETRANGE", b"d", b"%d" % (STRING_BYTES // 2 - 1), b"x"),)),
    Case((b"SET", b"d", bytes(STRING_BYTES)), "SET d, 512 MB"),
    *lines("COPY a d", "DUMP a", "DUMP zeros", "RESTORE d 0 a", "RESTORE d 0 zeros"),
    *lines("OBJECT ENCODING a", "MEMORY USAGE a", "DEBUG OBJECT a"),
    *lines("DEBUG DIGEST-VALUE a", "INCR a", "LCS left right", "LCS left right IDX"),
    line("PFCOUNT a"), line("GETDEL d", "", "COPY a d"), line("DEL d", "", "COPY a d"),
)  # fmt: skip


# -- HyperLogLogs -----------------------------------------------------------------------------------------------------


def sketches() -> Iterator[Request]:
    yield from adding(b"PFADD", b"h0", (b"%d" % number for number in range(100_000)))
    for number in range(1, SKETCHES):
        yield b"COPY", b"h0", b"h%d" % number


SKETCH_KEYS: Final = tuple(b"h%d" % number for number in range(SKETCHES))
HYPERLOGLOGS: Final = (
    Case((b"PFCOUNT", *SKETCH_KEYS), "PFCOUNT, 10,000 keys"),
    Case((b"PFMERGE", b"d", *SKETCH_KEYS), "PFMERGE d, 10,000 keys"),
)


# -- collections ------------------------------------------------------------------------------------------------------


def sets() -> Iterator[Request]:
    yield from adding(b"SADD", b"a", members())
    yield from adding(b"SADD", b"b", members(MILLION // 2))


SETS: Final = (
    *lines("SMEMBERS a", "SUNION a b", "SINTER a b", "SDIFF a b", "SINTERCARD 2 a b"),
    *lines("SUNIONSTORE d a b", "SINTERSTORE d a b", "SDIFFSTORE d a b", "SSCAN a 0 COUNT 1000000"),
    *lines("SRANDMEMBER a 1000000", "SRANDMEMBER a -1000000", "SORT a ALPHA", "SORT a ALPHA BY * STORE d"),
    *lines("COPY a d", "DUMP a", "RESTORE d 0 a", "DEBUG DIGEST-VALUE a", "MEMORY USAGE a SAMPLES 0"),
    line("SPOP d 999999", "", "COPY a d"), line("DEL d", "", "COPY a d"), line("UNLINK d", "", "COPY a d"),
)  # fmt: skip


def sorted_sets() -> Iterator[Request]:
    for key, first in ((b"a", 0), (b"b", MILLION // 2)):
        pairs = (
            word for number, name in enumerate(members(first)) for word in (b"%d" % (number * 7919 % MILLION), name)
        )
        yield from adding(b"ZADD", key, pairs)
    chance = random.Random(3)
    places = (
        word for name in members()
        for word in (b"%.5f" % chance.uniform(-180, 180), b"%.5f" % chance.uniform(-85, 85), name)
    )  # fmt: skip
    held: list[bytes] = []
    for word in places:
        held.append(word)
        if len(held) == 3 * WORDS_AT_ONCE // 10:
            yield (b"GEOADD", b"geo", *held)
            held = []


SORTED_SETS: Final = (
    *lines("ZRANGE a 0 -1 WITHSCORES", "ZUNION 2 a b", "ZINTER 2 a b", "ZDIFF 2 a b", "ZINTERCARD 2 a b"),
    *lines("ZUNIONSTORE d 2 a b", "ZINTERSTORE d 2 a b", "ZDIFFSTORE d 2 a b", "ZRANGESTORE d a 0 -1"),
    *lines("ZRANDMEMBER a -1000000", "ZSCAN a 0 COUNT 1000000", "ZLEXCOUNT a - +", "SORT a BY nosort STORE d"),
    *lines("COPY a d", "DUMP a", "RESTORE d 0 a", "DEBUG DIGEST-VALUE a"),
    line("ZREMRANGEBYRANK d 0 -2", "", "COPY a d"), line("ZPOPMIN d 999999", "", "COPY a d"),
    line("GEOSEARCH geo FROMLONLAT 0 0 BYRADIUS 22000 km ASC"),
    line("GEOSEARCHSTORE d geo FROMLONLAT 0 0 BYRADIUS 22000 km"),
)  # fmt: skip


def hashes() -> Iterator[Request]:
    yield from adding(b"HSET", b"a", (word for name in members() for word in (name, b"value")))


HASHES: Final = (
    *lines(
        "HGETALL a",
        "HKEYS a",
        "HSCAN a 0 COUNT 1000000",
        "HRANDFIELD a -1000000 WITHVALUES",
        "COPY a d",
        "DUMP a",
        "RESTORE d 0 a",
    ),
    *lines("DEBUG DIGEST-VALUE a"),
    line("DEL d", "", "COPY a d"),
)


def lists() -> Iterator[Request]:
    chance = random.Random(4)
    yield from adding(b"RPUSH", b"a", (b"%d" % chance.randrange(MILLION) for _ in range(MILLION)))


LISTS: Final = (
    *lines("LRANGE a 0 -1", "LPOS a nothing", "SORT a", "SORT a DESC STORE d", "SORT a BY weight:* GET # GET value:*"),
    *lines("COPY a d", "DUMP a", "RESTORE d 0 a", "DEBUG DIGEST-VALUE a"),
    *lines("LREM a 0 nothing", "LINSERT a BEFORE nothing x"),
    line("LTRIM d 1 1", "", "COPY a d"), line("LPOP d 1000000", "", "COPY a d"),
)  # fmt: skip


def streams() -> Iterator[Request]:
    for number in range(MILLION):
        yield b"XADD", b"a", b"1-%d" % (number + 1), b"f", b"value"
    yield b"XGROUP", b"CREATE", b"a", b"g", b"0"
    yield b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"1000000", b"STREAMS", b"a", b">"


IDS: Final = tuple(b"1-%d" % number for number in range(1, 1_000_001))
STREAMS: Final = (
    *lines("XRANGE a - +", "XREVRANGE a + -", "XREAD STREAMS a 0", "XINFO STREAM a FULL COUNT 0"),
    *lines("XPENDING a g - + 1000000", "XREADGROUP GROUP g c STREAMS a 0"),
    *lines("COPY a d", "DUMP a", "RESTORE d 0 a", "DEBUG DIGEST-VALUE a"),
    line("XREADGROUP GROUP h c STREAMS d >", "", "COPY a d", "XGROUP CREATE d h 0"),
    *lines("XAUTOCLAIM a g other 0 0 COUNT 1000000"),
    Case((b"XCLAIM", b"a", b"g", b"c", b"0", *IDS), "XCLAIM a g c 0, a million ids"),
    Case((b"XDEL", b"d", *IDS[::2]), "XDEL d, every other id", ((b"COPY", b"a", b"d"),)),
    Case((b"XACK", b"d", b"g", *IDS), "XACK d g, a million ids", ((b"COPY", b"a", b"d"),)),
    line("XTRIM d MAXLEN 1", "", "COPY a d"),
    line("XGROUP DESTROY d g", "", "COPY a d"), line("DEL d", "", "COPY a d"),
)  # fmt: skip


def keys() -> Iterator[Request]:
    for first in range(0, MILLION, WORDS_AT_ONCE):
        yield (
            b"MSET",
            *(word for number in range(first, first + WORDS_AT_ONCE) for word in (b"key:%d" % number, b"v")),
        )


KEYS: Final = (
    *lines("KEYS *", "KEYS *9*9*9*", "SCAN 0 COUNT 1000000", "RANDOMKEY", "DBSIZE", "INFO", "DEBUG DIGEST"),
    Case((b"MGET", *(b"key:%d" % number for number in range(MILLION))), "MGET, a million keys"),
    Case((b"EXISTS", *(b"key:%d" % number for number in range(MILLION))), "EXISTS, a million keys"),
    line("SWAPDB 0 1", "", "SELECT 0"), line("SWAPDB 0 1", "SWAPDB back"),
    Case((b"DEL", *(b"key:%d" % number for number in range(0, MILLION, 2))), "DEL, half a million keys"),
    *lines("FLUSHALL SYNC"),
)  # fmt: skip

PACKED: Final = b"\0a" + b"\x20\0" * (8 << 20)  # LZF: a byte, then three again and again
COMPRESSED: Final = b"\0\xc3%b%b%b\x0b\0%b" % (  # a string of RDB 11 without a checksum
    *(b"\x80" + size.to_bytes(4, "big") for size in (len(PACKED), 1 + 3 * (8 << 20))), PACKED, bytes(8)
)  # fmt: skip
PAYLOADS: Final = (Case((b"RESTORE", b"d", b"0", COMPRESSED), "RESTORE d 0, 16 MB of the shortest compressed pieces"),)


def nothing() -> tuple[Request, ...]:
    return ()


GROUPS: Final = (
    Group("payloads", nothing, PAYLOADS),
    Group("strings", strings, STRINGS),
    Group("hyperloglogs", sketches, HYPERLOGLOGS),
    Group("sets", sets, SETS),
    Group("sorted sets", sorted_sets, SORTED_SETS),
    Group("hashes", hashes, HASHES),
    Group("lists", lists, LISTS),
    Group("streams", streams, STREAMS),
    Group("keys", keys, KEYS),
)


# -- measuring --------------------------------------------------------------------------------------------------------


def fill(link: Link, requests: Iterable[Request]) -> None:
    """Send requests a few at a time: each may have many words, or long ones."""
    held: list[Request] = []
    for request in requests:
        held.append(request)
        if len(held) >= (1 if len(request) > 100 or len(request[-1]) > 1000 else 1000):
            link.deliver(held)
            held = []
    link.deliver(held)


def prepared(link: Link, case: Case) -> Request:
    """What is to be sent, once everything before it was."""
    link.ask(b"DEL", b"d")
    for request in case.before:
        link.ask(*request)
    if case.request[0] != b"RESTORE" or case.text:
        return case.request
    payload = link.ask(b"DUMP", case.request[-1])
    assert isinstance(payload, bytes), f"DUMP answered {payload!r}"
    return (*case.request[:-1], payload)


def seconds(server: Server, link: Link, case: Case) -> float:
    """The server's CPU time for one request, an error reply's, too: INCR of what is no number has read it."""
    request = prepared(link, case)
    was_ns = cpu_ns(server.pid)
    link.ask(*request)
    return (cpu_ns(server.pid) - was_ns) / 1e9


def measure(server: Server, group: Group, cases: Sequence[Case]) -> list[float]:
    """The seconds of some cases of a group. The next server is filled behind them: memory that lies idle costs more."""
    with Link(server.port) as link:
        link.ask(b"FLUSHALL")
        fill(link, group.fill())
        times = [seconds(server, link, case) for case in cases]
        link.ask(b"FLUSHALL")
    return times


def named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"NAME=PATH, not {text!r}")
    return name, Path(path)


def candidates(chosen: argparse.Namespace) -> list[Candidate]:
    python = Path(sys.executable)
    servers = [usual(name, python, chosen.compiled_python) for name in chosen.servers.split(",") if name]
    return [*servers, *(build(name, path, python) for name, path in chosen.builds)]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.longest", description="The longest requests of each command."
    )
    parser.add_argument("--servers", default=f"{PLAIN},{REDIS}", help=f"by comma (default: {PLAIN},{REDIS})")
    parser.add_argument(
        "--builds", nargs="+", default=[], type=named, metavar="NAME=PATH", help="as `python -m bench` has it"
    )
    parser.add_argument("--compiled-python", type=Path, default=Path("build/compiled/bin/python").absolute())
    parser.add_argument("--groups", default="", help="beginnings of names, by comma (default: all)")
    parser.add_argument("--requests", default="", help="beginnings of requests, by comma (default: all)")
    chosen = parser.parse_args()
    try:
        with ExitStack() as stack:
            servers = [stack.enter_context(running(candidate, *FLAGS)) for candidate in candidates(chosen)]
            print(f"| request | {' | '.join(server.name for server in servers)} |\n|---|{'---|' * len(servers)}")
            for group in GROUPS:
                cases = [case for case in group.cases if case.title.startswith(tuple(chosen.requests.split(",")))]
                if cases and group.name.startswith(tuple(chosen.groups.split(","))):
                    columns = [measure(server, group, cases) for server in servers]
                    for case, *times in zip(cases, *columns, strict=True):
                        print(f"| {case.title} | {' | '.join(f'{time_s:.2f}' for time_s in times)} |", flush=True)
    except Absent as absence:
        sys.stderr.write(f"{absence}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
