"""Entries that are no longer among a stream's newest are kept compressed, which only the memory shows."""

import json
import random

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.storage.compression import Compressor
from penstock.storage.streams.segment import MOST_SLOTS, Segment
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with, value_of
from tests.support.log import UnitLog

SEGMENTS = 12
ENTRIES = SEGMENTS * MOST_SLOTS + 5


def client_of(after: str, most_ready: int = 1) -> Dialogue:
    engine = make_engine(ManualClock(NOW_MS), UnitLog(), settings_with(stream_compress_after=after))
    engine.server.form_limits.streams.compressor = Compressor(most_ready)
    return Dialogue(engine)


def event(number: int) -> bytes:
    return json.dumps({"user": number * 7919 % 1000, "action": "view", "page": f"/item/{number % 97}"}).encode()


def fill(client: Dialogue, values: list[bytes]) -> None:
    for number, value in enumerate(values):
        client.words(b"XADD", b"s", b"%d-1" % (number + 1), b"event", value)


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


def test_the_memory_of_a_stream_is_told_as_it_is() -> None:
    small, large = client_of("1"), client_of("0")
    for client in (small, large):
        fill(client, [event(number) for number in range(ENTRIES)])

    assert stream_of(small).memory_usage() < 0.6 * stream_of(large).memory_usage()


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
    "XINFO STREAM s FULL COUNT 3",
    "COPY s t REPLACE",
    "XRANGE t {a} + COUNT {n}",
    "DUMP s",
)


@pytest.mark.parametrize("seed", range(12))
def test_every_request_gets_what_an_uncompressed_stream_answers(seed: int) -> None:
    chance = random.Random(seed)
    small, large = client_of("1", chance.choice((1, 2, 32))), client_of("0")
    for client in (small, large):
        fill(client, [event(number) for number in range(ENTRIES)])
        client("XGROUP CREATE s g 0")
    for _ in range(120):
        line = chance.choice(REQUESTS).format(
            a=f"{chance.randrange(1, ENTRIES)}-1", b=f"{chance.randrange(1, ENTRIES)}-1", n=chance.choice((1, 10, 300)),
            left=chance.randrange(ENTRIES // 2, ENTRIES),
        )  # fmt: skip
        assert small.raw(line) == large.raw(line), line

    for client in (small, large):
        stream_of(client).check()
    assert logged(small.engine) == logged(large.engine)


def logged(engine: Engine) -> bytes:
    log = engine.effects.log
    assert isinstance(log, UnitLog)
    return log.text
