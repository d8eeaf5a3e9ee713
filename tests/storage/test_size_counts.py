"""The sizes of values, counted as they change, are those that a recount finds: every way in which a value changes."""

from collections.abc import Callable

import pytest

from penstock.storage.key_table import KeyTable
from penstock.storage.keyspace import Database, Value
from penstock.storage.types.arrays import Array
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Form, Set, SetLimits
from penstock.storage.types.sorted_sets import SortedSet
from penstock.storage.types.string_marks import RawString

NAMES = [b"%d" % number for number in range(70)]
LIMITS = SetLimits(512, 128, 64, bytes.isdigit)


def list_of(count: int) -> List:
    return List(NAMES[:count])


def set_of(count: int) -> Set:
    return Set.made(NAMES[:count], LIMITS, Form.LISTPACK)


def zset_of(count: int) -> SortedSet:
    return SortedSet([(float(name), name) for name in NAMES[:count]])


def hash_of(count: int) -> Hash:
    made = Hash()
    made.put_all([word for name in NAMES[:count] for word in (name, b"v")])
    return made


GROW: dict[str, tuple[Callable[[int], Value], Callable[..., object]]] = {
    "push one": (list_of, lambda value, name: value.push(True, [name])),
    "push two": (list_of, lambda value, name: value.push(False, [name, name])),
    "insert": (list_of, lambda value, name: value.insert(len(value) // 2, name)),
    "add one member": (set_of, lambda value, name: value.add_one(name, LIMITS)),
    "add members": (set_of, lambda value, name: value.add([name, name, name + b"x"], LIMITS)),
    "put a pair": (zset_of, lambda value, name: value.put(name, 3.0)),
    "put a pair over another": (zset_of, lambda value, name: value.put_over(name, 3.0, value.score(name))),
    "put a field": (hash_of, lambda value, name: value.put(name, b"w")),
    "put fields": (hash_of, lambda value, name: value.put_all([name, b"w", name + b"x", b"w"])),
}
SHRINK: dict[str, tuple[Callable[[int], Value], Callable[..., object]]] = {
    "pop one": (list_of, lambda value, name: value.pop_one(True)),
    "pop": (list_of, lambda value, name: value.pop(False, 3)),
    "trim": (list_of, lambda value, name: value.trim(len(value) // 4, len(value) // 2)),
    "trim a little": (list_of, lambda value, name: value.trim(1, max(len(value) - 1, 1))),
    "remove an item": (list_of, lambda value, name: value.remove(name, 1, True)),
    "remove members": (set_of, lambda value, name: value.remove([name, b"nothing"])),
    "remove a pair": (zset_of, lambda value, name: value.remove(name)),
    "pop pairs": (zset_of, lambda value, name: value.pop_range(1, 4)),
    "remove fields": (hash_of, lambda value, name: value.take_out([name, b"nothing"])),
}


@pytest.mark.parametrize("case", GROW)
@pytest.mark.parametrize("first", [1, 3, 20])
def test_a_value_that_grows_is_counted_where_it_belongs(case: str, first: int) -> None:
    make, change = GROW[case]
    database = Database()
    database.put(b"other", make(first))
    value = make(first)
    database.put(b"key", value)

    for name in NAMES:
        change(value, name)
        database.check()


@pytest.mark.parametrize("case", SHRINK)
@pytest.mark.parametrize("first", [5, 16, 70])
def test_a_value_that_shrinks_is_counted_where_it_belongs(case: str, first: int) -> None:
    make, change = SHRINK[case]
    database = Database()
    database.put(b"other", make(first))
    value = make(first)
    database.put(b"key", value)

    for name in NAMES[: first - 1]:
        if len(value) > 3:  # type: ignore[arg-type]  # a stream, which is none of these, has no length
            change(value, name)
        database.values.sizes.check(database.values.values())


VALUES: list[Value] = [
    b"", b"x", b"x" * 63, b"x" * 64, b"x" * 65, b"y" * 127, RawString(b"x" * 8), LargeString(bytearray(40_000)),
    list_of(3), set_of(3), zset_of(3), hash_of(3), hash_of(30), Array(),
]  # fmt: skip


@pytest.mark.parametrize("few", [0, 2, 100])
def test_a_value_that_takes_the_place_of_another_is_counted_alone(few: int) -> None:
    table = KeyTable(few)
    for number, after in enumerate(VALUES):
        for before in VALUES:
            table[b"key"], table[b"other %d" % number] = before, b"x" * number
            table[b"key"] = after
            table.check()
            assert table.pop(b"key") == after
            table.check()
    assert sum(map(len, table.values())) == sum(range(len(VALUES)))  # type: ignore[arg-type]  # they are strings
