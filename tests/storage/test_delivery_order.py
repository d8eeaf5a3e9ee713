"""The queue of pending entries: what is taken again and again stays where it is, and the order in time is kept."""

import pytest

from penstock.clock import ManualClock
from penstock.storage.streams.pending.delivery_walk import in_time_order
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of

ENTRIES = 300  # of several blocks


@pytest.fixture
def group(dialogue: Dialogue) -> Group:
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    for number in range(1, ENTRIES + 1):
        dialogue(f"XADD s {number}-0 f v")
    dialogue("XREADGROUP GROUP g alice STREAMS s >")
    stream = value_of(dialogue.engine, b"s")
    assert isinstance(stream, Stream)
    return stream.groups[b"g"]


def numbers_in_time_order(group: Group) -> list[int]:
    return [block.id_at(slot) >> 64 for block, slot in in_time_order(group.pel.order)]


@pytest.mark.parametrize("request_again", ["XREADGROUP GROUP g alice COUNT 200 STREAMS s 0",
                                           "XAUTOCLAIM s g bob 0 0 COUNT 200"])  # fmt: skip
def test_a_history_that_is_read_again_is_not_queued_again(
    dialogue: Dialogue, clock: ManualClock, group: Group, request_again: str
) -> None:
    for _ in range(5):
        clock.advance(10)
        dialogue(request_again)
        group.check()

        assert len(group.pel.order.recent) == 200
        assert numbers_in_time_order(group) == [*range(201, 301), *range(1, 201)]


def test_what_came_in_between_stands_before_it(dialogue: Dialogue, clock: ManualClock, group: Group) -> None:
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s 0")
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s 4")
    clock.advance(10)
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s 0")
    group.check()

    assert numbers_in_time_order(group)[-4:] == [5, 6, 1, 2]


def test_a_part_of_the_last_ones_and_a_released_one_are_queued_anew(
    dialogue: Dialogue, clock: ManualClock, group: Group
) -> None:
    dialogue("XREADGROUP GROUP g alice COUNT 4 STREAMS s 0")
    clock.advance(10)
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s 0")
    group.check()
    assert numbers_in_time_order(group)[-4:] == [3, 4, 1, 2]

    dialogue("XNACK s g FAIL IDS 1 1-0")
    clock.advance(10)
    dialogue("XCLAIM s g alice 0 1-0 2-0")
    group.check()
    assert numbers_in_time_order(group)[-4:] == [3, 4, 1, 2]


def test_a_time_that_is_earlier_is_not_put_behind(dialogue: Dialogue, clock: ManualClock, group: Group) -> None:
    clock.advance(100)
    dialogue("XREADGROUP GROUP g alice COUNT 2 STREAMS s 0")
    dialogue("XCLAIM s g alice 0 1-0 2-0 IDLE 1000")
    group.check()

    assert numbers_in_time_order(group)[:2] == [1, 2]
