"""Random scripts and libraries are answered by a real Redis and here alike, to the last byte."""

import contextlib

import pytest

from tests.scripts.beside_redis import ENDED, Case, case_of, compare, report
from tests.support.reference_server import NoReference, reference_server
from tests.support.seeds import seeds

pytest.importorskip("lupa")


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_random_scripts_and_libraries_are_answered_as_by_redis(reference_port, seed):
    found = list(compare(lambda: contextlib.nullcontext(reference_port), f"seed {seed}", 500))

    assert report([difference for part in found for difference in part.differences]) == ""


def test_the_same_seed_makes_the_same_script():
    assert case_of("a/1") == case_of("a/1")


def test_scripts_of_different_seeds_differ():
    assert len({case_of(f"a/{number}") for number in range(200)}) > 190


def case_that_ends_redis(seed):
    return Case(("error(setmetatable({}, {__index=function() error('x') end}))",), (("EVAL", "{}", "0"),))


def test_a_script_that_ends_redis_is_told_apart_from_one_that_ends_us():
    try:
        found = list(compare(reference_server, "ends", 2, case_of=case_that_ends_redis))
    except NoReference as absence:
        pytest.skip(str(absence))

    assert [part.excused for part in found] == [(ENDED,), (ENDED,)]
    assert [part.differences for part in found] == [(), ()]
