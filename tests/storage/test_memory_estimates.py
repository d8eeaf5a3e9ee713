"""The memory of a stream is estimated from a sample; the estimate of a large one is about that of all its parts."""

import gc
from collections.abc import Callable

import pytest

from penstock.engine.engine import Engine
from penstock.native.build import IS_COMPILED
from penstock.storage.streams import segment as segment_module
from penstock.storage.streams.pending import block_list
from penstock.storage.streams.pending import group as group_module
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet
from tests.support.builds import replaces_functions
from tests.support.dialogue import Dialogue


def stream_at(engine: Engine, key: bytes) -> Stream:
    found = engine.keyspace.databases[0].values[key]
    assert isinstance(found, Stream)
    return found


@replaces_functions
def test_a_large_stream_is_estimated_from_some_of_its_parts(
    dialogue: Dialogue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(1, 20_001):
        dialogue.words(b"XADD", b"s", b"%d-0" % at, b"field", b"v" * (at % 50))
    for at in range(40):
        dialogue.words(b"XGROUP", b"CREATE", b"s", b"g%d" % at, b"0")
    dialogue("XREADGROUP GROUP g0 alice COUNT 10000 STREAMS s >")
    estimate = stream_at(engine, b"s").memory_usage()

    monkeypatch.setattr(segment_module, "SEGMENTS_SAMPLED", 10**9)
    monkeypatch.setattr(group_module, "GROUPS_SAMPLED", 10**9)
    monkeypatch.setattr(block_list, "BLOCKS_SAMPLED", 10**9)
    in_full = stream_at(engine, b"s").memory_usage()

    # The first group alone has pending entries: as one of 16 it counts for more than as one of 40.
    assert in_full * 0.9 < estimate < in_full * 1.5


@pytest.mark.skipif(not IS_COMPILED, reason="Python's own objects have room for the garbage collector")
@pytest.mark.parametrize("made", [Hash, List, Set, SortedSet, Segment])
def test_a_value_has_no_room_for_the_garbage_collector(made: Callable[[], object]) -> None:
    assert not gc.is_tracked(made())
