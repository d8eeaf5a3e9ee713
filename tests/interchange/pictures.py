"""What a server keeps, as values that two servers can be compared by; and the two kinds of server."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import hiredis

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.server.turns.log_writer import AofWriter
from tests.against_redis.generator import Generator, with_new_only
from tests.support.compared_sides import Piped, wall_ms
from tests.support.engines import make_engine
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.reference_server import reference_server

Ask: TypeAlias = Callable[..., object]

DATABASES: Final = ("0", "1", "2", "9")
PATIENCE_S: Final = 20.0
RELEASED: Final = b"released"  # the default of aof-compat-consumer

# No line of a log carries them, or they tell of what is inside a server, or of its version.
NOT_CARRIED: Final = (
    b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time", b"nacked-count", b"pids-tracked",
    b"iids-tracked", b"iids-added", b"iids-duplicates", b"penstock-policy",
)  # fmt: skip


class Ours:
    """An engine with its log in a folder; nothing waits for a clock."""

    def __init__(self, folder: Path, behind_ms: int, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        self.settings = Settings()
        pairs = {"dir": str(folder), "appendfsync": "no", "auto-aof-rewrite-percentage": "0"} | settings
        for name, value in pairs.items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.clock = ManualClock(wall_ms() - behind_ms)
        self.engine = make_engine(self.clock, settings=self.settings)
        self.said: list[str] = []
        self.durability = AofWriter.open(self.settings, self.engine, self.said.append)
        self.session = self.engine.server.connect()
        self.ask("HELLO", "3")

    def ask(self, *words: str) -> Any:
        answer = self.engine.handle(self.session, [word.encode() for word in words])
        self.durability.end_of_turn(lambda trouble: None)
        return decoded(answer)

    def lines(self, *lines: str) -> None:
        for line in lines:
            answer = self.ask(*line.split())
            assert not isinstance(answer, Exception), (line, answer)

    def save(self) -> None:
        """Write a fresh base, and have the files that it replaces removed."""
        self.lines("BGREWRITEAOF")
        self.until_rewritten()

    def until_rewritten(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        durability = self.durability
        while self.engine.persistence.child or durability.log is None or durability.log.directory.manifest.history:
            assert time.monotonic() < deadline, self.said
            time.sleep(0.01)  # a process of its own writes, or a thread removes
            durability.cron()

    def close(self) -> None:
        assert self.durability.close()


class Theirs:
    """A real Redis."""

    def __init__(self, port: int) -> None:
        self._piped = Piped(port)
        self.ask("HELLO", "3")

    def ask(self, *words: str) -> Any:
        self._piped.send([list(words)])
        return decoded(self._piped.answer())

    def tell(self, requests: list[Request]) -> None:
        """All at once, whatever is answered."""
        self._piped.send(requests)
        for _ in requests:
            self._piped.answer()

    def info(self, section: str) -> bytes:
        answer = self.ask("INFO", section)
        return answer if isinstance(answer, bytes) else str(answer).encode()

    def close(self) -> None:
        self._piped.close()


@contextmanager
def ours(folder: Path, behind_ms: int = 0, **settings: str) -> Iterator[Ours]:
    """Our server; `behind_ms`: its clock's distance to the time, which leaves room to turn it."""
    server = Ours(folder, behind_ms, **settings)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def theirs(folder: Path, binary: Path | None = None) -> Iterator[Theirs]:
    """A Redis with its log in a folder, without RDB files. NoReference also where it cannot load what is there."""
    folder.mkdir(exist_ok=True)
    flags = ("--dir", str(folder), "--appendonly", "yes", "--aof-use-rdb-preamble", "no")
    with reference_server(*flags, binary=binary) as port:
        server = Theirs(port)
        try:
            yield server
        finally:
            server.close()


def decoded(answer: bytes) -> object:
    reader = hiredis.Reader()
    reader.feed(answer)
    value: object = reader.gets()
    return None if value is False else value


# -- random states ----------------------------------------------------------------------------------------------------


def requests(seed: int, count: int, known: Known, releases: bool) -> list[Request]:
    """Random requests, deliveries among them all the time.

    Nothing reads a history, for no log carries what that changes. Nothing is copied: a copy's pending entries of one
    delivery time are in order of ids in Redis.
    """
    generator = Generator(random.Random(seed), known)
    made: list[Request] = []
    for number in range(count):
        if number % 60 == 0:
            made += deliveries(generator, number // 60)
        made.append(with_new_only(generator.request()))
        if releases and generator.chance.random() < 0.15:
            mode, forced = generator.of("FAIL", "FAIL", "SILENT", "FATAL"), generator.maybe(0.5, "FORCE")
            ids = [generator.id(), f"{generator.chance.randrange(1, 40)}-0"]
            made.append(["XNACK", generator.key(), generator.group(), mode, "IDS", "2", *ids, *forced])
    if releases:  # the consumer of no name looks like no owner
        made = [[word or "nothing" for word in request] for request in made]
    return [*(request for request in made if request[0] not in ("CONFIG", "HELLO", "COPY")), ["DISCARD"]]


def deliveries(generator: Generator, round: int) -> list[Request]:
    """Entries and a group, and some of them delivered to several consumers."""
    key, group = generator.of("s1", "s2", "{t}s4"), generator.of("g1", "g2")
    made = [["XADD", key, f"{10 * round + number}-0", "f", "v" * number] for number in range(1, 10)]
    made.append(["XGROUP", "CREATE", key, group, "0", "MKSTREAM"])
    for name in "abacab":
        made.append(["XREADGROUP", "GROUP", group, name, "COUNT", generator.of("1", "2", "4"), "STREAMS", key, ">"])
    return made


# -- pictures ---------------------------------------------------------------------------------------------------------


def picture(ask: Ask, released: bytes | None = None) -> dict[object, object]:
    """All keys with their values and expiries. Asks for entries without an owner only at the end, for CLAIM changes it.

    released: the consumer that stands for released entries; it is taken out of the lists of consumers.
    """
    seen: dict[object, object] = {}
    for database in DATABASES:
        ask("SELECT", database)
        keys = ask("KEYS", "*")
        assert isinstance(keys, list)
        for key in sorted(keys):
            name = key.decode()
            seen[database, name] = (ask("PEXPIRETIME", name), value(ask, name, released))
    for place, shown in list(seen.items()):
        assert isinstance(place, tuple) and isinstance(shown, tuple)
        if isinstance(shown[1], dict):
            ask("SELECT", place[0])
            for group in shown[1][b"groups"]:
                seen[*place, group[b"name"]] = claim_order(ask, place[1], group[b"name"])
    return seen


def value(ask: Ask, key: str, released: bytes | None) -> object:
    if ask("TYPE", key) != b"stream":
        return ask("GET", key)
    full = ask("XINFO", "STREAM", key, "FULL", "COUNT", "0")
    assert isinstance(full, dict)
    stream = carried(full)
    groups = []
    for group in full[b"groups"]:
        shown = carried(group)
        if released:
            shown[b"pending"] = [[id, owner or released, *times] for id, owner, *times in group[b"pending"]]
        people = [carried(consumer) for consumer in group[b"consumers"] if consumer[b"name"] != released]
        shown[b"consumers"] = people
        groups.append(shown)
    stream[b"groups"] = groups
    return stream


def carried(shown: dict[bytes, object]) -> dict[bytes, object]:
    return {name: field for name, field in shown.items() if name not in NOT_CARRIED}


def claim_order(ask: Ask, key: str, group: bytes) -> object:
    """The ids that XREADGROUP CLAIM 0 goes through, in its order, with their delivery counts."""
    read = ask("XREADGROUP", "GROUP", group.decode(), "probe", "COUNT", "1000000", "CLAIM", "0", "STREAMS", key, ">")
    if read is None:
        return []
    assert isinstance(read, dict)
    return [(entry[0], entry[3]) for entry in read[key.encode()]]


def without_deleted_pending(seen: dict[object, object]) -> dict[object, object]:
    """The same picture without pending entries that are deleted: no older Redis can be told of their release."""
    for shown in seen.values():
        if isinstance(shown, tuple) and isinstance(shown[1], dict):
            live = {entry[0] for entry in shown[1][b"entries"]}
            for group in shown[1][b"groups"]:
                for holder in (group, *group[b"consumers"]):
                    holder[b"pending"] = [held for held in holder[b"pending"] if held[0] in live]
                    holder.pop(b"pel-count")
    return seen
