"""The table of a database's keys beside a plain dict, whatever is packed."""

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.storage.key_table import FEW, KeyTable
from penstock.storage.string_buckets import LONGEST_KEY, LONGEST_TEXT
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.string_marks import RawString
from tests.support.seeds import examples

LONG_KEYS = [b"l" * LONGEST_KEY, b"l" * (LONGEST_KEY + 1)]
LONG_TEXTS = LONGEST, TOO_LONG = b"l" * LONGEST_TEXT, b"l" * (LONGEST_TEXT + 1)
KEYS = st.one_of(
    st.sampled_from([b"", b"\0", b"\1", b"a", b"aa", b"a\1", b"of two words", b"\0\0\0\0\1\1", *LONG_KEYS, TOO_LONG]),
    st.integers(0, 60).map(lambda number: b"key:%d" % number),
)
TEXTS = st.sampled_from([b"", b"\0", b"a", b"key:1", b"\0" * 12, *LONG_KEYS, *LONG_TEXTS])
VALUES = st.one_of(TEXTS, TEXTS.map(RawString), TEXTS.map(lambda text: LargeString(bytearray(text))))


class BesideADict(RuleBasedStateMachine):
    """Whatever is done to a table is done to a dict, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = KeyTable(few=0)
        self.expected: dict[bytes, Any] = {}

    @precondition(lambda self: not self.expected)
    @rule(few=st.integers(0, 5))
    def keep_some_as_objects(self, few: int) -> None:
        self.table = KeyTable(few)

    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: Any) -> None:
        self.table[key] = value
        self.expected[key] = value

    @rule(key=KEYS, value=TEXTS)
    def ask_and_put(self, key: bytes, value: bytes) -> None:
        assert self.table.get(key) == self.expected.get(key)
        self.put(key, value)

    @rule(keys=st.lists(KEYS, max_size=40), value=TEXTS)
    def put_many(self, keys: list[bytes], value: bytes) -> None:
        for key in keys:
            self.put(key, value)

    @rule(key=KEYS)
    def remove(self, key: bytes) -> None:
        assert self.table.pop(key) == self.expected.pop(key, None)

    @rule(keys=st.lists(KEYS, max_size=40))
    def ask_and_remove_many(self, keys: list[bytes]) -> None:
        for key in keys:
            assert (key in self.table) == (key in self.expected)
            self.remove(key)

    @rule(key=KEYS)
    def ask(self, key: bytes) -> None:
        if key in self.expected:
            found = self.table[key]
            assert found == self.expected[key]
            assert type(found) is type(self.expected[key]), "what a string was made by is kept"
        else:
            with pytest.raises(KeyError):
                self.table[key]

    @rule(piece=st.sampled_from([b"", b"a", b"\0", b"key:", b"key:1", b"l" * 20, TOO_LONG]))
    def ask_what_starts_with(self, piece: bytes) -> None:
        assert sorted(self.table.starting(piece)) == sorted(key for key in self.expected if key.startswith(piece))

    @invariant()
    def agrees(self) -> None:
        self.table.check()
        assert dict(self.table.items()) == self.expected
        assert sorted(self.table) == sorted(self.expected)
        assert len(list(self.table.values())) == len(self.table) == len(self.expected)
        assert bool(self.table) == bool(self.expected)


TestBesideADict = BesideADict.TestCase
TestBesideADict.settings = settings(max_examples=examples(40))


def filled(count: int, few: int = 0) -> KeyTable:
    table = KeyTable(few)
    for number in range(count):
        table[b"key:%d" % number] = b"text %d" % number
    return table


@pytest.mark.parametrize("seed", range(3))
def test_a_table_grows_and_shrinks_and_keeps_its_order_of_buckets(seed: int) -> None:
    table, chance = filled(5000), Random(seed)
    table.check()
    most = len(table._buckets)
    left = [b"key:%d" % number for number in range(5000)]
    chance.shuffle(left)

    while left:
        assert table.pop(left.pop()) is not None
        if len(left) % 500 == 0:
            table.check()

    assert (len(table), len(table._buckets), most) == (0, 1, 1250)


def test_only_further_strings_are_packed_and_all_are_objects_again_once_none_is() -> None:
    table = filled(FEW + 2, FEW)
    assert (len(table.objects), table.packed) == (FEW, 2)

    table[b"key:0"] = b"another"
    assert table.packed == 2, "an object stays one"
    del_two = [table.pop(b"key:%d" % number) for number in (FEW, FEW + 1)]
    assert del_two == [b"text %d" % FEW, b"text %d" % (FEW + 1)]
    table.pop(b"key:1")
    table[b"new"] = b"text"

    assert (len(table.objects), table.packed) == (FEW, 0)


def test_a_packed_string_becomes_an_object_when_it_is_replaced_by_one() -> None:
    table = filled(3)

    table[b"key:1"] = TOO_LONG
    assert (dict(table.objects), table.packed) == ({b"key:1": TOO_LONG}, 2)
    table[b"key:1"] = b"short"

    assert (dict(table.objects), table.packed) == ({b"key:1": b"short"}, 2)
    table.check()


def test_a_table_that_is_not_used_is_forgotten_piece_by_piece() -> None:
    table = filled(100, few=30)
    table[b"large"] = large = LargeString(bytearray(b"x" * 100))
    sizes, taken = [len(table)], []

    while len(table):
        taken += table.take_some(10)
        sizes.append(len(table))

    assert len(taken) == 31 and large in taken
    assert sizes[:5] == [101, 91, 81, 71, 70]
    assert sizes[5] < 70


def test_many_packed_strings_take_little_memory() -> None:
    table = KeyTable(few=0)
    for number in range(100_000):
        table[b"key:%d" % number] = b"%016d" % number

    exact = table.packed_bytes(len(table._buckets) + 1)  # all of them
    assert 40 * 100_000 < exact < 46 * 100_000
    assert abs(table.packed_bytes(200) - exact) < 0.2 * exact, "of 200 buckets: six deviations"


def test_strings_of_a_hundred_bytes_are_packed() -> None:
    table = KeyTable(few=0)

    table[b"key:1"] = b"t" * 100

    assert table.packed == 1
