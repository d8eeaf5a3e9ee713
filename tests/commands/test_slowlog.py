"""SLOWLOG and LATENCY."""

import re
from random import Random
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.engine.telemetry.statistics import Histogram
from tests.support.batch_sides import Request, Side
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.replies_beside_redis import engine_for_debugging, replies_of_both
from tests.support.seeds import seeds

ALIKE = {
    "slowlog": [
        "SLOWLOG", "SLOWLOG FOO", "SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG GET 0", "SLOWLOG GET 1 1",
        "SLOWLOG LEN x", "SLOWLOG RESET", "SLOWLOG LEN", "SLOWLOG GET -1",
    ],
    "latency": [
        "LATENCY", "LATENCY FOO", "LATENCY LATEST", "LATENCY HISTORY command", "LATENCY RESET", "LATENCY RESET a b",
        "LATENCY HISTOGRAM nosuch", "LATENCY GRAPH command", "LATENCY GRAPH",
    ],
}  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_slowlog_and_latency_answer_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


@pytest.fixture
def everything_is_slow(dialogue: Dialogue) -> Dialogue:
    dialogue("CLIENT SETNAME me", "CONFIG SET slowlog-log-slower-than 0", "SLOWLOG RESET")
    return dialogue


def slow_words(dialogue: Dialogue) -> list[list[bytes]]:
    """The words of the slow requests, newest first, but for SLOWLOG RESET."""
    kept = dialogue("SLOWLOG GET -1")
    assert isinstance(kept, list)
    return [slow[3] for slow in kept][:-1]


def test_a_slow_request_is_kept_with_its_client(everything_is_slow: Dialogue) -> None:
    everything_is_slow("PING")

    slow = everything_is_slow("SLOWLOG GET 1")

    assert slow == [[2, NOW_MS // 1000, 0, [b"PING"], b"127.0.0.1:50000", b"me", 1]]


def test_how_long_it_took_is_told(clock: ManualClock) -> None:
    dialogue = Dialogue(engine_for_debugging())
    dialogue("DEBUG SLEEP 0.02")

    ((_, _, usec, words, *_),) = dialogue("SLOWLOG GET")

    assert (usec, words) == (20_000, [b"DEBUG", b"SLEEP", b"0.02"])


def test_long_requests_are_cut(everything_is_slow: Dialogue) -> None:
    everything_is_slow("SET k " + "v" * 148, "DEL " + " ".join(["k"] * 35))

    (delete, write) = slow_words(everything_is_slow)
    counts = [slow[-1] for slow in everything_is_slow("SLOWLOG GET -1")]

    assert (len(delete), delete[-2:]) == (32, [b"k", b"... (5 more arguments)"])
    assert write[2] == b"v" * 128 + b"... (20 more bytes)"
    assert counts[1:] == [36, 3, 2]  # with a SLOWLOG GET before them


def test_an_older_redis_does_not_count_the_words() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(compat_version="8.8")))
    dialogue("CONFIG SET slowlog-log-slower-than 0")

    (slow,) = dialogue("SLOWLOG GET")

    assert len(slow) == 6


OLDER: Final = (
    "CONFIG SET slowlog-log-slower-than 0", "SET a 1", "GET a", f"DEL {' '.join('abcdefghijklmnopqrstuvwxyz' * 2)}",
    "CONFIG SET slowlog-log-slower-than -1", "SLOWLOG LEN", "SLOWLOG GET 1", "SLOWLOG GET -1", "SLOWLOG RESET",
    "CONFIG SET slowlog-log-slower-than 10000",
)  # fmt: skip
TOLD_OF_TIME: Final = re.compile(rb"(?::\d+\r\n){3}|\$\d+\r\n127\.0\.0\.1:\d+")


def test_slow_requests_are_told_as_by_an_older_redis(reference_port: int) -> None:
    settings = settings_with(compat_version="8.6", appendonly="no")
    theirs, ours = replies_of_both(reference_port, ["SLOWLOG RESET", *OLDER], 2, make_engine(settings=settings))

    assert [TOLD_OF_TIME.sub(b"", reply) for reply in ours] == [TOLD_OF_TIME.sub(b"", reply) for reply in theirs]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("AUTH a b", [b"AUTH", b"(redacted)", b"(redacted)"]),
        ("AUTH a b c", [b"AUTH", b"(redacted)", b"(redacted)", b"(redacted)"]),
        ("HELLO 2 AUTH default x", [b"HELLO", b"2", b"AUTH", b"(redacted)", b"(redacted)"]),
        ("CONFIG SET requirepass ''", [b"CONFIG", b"SET", b"requirepass", b"(redacted)"]),
        ("ACL SETUSER default on", [b"ACL", b"SETUSER", b"(redacted)", b"(redacted)"]),
    ],
)
def test_secrets_are_not_kept(everything_is_slow: Dialogue, line: str, kept: list[bytes]) -> None:
    everything_is_slow(line)

    assert slow_words(everything_is_slow) == [kept]


def test_exec_is_left_out_and_what_it_runs_is_not(everything_is_slow: Dialogue) -> None:
    everything_is_slow("MULTI", "PING", "EXEC")

    assert slow_words(everything_is_slow) == [[b"PING"], [b"MULTI"]]


def test_the_oldest_make_room_for_the_next(everything_is_slow: Dialogue) -> None:
    everything_is_slow("PING", "CONFIG SET slowlog-log-slower-than -1", "CONFIG SET slowlog-max-len 1")
    assert everything_is_slow("SLOWLOG LEN") == 2

    everything_is_slow("CONFIG SET slowlog-log-slower-than 0")

    assert everything_is_slow("SLOWLOG LEN") == 1


def test_a_log_of_no_requests_keeps_those_that_it_has(everything_is_slow: Dialogue) -> None:
    everything_is_slow("PING", "CONFIG SET slowlog-max-len 0", "PING", "CONFIG SET slowlog-max-len 9")

    assert slow_words(everything_is_slow) == [[b"CONFIG", b"SET", b"slowlog-max-len", b"9"], [b"PING"]]
    assert everything_is_slow("SLOWLOG GET 1")[0][0] == 4


def test_what_a_script_asks_has_no_client_in_redis(everything_is_slow: Dialogue) -> None:
    everything_is_slow("""EVAL "return redis.call('STRLEN','k')" 0""")

    (_, (_, _, _, words, address, name, _)) = everything_is_slow("SLOWLOG GET 2")
    assert (words, address, name) == ([b"STRLEN", b"k"], b"", b"")


LARGE_BYTES: Final = 150
NAMES: Final = ("large-request", "large-reply")


def large_side(seed: int) -> tuple[Side, list[Request]]:
    """A server that passes for Valkey, and requests of one kind after the other, of which some are large."""
    chance = Random(seed)
    side = Side(compat_version="valkey-9.1", commandlog_request_larger_than=str(LARGE_BYTES))
    side.client(
        f"CONFIG SET commandlog-reply-larger-than {LARGE_BYTES}", *[f"COMMANDLOG RESET {name}" for name in NAMES]
    )
    requests: list[Request] = []
    for _ in range(12):
        kind = chance.choice(
            [b"SET k %b", b"GET k", b"RPUSH l %b", b"RPOP l", b"XADD s * f %b", b"HSET h f %b", b"HGET h f"]
        )
        for _ in range(chance.randint(1, 6)):
            value = b"v" * chance.choice([1, 90, 140, 160, 300])
            requests.append([value if word == b"%b" else word for word in kind.split()])
        if chance.random() < 0.2:
            requests += [[b"MULTI"], requests[-1], requests[-1], [b"EXEC"]]
    return side, requests


def large_ones(side: Side) -> list[list[tuple[int, list[bytes]]]]:
    """What the two logs have: bytes and words."""
    return [[tuple(entry[2:4]) for entry in side.client(f"COMMANDLOG GET -1 {name}")] for name in NAMES]


@pytest.mark.parametrize("way", ["together", "as_sent", "as_they_come"])
@pytest.mark.parametrize("seed", seeds(3, 60))
def test_large_requests_are_noted_however_they_come(seed: int, way: str) -> None:
    alone, requests = large_side(seed)
    side, _ = large_side(seed)

    alone.one_by_one(requests)
    getattr(side, way)(requests)

    assert large_ones(side) == large_ones(alone)


def test_info_counts_what_was_slow(everything_is_slow: Dialogue) -> None:
    everything_is_slow("PING")

    assert b",slowlog_count=1,slowlog_time_ms_sum=0,slowlog_time_ms_max=0" in everything_is_slow.raw(
        "INFO commandstats"
    )


# -- LATENCY ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def delayed() -> Dialogue:
    """A client with a noted DEBUG SLEEP of 5 ms."""
    dialogue = Dialogue(engine_for_debugging())
    dialogue("CONFIG SET latency-monitor-threshold 1", "DEBUG SLEEP 0.007", "DEBUG SLEEP 0.005")
    return dialogue


def test_a_delay_is_noted_once_a_second(delayed: Dialogue) -> None:
    assert delayed("LATENCY LATEST") == [[b"command", NOW_MS // 1000, 7, 7]]
    assert delayed("LATENCY HISTORY command") == [[NOW_MS // 1000, 7]]


def test_delays_can_be_forgotten(delayed: Dialogue) -> None:
    assert delayed("LATENCY RESET") == 1
    assert delayed("LATENCY LATEST") == []


def test_the_graph_and_the_doctor_speak_of_it(delayed: Dialogue) -> None:
    assert b"command - high 7 ms, low 7 ms (all time high 7 ms)\n" in delayed.raw("LATENCY GRAPH command")
    assert b"command: 1 delays" in delayed.raw("LATENCY DOCTOR")


def test_the_histogram_counts_calls_up_to_each_doubling() -> None:
    dialogue = Dialogue(engine_for_debugging())
    dialogue("HELLO 3", "DEBUG SLEEP 0.000003", "DEBUG SLEEP 0.00001", "DEBUG SLEEP 0.00004", "DEBUG SLEEP 0.00006")

    assert dialogue("LATENCY HISTOGRAM debug") == {
        b"debug": {b"calls": 4, b"histogram_usec": {4: 1, 16: 2, 66: 4}},
    }


def test_the_histogram_of_a_container_is_that_of_its_subcommands(dialogue: Dialogue) -> None:
    dialogue("HELLO 3", "CLIENT ID", "CLIENT ID")

    assert dialogue("LATENCY HISTOGRAM client")[b"client|id"][b"calls"] == 2


@pytest.mark.parametrize(
    ("usec", "shown"),
    [(3, 3.007), (40, 40.191), (156, 156.671), (712, 712.703), (1_500_000, 1_002_438.655), (0, 0.001)],
)
def test_percentiles_are_those_of_redis(usec: int, shown: float) -> None:
    histogram = Histogram()
    histogram.add(usec)

    assert histogram.percentile(99.9) == shown


def test_percentiles_count_from_the_quickest() -> None:
    histogram = Histogram()
    for usec in range(1, 101):
        histogram.add(usec)

    assert [histogram.percentile(percent) for percent in (50, 99, 100)] == [50.175, 99.327, 100.351]


def test_nothing_is_slow_where_the_threshold_is_negative(everything_is_slow: Dialogue) -> None:
    everything_is_slow("SLOWLOG RESET", "CONFIG SET slowlog-log-slower-than -1", "SLOWLOG RESET", "PING")

    assert everything_is_slow("SLOWLOG LEN") == 0


# -- requests that waited ---------------------------------------------------------------------------------------------


def test_a_request_that_was_served_is_kept_by_the_time_it_ran(everything_is_slow: Dialogue) -> None:
    waiting = everything_is_slow.another()
    waiting("BLPOP q 0")

    everything_is_slow("RPUSH q x")

    assert slow_words(everything_is_slow)[:2] == [[b"BLPOP", b"q", b"0"], [b"RPUSH", b"q", b"x"]]


def test_a_request_that_waited_is_kept_once(everything_is_slow: Dialogue, clock: ManualClock) -> None:
    waiting = everything_is_slow.another()
    waiting("BLPOP q 1")
    assert slow_words(everything_is_slow) == []
    clock.advance(1001)
    everything_is_slow.engine.tick()
    waiting("BLPOP q 0")
    everything_is_slow(f"CLIENT UNBLOCK {waiting.session.id} ERROR")

    kept = [words for words in slow_words(everything_is_slow) if words[0] == b"BLPOP"]

    assert kept == [[b"BLPOP", b"q", b"0"], [b"BLPOP", b"q", b"1"]]


class SlowlyTicking(ManualClock):
    """A clock that goes on by two milliseconds whenever it is read."""

    def monotonic_us(self) -> int:
        self.advance(2)
        return super().monotonic_us()


def test_latency_tells_of_expiry_that_took_long() -> None:
    clock = SlowlyTicking(NOW_MS)
    dialogue = Dialogue(make_engine(clock))
    dialogue("CONFIG SET latency-monitor-threshold 1", "SET k v PX 1", "LATENCY RESET")
    clock.advance(1000)

    dialogue.engine.tick()

    latest = {event[0]: event[2] for event in dialogue("LATENCY LATEST")}
    assert latest[b"expire-cycle"] > latest[b"expire-del"] >= 2
