"""What much data costs: memory of an entry and of other things, CPU of each command as a stream grows, RDB files."""

import hashlib
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from typing import Final

from bench.loads import FIRST_MS, GROUP, READ_AT_ONCE, STREAM, VALUE, Requests, entry_id, read
from bench.log import FIRST_MS as LOGS_FIRST_MS
from bench.log import LONG_START_S
from bench.log import VALUE as SHORT_VALUE
from bench.servers import (
    WITHOUT_LOG,
    Candidate,
    Link,
    Refused,
    Request,
    Server,
    allow_open_files,
    cpu_ns,
    resident_bytes,
    running,
)  # fmt: skip

# -- memory: resident bytes of an entry, of a pending entry and of other things, each in a fresh process --------------
#
# Best pattern: read by one consumer, a thousand at a time. Worst: one entry a millisecond, read one by one by eight
# consumers in turn, half of them acknowledged out of order and the others claimed one by one.

CONSUMERS_OF_WORST: Final = 8
SEED: Final = 6


def sparse_id(number: int) -> bytes:
    """Of one entry a millisecond."""
    return b"%d-0" % (FIRST_MS + number)


def digits(number: int) -> bytes:
    """64 hexadecimal digits, others for each number: a server that compresses finds half of them superfluous."""
    return hashlib.sha256(b"%d" % number).hexdigest().encode()


def entries_with(id_of: Callable[[int], bytes]) -> Callable[[int], Requests]:
    """A stream of so many entries, and a group that has read none."""

    def entries(count: int) -> Requests:
        for number in range(count):
            yield b"XADD", STREAM, id_of(number), b"field", digits(number)
        yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0"

    return entries


def read_by_the_thousand(count: int) -> Requests:
    for _ in range(count // READ_AT_ONCE):
        yield read(READ_AT_ONCE)


def read_one_by_one(count: int) -> Requests:
    """Half of the entries stay pending."""
    for number in range(count):
        yield read(1, b"consumer%d" % (number % CONSUMERS_OF_WORST))
    order = list(range(count))
    random.Random(SEED).shuffle(order)
    for number in order[: count // 2]:
        yield b"XACK", STREAM, GROUP, sparse_id(number)
    for number in order[count // 2 :]:
        claimer = b"claimer%d" % (number % CONSUMERS_OF_WORST)
        yield b"XCLAIM", STREAM, GROUP, claimer, b"0", sparse_id(number), b"JUSTID"


# how entries are added, how they are delivered, and the share that stays pending
PATTERNS: Final[dict[str, tuple[Callable[[int], Requests], Callable[[int], Requests], float]]] = {
    "best": (entries_with(entry_id), read_by_the_thousand, 1.0),
    "worst": (entries_with(sparse_id), read_one_by_one, 0.5),
}


PART_SIZES: Final = (4, 10, 20, 40, 100, 128, 200, 1000)  # of collections: on both sides of where forms change
STRING_SIZES: Final = (10, 30, 100, 300, 1000)  # bytes
STREAM_SIZES: Final = (1, 10, 100, 1000, 10_000)  # entries
MOST_KEYS: Final = 100_000
MOST_IDLE: Final = 10_000
STREAM_REST_S: Final = 10  # streams that get no entries are measured: Penstock compresses them in this time


def five_fields(count: int) -> Requests:
    for number in range(count):
        text = digits(number)
        words = [word for at in range(5) for word in (b"field%d" % at, text[at * 12 : at * 12 + 12])]
        yield b"XADD", STREAM, entry_id(number), *words


def random_bytes(count: int) -> Requests:
    chance = random.Random(SEED)
    for number in range(count):
        yield b"XADD", STREAM, entry_id(number), b"field", chance.randbytes(64)


def string(number: int, size: int) -> Requests:
    yield b"SET", b"key:%d" % number, (digits(number) * (size // 64 + 1))[:size]


def stream(number: int, size: int) -> Requests:
    for at in range(size):
        yield b"XADD", b"stream:%d" % number, entry_id(at), b"field", digits(number * size + at)


def in_two_requests(command: bytes, key: bytes, parts: Sequence[tuple[bytes, ...]]) -> Requests:
    """All parts but the last, then that: a change of what was made at once."""
    for some in (parts[:-1], parts[-1:]):
        yield command, key, *[word for part in some for word in part]


def hash_of(number: int, size: int) -> Requests:
    fields = [(b"field%d" % at, b"value:%d" % (number + at)) for at in range(size)]
    yield from in_two_requests(b"HSET", b"hash:%d" % number, fields)


def list_of(number: int, size: int) -> Requests:
    yield from in_two_requests(b"RPUSH", b"list:%d" % number, [(b"item:%d" % (number + at),) for at in range(size)])


def set_of(number: int, size: int) -> Requests:
    yield from in_two_requests(b"SADD", b"set:%d" % number, [(b"member:%d" % (number + at),) for at in range(size)])


def set_of_integers(number: int, size: int) -> Requests:
    """As ids of rows: they lie closely, and need four bytes."""
    first = FIRST_ROW + number
    yield from in_two_requests(b"SADD", b"set:%d" % number, [(b"%d" % (first + at),) for at in range(size)])


def sorted_set_of(number: int, size: int) -> Requests:
    """Scores are moments in milliseconds, as those of a rate limiter or a delayed queue."""
    moment = FIRST_MS + number * 7
    pairs = [(b"%d" % (moment + at * 1000), b"member:%d" % (number + at)) for at in range(size)]
    yield from in_two_requests(b"ZADD", b"zset:%d" % number, pairs)


FIRST_ROW: Final = 100_000

# what is made in a stream, of as many entries as there are in the part
ENTRIES: Final[dict[str, Callable[[int], Requests]]] = {
    "entry of five fields": five_fields,
    "entry of random bytes": random_bytes,
}
# what a key has, the requests for the key with a number, and the sizes
KEYS: Final[dict[str, tuple[Callable[[int, int], Requests], tuple[int, ...]]]] = {
    "string of {} bytes": (string, STRING_SIZES),
    "hash of {} fields": (hash_of, PART_SIZES),
    "list of {}": (list_of, PART_SIZES),
    "set of {} members": (set_of, PART_SIZES),
    "set of {} integers": (set_of_integers, PART_SIZES),
    "sorted set of {} members": (sorted_set_of, PART_SIZES),
    "stream of {} entries": (stream, STREAM_SIZES),
}


def requests_of_keys(requests_for: Callable[[int, int], Requests], size: int, keys: int) -> Iterator[Request]:
    for number in range(keys):
        yield from requests_for(number, size)


def things(count: int) -> Iterator[tuple[str, Iterator[Request], int, int]]:
    """For a part with so many entries: what is held, the requests that make it, how many of it; seconds of rest."""
    for name, entries in ENTRIES.items():
        yield name, iter(entries(count)), count, 0
    for name, (requests_for, sizes) in KEYS.items():
        for size in sizes:
            # a few thousand strings are no more than what the first requests take of the process itself
            keys = min(count if requests_for is string else max(count // size, 1), MOST_KEYS)
            rest_s = STREAM_REST_S if requests_for is stream else 0
            yield name.format(f"{size:,}"), requests_of_keys(requests_for, size, keys), keys, rest_s


IDLE: Final = "idle connection"
EMPTY: Final = "empty server"


def idle_connection(server: Server, count: int) -> float:
    """Bytes of a connection that has asked once and asks no more."""
    empty = resident_bytes(server.pid)
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Link(server.port)).ask(b"PING")
        return (resident_bytes(server.pid) - empty) / count


def memory(candidates: Sequence[Candidate], count: int) -> dict[str, dict[str, float]]:
    """server -> what -> bytes."""
    allow_open_files()
    found: dict[str, dict[str, float]] = {}
    for candidate in candidates:
        figures = found[candidate.name] = {}
        for pattern, (addition, delivery, pending_share) in PATTERNS.items():
            with running(candidate, *WITHOUT_LOG) as server, Link(server.port) as link:
                empty = resident_bytes(server.pid)
                link.prepare(addition(count))
                full = resident_bytes(server.pid)
                link.prepare(delivery(count))
                figures[f"entry, {pattern}"] = (full - empty) / count
                figures[f"pending, {pattern}"] = (resident_bytes(server.pid) - full) / (count * pending_share)
        for thing, requests, made, rest_s in things(count):
            with running(candidate, *WITHOUT_LOG) as server, Link(server.port) as link:
                empty = figures[EMPTY] = resident_bytes(server.pid)
                link.prepare(requests)
                time.sleep(rest_s)
                figures[thing] = (resident_bytes(server.pid) - empty) / made
        with running(candidate, *WITHOUT_LOG, "--maxclients", "15000") as server:
            figures[IDLE] = idle_connection(server, min(MOST_IDLE, count // 10))
        print(
            f"{candidate.name:<10}", *(f"{what} {figure:.0f}" for what, figure in figures.items()), sep="  ", flush=True
        )
    return found


# -- growth: CPU of a command by the length of the stream: flat or logarithmic, nowhere linear ------------------------
#
# A stream and its group grow tenfold from step to step. Half of the entries are pending with a thousand consumers, ten
# at a time in turn, whatever the size. The reader of a step has one entry before all that the step delivered to the
# others, and one behind. At each size the commands run in passes, in each pass a part of each command's batches, each
# command alone. Passes are a second apart, because a shared machine is slow for about as long at a time. Of a pass the
# cheaper half of the batches counts, as the first find cold caches; of the passes the two cheapest. All commands have
# run before on a small stream that is not measured: first-time costs are no growth. Servers run one after the other,
# because two streams of ten million entries do not fit into every machine.

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CONSUMERS: Final = 1000
DELIVERED_AT_ONCE: Final = 10
COMMANDS: Final = 2000
CLAIMS: Final = 400  # of ten entries each: the shortest pending list is gone through several times
BATCH: Final = 20
PASSES: Final = 5
CHEAPEST_PASSES: Final = 2  # that count: noise only adds
BETWEEN_PASSES_S: Final = 1.0
LONGEST_STEP_S: Final = 1200.0
MOST_OF_MEMORY: Final = 0.5  # of what the machine can spare

Costs = dict[str, dict[str, list[float]]]  # server -> command -> microseconds, size by size


def growth(candidates: Sequence[Candidate], largest: int) -> tuple[list[int], Costs]:
    """The sizes that every server reached, and the costs at these."""
    print(
        f"CPU in microseconds a command: up to {COMMANDS} in pipelines of {BATCH}, in {PASSES} passes;\n"
        f"half of the entries are pending, {DELIVERED_AT_ONCE} at a time delivered to {CONSUMERS:,} consumers in turn"
    )
    sizes = [size for size in SIZES if size <= largest]
    costs: Costs = {}
    for candidate in candidates:
        with running(candidate, *WITHOUT_LOG) as server, Link(server.port) as link:
            costs[candidate.name] = of_server = costs_by_size(server, link, sizes)
        sizes = sizes[: min(len(of_command) for of_command in of_server.values())]
    return sizes, {
        name: {command: of_command[: len(sizes)] for command, of_command in of_server.items()}
        for name, of_server in costs.items()
    }


def costs_by_size(server: Server, link: Link, sizes: list[int]) -> dict[str, list[float]]:
    """command -> microseconds at each size, up to the last that memory and time allow."""
    warm = GrowingStream(link, b"warming")
    warm.grow(SIZES[0])
    in_passes(server, link, dict(commands(warm)))
    link.ask(b"DEL", warm.key)
    stream = GrowingStream(link, STREAM)
    found: dict[str, list[float]] = {}
    for size in sizes:
        began_s = time.perf_counter()
        stream.grow(size)
        for command, of_passes in in_passes(server, link, dict(commands(stream))).items():
            found.setdefault(command, []).append(mean(sorted(of_passes)[:CHEAPEST_PASSES]))
        spent_s = time.perf_counter() - began_s
        resident = resident_bytes(server.pid)
        figures = (f"{command} {of_command[-1]:.1f}" for command, of_command in found.items())
        print(f"{server.name:<10}{size:>11,}", f"{spent_s:.0f} s, {resident >> 20} MiB", *figures, sep="  ", flush=True)
        if size < sizes[-1] and (obstacle := too_much(spent_s, resident)):
            print(f"{server.name:<10} goes no further: ten times as much {obstacle}", flush=True)
            break
    return found


def too_much(spent_s: float, resident: int) -> str:
    """Why ten times as many entries are not tried; empty if they are."""
    if 10 * spent_s > LONGEST_STEP_S:
        return f"would take {10 * spent_s:.0f} s"
    if 9 * resident > MOST_OF_MEMORY * spare_bytes():
        return f"would need {10 * resident >> 20} MiB"
    return ""


def spare_bytes() -> int:
    """Memory that the machine can still give."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10


class GrowingStream:
    """Entries 0 to length - 1, of which the first `delivered` were delivered."""

    def __init__(self, link: Link, key: bytes) -> None:
        self.key = key
        self.length = 0
        self.delivered = 0
        self.reader = b""
        self._link = link
        self._portions = 0
        link.prepare([(b"XGROUP", b"CREATE", key, GROUP, b"0", b"MKSTREAM")])
        link.prepare((b"XGROUP", b"CREATECONSUMER", key, GROUP, consumer(number)) for number in range(CONSUMERS))

    def grow(self, length: int) -> None:
        self._link.prepare(self.addition(number) for number in range(self.length, length))
        self.length = length
        self.reader = b"reader of %d" % length
        self._link.prepare(self._deliveries(length // 2 - self.delivered))

    def addition(self, number: int) -> Request:
        return b"XADD", self.key, entry_id(number), b"field", VALUE

    def delivery(self, name: bytes, count: int) -> Request:
        return b"XREADGROUP", b"GROUP", GROUP, name, b"COUNT", b"%d" % count, b"STREAMS", self.key, b">"

    def _deliveries(self, count: int) -> Iterator[Request]:
        """Deliver so many more; the reader of this step gets the first and the last."""
        yield self.delivery(self.reader, 1)
        portions = (count - 2) // DELIVERED_AT_ONCE
        for number in range(self._portions, self._portions + portions):
            yield self.delivery(consumer(number), DELIVERED_AT_ONCE)
        yield self.delivery(self.reader, 1)
        self._portions += portions
        self.delivered += portions * DELIVERED_AT_ONCE + 2


def consumer(number: int) -> bytes:
    return b"consumer%d" % (number % CONSUMERS)


def commands(stream: GrowingStream) -> Iterator[tuple[str, list[Request]]]:
    """Each command's requests; what one of them changes does not hinder the next."""
    key = stream.key
    few = min(COMMANDS, stream.delivered * 2 // 5)
    middle = stream.delivered // 2
    history = (b"XREADGROUP", b"GROUP", GROUP, stream.reader, b"COUNT", b"10", b"STREAMS", key, b"0")
    claim = (b"XREADGROUP", b"GROUP", GROUP, b"claimer", b"COUNT", b"10", b"CLAIM", b"0", b"STREAMS", key, b">")
    yield "history of one consumer", [history] * few
    yield "XPENDING of one consumer", [(b"XPENDING", key, GROUP, b"-", b"+", b"10", stream.reader)] * few
    yield "XPENDING from the middle, COUNT 10", [(b"XPENDING", key, GROUP, entry_id(middle), b"+", b"10")] * few
    yield "XADD", [stream.addition(stream.length + number) for number in range(few)]
    stream.length += few
    yield "XREADGROUP > by one of 1,000", [stream.delivery(consumer(number * 7), 1) for number in range(few)]
    stream.delivered += few
    yield "XREADGROUP CLAIM, COUNT 10", [claim] * CLAIMS
    numbers = range(middle + 10, middle + 10 + few)  # behind those that XPENDING finds
    yield "XCLAIM", [(b"XCLAIM", key, GROUP, b"claimer%d" % (number % 7), b"0", entry_id(number)) for number in numbers]
    yield "XACK", [(b"XACK", key, GROUP, entry_id(number)) for number in numbers]
    # of entries that were not read: deleted pending entries would grow too
    middle = (stream.delivered + stream.length - few) // 2
    yield "XDEL in the middle", [(b"XDEL", key, entry_id(number)) for number in range(middle, middle + few)]


def in_passes(server: Server, link: Link, requests: dict[str, list[Request]]) -> dict[str, list[float]]:
    """command -> CPU in microseconds a command, pass by pass. A command that the server refuses is left out."""
    found: dict[str, list[float]] = {command: [] for command in requests}
    for number in range(PASSES):
        time.sleep(BETWEEN_PASSES_S)
        for command in list(found):
            share = len(requests[command]) // PASSES
            try:
                cost = cost_us(link, server.pid, requests[command][number * share : (number + 1) * share])
            except Refused:
                del found[command]
            else:
                found[command].append(cost)
    return found


def cost_us(link: Link, pid: int, requests: list[Request]) -> float:
    """CPU a command in the cheaper half of the batches. Refused if the server refuses one."""
    costs = []
    for at in range(0, len(requests), BATCH):
        batch = requests[at : at + BATCH]
        was_ns = cpu_ns(pid)
        link.deliver(batch)
        costs.append((cpu_ns(pid) - was_ns) / len(batch) / 1000)
    return mean(sorted(costs)[: len(costs) // 2])


# -- RDB files: CPU seconds of SAVE, and of a start that loads the file less those of an empty start -------------------
#
# Each server saves and loads its own file of the same data: a stream of entries of one field and one of five, which
# come by the hundred in a millisecond, or as many small keys.

FILE: Final = "dump.rdb"

Seconds = dict[str, dict[str, float]]  # server -> figures


def entry_ids(count: int) -> Iterator[bytes]:
    return (b"%d-%d" % (LOGS_FIRST_MS + number // 100, number % 100) for number in range(count))


def entries_of_one_field(count: int) -> Iterator[Request]:
    return ((b"XADD", b"s", one_id, b"field", SHORT_VALUE) for one_id in entry_ids(count))


def entries_of_five_fields(count: int) -> Iterator[Request]:
    for number, one_id in enumerate(entry_ids(count)):
        flight, delay = b"%d" % (1000 + number % 4000), b"%d" % (number % 90 - 20)
        words = (b"carrier", b"UA", b"flight", flight, b"origin", b"EWR", b"dest", b"IAH", b"delay", delay)
        yield b"XADD", b"s", one_id, *words


def small_keys(count: int) -> Iterator[Request]:
    return ((b"SET", b"key:%d" % number, b"value of %d" % number) for number in range(count))


DATA: Final[dict[str, Callable[[int], Iterator[Request]]]] = {
    "entries": entries_of_one_field,
    "entries of five fields": entries_of_five_fields,
    "small keys": small_keys,
}


def snapshots(candidates: Sequence[Candidate], count: int, rounds: int) -> Seconds:
    """server -> what -> CPU seconds, the best of the rounds."""
    found: Seconds = {candidate.name: {} for candidate in candidates}
    with tempfile.TemporaryDirectory(prefix="bench-snapshots-") as folder:
        for candidate in candidates:
            for what, requests in DATA.items():
                directory = Path(folder, candidate.name, what)
                directory.mkdir(parents=True)
                with running(candidate, *WITHOUT_LOG) as server, Link(server.port) as link:
                    link.prepare(requests(count))
                    assert link.ask(b"SAVE") == b"OK"
                    shutil.copy(server.directory / FILE, directory)
        empty_s: dict[str, float] = {}
        for _ in range(rounds):
            for candidate in candidates:
                with running(candidate, *WITHOUT_LOG) as server:
                    keep_best(empty_s, candidate.name, cpu_ns(server.pid) / 1e9)
            for what in DATA:
                for candidate in candidates:
                    time_files(candidate, Path(folder, candidate.name, what), what, found[candidate.name])
    for name, row in found.items():
        for what in DATA:
            row[load_of(what)] -= empty_s[name]
        print(f"{name:<10}", *(f"{what} {figure:.3f} s" for what, figure in row.items()), sep="  ", flush=True)
    return found


def time_files(candidate: Candidate, directory: Path, what: str, row: dict[str, float]) -> None:
    with (
        running(candidate, *WITHOUT_LOG, directory=directory, start_s=LONG_START_S) as server,
        Link(server.port) as link,
    ):
        spent_ns = cpu_ns(server.pid)
        keep_best(row, load_of(what), spent_ns / 1e9)
        assert link.ask(b"DBSIZE"), f"{candidate.name} has nothing of {what}"
        spent_ns = cpu_ns(server.pid)
        assert link.ask(b"SAVE") == b"OK"
        keep_best(row, f"save: {what}", (cpu_ns(server.pid) - spent_ns) / 1e9)


def load_of(what: str) -> str:
    return f"load: {what}"


def keep_best(row: dict[str, float], what: str, spent_s: float) -> None:
    row[what] = min(spent_s, row.get(what, spent_s))
