"""Databases and the order in which their keys are walked."""

import gc
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.storage.keyspace import Database, Keyspace, Value
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.listpack_nodes import StreamLimits
from penstock.storage.streams.stream import Stream
from penstock.storage.types.scan_order import DROPPED_BITS, PIECE, START, HashOrder

names = st.sampled_from([b"", b"a", b"b", b"c", b"\0", b"a long name of a key"])
times = st.integers(0, 10)


class AnyDatabase(RuleBasedStateMachine):
    """Whatever is done to a database, its parts agree with each other and with plain dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.database = Database()
        self.values: dict[bytes, Value] = {}
        self.expires: dict[bytes, int] = {}

    @rule(key=names, value=names)
    def put(self, key: bytes, value: bytes) -> None:
        self.database.put(key, value)
        self.values[key] = value

    @rule(key=names)
    def put_a_stream(self, key: bytes) -> None:
        self.values[key] = stream = Stream(StreamLimits(0, 0), Producers(1, 1))
        self.database.put(key, stream)

    @rule(key=names)
    def remove(self, key: bytes) -> None:
        assert self.database.remove(key) == self.values.pop(key, None)
        self.expires.pop(key, None)

    @rule(key=names, when_ms=times)
    def expire_at(self, key: bytes, when_ms: int) -> None:
        if key in self.values:
            self.database.expire_at(key, when_ms)
            self.expires[key] = when_ms

    @rule(key=names)
    def persist(self, key: bytes) -> None:
        assert self.database.persist(key) == (self.expires.pop(key, None) is not None)

    @rule(now_ms=times)
    def overdue(self, now_ms: int) -> None:
        expected = sorted((when_ms, key) for key, when_ms in self.expires.items() if when_ms < now_ms)
        for _ in range(len(self.expires) + 1):  # where times were set later, there may be more than is returned
            found = self.database.overdue(now_ms, 3)
        assert found == [key for _, key in expected[:3]]

    @rule()
    def put_in_order(self) -> None:
        assert len(self.database.in_order(0)) == len(self.values)

    @rule()
    def clear(self) -> None:
        self.database.clear()
        self.values.clear()
        self.expires.clear()

    @invariant()
    def agrees(self) -> None:
        self.database.check()
        assert dict(self.database.values.items()) == self.values
        assert self.database.expires == self.expires


TestAnyDatabase = AnyDatabase.TestCase


@given(st.sets(st.binary(max_size=4)), st.integers(1, 5))
def test_a_walk_meets_each_key_once(keys: Any, count: Any) -> None:
    order = HashOrder(keys, 0)
    met, place = order.walk(0, count)

    while place:
        page, place = order.walk(place, count)
        met += page

    assert sorted(met) == sorted(keys)


def test_keys_at_one_place_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.types.scan_order.xxh64_intdigest", lambda key: key[0] << DROPPED_BITS)
    order = HashOrder([b"a1", b"a2", b"a3", b"b1"], 0)

    assert order.walk(0, 1) == ([b"a1", b"a2", b"a3"], ord("b"))
    assert order.walk(ord("b"), 1) == ([b"b1"], 0)


@given(st.sets(st.binary(max_size=4), min_size=1))
def test_a_cursor_is_a_number_of_31_bits(keys: Any) -> None:
    order = HashOrder(keys, 0)
    _, place = order.walk(0, 1)

    while place:
        assert START < place < 2**31
        _, place = order.walk(place, 1)


def test_a_walk_of_keys_at_the_first_places_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.types.scan_order.xxh64_intdigest", lambda key: key[0] << DROPPED_BITS)
    order = HashOrder([b"\x00", b"\x01", b"\x02", b"\x03"], 0)

    assert order.walk(0, 1) == ([b"\x00", b"\x01", b"\x02"], 3)
    assert order.walk(3, 1) == ([b"\x03"], 0)


def test_a_place_outlives_the_order_it_came_from() -> None:
    keys = [b"key:%d" % number for number in range(100)]
    first, place = HashOrder(keys, 0).walk(0, 50)

    rest, end = HashOrder(keys, 0).walk(place, 100)

    assert (sorted(first + rest), end) == (sorted(keys), 0)


@pytest.mark.parametrize("count", [3, 3 * PIECE])
def test_each_key_is_picked_by_chance(count: int) -> None:
    keys = {b"key:%d" % number for number in range(count)}
    order, chance = HashOrder(keys, 0), Random(1)
    picked = {order.any_of(chance) for _ in range(200)}

    assert picked <= keys
    assert len(picked) >= min(count, 190)


@pytest.mark.parametrize("seed", range(4))
def test_many_keys_are_put_in_order_piece_by_piece_whatever_changes_meanwhile(seed: int) -> None:
    chance = Random(seed)
    keys = {b"key:%d" % number for number in range(3 * PIECE + 100)}
    staying = {key for key in keys if chance.random() < 0.5}
    order, held, met, place, empty = HashOrder(keys, 0), set(keys), [], 0, 0
    while True:
        for key in chance.sample(sorted(keys - staying), 3000):
            if key in held:
                held.remove(key)
                order.remove(key)
            else:
                held.add(key)
                order.add(key)
        assert len(order) == len(held)
        page, place = order.walk(place, 5000)
        empty += not page
        met += page
        if not place:
            break
    order.check(held)
    assert empty == 3
    assert staying <= set(met) <= keys
    assert len([key for key in met if key in staying]) == len(staying)


def test_the_buckets_fit_the_keys_when_these_have_become_many_or_few() -> None:
    keys = [b"key:%d" % number for number in range(6 * PIECE)]
    order = HashOrder(keys[:10], 0)
    for key in keys[10:]:
        order.add(key)
    assert walked(order) == set(keys)
    assert len(order._buckets) >= len(keys) // 128
    for key in keys[10:]:
        order.remove(key)
    assert walked(order) == set(keys[:10])
    assert len(order._buckets) == 1
    assert order.any_of(Random(1)) in keys[:10]


def test_a_name_that_waits_is_as_likely_as_one_in_a_bucket() -> None:
    keys = [b"key:%d" % number for number in range(4 * PIECE)]
    order, chance, late = HashOrder(keys, 0), Random(3), keys[2 * PIECE :]
    for key in late[::2]:
        order.remove(key)
    left = set(keys[: 2 * PIECE]) | set(late[1::2])

    drawn = [order.any_of(chance) for _ in range(3000)]
    assert set(drawn) <= left
    behind = set(late)
    share = len([key for key in drawn if key in behind]) / len(drawn)
    assert 0.28 < share < 0.39  # a third
    order.check(left)


def walked(order: HashOrder) -> set[bytes]:
    met, place = order.walk(0, 100)
    while place:
        page, place = order.walk(place, 100)
        met += page
    order.check(met)
    return set(met)


def test_an_empty_database_is_made_of_few_objects() -> None:
    """Each embedded server makes sixteen, and what refers to itself is freed by the collector of garbage."""
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        database = Database()
        made = len(gc.get_objects()) - before
    finally:
        gc.enable()

    assert len(database) == 0
    assert made <= (12 if sys.version_info < (3, 14) else 20)  # which tracks empty dicts, too


def test_two_databases_change_places() -> None:
    keyspace = Keyspace(2)
    keyspace.databases[0].put(b"a", b"1")

    keyspace.swap(0, 1)

    assert [len(database) for database in keyspace.databases] == [0, 1]
