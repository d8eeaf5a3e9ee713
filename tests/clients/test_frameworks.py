"""Each framework, as its authors ship it, does all its jobs though a worker is killed and the server restarts."""

import pytest

from tests.clients.course import course
from tests.clients.frameworks import FRAMEWORKS, Framework


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)
def test_every_job_is_done_though_a_worker_is_killed_and_the_server_restarts(framework: Framework) -> None:
    if not framework.version:
        pytest.skip(f"{framework.name} is not installed here: `make clients` installs it")

    with course(framework) as way:
        outcome = way.run()

    assert (outcome.lost <= framework.may_lose, outcome.wrong) == (True, 0), outcome
    assert outcome.results >= framework.kept, outcome


KEEPING = [framework for framework in FRAMEWORKS if framework.package != "faststream"]  # a worker replies there


@pytest.mark.slow
@pytest.mark.parametrize("framework", KEEPING, ids=lambda framework: framework.name)
def test_results_that_are_not_there_are_left_out(framework: Framework) -> None:
    if not framework.version:
        pytest.skip(f"{framework.name} is not installed here: `make clients` installs it")

    with course(framework) as way:
        assert way.run_nothing() == 0
