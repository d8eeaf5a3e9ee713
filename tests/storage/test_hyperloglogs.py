"""HyperLogLogs beside registers that are packed, united and looked up one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.types import hll_registers, hll_sparse
from penstock.storage.types import hyperloglog as hll
from penstock.storage.types.hll_registers import REGISTERS
from penstock.storage.types.hyperloglog import HyperLogLog

SEEDS = st.integers(0, 1000)
ADDITIONS = st.lists(st.tuples(st.integers(0, 60) | st.integers(0, REGISTERS - 1), st.integers(1, 33)), max_size=200)


def registers_by_chance(seed: int) -> bytes:
    chance = random.Random(seed)
    return bytes(chance.choices(range(52), k=REGISTERS))


def packed_one_by_one(registers: bytes) -> bytes:
    bits = sum(register << 6 * place for place, register in enumerate(registers))
    return bits.to_bytes(REGISTERS * 6 // 8, "little")


@pytest.mark.parametrize("seed", range(3))
def test_registers_are_packed_six_bits_each_from_the_lowest_on(seed: int) -> None:
    registers = registers_by_chance(seed)

    assert hll_registers.packed(registers) == packed_one_by_one(registers)
    assert hll_registers.unpacked(hll_registers.packed(registers)) == registers


@given(st.binary(max_size=40))
def test_a_register_is_found_alike_by_machine_words_and_by_numbers(element: bytes) -> None:
    assert hll.register_of(element) == hll.register_by_numbers(element)


@given(SEEDS, st.integers(0, REGISTERS - 1))
def test_a_packed_register_is_read_where_it_stands(seed: int, index: int) -> None:
    registers = registers_by_chance(seed)

    assert (
        hll_registers.register_at(bytes(hll_registers.HEADER) + hll_registers.packed(registers), index)
        == registers[index]
    )


@given(SEEDS, SEEDS)
def test_a_union_has_the_larger_of_two_registers(one: int, other: int) -> None:
    ours, theirs = registers_by_chance(one), registers_by_chance(other)

    assert hll_registers.largest(ours, theirs) == bytes(map(max, ours, theirs))


@given(ADDITIONS, st.sampled_from([0, 30, 100, 12304]), st.booleans())
def test_every_form_keeps_the_largest_count_of_a_register(
    additions: list[tuple[int, int]], most_bytes: int, starts_dense: bool
) -> None:
    held = HyperLogLog(hll.EMPTY, most_bytes)
    naive = bytearray(REGISTERS)
    if starts_dense:
        held.to_dense()
    for index, count in additions:
        assert held.raise_register(index, count) == (count > naive[index])
        naive[index] = max(naive[index], count)

    assert hll.registers_of(held.value()) == bytes(naive)
    assert hll.is_valid(held.value())


@pytest.mark.parametrize("seed", range(6))
def test_runs_do_not_depend_on_where_a_register_is_looked_for_first(seed: int) -> None:
    """Many registers all over the value: runs of one byte lie between longer ones, a few to a word or many."""
    chance = random.Random(seed)
    at_once, value, naive = HyperLogLog(hll.EMPTY, 12304), hll.EMPTY, bytearray(REGISTERS)
    for _ in range(150 << seed % 3):
        index, count = chance.randrange(REGISTERS), chance.randint(1, 4)
        at_once.raise_register(index, count)
        alone = HyperLogLog(value, 12304)
        alone.raise_register(index, count)
        value = alone.value()
        naive[index] = max(naive[index], count)

    assert at_once.value() == value
    assert hll.registers_of(value) == bytes(naive)


@given(ADDITIONS, ADDITIONS)
def test_uniting_is_adding_the_registers_of_the_other_in_order(
    ours: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    united, added = HyperLogLog(hll.EMPTY, 12304), HyperLogLog(hll.EMPTY, 12304)
    for index, count in ours:
        united.raise_register(index, count)
        added.raise_register(index, count)
    others = bytearray(REGISTERS)
    for index, count in theirs:
        others[index] = max(others[index], min(count, 32))
    united.unite(bytes(others))
    for index in sorted({index for index, _ in theirs}):
        added.raise_register(index, others[index])

    assert united.value() == added.value()


@pytest.mark.parametrize("length", [1, 64, 65, REGISTERS])
def test_a_run_of_noughts_is_as_short_as_it_can_be_written(length: int) -> None:
    value = hll.EMPTY[:16] + hll_sparse.zeros(length)

    assert hll_sparse.described(value) == (b"z:%d" if length <= 64 else b"Z:%d") % length
