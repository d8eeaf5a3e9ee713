"""How many seeds a random test runs: some in the quick run, all of them in the slow one, others by hand."""

import sys
from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet


def seeds(quick: int, full: int) -> list[ParameterSet]:
    """The numbers below `full`; those from `quick` on are marked slow."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(full)]


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
