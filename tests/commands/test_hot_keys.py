"""HOTKEYS: which keys take the most."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.telemetry import hot_keys
from tests.support.builds import replaces_functions
from tests.support.dialogue import Dialogue
from tests.support.replies_beside_redis import replies_of_both

STARTS = [
    "2 CPU", "1 CPU NET", "x CPU", "0", "3 CPU NET FOO", "1 FOO", "2 CPU FOO", "2 CPU CPU", "2 NET NET", "", "1",
    "1 CPU COUNT", "1 CPU COUNT 0", "1 CPU COUNT 65", "1 CPU COUNT x", "1 CPU SAMPLE 0", "1 CPU SAMPLE x",
    "1 CPU SAMPLE -1", "1 CPU DURATION 0", "1 CPU DURATION 1000001", "1 CPU DURATION x", "1 CPU SLOTS 1 0",
    "1 CPU FOO", "1 CPU METRICS 1 NET", "1 CPU COUNT 5 COUNT 6", "2 cpu net sample 3 duration 1000000 count 64",
]  # fmt: skip
LINES = [
    "HOTKEYS", "HOTKEYS FOO", "HOTKEYS GET", "HOTKEYS GET x", "HOTKEYS STOP", "HOTKEYS STOP x", "HOTKEYS RESET",
    "INFO hotkeys", "HOTKEYS START", "HOTKEYS START COUNT 5 METRICS 1 CPU",
    *[line for start in STARTS for line in (f"HOTKEYS START METRICS {start}", "HOTKEYS RESET", "HOTKEYS STOP")],
    "HOTKEYS START METRICS 1 NET", "HOTKEYS START METRICS 1 NET", "HOTKEYS RESET", "HOTKEYS STOP", "HOTKEYS STOP",
    "HOTKEYS RESET", "HOTKEYS GET", "INFO hotkeys",
]  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
def test_hotkeys_answers_what_redis_answers(reference_port: int, resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, LINES, resp)

    assert ours == theirs


def collected(dialogue: Dialogue) -> dict[bytes, object]:
    """HOTKEYS GET as a dictionary."""
    (found,) = dialogue("HOTKEYS GET")
    return dict(zip(found[::2], found[1::2], strict=True))


def test_bytes_are_shared_by_the_keys_of_a_request(dialogue: Dialogue) -> None:
    dialogue("HOTKEYS START METRICS 1 NET", "SET k v", "GET k", "MSET a 1 b 2", "PING", "GET", "KEYS *")

    found = collected(dialogue)

    assert found[b"by-net-bytes"] == [b"k", 59, b"a", 23, b"b", 23]  # as Redis 8.6.3 tells
    assert (found[b"net-bytes-all-commands-all-slots"], found[b"total-net-bytes"]) == (106, 105)
    assert b"by-cpu-time-us" not in found


def test_a_sampled_request_is_counted_for_all_of_its_keys(dialogue: Dialogue) -> None:
    dialogue("HOTKEYS START METRICS 1 NET SAMPLE 2", *["MGET a b"] * 100)

    found = collected(dialogue)

    by_key = found[b"by-net-bytes"]
    assert by_key[1] == by_key[3]  # type: ignore[index]  # a list, in RESP2
    assert 0 < found[b"total-net-bytes"] < found[b"net-bytes-all-commands-all-slots"]  # type: ignore[operator]


def test_a_script_counts_as_a_whole(dialogue: Dialogue) -> None:
    dialogue("HOTKEYS START METRICS 1 NET", "EVAL \"return redis.call('set',KEYS[1],'v')\" 1 k")

    assert collected(dialogue)[b"by-net-bytes"] == [b"k", 76]


def test_a_pipeline_of_equal_requests_is_counted_one_by_one(dialogue: Dialogue) -> None:
    dialogue("HOTKEYS START METRICS 1 NET", "MULTI", *["XADD s * f v"] * 10, "EXEC")

    assert collected(dialogue)[b"by-net-bytes"][0] == b"s"  # type: ignore[index]  # a list, in RESP2


def test_collecting_ends_with_its_duration(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("HOTKEYS START METRICS 1 NET DURATION 2", "GET k")
    clock.advance(5000)
    dialogue("GET other")

    found = collected(dialogue)

    assert (found[b"tracking-active"], found[b"collection-duration-ms"]) == (0, 2000)
    assert found[b"by-net-bytes"] == [b"k", 25]
    assert dialogue("HOTKEYS STOP") is None


def test_what_was_collected_stays_until_it_is_reset(dialogue: Dialogue) -> None:
    dialogue("HOTKEYS START METRICS 1 NET", "GET k", "HOTKEYS STOP", "GET other")
    assert collected(dialogue)[b"by-net-bytes"] == [b"k", 25]

    dialogue("HOTKEYS RESET")

    assert dialogue("HOTKEYS GET") is None


@replaces_functions
def test_keys_with_little_are_forgotten_where_there_are_too_many(
    dialogue: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_keys, "MOST_KEYS", 20)
    dialogue("HOTKEYS START METRICS 1 NET COUNT 2", *["GET hot"] * 5)
    dialogue(*[f"GET cold{number}" for number in range(100)])

    ranked = collected(dialogue)[b"by-net-bytes"]

    assert ranked[:2] == [b"hot", 5 * 27]  # type: ignore[index]  # a list, in RESP2
