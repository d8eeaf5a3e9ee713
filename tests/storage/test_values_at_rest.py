"""Small lists, sets and sorted sets at rest beside plain containers: what is kept is told, whatever is packed when."""

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.config.settings import Settings
from penstock.engine.encodings import set_limits
from penstock.storage.key_table import KeyTable
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Form, Set
from penstock.storage.types.sorted_sets import SortedSet
from penstock.storage.values_at_rest import LONGEST_AT_REST, RESTING, text_at_rest, woken
from tests.support.seeds import examples

LIMITS = set_limits(Settings())
KEYS = st.integers(0, 12).map(lambda number: b"key:%d" % number)
ITEMS = st.lists(
    st.sampled_from([b"", b"1", b"-7", b"70000", b"\0", b"text", b"x" * 64, b"x" * 65]), min_size=1, max_size=5
)


def told(value: Any) -> object:
    """All that a client can see of a value."""
    if isinstance(value, List):
        return list(value), value.is_quicklist, value.packed_bytes, len(value)
    if isinstance(value, Set):
        return value.listed(), value.form, len(value), dict(value.expires)
    if isinstance(value, SortedSet):
        return list(value.pairs()), value.is_large, len(value)
    return value


class BesideADict(RuleBasedStateMachine):
    """Each collection stands twice: in a table that packs all but two, and in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.table = KeyTable(few=0, recent=2)
        self.expected: dict[bytes, Any] = {}

    def both(self, key: bytes, kind: type) -> list[Any]:
        """The collection of a kind at a key in both, new ones where there is none of that kind."""
        if not isinstance(self.expected.get(key), kind):
            self.table[key], self.expected[key] = (
                (Set.made([b"1"], LIMITS), Set.made([b"1"], LIMITS)) if kind is Set else (kind(), kind())
            )
        return [self.table.get(key), self.expected[key]]

    @rule(key=KEYS, items=ITEMS, left=st.booleans())
    def push(self, key: bytes, items: list[bytes], left: bool) -> None:
        for pushed in self.both(key, List):
            pushed.grow(items, -2)
            pushed.push(left, items)

    @rule(key=KEYS, members=ITEMS)
    def add_members(self, key: bytes, members: list[bytes]) -> None:
        for changed in self.both(key, Set):
            changed.add(members, LIMITS)

    @rule(key=KEYS, members=ITEMS, score=st.floats(allow_nan=False))
    def add_scores(self, key: bytes, members: list[bytes], score: float) -> None:
        for changed in self.both(key, SortedSet):
            for member in members:
                changed.put(member, score)

    @rule(key=KEYS)
    def give_a_time(self, key: bytes) -> None:
        for changed in self.both(key, Set):
            changed.expire_at(changed.listed()[0], 9_000_000_000_000)

    @rule(key=KEYS, is_form=st.booleans())
    def have_a_larger_form(self, key: bytes, is_form: bool) -> None:
        if isinstance(self.expected.get(key), Set) and is_form:
            for changed in self.both(key, Set):
                changed.take_form(Form.HASHTABLE)
        elif isinstance(self.expected.get(key), SortedSet):
            for changed in self.both(key, SortedSet):
                changed.is_large = True

    @rule(key=KEYS, value=st.sampled_from([b"", b"text", b"x" * 200]))
    def set_a_string(self, key: bytes, value: bytes) -> None:
        self.table[key] = self.expected[key] = value

    @rule(key=KEYS)
    def remove(self, key: bytes) -> None:
        assert told(self.table.pop(key)) == told(self.expected.pop(key, None))

    @rule(key=KEYS)
    def ask(self, key: bytes) -> None:
        assert (key in self.table) == (key in self.expected)
        packed = self.table.packed
        assert told(self.table.look(key)) == told(self.expected.get(key))
        assert self.table.packed == packed, "a look wakes nothing"
        assert told(self.table.get(key)) == told(self.expected.get(key))

    @invariant()
    def agrees(self) -> None:
        self.table.check()
        assert {key: told(value) for key, value in self.table.items()} == {
            key: told(value) for key, value in self.expected.items()
        }
        assert len(self.table) == len(self.expected)


TestBesideADict = BesideADict.TestCase
TestBesideADict.settings = settings(max_examples=examples(60))


def made(kind: type, count: int, chance: Random) -> Any:
    members = [b"%d" % chance.randrange(10**6) if chance.random() < 0.5 else chance.randbytes(9) for _ in range(count)]
    if kind is List:
        return List(members)
    return Set.made(members, LIMITS) if kind is Set else SortedSet((chance.random(), member) for member in set(members))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", RESTING)
def test_what_rests_is_the_same_when_it_is_woken(kind: type, seed: int) -> None:
    value = made(kind, seed + 1, Random(seed))
    text = text_at_rest(value)

    assert len(text) <= LONGEST_AT_REST
    assert not text or told(woken(text)) == told(value)
    assert text or seed > 8, "a small one may rest"


def table_of(count: int, value: Any) -> KeyTable:
    table = KeyTable(few=0, recent=1)
    for number in range(count):
        table[b"key:%d" % number] = value(number)
    return table


def test_what_a_request_has_hold_of_does_not_rest() -> None:
    table = table_of(0, List)
    table[b"held"] = held = List([b"a"])

    for number in range(10):
        table[b"key:%d" % number] = List([b"b"])
    held.push(False, [b"changed"])

    assert list(table[b"held"]) == [b"a", b"changed"]  # type: ignore[arg-type]
    assert set(table.objects) == {b"held", b"key:9"}


def large_list(_: int) -> List:
    return List([b"x" * 90] * 5)


def large_set(_: int) -> Set:
    return Set.made([b"x" * 65], LIMITS)


def set_with_a_time(_: int) -> Set:
    value = Set.made([b"x"], LIMITS)
    value.expire_at(b"x", 9_000_000_000_000)
    return value


@pytest.mark.parametrize("value", [lambda _: Hash(), large_list, large_set, set_with_a_time])
def test_what_is_large_or_has_more_than_its_members_stays_an_object(value: Any) -> None:
    table = table_of(5, value)
    assert (len(table.objects), table.packed) == (5, 0)


def test_a_key_that_is_too_long_for_a_bucket_stays_an_object() -> None:
    table = KeyTable(few=0, recent=1)
    for number in range(3):
        table[b"k" * 65 + b"%d" % number] = List([b"a"])
    assert table.packed == 0


def test_small_sets_take_little_memory() -> None:
    table = table_of(20_000, lambda number: Set.made([b"%d" % (1000 * number + at) for at in range(4)], LIMITS))

    exact = table.packed_bytes(len(table._buckets) + 1)  # all of them
    assert exact < 60 * 20_000
