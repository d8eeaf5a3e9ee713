"""How many seeds or examples a random test runs: some in the quick run, all of them in the slow one, others by hand."""

import sys
from collections.abc import Callable, Collection, Iterable
from typing import Final

import pytest
from _pytest.mark import ParameterSet

QUICK_RUN: Final = "not slow"  # pytest's -m in it; conftest.py notes it before a module of tests is imported
QUICK_SHARE: Final = 8  # of so many examples of Hypothesis, the quick run has one
marks_run = ""


def seeds(quick: int, full: int) -> list[ParameterSet]:
    """The numbers below `full`; those from `quick` on are marked slow, and not even collected in the quick run."""
    if marks_run == QUICK_RUN:
        full = quick
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(full)]


def found(cases: Iterable[int | tuple[object, int]], long: Collection[int]) -> list[ParameterSet]:
    """Seeds that found something, alone or with their cast; those in `long` take seconds and are marked slow."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=[pytest.mark.slow] if row[-1] in long else []) for row in rows]


def examples(full: int) -> int:
    """Hypothesis's `max_examples`: all of them, or the quick run's share."""
    return full // QUICK_SHARE if marks_run == QUICK_RUN else full


def run_seeds(judge: Callable[[int], None], name: str = "") -> None:
    """Judge the seeds of the command line, `python -m MODULE FIRST END`; the one that fails is named on stderr.

    name: of the judge, where a module has several.
    """
    about = f"{name}: " if name else ""
    first, end = sys.argv[1:3]
    for seed in range(int(first), int(end)):
        try:
            judge(seed)
        except BaseException:
            sys.stderr.write(f"{about}seed {seed}\n")
            raise
    sys.stdout.write(f"{about}seeds {first} to {end}\n")
