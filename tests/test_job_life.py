"""The examples that do the same jobs in different ways."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from examples.flights.server import penstock
from examples.job_life.__main__ import lives
from examples.job_life.jobs import JOBS, POISON, least_attempts

NPM: Final = Path(__file__).parent.parent / "build/clients/npm"  # made by `make clients`


@pytest.mark.slow
@pytest.mark.skipif(
    not (NPM / "node_modules/bullmq").exists() or not shutil.which("node"),
    reason="needs node, and BullMQ of `make clients`",
)
def test_bullmq_does_every_job_too() -> None:
    begun, back_s, done, dead = lives(penstock(), "", str(NPM))[2].live()

    assert (done, dead) == (JOBS - len(POISON), len(POISON))
    assert begun >= least_attempts()
    assert back_s > 0


@pytest.mark.slow
@pytest.mark.parametrize("way", [0, 1], ids=["policies", "bare"])
def test_every_job_is_done_or_a_dead_letter_though_a_worker_is_killed(way: int) -> None:
    begun, back_s, done, dead = lives(penstock(), "")[way].live()

    assert (done, dead) == (JOBS - len(POISON), len(POISON))
    assert begun >= least_attempts()
    assert back_s > 0


def test_a_worker_by_policies_has_a_fraction_of_the_lines_of_a_bare_one() -> None:
    by_policies, bare = [life.lines() for life in lives(["redis-server"], "")]

    assert 4 * by_policies < bare
