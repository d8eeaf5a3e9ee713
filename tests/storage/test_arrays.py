"""Arrays beside a plain dictionary, and their rings beside a list of what was pushed."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.storage.types.arrays import MOST_INDEX, Array

INDEXES = st.integers(0, 20) | st.sampled_from([4095, 4096, MOST_INDEX])


class BesideADictionary(RuleBasedStateMachine):
    """Whatever is done to an array is done to a dictionary, too."""

    def __init__(self) -> None:
        super().__init__()
        self.held = Array()
        self.naive: dict[int, bytes] = {}

    @rule(index=INDEXES, item=st.binary(max_size=3))
    def put(self, index: int, item: bytes) -> None:
        assert self.held.put(index, item) == (index not in self.naive)
        self.naive[index] = item

    @rule(index=INDEXES)
    def remove(self, index: int) -> None:
        assert self.held.remove(index) == (self.naive.pop(index, None) is not None)

    @rule(first=INDEXES, length=st.integers(0, 5000))
    def remove_range(self, first: int, length: int) -> None:
        gone = [index for index in self.naive if first <= index <= first + length]
        assert self.held.remove_range(first, first + length) == len(gone)
        for index in gone:
            del self.naive[index]

    @rule(first=INDEXES, last=INDEXES)
    def indexes(self, first: int, last: int) -> None:
        assert self.held.indexes(first, last) == sorted(index for index in self.naive if first <= index <= last)

    @invariant()
    def holds_the_same(self) -> None:
        self.held.check()
        assert self.held.items == self.naive
        assert self.held.extent() == max(self.naive, default=-1) + 1


TestBesideADictionary = BesideADictionary.TestCase


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), max_size=8))
def test_a_ring_keeps_the_latest_items_whatever_its_size_becomes(pushes: list[tuple[int, int]]) -> None:
    held = Array()
    kept: list[bytes] = []
    number = 0
    for size, count in pushes:
        items = [b"%d" % (number + place) for place in range(count)]
        number += count
        held.push_round(size, items)
        kept = [*kept[-size:], *items][-size:]
        held.check()

        assert [held.items[index] for index in reversed(held.last_indexes(len(kept)))] == kept
