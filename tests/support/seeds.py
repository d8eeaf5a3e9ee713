"""How many seeds a random test runs: some in the quick run, all of them in the slow one."""

import pytest
from _pytest.mark import ParameterSet


def seeds(quick: int, full: int) -> list[ParameterSet]:
    """The numbers below `full`; those from `quick` on are marked slow."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(full)]
