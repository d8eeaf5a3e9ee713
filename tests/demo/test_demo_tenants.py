"""The demo of tenants: its judge, and a small run."""

import pytest

from examples.tenants.load import made
from examples.tenants.report import Runs, by_tenant, faults, summary
from examples.tenants.work import outcome

JOBS = made(rounds=2, tenants=10, seed=1)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs(
        alone=outcome([job for job in JOBS if job.is_quiet], "YES"),
        fair=outcome(JOBS, "YES"),
        unfair=outcome(JOBS, "NO"),
        killed=outcome(JOBS, "YES", [300, 700, 900]),
    )


def test_quiet_tenants_wait_at_most_twice_as_long_as_alone_and_no_job_is_lost(runs: Runs) -> None:
    assert faults(JOBS, runs) == []


def test_without_fair_they_wait_for_the_noisy_one(runs: Runs) -> None:
    [fault] = faults(JOBS, runs._replace(fair=runs.unfair))

    assert fault.startswith("with FAIR, quiet tenants wait ")


def test_jobs_of_killed_workers_are_done_by_others(runs: Runs) -> None:
    assert (runs.killed.again, runs.fair.again) == (3, 0)


def test_the_nightly_report_is_made_once_at_midnight(runs: Runs) -> None:
    [report] = [job for job in JOBS if job.every]

    assert all(report.number in outcome.done for outcome in runs)
    assert all(outcome.waited_ms[report.number] >= 0 for outcome in runs)


def test_a_job_that_is_neither_done_nor_a_dead_letter_is_lost(runs: Runs) -> None:
    number = min(runs.killed.done)

    assert faults(JOBS, runs._replace(killed=runs.killed._replace(done=runs.killed.done - {number}))) == [
        "killed: 1 jobs are lost"
    ]
    assert faults(JOBS, runs._replace(killed=runs.killed._replace(late=runs.killed.late | {number}))) == [
        "killed: 1 jobs are done and dead letters, too"
    ]


def test_the_picture_has_a_line_for_each_tenant(runs: Runs) -> None:
    _, noisy, *quiet = by_tenant(JOBS, runs).splitlines()

    assert noisy.startswith("tenant-00 ")
    assert [line.split()[0] for line in quiet] == [f"tenant-{number:02}" for number in range(1, 10)]
    assert min(line.count("-") for line in quiet) > 10
    assert "jobs done" in summary(JOBS, runs)
