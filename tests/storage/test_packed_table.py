"""Packed tables beside dicts: with one bucket, where the order counts, and with as many as fit."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.storage.types.packed_table import A_BUCKET, LONGEST, PackedTable, fits
from tests.support.seeds import examples

TEXTS = st.one_of(
    st.sampled_from([b"", b"\0", b"\1", b"\1a", b"\0\1a", b"a", b"l" * LONGEST, b"l" * (LONGEST - 1) + b"m"]),
    st.integers(0, 60).map(lambda number: b"field:%d" % number),
    st.binary(max_size=2),
)
VALUES = st.one_of(st.sampled_from([b"", b"\0\0", b"v" * LONGEST]), st.binary(max_size=9))


class BesideADict(RuleBasedStateMachine):
    @initialize(is_scattered=st.booleans())
    def begin(self, is_scattered: bool) -> None:
        self.table, self.plain = PackedTable(is_scattered), dict[bytes, bytes]()

    @rule(text=TEXTS, value=VALUES)
    def put(self, text: bytes, value: bytes) -> None:
        assert self.table.put(text, value) == (text not in self.plain)
        self.plain[text] = value

    @rule(count=st.integers(1, 10 * A_BUCKET), value=VALUES)
    def fill(self, count: int, value: bytes) -> None:
        for number in range(count):
            self.put(b"field:%d" % number, value)

    @rule(text=TEXTS)
    def remove(self, text: bytes) -> None:
        assert self.table.remove(text) == (self.plain.pop(text, None) is not None)

    @rule()
    def scatter(self) -> None:
        self.table.is_scattered = True

    @rule()
    def copy(self) -> None:
        before, self.table = self.table, self.table.copy()
        before.put(b"another", b"value")

    @rule(text=TEXTS)
    def get(self, text: bytes) -> None:
        assert self.table.get(text) == self.plain.get(text)
        assert self.table.has(text) == (text in self.plain)

    @invariant()
    def it_holds_the_same(self) -> None:
        self.table.check()
        pairs = self.table.pairs()
        assert len(self.table) == len(pairs) and dict(pairs) == self.plain
        assert self.table.is_scattered or pairs == list(self.plain.items())
        assert [self.table.text_at(index) for index in range(len(pairs))] == self.table.texts()


TestBesideADict = BesideADict.TestCase
TestBesideADict.settings = settings(max_examples=examples(40))


def test_a_hundred_fields_take_no_more_than_a_few_bytes_beside_their_texts() -> None:
    table = PackedTable(True)
    for number in range(1000):
        table.put(b"field:%03d" % number, b"value")

    assert table.memory_usage() < 1000 * (9 + 5 + 6)


@pytest.mark.parametrize(("text", "value", "wanted"), [
    (b"t" * LONGEST, b"v" * LONGEST, True), (b"t" * (LONGEST + 1), b"", False), (b"", b"v" * (LONGEST + 1), False),
])  # fmt: skip
def test_long_texts_and_values_do_not_fit(text: bytes, value: bytes, wanted: bool) -> None:
    assert fits(text, value) is wanted
