"""The blocks in which a consumer owns something, kept apart from what others own."""

from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.storage.streams import segment
from penstock.storage.streams.pending.block_list import BlockList
from penstock.storage.streams.pending.pending_block import PendingBlock, each_of
from penstock.storage.streams.stream import Stream
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of

OWN = ("1-0", "400-0", "800-0")


@settings(deadline=None)
@given(some.lists(some.integers(1, 12)), some.integers(0, 13))
def test_blocks_stay_in_order_whatever_comes_and_goes(firsts: list[int], start: int) -> None:
    made = {first: PendingBlock(segment.deleted_entry(first)) for first in range(1, 13)}
    listed, model = BlockList(), set[int]()
    for first in firsts:
        if first in model:
            listed.drop(made[first])
        else:
            listed.add(made[first])
        model ^= {first}
        listed.check_order()
        listed.drop(PendingBlock(segment.deleted_entry(first)))  # another of the same first id
    assert listed.blocks == [made[first] for first in sorted(model)]
    before = [first for first in sorted(model) if first <= start]
    reached = before[-1:] + [first for first in sorted(model) if first > start]
    assert [block.first_id for block in listed.blocks_from(start)] == reached


def test_a_walk_over_blocks_goes_on_when_the_block_it_stands_on_goes() -> None:
    listed = BlockList()
    for first in (1, 2, 3):
        listed.add(PendingBlock(segment.deleted_entry(first)))
    walked = []
    for block in listed.blocks_from(0):
        walked.append(block.first_id)
        listed.drop(block)
    assert walked == [1, 2, 3]
    assert listed.blocks == []


def crowded(dialogue: Dialogue) -> Stream:
    """A group in which `few` has the entries of OWN, eight others all of the other 797."""
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    for number in range(1, 801):
        dialogue(f"XADD s {number}-0 f v")
        reader = "few" if f"{number}-0" in OWN else f"other{number % 8}"
        dialogue(f"XREADGROUP GROUP g {reader} COUNT 1 STREAMS s >")
    stream = value_of(dialogue.engine, b"s")
    assert isinstance(stream, Stream)
    return stream


def test_a_history_looks_at_no_block_in_which_the_consumer_owns_nothing(dialogue: Dialogue) -> None:
    group = crowded(dialogue).groups[b"g"]
    few = group.consumers[b"few"]
    assert len(group.pel.by_id.all_blocks.blocks) == 7
    assert len(few.owned_blocks.blocks) == 3
    assert [block.id_at(slot) >> 64 for block, slot in each_of(group.pel.owned(few, 0, 10))] == [1, 400, 800]
    assert [row[0] for row in dialogue("XPENDING s g - + 10 few")] == [b"1-0", b"400-0", b"800-0"]
    assert [row[0] for row in dialogue("XPENDING s g (1-0 + 1 few")] == [b"400-0"]


def test_what_is_claimed_released_acknowledged_or_lost_changes_the_owners_of_blocks(dialogue: Dialogue) -> None:
    stream = crowded(dialogue)
    group = stream.groups[b"g"]
    few = group.consumers[b"few"]
    dialogue("XCLAIM s g few 0 5-0 250-0", "XACK s g 400-0", "XNACK s g FAIL IDS 1 800-0")
    group.check()
    assert [block.id_at(slot) >> 64 for block, slot in each_of(group.pel.owned(few, 0, 10))] == [1, 5, 250]
    assert len(few.owned_blocks.blocks) == 2
    dialogue("XCLAIM s g other1 0 1-0 5-0 250-0")
    assert few.owned_blocks.blocks == []
    assert dialogue("XREADGROUP GROUP g few STREAMS s 0") == [[b"s", []]]
    assert dialogue("XGROUP DELCONSUMER s g other1") == 102
    assert dialogue("XREADGROUP GROUP g few CLAIM 0 STREAMS s >")[0][1][0][0] == b"800-0"
    stream.check()


def test_strays_belong_to_their_consumer_and_to_no_block(dialogue: Dialogue) -> None:
    stream = crowded(dialogue)
    group = stream.groups[b"g"]
    dialogue("XTRIM s MAXLEN 0", "XSETID s 350-0", "XADD s 500-0 f v", "XREADGROUP GROUP g few STREAMS s >")
    dialogue("XGROUP SETID s g 0", "XREADGROUP GROUP g few STREAMS s >", "XCLAIM s g few 0 600-0")
    stream.check()
    held = each_of(group.pel.owned(group.consumers[b"few"], 0, 10))
    assert [block.id_at(slot) >> 64 for block, slot in held] == [1, 400, 500, 800]
    dialogue("XACK s g 400-0", "XADD s 800-0 f v")
    stream.check()
    assert dialogue("XGROUP DELCONSUMER s g few") == 3
    stream.check()
