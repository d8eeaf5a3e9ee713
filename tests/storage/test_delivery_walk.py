"""The walk in runs gives the entries as they are sorted by the places of their slots."""

import random

import pytest

from penstock.clock import ManualClock
from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, OUT_OF_ORDER
from penstock.storage.streams.pending.delivery_walk import runs_in_time_order
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import FIRST_NUMBER, IN_ID_ORDER, PendingSlot, each_of, id_of
from penstock.storage.streams.stream import Stream
from tests.support.dialogue import Dialogue
from tests.support.engines import value_of

ENTRIES = 400  # several blocks
WORKERS = ("alice", "bob", "carol")


def group_of(dialogue: Dialogue) -> Group:
    stream = value_of(dialogue.engine, b"s")
    assert isinstance(stream, Stream)
    return stream.groups[b"g"]


def fill(dialogue: Dialogue) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    for number in range(1, ENTRIES + 1):
        dialogue(f"XADD s {number}-0 f v")


def asked(chance: random.Random, sets_back: bool) -> str:
    """Something that workers do; one in ten sets a time back, if that may be."""
    name, number = chance.choice(WORKERS), chance.randint(1, ENTRIES)
    count = chance.choice((1, 2, 7, 40))
    requests = [
        f"XREADGROUP GROUP g {name} COUNT {count} STREAMS s >",
        f"XREADGROUP GROUP g {name} COUNT {count} STREAMS s >",
        f"XREADGROUP GROUP g {name} COUNT {count} STREAMS s {number}",
        f"XAUTOCLAIM s g {name} 5 {number} COUNT {count}",
        f"XCLAIM s g {name} 0 {number}-0 RETRYCOUNT {chance.randint(1, 3)}",
        f"XNACK s g FAIL IDS 1 {number}-0",
        f"XACK s g {number}-0 {number + 1}-0",
        f"XDEL s {number}-0",
    ]
    return (
        f"XCLAIM s g {name} 0 {number}-0 IDLE 1000" if sets_back and chance.random() < 0.1 else chance.choice(requests)
    )


def rank_of(found: PendingSlot) -> tuple[int, int, int]:
    """By what a pending entry is sorted in time order: its time, then its queue, then its position there."""
    block, slot = found
    place, time_ms = block.place(slot), block.times[slot]
    if place in (IN_ID_ORDER, OUT_OF_ORDER | FROM_ID_ORDER):
        return time_ms, 0, id_of(found)
    return time_ms, 2 if place > OUT_OF_ORDER else 1, place


def assert_alike(group: Group) -> None:
    owned = [found for found in group.pel.by_id.walk(0) if found[0].owners[found[1]] >= FIRST_NUMBER]
    runs = list(runs_in_time_order(group.pel.order))
    assert each_of(runs) == sorted(owned, key=rank_of)
    assert all(block.is_uniform(start, stop) for block, start, stop in runs)


@pytest.mark.parametrize("seed", range(12))
def test_runs_are_in_the_order_of_single_entries(dialogue: Dialogue, clock: ManualClock, seed: int) -> None:
    chance = random.Random(seed)
    fill(dialogue)
    for _ in range(150):
        clock.advance(chance.choice((0, 0, 1, 10)))
        dialogue(asked(chance, seed % 2 == 0))
    group = group_of(dialogue)
    assert group.pel.count and len(group.pel.order.recent)
    assert bool(group.pel.order.out_of_order or group.pel.order.deleted_pending) == (seed % 2 == 0)
    assert_alike(group)


def test_a_batch_that_was_delivered_at_once_is_a_run_a_block(dialogue: Dialogue) -> None:
    fill(dialogue)
    dialogue(f"XREADGROUP GROUP g alice COUNT {ENTRIES} STREAMS s >")
    group = group_of(dialogue)
    assert len(list(runs_in_time_order(group.pel.order))) == len(group.pel.by_id.all_blocks.blocks)


def test_a_history_read_in_one_go_comes_in_runs_behind_what_is_older(dialogue: Dialogue, clock: ManualClock) -> None:
    fill(dialogue)
    dialogue(f"XREADGROUP GROUP g alice COUNT {ENTRIES} STREAMS s >")
    clock.advance(10)
    dialogue("XREADGROUP GROUP g alice COUNT 100 STREAMS s 0")
    group = group_of(dialogue)
    assert_alike(group)
    assert len(list(runs_in_time_order(group.pel.order))) == len(group.pel.by_id.all_blocks.blocks) + 1


def test_the_order_holds_where_ids_went_back(dialogue: Dialogue, clock: ManualClock) -> None:
    fill(dialogue)
    dialogue(f"XREADGROUP GROUP g alice COUNT {ENTRIES} STREAMS s >")
    clock.advance(10)
    dialogue("XREADGROUP GROUP g alice COUNT 100 STREAMS s 200", "XTRIM s MAXLEN 0", "XSETID s 150-0")
    assert group_of(dialogue).pel.by_id.rewound
    assert_alike(group_of(dialogue))
