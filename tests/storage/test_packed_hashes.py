"""Hashes that keep their values packed, beside plain dicts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.storage.types import field_names
from penstock.storage.types.field_names import FieldNames, shared_names
from penstock.storage.types.hashes import Hash
from penstock.storage.types.packed_table import MOST_ENTRIES

FIELDS = some.one_of(
    some.sampled_from([b"", b"a", b"name", b"n" * field_names.LONGEST_SHARED, b"n" * 65, b"n" * 256]),
    some.integers(0, 40).map(lambda number: b"field:%d" % number),
)
MANY = [0, field_names.MOST_NAMES, 512, 1024]  # fields, at which forms change
VALUES = some.one_of(some.binary(max_size=4), some.sampled_from([b"v" * 255, b"v" * 256]))
PAIRS = some.dictionaries(FIELDS, VALUES, min_size=1)
STEPS = some.tuples(some.sampled_from(["put", "put_all", "remove", "copy", "walk", "outgrow", "choose_form"]), PAIRS)


def words_of(fields: dict[bytes, bytes]) -> list[bytes]:
    return [word for pair in fields.items() for word in pair]


def second_of_its_kind(fields: dict[bytes, bytes]) -> Hash:
    """A hash that finds a table of its names."""
    Hash().put_all(words_of(fields))
    made = Hash()
    assert made.put_all(words_of(fields)) == len(fields)
    return made


@given(PAIRS, some.lists(STEPS), some.sampled_from(MANY), some.booleans())
def test_a_packed_hash_does_what_a_dict_does(fields: dict[bytes, bytes], steps: Any, many: int, first: bool) -> None:
    found, model = Hash() if first else second_of_its_kind(fields), fields.copy()
    found.put_all(words_of(fields))
    for number in range(many - len(fields)):
        found.put(b"%d" % number, b"v")
        model[b"%d" % number] = b"v"
    for step, pairs in [("copy", fields), *steps]:
        if step == "put":
            for field, value in pairs.items():
                assert found.put(field, value) == (field not in model)
                model[field] = value
        elif step == "put_all":
            assert found.put_all(words_of(pairs)) == len(pairs.keys() - model.keys())
            model |= pairs
        elif step == "remove":
            assert found.take_out(list(pairs)) == [field for field in pairs if model.pop(field, None) is not None]
        elif step == "walk":
            found.in_order()
        elif step == "outgrow":
            found.outgrow(words_of(pairs), 3, 64)
        elif step == "choose_form":
            found.choose_form(field_names.MOST_NAMES, 64)
        else:
            found = found.copy()
        assert len(found) == len(model)
        if found.is_large and dict(found.pairs()) == model:
            model = dict(found.pairs())  # the order means nothing
        assert list(found.pairs()) == list(model.items())
        assert (list(found.names()), list(found.values())) == (list(model), list(model.values()))
        assert [found.get(field) for field in pairs] == [model.get(field) for field in pairs]
        assert [found.has(field) for field in pairs] == [field in model for field in pairs]
        assert [found.value(field) for field in model] == list(model.values())
        assert list(found.parts()) == [word for field in sorted(model) for word in (field, model[field], b"0")]
        if model:
            found.check()


def test_a_copy_of_a_packed_hash_stays_as_it_is() -> None:
    found = second_of_its_kind({b"a": b"1", b"b": b"2"})
    copied = found.copy()

    found.put(b"a", b"3")

    assert dict(copied.pairs()) == {b"a": b"1", b"b": b"2"}
    assert dict(found.pairs()) == {b"a": b"3", b"b": b"2"}


def test_the_second_hash_of_a_kind_takes_little_memory() -> None:
    fields = {b"field%d" % number: b"value:%d" % number for number in range(10)}
    packed = second_of_its_kind(fields)
    size = packed.memory_usage()

    packed.put(b"long", b"v" * 256)

    assert size < packed.memory_usage() / 4


@pytest.mark.skipif(not MOST_ENTRIES, reason="the plain build has dicts")
@pytest.mark.parametrize("count", [10, 128, 200, 1000])
def test_a_hash_with_names_of_its_own_takes_little_memory(count: int) -> None:
    found = Hash()
    found.put_all([word for number in range(count) for word in (b"own:%03d" % number, b"value")])
    found.outgrow_by(b"", b"", 128, 64)

    assert found.memory_usage() < 400 + count * 20


def is_packed(held: Hash) -> bool:
    return held._names is not None


def test_a_small_hash_stays_packed_when_fields_are_set_added_and_removed() -> None:
    for _ in range(4):  # the first of a kind have no table of names
        found = second_of_its_kind({b"of a kind": b"1", b"b": b"2"})
        found.put(b"b", b"three")
        found.put(b"c", b"")
        found.take_out([b"of a kind"])

    assert is_packed(found)
    assert dict(found.pairs()) == {b"b": b"three", b"c": b""}


def test_a_hash_whose_fields_come_one_by_one_is_packed() -> None:
    for _ in range(5):
        found = Hash()
        for name in (b"one", b"by", b"one more"):
            assert found.put(name, b"v") is True

    assert is_packed(found)
    assert list(found.names()) == [b"one", b"by", b"one more"]


def test_a_field_that_comes_twice_is_set_twice() -> None:
    for _ in range(3):
        found = Hash()
        assert found.put_all([b"a", b"1", b"b", b"2", b"a", b"3"]) == 2
        assert dict(found.pairs()) == {b"a": b"3", b"b": b"2"}


@pytest.mark.parametrize(
    "names",
    [[], [b"n" * 65], [b"a", b"a"], [b"%d" % number for number in range(field_names.MOST_NAMES + 1)]],
    ids=["none", "long", "twice", "many"],
)
def test_what_has_no_table_of_names(names: list[bytes]) -> None:
    assert [shared_names(names) for _ in range(3)] == [None, None, None]


def test_names_that_are_no_longer_remembered_get_a_new_table() -> None:
    names = [b"first", b"second"]
    shared_names(names)
    table = shared_names(names)
    for number in range(field_names.MOST_TABLES):
        shared_names([b"other%d" % number])

    assert isinstance(table, FieldNames)
    assert shared_names(names) is None
    again = shared_names(names)
    assert isinstance(again, FieldNames)
    assert again is not table
    assert again.names == table.names == names
