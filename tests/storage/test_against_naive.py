"""Streams, groups and their pending blocks beside a naive model, under random operations."""

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.protocol import entries
from penstock.storage.compression import Compressor
from penstock.storage.streams.entry_deletion import delete_all
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.ids import HALF, MAX, columns, text
from penstock.storage.streams.listpack_nodes import StreamLimits
from penstock.storage.streams.pending import claim_walk
from penstock.storage.streams.pending.delivery_walk import in_time_order
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import (
    COUNT_DOWN,
    COUNT_UP,
    KEEP_COUNT,
    MAX_COUNT,
    each_of,
    id_of,
    in_runs,
)
from penstock.storage.streams.pending.pending_block import RELEASED as RELEASED_OWNER
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import DELETE_REFERENCES, KEEP_REFERENCES, Trim
from tests.storage.naive import RELEASED, NaiveGroup, NaiveStream
from tests.support.seeds import examples, seeds

GROUPS = st.sampled_from(["g", "h"])
CONSUMERS = st.sampled_from(["ann", "bob", "cy"])
IDS = st.builds(lambda ms, seq: ms << 64 | seq, st.integers(1, 12), st.integers(0, 40))
STEPS = st.sampled_from([0, 1, 1, 2, 5, -3])
MOST = st.sampled_from([1, 2, 3, 5, 200])
AGO = st.sampled_from([0, 0, 1, 9])
COUNTS = st.sampled_from([1, 2, 3, 6, 150])


class Model(RuleBasedStateMachine):
    """The same operations on both; everything that can be seen must be equal after each."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1000
        self.naive = NaiveStream()
        limits = StreamLimits(300, 7, ready_entries=1)
        limits.compressor = Compressor(most_ready=1)
        self.stream = Stream(limits, Producers(100, 100))

    @initialize()
    def make_groups(self) -> None:
        for name in ("g", "h"):
            self.naive.groups[name] = NaiveGroup(0)
            self.stream.groups[name.encode()] = Group(name.encode(), 0, 0)

    def both(self, name: str) -> tuple[NaiveGroup, Group]:
        return self.naive.groups[name], self.stream.groups[name.encode()]

    def consumer(self, group: Group, name: str) -> Any:
        return group.consumers.get(name.encode()) or group.add_consumer(name.encode(), self.now_ms)

    @rule(step=STEPS)
    def turn_the_clock(self, step: int) -> None:
        self.now_ms += step

    @rule(count=COUNTS, step=st.sampled_from([1, 2, 7, 1 << 64]), size=st.sampled_from([1, 30, 2000]))
    def append(self, count: int, step: int, size: int) -> None:
        for _ in range(count):
            entry_id = self.naive.last_id + step
            if entry_id > MAX:
                return
            entry = entries.encode(text(entry_id), [b"f", b"v" * size])
            self.stream.append(entry_id >> 64, entry_id & HALF, entry, [b"f", b"v" * size])
            self.naive.entries[entry_id] = entry
            self.naive.last_id = entry_id

    @rule(chance=st.randoms(use_true_random=False), most=MOST)
    def delete(self, chance: Any, most: int) -> None:
        for entry_id in chance.sample(sorted(self.naive.entries), min(most, len(self.naive.entries))):
            assert self.stream.delete(entry_id)
            assert not self.stream.delete(entry_id)
            del self.naive.entries[entry_id]

    @rule(chance=st.randoms(use_true_random=False), most=MOST)
    def delete_neighbours(self, chance: Any, most: int) -> None:
        listed = sorted(self.naive.entries)
        at = chance.randrange(len(listed) + 1)
        wanted = [one for one in listed[at : at + most] if chance.random() < 0.97]
        absent = chance.randrange(13 << 64)
        there = len(wanted) + (absent in self.naive.entries and absent not in wanted)
        assert delete_all(self.stream, columns([*wanted, absent, *wanted])) == there
        for entry_id in {*wanted, absent}:
            self.naive.entries.pop(entry_id, None)

    @rule(left=st.sampled_from([0, 1, 2, 5, 130]))
    def trim(self, left: int) -> None:
        gone = sorted(self.naive.entries)[: max(len(self.naive.entries) - left, 0)]
        removed = self.stream.trim(Trim(True, left, False, 0, KEEP_REFERENCES), [])
        assert removed == len(gone)
        for entry_id in gone:
            del self.naive.entries[entry_id]

    @rule(left=st.sampled_from([0, 1, 2, 5, 130]))
    def trim_with_references(self, left: int) -> None:
        gone = sorted(self.naive.entries)[: max(len(self.naive.entries) - left, 0)]
        ids: list[int] = []
        assert self.stream.trim(Trim(True, left, False, 0, DELETE_REFERENCES), ids) == len(gone)
        assert ids == gone
        for entry_id in gone:
            del self.naive.entries[entry_id]
            for group in self.naive.groups.values():
                group.drop(entry_id)

    @rule(name=GROUPS, who=CONSUMERS, most=MOST)
    def read_new(self, name: str, who: str, most: int) -> None:
        naive, group = self.both(name)
        runs = self.stream.unread(group, most)
        wanted = self.naive.after(naive.last_id, most)
        assert b"".join(segment.entries(start, stop) for segment, start, stop in runs) == b"".join(
            self.naive.entries[entry_id] for entry_id in wanted
        )
        if runs:
            self.stream.advance_group(group, runs)
            group.pel.deliver(runs, self.consumer(group, who), self.now_ms)
            naive.last_id = wanted[-1]
        for entry_id in wanted:
            naive.put(entry_id, who, self.now_ms, 1)

    @rule(name=GROUPS, who=CONSUMERS, most=MOST, start=st.integers(0, 1) | IDS)
    def read_history(self, name: str, who: str, most: int, start: int) -> None:
        naive, group = self.both(name)
        consumer = self.consumer(group, who)
        mine = [one for one in sorted(naive.pending) if naive.pending[one][0] == who and one >= start][:most]
        found = group.pel.owned(consumer, start, most)
        assert [block.id_at(slot) for block, slot in each_of(found)] == mine
        live = [(block, slot) for block, slot in each_of(found) if block.segment.is_live(slot)]
        group.pel.give_all(in_runs(live), consumer, self.now_ms, COUNT_UP)
        for entry_id in mine:
            if entry_id in self.naive.entries:
                naive.put(entry_id, who, self.now_ms, min(naive.pending[entry_id][2] + 1, MAX_COUNT))

    @rule(name=GROUPS, chance=st.randoms(use_true_random=False), most=MOST)
    def acknowledge(self, name: str, chance: Any, most: int) -> None:
        naive, group = self.both(name)
        gone = chance.sample(sorted(naive.pending), min(most, len(naive.pending)))
        gone = sorted(gone) if most > 1 else gone
        assert group.pel.acknowledge_all(columns([*gone, *gone])) == b"\1" * len(gone) + b"\0" * len(gone)
        for entry_id in gone:
            assert naive.drop(entry_id)
            assert not group.pel.acknowledge(entry_id >> 64, entry_id & HALF)

    @rule(name=GROUPS, who=CONSUMERS, idle_ms=st.integers(0, 8), most=MOST)
    def claim_in_time_order(self, name: str, who: str, idle_ms: int, most: int) -> None:
        naive, group = self.both(name)
        found = claim_walk.claimable(group.pel.order, idle_ms, self.now_ms, most)
        wanted = self.naive.claimable(naive, idle_ms, self.now_ms, most)
        assert [block.id_at(slot) for block, slot in found] == wanted
        group.pel.give_all(in_runs(found), self.consumer(group, who), self.now_ms, COUNT_UP)
        for entry_id in wanted:
            naive.put(entry_id, who, self.now_ms, min(naive.pending[entry_id][2] + 1, MAX_COUNT))

    @rule(name=GROUPS, who=CONSUMERS, chance=st.randoms(use_true_random=False), ago_ms=AGO)
    def claim_by_id(self, name: str, who: str, chance: Any, ago_ms: int) -> None:
        naive, group = self.both(name)
        for entry_id in chance.sample(sorted(naive.pending), min(5, len(naive.pending))):
            held = group.pel.by_id.find(entry_id)
            assert held is not None
            group.pel.give(held, self.consumer(group, who), self.now_ms - ago_ms, 7)
            naive.put(entry_id, who, self.now_ms - ago_ms, 7)

    @rule(name=GROUPS, who=CONSUMERS, entry_id=IDS, time_ms=st.integers(990, 1010))
    def force(self, name: str, who: str, entry_id: int, time_ms: int) -> None:
        naive, group = self.both(name)
        found = self.stream.find(entry_id)
        assert (found is not None) == (entry_id in self.naive.entries)
        if found is not None and entry_id not in naive.pending:
            group.pel.force(found[0], found[1], found[1] + 1, self.consumer(group, who), time_ms, 3)
            naive.put(entry_id, who, time_ms, 3)

    @rule(name=GROUPS, chance=st.randoms(use_true_random=False), most=MOST)
    def release(self, name: str, chance: Any, most: int) -> None:
        naive, group = self.both(name)
        wanted = sorted(chance.sample(sorted(naive.pending), min(most, len(naive.pending))))
        counting, at = chance.choice((2, KEEP_COUNT, COUNT_DOWN, MAX_COUNT)), 0
        while at < len(wanted):
            run = group.pel.by_id.pending_run(columns(wanted), at)
            assert run is not None
            assert [block.id_at(slot) for block, slot in each_of([run])] == wanted[at : at + run[2] - run[1]]
            group.pel.release(run, counting)
            at += run[2] - run[1]
        for entry_id in wanted:
            count = naive.pending[entry_id][2]
            counts = {KEEP_COUNT: count, COUNT_DOWN: max(count - 1, 0)}
            naive.put(entry_id, RELEASED, 0, counts.get(counting, counting))

    @rule(name=GROUPS, entry_id=IDS)
    def force_released(self, name: str, entry_id: int) -> None:
        naive, group = self.both(name)
        found = self.stream.find(entry_id)
        if found is not None and entry_id not in naive.pending:
            group.pel.force_released(*found, 0)
            naive.put(entry_id, RELEASED, 0, 0)

    @rule(name=GROUPS, who=CONSUMERS)
    def delete_consumer(self, name: str, who: str) -> None:
        naive, group = self.both(name)
        consumer = group.consumers.get(who.encode())
        if consumer is not None:
            mine = [entry_id for entry_id, held in naive.pending.items() if held[0] == who]
            assert group.remove_consumer(consumer) == len(mine)
            for entry_id in mine:
                naive.drop(entry_id)

    @rule(name=GROUPS, last_id=st.just(0) | IDS)
    def set_group_back(self, name: str, last_id: int) -> None:
        naive, group = self.both(name)
        naive.last_id = group.last_id = last_id

    @rule(last_id=IDS)
    def set_last_id(self, last_id: int) -> None:
        if last_id >= max(self.naive.entries, default=0):
            self.stream.set_last_id(last_id)
            self.naive.last_id = last_id

    @precondition(lambda self: self.naive.entries)
    @rule()
    def set_last_id_back_as_far_as_possible(self) -> None:
        last_id = max(self.naive.entries)
        self.stream.set_last_id(last_id)
        self.naive.last_id = last_id

    @rule(step=st.integers(1, 5))
    def set_last_id_there_and_back(self, step: int) -> None:
        last_id = self.naive.last_id
        self.stream.set_last_id(min(last_id + step, MAX))
        self.stream.set_last_id(last_id)

    @rule()
    def go_on_with_a_copy(self) -> None:
        original = self.stream
        self.stream = original.copy()
        for naive in self.naive.groups.values():
            naive.timed.sort(key=lambda entry_id: (naive.pending[entry_id][1], entry_id))
        original.trim(Trim(True, 0, False, 0, DELETE_REFERENCES), [])

    @invariant()
    def everything_seen_is_equal(self) -> None:
        self.stream.check()
        assert self.stream.length == len(self.naive.entries)
        assert self.stream.first_id == min(self.naive.entries, default=0)
        assert self.stream.last_live_id == max(self.naive.entries, default=0)
        for name, naive in self.naive.groups.items():
            group = self.stream.groups[name.encode()]
            seen = {
                block.id_at(slot): (group.pel.owner_name((block, slot)).decode(), block.times[slot], block.counts[slot])
                for block, slot in group.pel.by_id.walk(0)
            }
            assert seen == naive.pending
            assert list(seen) == sorted(seen)
            assert [block.id_at(slot) for block, slot in group.pel.order.in_nack_zone()] == naive.nack_zone
            assert [block.id_at(slot) for block, slot in in_time_order(group.pel.order)] == naive.timed
            assert group.pel.order.released == sum(
                block.owner_counts.get(RELEASED_OWNER, 0) for block, _ in _blocks(group)
            )
            if naive.pending:
                assert [id_of(group.pel.by_id.first()), id_of(group.pel.by_id.last())] == [
                    min(naive.pending),
                    max(naive.pending),
                ]


def _blocks(group: Group) -> Any:
    return [(block, 0) for block in [*group.pel.by_id.all_blocks.blocks, *group.pel.by_id.rewound.values()]]


WALK = (
    ("append", 5), ("read_new", 6), ("read_history", 2), ("acknowledge", 3), ("claim_in_time_order", 3),
    ("claim_by_id", 3), ("force", 2), ("release", 2), ("force_released", 1), ("turn_the_clock", 3), ("delete", 1),
    ("delete_neighbours", 0.7),
    ("trim", 0.5),
    ("trim_with_references", 0.3), ("delete_consumer", 0.3), ("set_group_back", 0.4), ("set_last_id", 0.6),
    ("set_last_id_back_as_far_as_possible", 0.4), ("set_last_id_there_and_back", 0.6), ("go_on_with_a_copy", 0.2),
)  # fmt: skip


def walk(seed: int, steps: int) -> None:
    """A long random walk through the same rules, mostly reading: what rarely coincides does so here."""
    chance = random.Random(seed)
    model = Model()
    model.make_groups()
    rules, weights = zip(*WALK, strict=True)
    for _ in range(steps):
        an_id = chance.randrange(1, 12) << 64 | chance.randrange(0, 40)
        words = {
            "append": (chance.choice((1, 2, 6, 150)), chance.choice((1, 2, 7, 1 << 64)), chance.choice((1, 30, 2000))),
            "read_new": (chance.choice("gh"), chance.choice(("ann", "bob")), chance.choice((1, 2, 5, 200))),
            "read_history": (chance.choice("gh"), chance.choice(("ann", "bob")), chance.choice((1, 5, 200)), 0),
            "acknowledge": (chance.choice("gh"), chance, chance.choice((1, 3, 200))),
            "claim_in_time_order": (chance.choice("gh"), "cy", chance.choice((0, 1, 5)), chance.choice((1, 3, 200))),
            "claim_by_id": (chance.choice("gh"), "ann", chance, chance.choice((0, 0, 1, 9))),
            "force": (chance.choice("gh"), "bob", an_id, model.now_ms - chance.randrange(3)),
            "release": (chance.choice("gh"), chance, chance.choice((1, 3, 200))),
            "force_released": (chance.choice("gh"), an_id),
            "turn_the_clock": (chance.choice((0, 1, 2, 5, -3)),),
            "delete": (chance, chance.choice((1, 3, 50))),
            "delete_neighbours": (chance, chance.choice((2, 30, 200))),
            "trim": (chance.choice((0, 5, 130)),),
            "trim_with_references": (chance.choice((0, 5, 130)),),
            "delete_consumer": (chance.choice("gh"), chance.choice(("ann", "bob"))),
            "set_group_back": (chance.choice("gh"), chance.choice((0, an_id))),
            "set_last_id": (max(model.naive.last_id + chance.randrange(-3, 4), 0),),
            "set_last_id_there_and_back": (1,),
        }  # fmt: skip
        name = chance.choices(rules, weights)[0]
        if name != "set_last_id_back_as_far_as_possible" or model.naive.entries:
            getattr(model, name)(*words.get(name, ()))
        model.everything_seen_is_equal()


@pytest.mark.parametrize("seed", seeds(3, 24))
def test_a_long_random_walk_stays_equal(seed: int) -> None:
    walk(seed, 150)


TestAgainstNaive = Model.TestCase
TestAgainstNaive.settings = settings(max_examples=examples(100), stateful_step_count=50, deadline=None)
