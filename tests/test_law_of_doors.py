"""The law of doors: whichever way requests come in, their replies, effects, keyspace and statistics are the same.

The oracle is the plainest way: one request after the other, each handed over alone. Beside it stand batches made of
words, bytes read by the reader, bytes in pieces, transactions, scripts and the log's replay; under every
compat-version,
in both protocols, and while something stands in the way of requests or looks at them.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.replay import Replay
from penstock.engine.engine import Engine
from penstock.engine.scripting.script_runner import Lock
from penstock.engine.table.row import Row
from penstock.protocol.limits import Limits
from penstock.protocol.log_reader import whole_requests
from penstock.protocol.reply import bulks
from penstock.protocol.request_batch import RequestBatch
from penstock.protocol.request_reader import RequestReader
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, settings_with
from tests.support.keyspace_picture import KEPT, keyspace
from tests.support.log import UnitLog
from tests.support.same_result import Difference, assert_same, logs_differ, replies_differ, states_differ
from tests.support.seeds import seeds
from tests.support.table_engine import APART, OWN_WORDS, SETUP, rows
from tests.support.table_requests import TableRequests
from tests.support.word_batches import batches_of

Request = list[bytes]
MOST_BYTES = 1 << 30
MISCONF = b"MISCONF Errors writing to the AOF file: No space left on device"

# They end or hold up the session that asks, or all sessions, or answer with what depends on when they are asked.
NOT_HERE = {*APART, *OWN_WORDS, "QUIT", "CLIENT|KILL", "CLIENT|PAUSE", "WAIT", "WAITAOF", "CONFIG|SET", "CONFIG|GET"}
DATA_GROUPS = ("stream", "string", "list", "hash", "set", "sorted-set", "generic")


class SlowRunner:
    """Has a script take longer than a client waits for: it runs when `finish` is called."""

    def __init__(self) -> None:
        self.lock: Lock = nullcontext()
        self.late = b""
        self._jobs: list[Callable[[], bytes]] = []

    def run(self, job: Callable[[], bytes], seconds: float) -> bytes | None:
        self._jobs.append(job)
        return None

    def finish(self) -> None:
        self.late = self._jobs.pop()()


class World:
    """An engine with some data, its log, the client that asks and another that watches."""

    def __init__(self, resp: int = 2, **directives: str) -> None:
        self.log = UnitLog()
        self.clock = ManualClock(NOW_MS)
        self.engine = make_engine(self.clock, self.log, settings_with(**directives))
        self.watcher = self.engine.server.connect("127.0.0.1:3", "127.0.0.1:2")
        self.session = self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
        for line in SETUP:
            self.engine.handle(self.watcher, [word.encode() for word in line.split()])
        self.session.resp = resp
        self.replies: list[bytes] = []
        self.replies_to: list[bytes] = []  # of `alone`: what came after each request
        self.pushed: list[tuple[int, bytes]] = []
        self.slow: SlowRunner | None = None  # with a script that keeps the engine busy

    def end(self) -> None:
        """What stood in the way for a time is over, and the client asks once more."""
        if self.slow is not None:
            self.slow.finish()
            self.engine.finish_script()
            count = len(self.replies)
            self.collect()
            self.replies_to.append(b"".join(self.replies[count:]))
            alone(self, [[b"SET", b"after", b"1"], [b"EXEC"]], random.Random(0))

    def take_in(self, batches: list[RequestBatch]) -> None:
        """Hand batches over until all are handled; a request that blocks is released at once."""
        logged: list[int] = []
        while batches:
            batches = self.engine.handle_batches(self.session, batches, MOST_BYTES, self.replies, logged)
            self.collect()
            if self.session.blocked is not None:
                self.release()

    def release(self) -> None:
        if self.engine.conditions.paused_until_ms:
            until_ms, self.engine.conditions.paused_until_ms = self.engine.conditions.paused_until_ms, 0
            self.engine.unpause()
            self.collect()
            self.engine.conditions.paused_until_ms = until_ms
        else:
            assert self.session.blocked is not None, "it waits"
            self.engine.waiting.release(self.session.blocked, b"+released\r\n")
        self.collect()

    def collect(self) -> None:
        """Replies that came late belong to the others; the rest was pushed."""
        outgoing, self.engine.clients.outgoing = self.engine.clients.outgoing, []
        for session, reply in outgoing:
            if session is self.session:
                self.replies.append(reply)
            else:
                self.pushed.append((session.id, reply))

    def seen(self) -> dict[str, object]:
        """All that is to be the same, but for the replies and the log."""
        rows = self.engine.statistics.rows.items()
        return {
            "pushed": self.pushed,
            "keyspace": keyspace(self.engine),
            "calls, failed, rejected": {name: (row.calls, row.failed, row.rejected) for name, row in rows},
            "errors": dict(self.engine.statistics.errors),
            "queued": self.session.queued,
        }


# -- the doors --------------------------------------------------------------------------------------------------------


def alone(world: World, requests: list[Request], chance: random.Random) -> None:
    for request in requests:
        count = len(world.replies)
        world.replies.append(world.engine.handle(world.session, request))
        world.collect()
        if world.session.blocked is not None:
            world.release()
        world.replies_to.append(b"".join(world.replies[count:]))


def batches_of_words(world: World, requests: list[Request], chance: random.Random) -> None:
    world.take_in(batches_of(requests, world.engine.batch_shapes))


def bytes_at_once(world: World, requests: list[Request], chance: random.Random) -> None:
    fed(world, [b"".join(map(bulks, requests))])


def bytes_in_pieces(world: World, requests: list[Request], chance: random.Random) -> None:
    data = b"".join(map(bulks, requests))
    places = sorted(chance.randrange(len(data) + 1) for _ in range(8))
    fed(world, [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)])


def fed(world: World, pieces: list[bytes]) -> None:
    reader = RequestReader(Limits(), world.engine.batch_shapes)
    for piece in pieces:
        reader.feed(piece)
        while batches := reader.take(1000):
            world.take_in(batches)


Door = Callable[[World, list[Request], random.Random], None]
DOORS: list[Door] = [batches_of_words, bytes_at_once, bytes_in_pieces]

# -- what stands in the way, or looks ---------------------------------------------------------------------------------


def nothing(world: World) -> None:
    """Requests may simply be run."""


def a_monitor_watches(world: World) -> None:
    world.engine.handle(world.watcher, [b"MONITOR"])


def events_are_told(world: World) -> None:
    world.engine.handle(world.watcher, [b"CONFIG", b"SET", b"notify-keyspace-events", b"AKE"])
    world.engine.handle(world.watcher, [b"PSUBSCRIBE", b"*"])


def memory_is_limited(world: World) -> None:
    world.engine.memory.reading = lambda: (1000, 1000)
    world.engine.handle(world.watcher, [b"CONFIG", b"SET", b"maxmemory", b"100000000"])


def memory_is_short(world: World) -> None:
    world.engine.memory.reading = lambda: (1_000_000, 1_000_000)
    world.engine.handle(world.watcher, [b"CONFIG", b"SET", b"maxmemory", b"1000"])


def writers_are_paused(world: World) -> None:
    world.engine.handle(world.watcher, [b"CLIENT", b"PAUSE", b"100000", b"WRITE"])


def everybody_is_paused(world: World) -> None:
    world.engine.handle(world.watcher, [b"CLIENT", b"PAUSE", b"100000", b"ALL"])


def the_log_fails(world: World) -> None:
    world.engine.conditions.trouble = MISCONF


def the_log_is_loaded(world: World) -> None:
    world.engine.conditions.loading = True


def a_password_is_wanted(world: World) -> None:
    world.session.authenticated = False


def a_key_is_watched_and_awaited(world: World) -> None:
    world.engine.handle(world.watcher, [b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"nokey", b"$", b"$"])


def the_user_may_do_something(world: World) -> None:
    """Some commands, some keys, some channels: each reason of a refusal comes up."""
    rules = "on nopass +@all -@hash -xinfo +xinfo|stream -append ~s* %R~n &c* (+append ~t* %W~n)"
    world.engine.handle(world.watcher, [b"ACL", b"SETUSER", b"joe", *rules.encode().split()])
    assert world.engine.handle(world.session, [b"AUTH", b"joe", b"x"]) == b"+OK\r\n"


def the_user_may_do_everything_with_some_keys(world: World) -> None:
    """Its batches stay together: XADD's key is the same in all of a batch."""
    world.engine.handle(world.watcher, [b"ACL", b"SETUSER", b"joe", b"on", b"nopass", b"+@all", b"&*", b"~s", b"~n"])
    assert world.engine.handle(world.session, [b"AUTH", b"joe", b"x"]) == b"+OK\r\n"


def a_script_is_busy(world: World) -> None:
    world.slow = SlowRunner()
    world.engine.scripts.use(world.slow)
    code = b"collectgarbage() for i = 1, 3 do redis.call('RPUSH', KEYS[1], i) end return 'over'"
    assert world.engine.handle(world.watcher, [b"EVAL", code, b"1", b"slow"]) == b""
    assert world.engine.conditions.busy


SITUATIONS = [
    a_monitor_watches, events_are_told, memory_is_limited, memory_is_short, writers_are_paused,
    everybody_is_paused, the_log_fails, the_log_is_loaded, a_password_is_wanted, a_key_is_watched_and_awaited,
    the_user_may_do_something, the_user_may_do_everything_with_some_keys,
    pytest.param(a_script_is_busy, marks=pytest.mark.skipif(find_spec("lupa") is None, reason="needs Lua")),
]  # fmt: skip
OTHER_VERSIONS = [
    pytest.param(version, marks=pytest.mark.slow) for version in ("8.8", "8.6", "8.4", "7.2", "valkey-9.2")
]
VERSIONS = ["8.10", "8.2", "valkey-9.1", *OTHER_VERSIONS]

# -- requests ---------------------------------------------------------------------------------------------------------


def stories(engine: Engine, seed: int, wanted: Callable[[Row], bool], count: int) -> Iterator[list[Request]]:
    """Short stories in which each command of the table comes, often several times in a row and with like ones."""
    requests = TableRequests(random.Random(seed))
    chance = requests.chance
    table = [row for row in rows(engine) if row.name not in NOT_HERE and wanted(row)]
    chance.shuffle(table)
    for start in range(0, len(table), count):
        story: list[Request] = []
        for row in table[start : start + count]:
            made = requests.broken_of(row) if chance.random() < 0.2 else requests.valid(row)
            story += [made] * chance.choice((1, 1, 2, 5))
            story += runs(chance)
        yield story


def runs(chance: random.Random) -> list[Request]:
    """Requests of the commands that have batch handlers, in a row."""
    count, kind = chance.choice((1, 3, 30)), chance.randrange(8)
    key = chance.choice((b"s", b"s", b"n", b"text", b"nokey"))
    if kind == 0:
        return [[b"XADD", key, b"*", b"f", b"%d" % number] for number in range(count)]
    if kind == 1:
        return [
            [b"xadd", key, b"MAXLEN", b"~", b"20", b"*", b"f", b"v", b"g", b"w" * number] for number in range(count)
        ]
    if kind == 2:
        return [[b"XACK", key, b"g", b"%d-0" % number] for number in range(count)]
    if kind == 3:
        return [[b"XREADGROUP", b"GROUP", b"g", b"bob", b"COUNT", b"2", b"STREAMS", key, b">"]] * count
    if kind == 4:
        return [[b"XREADGROUP", b"GROUP", b"g", b"bob", b"COUNT", b"2", b"CLAIM", b"0", b"STREAMS", key, b">"]] * count
    if kind == 5:
        name, *words = chance.choice(
            (b"SET v", b"GET", b"INCR", b"RPUSH v", b"HSET f v", b"ZADD 1 m", b"TYPE", b"ECHO")
        ).split()
        keys = (key, chance.choice((b"k1", b"k2")), b"nokey")
        return [[name, chance.choice(keys), *words] for _ in range(count)]
    if kind == 6:
        trim = chance.choice(([], [b"MAXLEN", b"~", b"20"]))
        ids = chance.choice((5, 1000))
        return [
            [b"XADD", key, b"IDMP", b"p", b"%d" % chance.randrange(ids), *trim, b"*", b"f", b"%d" % number]
            for number in range(count)
        ]
    return []


def any_row(row: Row) -> bool:
    return True


def data_only(row: Row) -> bool:
    return row.group in DATA_GROUPS and "blocking" not in row.flags


# -- the law ----------------------------------------------------------------------------------------------------------

PARTS = 6  # of the stories under each version and in each situation; the quick run plays one


def assert_alike(
    make: Callable[[], World], doors: list[Door], seed: int, wanted: Callable[[Row], bool], part: int | None = None
) -> None:
    """part: which of the PARTS of the stories is played, where not all are."""
    __tracebackhide__ = True
    for number, story in enumerate(stories(make().engine, seed, wanted, 12)):
        if part is None or number % PARTS == part:
            assert_story_alike(make, doors, number, story)


def assert_story_alike(make: Callable[[], World], doors: list[Door], seed: int, story: list[Request]) -> None:
    __tracebackhide__ = True

    def compare(requests: list[Request]) -> Difference | None:
        oracle = make()
        alone(oracle, requests, random.Random(seed))
        oracle.end()
        expected = oracle.seen()
        for door in doors:
            world = make()
            door(world, requests, random.Random(seed))
            world.end()
            count = len(requests)
            found = replies_differ(requests, oracle.replies_to, b"".join(world.replies), count)
            found = found or states_differ(expected, world.seen(), count)
            if found is None and not reads_groups(requests):
                found = logs_differ(b"".join(oracle.log.units), b"".join(world.log.units), count)
            if found is not None:
                return replace(found, names=found.names or ("alone", door.__name__))
        return None

    assert_same(story, compare)


def reads_groups(requests: list[Request]) -> bool:
    """A batch of XREADGROUPs is logged in fewer lines."""
    return any(request[0] == b"XREADGROUP" for request in requests)


def test_requests_are_answered_alike_by_every_door() -> None:
    assert_alike(World, DOORS, 7, any_row)


@pytest.mark.parametrize("part", seeds(1, PARTS))
@pytest.mark.parametrize("situation", SITUATIONS)
def test_requests_are_answered_alike_whatever_stands_in_the_way(situation: Callable[..., Any], part: int) -> None:
    def make() -> World:
        world = World()
        situation(world)
        return world

    assert_alike(make, DOORS, len(situation.__name__), any_row, part)


@pytest.mark.parametrize("part", seeds(1, PARTS))
@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_answered_alike_under_every_version(version: str, part: int) -> None:
    assert_alike(lambda: World(compat_version=version), [bytes_at_once], len(version), any_row, part)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_requests_are_answered_alike_in_resp3(seed: int) -> None:
    assert_alike(lambda: World(resp=3), DOORS, seed, any_row)


def test_a_pipeline_of_more_than_64_kib_is_answered_like_its_requests() -> None:
    def add(number: int) -> Request:
        return [b"XADD", b"s", b"*", b"f", b"x" * (number % 300), b"g", b"%d" % number]

    story = [add(number) for number in range(1500)] + [[b"XLEN", b"s"], [b"XACK", b"s", b"g", b"1-0"]] * 200
    assert_story_alike(World, DOORS, 1, story)


def is_kept(engine: Engine, request: Request) -> bool:
    """Whether a request has a command and the right number of words, so that MULTI keeps it."""
    row = engine.commands.rows.get(request[0].upper())
    if row is not None and row.subcommands and len(request) > 1:
        row = row.subcommands.get(request[1].upper())
    return row is not None and not row.is_container and row.fits(len(request)) and not row.no_multi


@pytest.mark.parametrize("door", [alone, batches_of_words, bytes_in_pieces])
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_transaction_answers_like_its_requests(seed: int, door: Callable[..., Any]) -> None:
    def compare(kept: list[Request]) -> Difference | None:
        oracle, world = World(), World()
        alone(oracle, kept, random.Random(seed))
        door(world, [[b"MULTI"], *kept, [b"EXEC"]], random.Random(seed))
        queued = b"+OK\r\n" + b"+QUEUED\r\n" * len(kept) + b"*%d\r\n" % len(kept)
        replies = b"".join(world.replies)
        if not replies.startswith(queued):
            return Difference("reply", queued, replies[: len(queued)], len(kept), "MULTI and what is queued")
        found = replies_differ(kept, oracle.replies_to, replies[len(queued) :], len(kept))
        return found or changes_differ(oracle, world, kept)

    for story in stories(World().engine, seed, data_only, 12):
        assert_same(kept_of(story), compare, ("alone", "in MULTI"))


def kept_of(story: list[Request]) -> list[Request]:
    engine = World().engine
    return [request for request in story if is_kept(engine, request)]


def changes_differ(oracle: World, world: World, requests: list[Request]) -> Difference | None:
    found = states_differ(keyspace(oracle.engine), keyspace(world.engine), len(requests))
    if found is None and not reads_groups(requests):
        found = logs_differ(without_units(oracle.log.units), without_units(world.log.units), len(requests))
    return found


def without_units(units: list[bytes]) -> bytes:
    """The log without what makes units of its lines."""
    lines = whole_requests(b"".join(units)).requests
    return b"".join(bulks(line) for line in lines if line not in ([b"MULTI"], [b"EXEC"]))


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_transaction_changes_what_its_requests_change_after_rights_were_taken(seed: int) -> None:
    def compare(kept: list[Request]) -> Difference | None:
        oracle, world = World(), World()
        the_user_may_do_something(oracle)
        alone(oracle, kept, random.Random(seed))
        bytes_at_once(world, [[b"MULTI"], *kept], random.Random(seed))
        world.session.queue, queue = None, world.session.queue
        the_user_may_do_something(world)
        world.session.queue = queue
        bytes_at_once(world, [[b"EXEC"]], random.Random(seed))
        return states_differ(
            keyspace(oracle.engine) | refusals(oracle), keyspace(world.engine) | refusals(world), len(kept)
        )

    for story in stories(World().engine, seed, data_only, 12):
        assert_same(kept_of(story), compare, ("alone", "in MULTI"))


def refusals(world: World) -> dict[str, object]:
    return {
        "refusals in ACL LOG": len(world.engine.access.log.refusals),
        "replies of NOPERM": b"".join(world.replies).count(b"-NOPERM"),
    }


@pytest.mark.parametrize(("seed", "situation"), [
    (0, nothing), pytest.param(1, nothing, marks=pytest.mark.slow), (2, the_user_may_do_something),
])  # fmt: skip
def test_a_script_changes_what_its_requests_change(seed: int, situation: Callable[[World], None]) -> None:
    pytest.importorskip("lupa")

    def compare(kept: list[Request]) -> Difference | None:
        oracle, world = World(), World()
        situation(oracle)
        situation(world)
        alone(oracle, kept, random.Random(seed))
        for request in kept:
            world.engine.handle(world.session, [b"EVAL", b"redis.pcall(unpack(ARGV)) return 1", b"0", *request])
            world.collect()
        found = states_differ(keyspace(oracle.engine), keyspace(world.engine), len(kept))
        return found or logs_differ(without_units(oracle.log.units), without_units(world.log.units), len(kept))

    for story in stories(World().engine, seed, lambda row: data_only(row) and "noscript" not in row.flags, 12):
        assert_same(kept_of(story), compare, ("alone", "by a script"))


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_logs_replay_comes_to_what_the_requests_came_to(seed: int) -> None:
    def compare(requests: list[Request]) -> Difference | None:
        world = World()
        bytes_at_once(world, requests, random.Random(seed))
        again = make_engine()
        told: list[str] = []
        Replay(again.server, told.append).lines(world.log.units)
        assert told == []
        return states_differ(keyspace(world.engine, KEPT), keyspace(again, KEPT), len(requests))

    for story in stories(World().engine, seed, data_only, 12):
        requests = [request for request in story if request[0].upper() != b"XREADGROUP"]
        assert_same(requests, compare, ("before", "replayed"))
