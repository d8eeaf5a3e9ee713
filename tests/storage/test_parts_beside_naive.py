"""What sets and hashes keep beside their parts, driven beside the plainest model."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.storage.deadlines import MOST_MOVED, NEVER, Deadlines
from penstock.storage.types.hashes import Hash
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.sets import Set

NAMES = some.sampled_from([b"a", b"b", b"c", b"d", b"e", b""])
TIMES = some.integers(1, 9)


@given(some.lists(some.tuples(NAMES, some.one_of(some.none(), TIMES))), TIMES)
def test_deadlines_are_a_dict_in_order(steps: Any, now_ms: Any) -> None:
    deadlines = Deadlines()
    model: dict[bytes, int] = {}
    for name, when_ms in steps:
        if when_ms is None:
            assert deadlines.drop(name) == (model.pop(name, None) is not None)
        else:
            deadlines.set(name, when_ms)
            model[name] = when_ms
        deadlines.check()
    assert deadlines.times == model
    assert len(deadlines) == len(model)
    assert deadlines.first_ms() == min(model.values(), default=NEVER)
    assert deadlines.overdue(now_ms, 2) == overdue(model, now_ms)[:2]
    copied = deadlines.copy()
    copied.set(b"new", 1)
    assert deadlines.times == model


def overdue(model: dict[bytes, int], now_ms: int) -> list[bytes]:
    return [name for when_ms, name in sorted((when_ms, name) for name, when_ms in model.items()) if when_ms < now_ms]


STEPS = some.sampled_from(["set", "renew", "renew", "drop", "overdue", "take", "soonest", "count"])


@given(some.lists(some.tuples(STEPS, NAMES, TIMES)))
def test_names_that_are_renewed_are_found_when_their_time_has_come(steps: Any) -> None:
    deadlines = Deadlines()
    model: dict[bytes, int] = {}
    for step, name, when_ms in steps:
        if step == "set":
            deadlines.set(name, when_ms)
            model[name] = when_ms
        elif step == "renew":
            assert deadlines.renew(name, when_ms) == (name in model)
            if name in model:
                model[name] = when_ms
        elif step == "drop":
            assert deadlines.drop(name) == (model.pop(name, None) is not None)
        elif step == "overdue":
            found = deadlines.overdue(when_ms, 2)
            assert found == overdue(model, when_ms)[: len(found)]
        elif step == "take":
            expected = overdue(model, when_ms)
            taken: list[bytes] = []
            while deadlines.first_ms() < when_ms:
                found = deadlines.overdue(when_ms, 2)
                deadlines.take(found)
                taken += found
            assert taken == expected
            for gone in taken:
                del model[gone]
        elif step == "soonest" and model:
            assert deadlines.soonest() == min((when_ms, name) for name, when_ms in model.items())
        elif step == "count":
            assert deadlines.count_overdue(when_ms) == len(overdue(model, when_ms))
        deadlines.check()
        assert deadlines.times == model
        assert deadlines.first_ms() <= min(model.values(), default=NEVER)
    assert deadlines.overdue(10, len(model)) == overdue(model, 10)
    copied = deadlines.copy()
    copied.set(b"new", 1)
    copied.check()
    deadlines.check()


def test_of_very_many_renewed_names_one_question_moves_some() -> None:
    deadlines = Deadlines()
    for number in range(3 * MOST_MOVED):
        deadlines.set(b"%d" % number, number)
    for number in range(3 * MOST_MOVED):
        deadlines.renew(b"%d" % number, 10**6 - number)
    least = 10**6 - MOST_MOVED + 1
    assert deadlines.soonest() == (least, b"%d" % (MOST_MOVED - 1))
    assert deadlines.first_ms() == MOST_MOVED
    assert deadlines.count_overdue(3 * MOST_MOVED) == 0
    assert [deadlines.soonest()[0] for _ in range(2)] == [least - MOST_MOVED, least - 2 * MOST_MOVED]
    assert deadlines.first_ms() == least - 2 * MOST_MOVED
    deadlines.check()


@given(some.lists(some.tuples(some.booleans(), some.lists(NAMES, max_size=3)), min_size=1))
def test_a_set_keeps_its_walk_and_its_draw_up_to_date(steps: Any) -> None:
    found, model = Set([b"stays"]), {b"stays"}
    table = found.table()
    table.scan_order = HashOrder(found.members(), 0)
    for adds, members in steps:
        before = len(model)
        if adds:
            model |= set(members)
            assert found.add(members) == len(model) - before
        else:
            model -= set(members)
            assert found.remove(members) == before - len(model)
        assert found.members().keys() == model
        found.check()


@given(some.lists(some.tuples(some.sampled_from(["put", "remove", "expire", "persist"]), NAMES, TIMES)))
def test_a_hash_keeps_its_times_its_walk_and_its_draw_up_to_date(steps: Any) -> None:
    found, model = Hash(), {b"stays": b"1"}
    times: dict[bytes, int] = {}
    found.put(b"stays", b"1")
    found.scan_order = HashOrder(found.names(), 0)
    for step, field, when_ms in steps:
        if step == "put":
            assert found.put(field, b"%d" % when_ms) == (field not in model)
            model[field] = b"%d" % when_ms
        elif step == "remove":
            assert found.take_out([field, field]) == [field] * (model.pop(field, None) is not None)
            times.pop(field, None)
        elif step == "persist":
            assert found.persist(field) == (times.pop(field, None) is not None)
        elif field in model:
            found.expire_at(field, when_ms)
            times[field] = when_ms
        assert (dict(found.pairs()), found.expires) == (model, times)
        found.check()
    assert found.first_due_ms() == min(times.values(), default=NEVER)
    assert list(found.copy().parts()) == list(found.parts())


@pytest.mark.parametrize("gone", [b"a", b"b", b"c"])
def test_what_is_removed_is_drawn_no_more(gone: bytes) -> None:
    order = HashOrder([b"a", b"b", b"c"], 0)

    order.remove(gone)

    assert {order.any_of(Random(seed)) for seed in range(50)} == {b"a", b"b", b"c"} - {gone}
