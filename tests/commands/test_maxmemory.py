"""maxmemory: what is refused where memory is short, and what goes."""

from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.engine.memory.recency import NotingContext, Uses
from penstock.engine.memory.value_sizes import dataset_bytes
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.log import UnitLog
from tests.support.word_batches import batches_of

OOM = "OOM command not allowed when used memory > 'maxmemory'."


@pytest.fixture
def full(dialogue: Dialogue) -> Dialogue:
    """A client of a server that uses more than it may."""
    dialogue("SET k v", "XADD s 1-1 f v", "XGROUP CREATE s g 0", "LPUSH l x", "CONFIG SET maxmemory 100")
    return dialogue


def uses_of(client: Dialogue) -> Uses:
    assert isinstance(client.engine.server.context, NotingContext)
    return client.engine.server.context.uses


@pytest.fixture
def log() -> UnitLog:
    return UnitLog()


@pytest.fixture
def roomy(clock: ManualClock, log: UnitLog) -> Dialogue:
    """A client of a server that counts as memory what its keys take, and keeps a log."""
    client = Dialogue(make_engine(clock, log))
    client.engine.memory.reading = lambda: (dataset_bytes(client.engine.keyspace), 0)
    return client


@pytest.mark.parametrize(
    "line",
    ["SET k w", "XADD s * f v", "LPUSH l y", "XGROUP CREATE s h 0", "HSET h f v", "COPY k k2", "SUBSCRIBE c", "INCR n"],
)
def test_what_needs_memory_is_refused_above_the_limit(full: Dialogue, line: str) -> None:
    assert str(full(line)) == OOM


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("GET k", b"v"),
        ("XRANGE s - +", [[b"1-1", [b"f", b"v"]]]),
        ("XREADGROUP GROUP g c STREAMS s >", [[b"s", [[b"1-1", [b"f", b"v"]]]]]),
        ("XACK s g 1-1", 0),
        ("XTRIM s MAXLEN 0", 1),
        ("XDEL s 1-1", 1),
        ("DEL k", 1),
        ("LPOP l", b"x"),
        ("EXPIRE k 100", 1),
        ("PING", b"PONG"),
    ],
)
def test_what_needs_none_goes_on(full: Dialogue, line: str, answer: bytes | int | list[Any]) -> None:
    assert full(line) == answer


def test_a_transaction_with_a_refused_request_is_aborted(full: Dialogue) -> None:
    full("MULTI")

    assert str(full("SET k w")) == OOM
    assert str(full("EXEC")) == "EXECABORT Transaction discarded because of previous errors."


def test_a_transaction_that_reads_is_run(full: Dialogue) -> None:
    assert full("MULTI", "GET k", "DEL k", "EXEC") == [b"v", 1]


def test_a_transaction_queued_before_is_refused_when_it_is_to_run(dialogue: Dialogue) -> None:
    dialogue("MULTI", "SET k w")
    dialogue.another()("CONFIG SET maxmemory 100")

    assert str(dialogue("EXEC")) == f"EXECABORT Transaction discarded because of: {OOM}"
    assert dialogue("GET k") is None


def test_inside_exec_nothing_is_asked_any_more(dialogue: Dialogue) -> None:
    assert dialogue("MULTI", "CONFIG SET maxmemory 100", "SET k w", "EXEC") == [b"OK", b"OK"]


def test_the_refusal_is_counted(full: Dialogue) -> None:
    full("SET k w")

    assert b"errorstat_OOM:count=1" in full("INFO errorstats")


def test_a_raised_limit_lets_writes_through_at_once(full: Dialogue) -> None:
    assert full("CONFIG SET maxmemory 0", "SET k w") == b"OK"


def test_requests_together_are_refused_as_one_by_one(full: Dialogue) -> None:
    answers: list[bytes] = []
    batches = batches_of([[b"XADD", b"s", b"*", b"f", b"v"]] * 3, full.engine.batch_shapes)

    full.engine.handle_batches(full.session, batches, 1 << 20, answers, [])

    assert answers == [b"-%b\r\n" % OOM.encode()] * 3


@pytest.mark.parametrize("policy", ["allkeys-random", "allkeys-lru", "allkeys-lfu", "allkeys-lrm"])
def test_keys_go_until_there_is_room(roomy: Dialogue, clock: ManualClock, policy: str) -> None:
    roomy(f"CONFIG SET maxmemory-policy {policy} maxmemory 20000")
    for number in range(400):
        clock.advance(100)
        assert roomy(f"SET k{number} {'x' * 100}") == b"OK"

    assert dataset_bytes(roomy.engine.keyspace) < 21_000
    assert roomy("DBSIZE") > 50
    assert roomy.engine.statistics.evicted + roomy("DBSIZE") == 400


@pytest.mark.parametrize("policy", ["volatile-random", "volatile-lru", "volatile-lfu", "volatile-lrm", "volatile-ttl"])
def test_volatile_policies_spare_what_does_not_expire(roomy: Dialogue, policy: str) -> None:
    for number in range(50):
        roomy(f"SET stays{number} v", f"SET goes{number} v EX 1000")
    roomy(f"CONFIG SET maxmemory-policy {policy} maxmemory 100")

    assert str(roomy("SET more v")) == OOM
    assert roomy("DBSIZE") == 50
    assert roomy("KEYS goes*") == []


def test_what_expires_first_goes_first(roomy: Dialogue) -> None:
    roomy("SET late v EX 300", "SET soon v EX 100", "SET between v EX 200")
    roomy("CONFIG SET maxmemory-policy volatile-ttl")
    roomy(f"CONFIG SET maxmemory {dataset_bytes(roomy.engine.keyspace) - 1}", "PING")

    assert roomy("KEYS *") == [b"late", b"between"]


def test_what_was_used_longest_ago_goes_first(roomy: Dialogue, clock: ManualClock) -> None:
    roomy("CONFIG SET maxmemory-policy allkeys-lru", "SET a v", "SET b v", "SET c v")
    clock.advance(10_000)
    roomy("GET a", "GET c")
    roomy(f"CONFIG SET maxmemory {dataset_bytes(roomy.engine.keyspace) - 1}", "PING")

    assert sorted(roomy("KEYS *")) == [b"a", b"c"]


def test_what_was_changed_longest_ago_goes_first_though_it_is_read(roomy: Dialogue, clock: ManualClock) -> None:
    roomy("CONFIG SET maxmemory-policy allkeys-lrm", "SET a v", "SET b v")
    clock.advance(10_000)
    roomy("APPEND a w", "GET b")
    roomy(f"CONFIG SET maxmemory {dataset_bytes(roomy.engine.keyspace) - 1}", "PING")

    assert roomy("KEYS *") == [b"a"]


def test_what_is_used_least_often_goes_first(roomy: Dialogue) -> None:
    roomy("CONFIG SET maxmemory-policy allkeys-lfu", "SET often v", "SET seldom v", *["GET often"] * 50)
    roomy(f"CONFIG SET maxmemory {dataset_bytes(roomy.engine.keyspace) - 1}", "PING")

    assert roomy("KEYS *") == [b"often"]


def test_an_evicted_key_is_logged_told_and_counted(roomy: Dialogue, log: UnitLog) -> None:
    listener = roomy.another()
    roomy("SET k v", "CONFIG SET notify-keyspace-events KEe maxmemory-policy allkeys-random")
    listener("SUBSCRIBE __keyevent@0__:evicted")
    log.clear()
    roomy("CONFIG SET maxmemory 1", "GET k")

    assert log.text == b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
    assert listener.arrived() == [[b"message", b"__keyevent@0__:evicted", b"k"]]
    assert b"evicted_keys:1\r\n" in roomy("INFO stats")


def test_a_watched_key_that_is_evicted_fails_the_transaction(roomy: Dialogue) -> None:
    roomy("SET k v", "WATCH k", "MULTI", "PING", "CONFIG SET maxmemory-policy allkeys-random")
    roomy.another()("CONFIG SET maxmemory-policy allkeys-random maxmemory 1", "PING")

    assert roomy("EXEC") is None


def test_eviction_reaches_every_database(roomy: Dialogue) -> None:
    roomy("SELECT 3", "SET k v", "SELECT 9", "SET k v", "SELECT 0")
    roomy("CONFIG SET maxmemory-policy allkeys-random maxmemory 1", "PING")

    assert roomy.engine.statistics.evicted == 2
    assert roomy.session.db_index == 0


def test_idle_time_is_told_where_it_is_kept(roomy: Dialogue, clock: ManualClock) -> None:
    roomy("CONFIG SET maxmemory-policy allkeys-lru", "SET k v")
    clock.advance(7000)

    assert roomy("OBJECT IDLETIME k") == 7
    assert roomy("TYPE k", "OBJECT IDLETIME k") == 7
    assert roomy("CLIENT NO-TOUCH ON", "GET k", "OBJECT IDLETIME k") == 7
    assert roomy("CLIENT NO-TOUCH OFF", "GET k", "OBJECT IDLETIME k") == 0
    assert roomy("OBJECT IDLETIME nokey") is None


def test_frequency_is_told_where_it_is_kept(roomy: Dialogue, clock: ManualClock) -> None:
    roomy("CONFIG SET maxmemory-policy volatile-lfu lfu-log-factor 0", "SET k v")

    assert roomy("OBJECT FREQ k") == 5
    assert roomy("GET k", "GET k", "OBJECT FREQ k") == 7
    clock.advance(3 * 60_000)
    assert roomy("OBJECT FREQ k") == 4
    assert str(roomy("OBJECT IDLETIME k")).startswith("ERR An LFU maxmemory policy is selected, idle time not tracked.")
    assert str(roomy("CONFIG SET maxmemory-policy allkeys-lru", "OBJECT FREQ k")).startswith("ERR An LFU maxmemory")


def test_what_a_script_does_is_a_use_too(roomy: Dialogue, clock: ManualClock) -> None:
    pytest.importorskip("lupa")
    roomy("CONFIG SET maxmemory-policy allkeys-lru", "SET k v", "SET l v")
    clock.advance(7000)

    assert roomy("EVAL \"return redis.call('TYPE', 'k').ok\" 0", "OBJECT IDLETIME k") == 7
    assert roomy("EVAL \"return redis.call('GET', 'k')\" 0", "OBJECT IDLETIME k") == 0
    assert roomy("CLIENT NO-TOUCH ON", "EVAL \"return redis.call('GET', 'l')\" 0", "OBJECT IDLETIME l") == 7


def test_a_script_notes_nothing_once_the_policy_is_another(roomy: Dialogue) -> None:
    pytest.importorskip("lupa")
    roomy("CONFIG SET maxmemory-policy allkeys-lru", "EVAL \"return redis.call('SET', 'k', 'v')\" 0")
    uses = uses_of(roomy).by_key[0]
    assert list(uses) == [b"k"]

    roomy("CONFIG SET maxmemory-policy noeviction", "EVAL \"return redis.call('SET', 'l', 'v')\" 0")
    assert list(uses) == [b"k"]
    assert roomy("GET l") == b"v"


def test_nothing_is_noted_while_no_policy_asks_for_it(roomy: Dialogue) -> None:
    plain = type(roomy.engine.server.context)
    roomy("CONFIG SET maxmemory-policy allkeys-lru")
    assert type(roomy.engine.server.context) is not plain
    roomy("CONFIG SET maxmemory-policy volatile-ttl")
    assert type(roomy.engine.server.context) is plain


def test_notes_of_keys_that_are_gone_go_too(roomy: Dialogue) -> None:
    roomy("CONFIG SET maxmemory-policy allkeys-lru")
    for number in range(3000):
        roomy(f"SET k{number} v", "FLUSHALL")

    assert len(uses_of(roomy).by_key[0]) < 1100


def test_memory_that_came_since_the_last_reading_counts(roomy: Dialogue, clock: ManualClock) -> None:
    """Where a reading takes long, the next one is not made before each request that is refused."""
    readings: list[int] = []

    def slow_reading() -> tuple[int, int]:
        clock.advance(10)
        readings.append(0)
        return 0, 0

    roomy.engine.memory.reading = slow_reading
    roomy("CONFIG SET maxmemory 100000")
    roomy("PING")
    roomy.engine.statistics.input_bytes += 200_000

    assert [str(roomy("SET k v")) for _ in range(3)] == [OOM] * 3
    assert len(readings) == 1
    clock.advance(200)
    assert roomy("SET k v") == b"OK"
    assert len(readings) == 2


def test_what_was_deleted_a_moment_ago_makes_room_at_once(roomy: Dialogue) -> None:
    roomy(*[f"SET k{number} {'x' * 1000}" for number in range(10)])
    roomy("CONFIG SET maxmemory 5000")

    assert str(roomy("SET k v")) == OOM
    roomy("DEL " + " ".join([f"k{number}" for number in range(9)]))
    assert roomy("SET k v") == b"OK"


def test_info_tells_the_limit(roomy: Dialogue) -> None:
    roomy("CONFIG SET maxmemory 1mb maxmemory-policy allkeys-lfu")
    told = roomy("INFO memory")

    assert b"maxmemory:1048576\r\nmaxmemory_human:1.00M\r\nmaxmemory_policy:allkeys-lfu\r\n" in told
    assert b"used_memory:0\r\n" in told
