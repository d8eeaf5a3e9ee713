"""Pairs in order, beside a SortedList."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedList

from penstock.storage.pair_order import FEW, MOST, Pair, PairOrder, is_before

STEPS = 12_000


def agree(order: PairOrder, model: "SortedList[Pair]") -> None:
    order.check()
    assert len(order) == len(model)
    assert list(order) == list(model)


def filled(count: int) -> tuple[PairOrder, "SortedList[Pair]"]:
    order, model = PairOrder(), SortedList[Pair]()
    for number in range(count):
        order.add((float(number), b"n"))
        model.add((float(number), b"n"))
    return order, model


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_added_and_removed_it_is_in_order(seed: int) -> None:
    random = Random(seed)
    span = random.choice([50, 10**6])
    pairs = sorted({(float(random.randrange(span)), b"%d" % random.randrange(9)) for _ in range(seed * 900)})
    order, model = PairOrder(pairs), SortedList(pairs)
    adds = 0.7
    for step in range(STEPS):
        if step % 3000 == 0:
            adds = random.choice([0.2, 0.5, 0.8])
            agree(order, model)
        number = float(random.randrange(span) if random.random() < 0.5 else step + span)
        pair = (number, b"%d" % random.randrange(9))
        if random.random() < adds:
            if pair not in model:
                order.add(pair)
                model.add(pair)
        elif model and random.random() < 0.02:
            start = random.choice([0, random.randrange(len(model))])
            stop = start + random.randrange(1, 700)
            assert order.part(start, stop) == list(model[start:stop])
            assert order.take(start, stop) == list(model[start:stop])
            del model[start:stop]
        elif model:
            pair = random.choice(model)
            order.remove(*pair)
            model.remove(pair)
        if model:
            assert (order.first(), order.last()) == (model[0], model[-1])
        if step % 100 == 0:
            assert order.below(*pair) == model.bisect_left(pair)
            sampled = order.sample(100)
            assert bool(model) <= len(sampled) <= 100 and sampled == sorted(set(sampled)) and set(sampled) <= set(model)
            assert order.sample(len(model)) == list(model)
            assert list(order.backwards()) == list(reversed(model))
            indexes = [random.randrange(len(model)) for _ in range(20) if model]
            assert order.at(indexes) == [model[index] for index in indexes]
    agree(order, model)
    agree(order.copy(), model)


def test_a_part_ends_where_the_pairs_end() -> None:
    order, model = filled(2 * MOST + 10)
    for start, stop in [
        (0, 0),
        (5, 5),
        (7, 3),
        (MOST - 1, MOST + 1),
        (0, 3 * MOST),
        (2 * MOST, 9 * MOST),
        (9 * MOST, 10 * MOST),
    ]:
        assert order.part(start, stop) == list(model[start:stop])
        taken = order.copy()
        assert taken.take(start, stop) == list(model[start:stop])
        left = model.copy()
        del left[start:stop]
        agree(taken, left)
    assert order.take(0, 3 * MOST) == list(model)
    assert (len(order), list(order), order.part(0, 3), order.take(0, 3), order.below(1.0, b"")) == (0, [], [], [], 0)


@pytest.mark.parametrize("order_of", [iter, reversed, lambda numbers: sorted(numbers, key=lambda number: number % 97)])
def test_all_of_it_can_be_removed_one_by_one(order_of: Any) -> None:
    order, model = filled(5 * MOST + 1)
    for number in order_of(range(5 * MOST + 1)):
        order.remove(float(number), b"n")
        model.remove((float(number), b"n"))
        if number % 500 == 0:
            agree(order, model)
    assert (len(order), list(order)) == (0, [])


def test_chunks_of_few_pairs_join() -> None:
    order, _ = filled(10 * MOST)
    for number in range(10 * MOST):
        if number % 64:
            order.remove(float(number), b"n")
    order.check()
    assert len(order._chunks) <= len(order) // FEW + 1


def test_each_pair_is_found_by_chance() -> None:
    order, model = filled(MOST + 5)
    random = Random(1)

    assert {order.any_of(random) for _ in range(30_000)} == set(model)


def test_a_copy_shares_nothing() -> None:
    order, model = filled(MOST + 1)
    copied = order.copy()
    copied.remove(float(MOST), b"n")
    copied.add((-1.0, b"n"))
    agree(order, model)
    assert copied.first() == (-1.0, b"n")


NAMES = st.text(alphabet="\0a\x7f\x80\xff", max_size=20).map(lambda text: text.encode("latin-1"))


@given(NAMES, NAMES, NAMES)
def test_names_are_in_the_order_of_their_bytes(shared: bytes, one: bytes, other: bytes) -> None:
    assert is_before(shared + one, shared + other) == (one < other)
