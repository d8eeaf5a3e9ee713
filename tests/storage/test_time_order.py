"""Names in the order of their times, beside a SortedList."""

from random import Random
from typing import Any

import pytest
from sortedcontainers import SortedList

from penstock.storage.time_order import FEW, MOST, Timed, TimeOrder

STEPS = 12_000


def agree(order: TimeOrder, model: "SortedList[Timed]") -> None:
    order.check()
    assert len(order) == len(model)
    assert list(order) == list(model)


def filled(count: int) -> tuple[TimeOrder, "SortedList[Timed]"]:
    order, model = TimeOrder(), SortedList[Timed]()
    for number in range(count):
        order.add((number, b"n"))
        model.add((number, b"n"))
    return order, model


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_added_and_removed_it_is_in_order(seed: int) -> None:
    random, order = Random(seed), TimeOrder()
    model: SortedList[Timed] = SortedList()
    span = random.choice([50, 10**6])
    adds = 0.7
    for step in range(STEPS):
        if step % 3000 == 0:
            adds = random.choice([0.2, 0.5, 0.8])
            agree(order, model)
        pair = (random.randrange(span) if random.random() < 0.5 else step + span, b"%d" % random.randrange(9))
        if random.random() < adds:
            if pair not in model:
                order.add(pair)
                model.add(pair)
        elif model and random.random() < 0.02:
            count = random.randrange(1, 700)
            assert order.up_to(count) == list(model[:count])
            assert order.take_first(count) == list(model[:count])
            del model[:count]
        elif model:
            pair = random.choice(model)
            order.remove(pair)
            model.remove(pair)
        if model:
            assert order.first() == model[0]
        if step % 100 == 0:
            assert order.count_before(pair) == model.bisect_left(pair)
            assert order.each(7) == list(model[::7])
    agree(order, model)
    agree(order.copy(), model)


@pytest.mark.parametrize("order_of", [iter, reversed, lambda numbers: sorted(numbers, key=lambda number: number % 97)])
def test_all_of_it_can_be_removed_one_by_one(order_of: Any) -> None:
    order, model = filled(5 * MOST + 1)
    for number in order_of(range(5 * MOST + 1)):
        order.remove((number, b"n"))
        model.remove((number, b"n"))
        if number % 500 == 0:
            agree(order, model)
    assert (len(order), list(order), order.up_to(3), order.take_first(3)) == (0, [], [], [])


def test_chunks_of_few_pairs_join() -> None:
    order, _ = filled(10 * MOST)
    for number in range(10 * MOST):
        if number % 64:
            order.remove((number, b"n"))
    order.check()
    assert len(order._chunks) <= len(order) // FEW + 1


def test_each_pair_is_found_by_chance() -> None:
    order, model = filled(MOST + 5)
    random = Random(1)

    assert {order.any_of(random) for _ in range(30_000)} == set(model)


def test_a_copy_shares_nothing() -> None:
    order, model = filled(MOST + 1)
    copied = order.copy()
    copied.remove((MOST, b"n"))
    copied.add((-1, b"n"))
    agree(order, model)
    assert copied.first() == (-1, b"n")
