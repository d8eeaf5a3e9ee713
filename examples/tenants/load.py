"""The jobs of fifty tenants: one sends 90 % of them, and more than the workers can do."""

import random
from typing import Final, NamedTuple

TENANTS: Final = 50
NOISY: Final = "tenant-00"
NOISY_SHARE: Final = 0.9
WORKERS: Final = 8
JOBS_A_ROUND: Final = 4  # of a quiet tenant, on average
TOGETHER_MS: Final = 100  # within which all have added theirs
SHORTEST_MS: Final = 50
LONGEST_MS: Final = 150
QUIET_LOAD: Final = 0.7  # of what the workers can do
URGENT: Final = 9  # the level of every tenth job
USUAL: Final = 4
TENTH: Final = 0.1
WORTHLESS_AFTER_MS: Final = 5_000  # every tenth job
MIDNIGHT_MS: Final = 10_000  # from the start: then a nightly report is due


class Job(NamedTuple):
    """When it is added (ms from the start), of which tenant, how urgent, how long a worker takes for it, after how many
    ms it is worthless (0: never), and by which schedule it is added (empty: by its tenant)."""

    number: int
    at_ms: int
    tenant: str
    level: int
    takes_ms: int
    worthless_ms: int
    every: str = ""

    @property
    def is_quiet(self) -> bool:
        return self.tenant != NOISY

    def fields(self) -> dict[str, str]:
        words = {"number": str(self.number), "tenant": self.tenant, "level": str(self.level)}
        words |= {"every": self.every} if self.every else {}
        return words | ({"best-before": f"+{self.worthless_ms}"} if self.worthless_ms else {})


def made(rounds: int, tenants: int, seed: int) -> list[Job]:
    """A nightly report, and jobs in order of time. In each round every quiet tenant adds a few at nearly the same
    moment, as what is scheduled for the full minute does; the noisy one adds its own all the time.

    >>> jobs = made(5, 50, 1)
    >>> len(jobs) // 100, sum(job.is_quiet for job in jobs) // 100
    (100, 10)
    """
    chance = random.Random(seed)
    quiet = [f"tenant-{number:02}" for number in range(1, tenants)]
    round_ms = int(len(quiet) * JOBS_A_ROUND * (SHORTEST_MS + LONGEST_MS) / 2 / (QUIET_LOAD * WORKERS))
    adds: list[tuple[int, str]] = []
    for began_ms in range(0, rounds * round_ms, round_ms):
        for tenant in quiet:
            at_ms = began_ms + chance.randrange(TOGETHER_MS)
            adds += [(at_ms, tenant)] * chance.randint(1, 2 * JOBS_A_ROUND - 1)
    of_noisy = int(len(adds) * NOISY_SHARE / (1 - NOISY_SHARE))
    adds += [(chance.randrange(rounds * round_ms), NOISY) for _ in range(of_noisy)]
    report = Job(0, MIDNIGHT_MS, quiet[0], USUAL, LONGEST_MS, 0, "0 0 * * *")
    others = [
        Job(
            number,
            at_ms,
            tenant,
            level=URGENT if chance.random() < TENTH else USUAL,
            takes_ms=chance.randint(SHORTEST_MS, LONGEST_MS),
            worthless_ms=WORTHLESS_AFTER_MS if chance.random() < TENTH else 0,
        )
        for number, (at_ms, tenant) in enumerate(sorted(adds), 1)
    ]
    return [report, *others]
