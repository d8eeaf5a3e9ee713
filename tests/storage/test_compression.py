"""Entries that are no longer among a stream's newest, or of a stream that rests, are kept compressed.

Only the memory shows it.
"""

import json
import random
import weakref

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.storage.compression import LEAST_SEGMENTS, REST_MS, Compressor, Packing
from penstock.storage.streams.segment import LEAST_SEALED, MOST_SLOTS, Segment
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with, value_of
from tests.support.log import UnitLog
from tests.support.seeds import seeds

SEGMENTS = 12
ENTRIES = SEGMENTS * MOST_SLOTS + 5


def client_of(after: str, most_ready: int = 1) -> Dialogue:
    engine = make_engine(
        ManualClock(NOW_MS), UnitLog(), settings_with(stream_compress_after=after, enable_debug_command="yes")
    )
    engine.server.form_limits.streams.compressor = Compressor(most_ready)
    engine.server.form_limits.streams.packing = Packing(least=1)
    return Dialogue(engine)


def pass_time(client: Dialogue, ms: int) -> None:
    """Let time pass, before and after which the cron calls the engine."""
    clock = client.engine.clock
    assert isinstance(clock, ManualClock)
    client.engine.tick()
    clock.advance(ms)
    client.engine.tick()


def let_rest(client: Dialogue) -> None:
    for _ in range(3):
        pass_time(client, REST_MS)


def begin_to_compress(client: Dialogue, segments: int, later_ms: int = 0) -> None:
    """As a tick does, some time later, that has time for at most so many."""
    packing = client.engine.server.form_limits.streams.packing
    now_ms = client.engine.clock.monotonic_us() // 1000 + later_ms
    for _ in range(segments):
        if packing.is_due(now_ms):
            packing.step(now_ms)


def event(number: int) -> bytes:
    return json.dumps({"user": number * 7919 % 1000, "action": "view", "page": f"/item/{number % 97}"}).encode()


def fill(client: Dialogue, values: list[bytes]) -> None:
    for number, value in enumerate(values):
        client.words(b"XADD", b"s", b"%d-1" % (number + 1), b"event", value)


def fill_from(client: Dialogue, first: int, count: int, key: bytes = b"s") -> None:
    for number in range(first, first + count):
        client.words(b"XADD", key, b"%d-1" % (number + 1), b"event", event(number))


def streams(client: Dialogue) -> list[Stream]:
    return list(client.engine.keyspace.databases[0].streams.values())


def stream_of(client: Dialogue) -> Stream:
    stream: Stream = value_of(client.engine, b"s")
    return stream


def compressed(stream: Stream) -> list[Segment]:
    return [segment for segment in stream.segments if segment.compressed]


def test_older_segments_take_a_quarter_of_their_size_and_the_newest_stay_as_they_are() -> None:
    client = client_of("200")

    fill(client, [event(number) for number in range(ENTRIES)])

    stream = stream_of(client)
    assert compressed(stream) == stream.segments[: SEGMENTS - 2]
    assert all(len(segment.compressed) < segment.size / 4 for segment in compressed(stream))
    assert not any(segment.blob for segment in compressed(stream))


def test_random_bytes_stay_as_they_are() -> None:
    client, chance = client_of("1"), random.Random(1)

    fill(client, [chance.randbytes(400) for _ in range(4 * MOST_SLOTS)])

    assert compressed(stream_of(client)) == []


def test_nothing_is_compressed_where_that_is_turned_off() -> None:
    client = client_of("0")

    fill(client, [event(number) for number in range(ENTRIES)])

    assert compressed(stream_of(client)) == []


def test_of_what_was_read_only_the_last_stays_decompressed() -> None:
    client = client_of("1", most_ready=2)
    fill(client, [event(number) for number in range(ENTRIES)])

    assert len(client("XRANGE s - +")) == ENTRIES
    assert len(client("XREVRANGE s + -")) == ENTRIES

    assert sum(bool(segment.blob) for segment in compressed(stream_of(client))) == 2


def test_a_stream_that_was_loaded_is_compressed_bit_by_bit_as_it_grows() -> None:
    client = client_of("1")
    fill(client, [event(number) for number in range(ENTRIES)])
    payload = client("DUMP s")
    client.words(b"RESTORE", b"t", b"0", payload)
    loaded: Stream = value_of(client.engine, b"t")
    assert compressed(loaded) == []

    for _ in range(3 * SEGMENTS * MOST_SLOTS):
        client("XADD t * event x")

    assert len(compressed(loaded)) == len(loaded.segments) - 2
    assert client("XRANGE s - +") == client(f"XRANGE t - + COUNT {ENTRIES}")


def test_all_entries_of_a_stream_that_rests_are_compressed() -> None:
    client = client_of("1000000")
    fill(client, [event(number) for number in range(ENTRIES + LEAST_SEALED)])

    let_rest(client)

    stream = stream_of(client)
    assert compressed(stream) == stream.segments
    assert len(stream.segments) == SEGMENTS + 1


def test_so_are_those_of_a_stream_that_was_loaded() -> None:
    client = client_of("1000000")
    fill(client, [event(number) for number in range(ENTRIES)])
    client.words(b"RESTORE", b"t", b"0", client("DUMP s"))

    let_rest(client)

    loaded: Stream = value_of(client.engine, b"t")
    assert compressed(loaded) == loaded.segments[:SEGMENTS]


def test_a_stream_that_grows_slowly_keeps_only_its_last_segment_as_it_is_sent() -> None:
    client = client_of("1000000")
    fill(client, [event(number) for number in range(ENTRIES)])

    for _ in range(LEAST_SEALED):
        client("XADD s * event x")
        pass_time(client, REST_MS // 2)

    assert compressed(stream_of(client)) == stream_of(client).segments[:SEGMENTS]
    assert not stream_of(client).segments[-1].sealed


def test_a_stream_that_grows_fast_keeps_the_newest_as_they_are_sent() -> None:
    client = client_of("1000000")
    for number in range(SEGMENTS):
        fill_from(client, number * 2 * MOST_SLOTS, 2 * MOST_SLOTS)
        pass_time(client, REST_MS // 2)

    assert compressed(stream_of(client)) == []


def test_a_stream_that_gets_an_entry_while_it_is_compressed_is_compressed_whole_when_it_rests_again() -> None:
    client = client_of("1000000")
    fill(client, [event(number) for number in range(ENTRIES)])
    pass_time(client, 0)

    begin_to_compress(client, SEGMENTS // 2, REST_MS)
    client("XADD s * event x")
    let_rest(client)

    assert compressed(stream_of(client)) == stream_of(client).segments[:SEGMENTS]


@pytest.mark.parametrize("entries", [1, LEAST_SEALED - 1])
def test_a_short_stream_that_rests_goes_on_in_the_same_segment(entries: int) -> None:
    client = client_of("1000000")

    for number in range(2):
        fill_from(client, number * entries, entries)
        let_rest(client)

    assert len(stream_of(client).segments) == 1


def test_the_first_streams_wait_until_the_library_is_worth_its_memory() -> None:
    client = client_of("1000000")
    client.engine.server.form_limits.streams.packing = Packing()
    for number in range(LEAST_SEGMENTS - 1):
        fill_from(client, 0, MOST_SLOTS, b"s%d" % number)
    let_rest(client)
    assert not any(compressed(stream) for stream in streams(client))

    fill_from(client, 0, MOST_SLOTS, b"another")
    let_rest(client)

    assert all(compressed(stream) for stream in streams(client))


def test_few_long_streams_do_not_wait() -> None:
    client = client_of("1000000")
    client.engine.server.form_limits.streams.packing = Packing()
    fill(client, [b"x"] * MOST_SLOTS * LEAST_SEGMENTS)

    let_rest(client)

    assert compressed(stream_of(client)) == stream_of(client).segments


def test_nothing_is_compressed_while_a_child_saves() -> None:
    client = client_of("1000000")
    fill(client, [event(number) for number in range(ENTRIES)])
    saves = client.engine.server.persistence.saves

    saves.runs = True
    let_rest(client)
    assert compressed(stream_of(client)) == []

    saves.runs = False
    let_rest(client)
    assert compressed(stream_of(client)) == stream_of(client).segments[:SEGMENTS]


@pytest.mark.parametrize(
    "line",
    [
        "DEL s",
        "SET s text",
        "COPY other s REPLACE",
        "FLUSHALL",
        "FLUSHDB ASYNC",
        "EXPIRE s -1",
        "XTRIM s MAXLEN 0",
        "DEBUG RELOAD",
    ],
)
def test_a_stream_that_waits_to_be_compressed_is_freed_when_it_is_deleted(line: str) -> None:
    client = client_of("1000000")
    client("XADD other * field value")
    fill(client, [event(number) for number in range(MOST_SLOTS)])
    left = [weakref.ref(segment.ms) for segment in stream_of(client).segments]

    client(line)
    pass_time(client, 2)

    assert [ms() for ms in left] == [None]


def test_the_memory_of_a_stream_is_told_as_it_is() -> None:
    small, large = client_of("1"), client_of("0")
    for client in (small, large):
        fill(client, [event(number) for number in range(ENTRIES)])

    assert stream_of(small).memory_usage() < 0.6 * stream_of(large).memory_usage()


REST_SHARE = 0.05  # of the requests are followed by a pause
REQUESTS = (
    "XRANGE s {a} + COUNT {n}",
    "XREVRANGE s {a} - COUNT {n}",
    "XREAD COUNT {n} STREAMS s {a}",
    "XREADGROUP GROUP g ann COUNT {n} STREAMS s >",
    "XREADGROUP GROUP g ann COUNT {n} STREAMS s {a}",
    "XREADGROUP GROUP g ben COUNT {n} CLAIM 0 STREAMS s >",
    "XCLAIM s g ben 0 {a} {b}",
    "XAUTOCLAIM s g cy 0 {a} COUNT {n}",
    "XDEL s {a} {b}",
    "XACKDEL s g DELREF IDS 1 {a}",
    "XTRIM s MAXLEN {left}",
    "XGROUP SETID s g {a}",
    "XSETID s 99999-0",
    "XADD s * event {n}",
    "XADD s MAXLEN ~ {left} * event {n}",
    "XINFO STREAM s FULL COUNT 3",
    "COPY s t REPLACE",
    "XRANGE t {a} + COUNT {n}",
    "DUMP s",
)


@pytest.mark.parametrize("seed", seeds(2, 12))
def test_every_request_gets_what_an_uncompressed_stream_answers(seed: int) -> None:
    chance = random.Random(seed)
    small, large = client_of(chance.choice(("1", "300", "1000000")), chance.choice((1, 2, 32))), client_of("0")
    for client in (small, large):
        fill(client, [event(number) for number in range(ENTRIES)])
        client("XGROUP CREATE s g 0")
    for _ in range(120):
        line = chance.choice(REQUESTS).format(
            a=f"{chance.randrange(1, ENTRIES)}-1", b=f"{chance.randrange(1, ENTRIES)}-1", n=chance.choice((1, 10, 300)),
            left=chance.randrange(ENTRIES // 2, ENTRIES),
        )  # fmt: skip
        assert small.raw(line) == large.raw(line), line
        if chance.random() < REST_SHARE:
            let_rest(small)
            let_rest(large)
        elif chance.random() < REST_SHARE:
            begin_to_compress(small, chance.randrange(2 * SEGMENTS))

    let_rest(small)
    assert all(segment.is_settled() for stream in streams(small) for segment in stream.segments if segment.sealed)
    for client in (small, large):
        stream_of(client).check()
    assert logged(small.engine) == logged(large.engine)


def logged(engine: Engine) -> bytes:
    log = engine.effects.log
    assert isinstance(log, UnitLog)
    return log.text
