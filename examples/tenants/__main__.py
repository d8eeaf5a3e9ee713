"""Fifty tenants share eight workers, and one of them sends 90 % of the jobs: what each waits with FAIR, and without.

Every tenth job is urgent, every tenth is worthless after five seconds, and a report is due at midnight. The same jobs
are run four times on an embedded server, in virtual time: without the noisy tenant, with FAIR, without, and with FAIR
while workers are killed. The exit code is 1 if a job is lost, or done and a dead letter too, or if the quiet tenants
wait (p99) more than twice as long as alone. That holds for tenants that wait for each other, as these do: their jobs
come together. Where a lone job finds an idle worker at once, beside a noisy tenant it waits until one is free: a part
of the time that a job takes.

    python -m examples.tenants [--tenants 50] [--rounds 5] [--seed 1]
"""

import argparse
import sys

from examples.tenants.load import TENANTS, made
from examples.tenants.report import Runs, by_tenant, faults, summary
from examples.tenants.work import outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].replace("%", "%%"))
    parser.add_argument("--tenants", type=int, default=TENANTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    jobs = made(words.rounds, words.tenants, words.seed)
    kills_ms = range(500, jobs[-1].at_ms, 1_500)
    runs = Runs(
        alone=outcome([job for job in jobs if job.is_quiet], "YES"),
        fair=outcome(jobs, "YES"),
        unfair=outcome(jobs, "NO"),
        killed=outcome(jobs, "YES", kills_ms),
    )
    wrong = faults(jobs, runs)
    print(by_tenant(jobs, runs), summary(jobs, runs), *wrong, sep="\n\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
