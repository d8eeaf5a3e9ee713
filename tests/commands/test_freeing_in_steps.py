"""What a large stream leaves behind is freed bit by bit, and no other key loses anything by it."""

from itertools import pairwise

import pytest

from penstock.engine.engine import FREED_EVERY_MS, Engine
from penstock.storage.streams.segment import MOST_SLOTS
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of

ENTRIES = 70 * MOST_SLOTS


@pytest.fixture
def large(engine: Engine, dialogue: Dialogue) -> Stream:
    """A stream of 70 segments with half of its entries pending, at the key s."""
    for number in range(1, ENTRIES + 1):
        dialogue(f"XADD s {number}-0 f v")
    dialogue("XGROUP CREATE s g 0", f"XREADGROUP GROUP g c COUNT {ENTRIES // 2} STREAMS s >")
    return value_of(engine, b"s")


@pytest.mark.parametrize("request_", ["DEL s", "UNLINK s", "FLUSHDB", "FLUSHALL", "PEXPIREAT s 1"])
def test_a_large_stream_s_parts_wait_to_be_freed(
    engine: Engine, dialogue: Dialogue, large: Stream, request_: str
) -> None:
    segments = large.segments
    dialogue(request_)

    assert dialogue("EXISTS s") == 0
    assert len(segments) == 70
    assert engine.next_wakeup_ms() == NOW_MS + FREED_EVERY_MS
    engine.tick()
    assert segments == []
    assert not engine.lazy_free.parts
    assert engine.next_wakeup_ms() == 0


def test_each_step_frees_a_part(engine: Engine, dialogue: Dialogue, large: Stream) -> None:
    dialogue("DEL s")
    group = large.groups[b"g"]
    left = [len(large.segments) + len(large.nodes) + len(group.pel.by_id.all_blocks.blocks)]
    while engine.lazy_free.parts:
        engine.lazy_free.free_lazily()
        left.append(len(large.segments) + len(large.nodes) + len(group.pel.by_id.all_blocks.blocks))

    assert left[-1] == 0
    assert len(left) > 4
    assert max(before - after for before, after in pairwise(left)) <= 100
    assert all(not consumer.owned_blocks.blocks for consumer in group.consumers.values())


def test_a_stream_of_the_same_name_and_a_copy_stay_as_they_are(
    engine: Engine, dialogue: Dialogue, large: Stream
) -> None:
    dialogue("COPY s copy", "DEL s", "XADD s 1-0 f new", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >")
    engine.tick()

    assert dialogue("XLEN s") == 1
    assert dialogue("XLEN copy") == ENTRIES
    assert dialogue("XPENDING s g") == [1, b"1-0", b"1-0", [[b"c", b"1"]]]
    assert dialogue("XPENDING copy g")[0] == ENTRIES // 2
    assert dialogue("XRANGE copy - + COUNT 1") == [[b"1-0", [b"f", b"v"]]]
    for value in engine.keyspace.databases[0].values.values():
        assert isinstance(value, Stream)
        value.check()


@pytest.mark.parametrize("request_", ["RENAME s other", "MOVE s 1"])
def test_a_stream_that_moves_is_not_freed(engine: Engine, dialogue: Dialogue, large: Stream, request_: str) -> None:
    dialogue(request_)

    assert not engine.lazy_free.parts
    assert len(large.segments) == 70


def test_where_memory_is_limited_it_is_free_at_once(engine: Engine, dialogue: Dialogue, large: Stream) -> None:
    dialogue("CONFIG SET maxmemory 1000000000", "DEL s")

    assert not engine.lazy_free.parts


def test_small_values_are_freed_at_once(engine: Engine, dialogue: Dialogue) -> None:
    dialogue("XADD small 1-0 f v", "SET string x", "RPUSH list a b", "DEL small string list")

    assert not engine.lazy_free.parts


def test_a_database_s_values_are_freed_with_its_large_streams(
    engine: Engine, dialogue: Dialogue, large: Stream
) -> None:
    dialogue(*[f"SET key{number} x" for number in range(500)], "FLUSHDB")
    engine.lazy_free.free_lazily()

    assert sum(map(len, engine.lazy_free.parts)) > 400
    engine.tick()
    assert not engine.lazy_free.parts
    assert large.segments == []
