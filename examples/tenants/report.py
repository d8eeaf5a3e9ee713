"""How long each tenant waited in the runs, and whether that is what FAIR promises."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from examples.tenants.load import NOISY, URGENT, Job
from examples.tenants.work import Outcome

WIDTH: Final = 40
MOST_TIMES: Final = 2  # of what quiet tenants wait alone


class Runs(NamedTuple):
    """What became of the same jobs: of the quiet tenants' without the noisy one's, with FAIR, without, and with FAIR
    while workers are killed."""

    alone: Outcome
    fair: Outcome
    unfair: Outcome
    killed: Outcome


def percentile(values: Sequence[int], percent: int) -> int:
    """The smallest value that at least so many percent do not exceed; 0 of none.

    >>> percentile([3, 1, 2, 4], 50), percentile([3, 1, 2, 4], 99), percentile([], 99)
    (2, 4, 0)
    """
    return sorted(values)[-(-percent * len(values) // 100) - 1] if values else 0


def waits(outcome: Outcome, jobs: Sequence[Job]) -> list[int]:
    """How many ms the jobs waited that were begun."""
    return [outcome.waited_ms[job.number] for job in jobs if job.number in outcome.waited_ms]


def faults(jobs: Sequence[Job], runs: Runs) -> list[str]:
    """What is not as it must be, in words."""
    quiet = [job for job in jobs if job.is_quiet]
    found = []
    for name, outcome in runs._asdict().items():
        expected = {job.number for job in (quiet if name == "alone" else jobs)}
        if outcome.done | outcome.late != expected:
            found.append(f"{name}: {len(expected - outcome.done - outcome.late)} jobs are lost")
        if outcome.done & outcome.late:
            found.append(f"{name}: {len(outcome.done & outcome.late)} jobs are done and dead letters, too")
    alone_ms, fair_ms = (percentile(waits(outcome, quiet), 99) for outcome in (runs.alone, runs.fair))
    if fair_ms > MOST_TIMES * alone_ms:
        found.append(f"with FAIR, quiet tenants wait {fair_ms} ms (p99), {alone_ms} ms alone")
    return found


def by_tenant(jobs: Sequence[Job], runs: Runs) -> str:
    """The longest wait of each tenant, with a bar for what it is without FAIR (-) and with (#)."""
    tenants: Mapping[str, list[Job]] = {job.tenant: [] for job in sorted(jobs, key=lambda job: job.tenant)}
    for job in jobs:
        tenants[job.tenant].append(job)
    most_ms = max(1, *runs.fair.waited_ms.values(), *runs.unfair.waited_ms.values())
    lines = [f"{'longest wait, s':<16}{'jobs':>6}{'alone':>8}{'FAIR':>8}{'without':>9}   # with FAIR, - without"]
    for tenant, own in tenants.items():
        fair_ms, unfair_ms = (max(waits(outcome, own), default=0) for outcome in (runs.fair, runs.unfair))
        alone = "" if tenant == NOISY else f"{max(waits(runs.alone, own), default=0) / 1000:.1f}"
        bar = ("#" * -(-fair_ms * WIDTH // most_ms)).ljust(-(-unfair_ms * WIDTH // most_ms), "-")
        lines.append(f"{tenant:<16}{len(own):>6}{alone:>8}{fair_ms / 1000:>8.1f}{unfair_ms / 1000:>9.1f}   {bar}")
    return "\n".join(lines)


def summary(jobs: Sequence[Job], runs: Runs) -> str:
    """The quiet tenants together, and what became of all jobs."""
    quiet = [job for job in jobs if job.is_quiet]
    urgent = [job for job in quiet if job.level == URGENT]
    rows: list[tuple[str, list[str]]] = [("", ["alone", "FAIR", "without", "killed"])]
    for name, own in (("quiet tenants", quiet), ("  their urgent jobs", urgent)):
        for percent in (50, 99):
            numbers = [f"{percentile(waits(outcome, own), percent) / 1000:.2f} s" for outcome in runs]
            rows.append((f"{name}, p{percent}", numbers))
    late = [sum(job.number in outcome.late for job in quiet) for outcome in runs]
    rows.append(("  their jobs that became worthless", [f"{count:,}" for count in late]))
    rows.append(("jobs done", [f"{len(outcome.done):,}" for outcome in runs]))
    rows.append(("  worthless before", [f"{len(outcome.late):,}" for outcome in runs]))
    rows.append(("  delivered again", [f"{outcome.again:,}" for outcome in runs]))
    return "\n".join(f"{name:<38}" + "".join(f"{text:>10}" for text in texts) for name, texts in rows)
