"""The one ranking of groups by what needs an operator: `penstock top` and doctor, the metrics, the console.

First an entry that is pending for long, then a lag that grows, consumers that are gone, dead letters; then the lag and
what is pending; last, by the caller, names.
"""

from typing import Final, TypeAlias

OLD_MS: Final = 60_000  # pending for longer, a consumer silent for longer: a sign of trouble

Rank: TypeAlias = tuple[int, int, int, int, int, int]  # the smallest is the most urgent
WITHOUT_GROUPS: Final[Rank] = (1, 0, 0, 0, 0, 0)  # of a stream: behind all that have groups


def rank(oldest_idle_ms: int, growth: int, gone: int, dead_letters: int, lag: int, pending: int) -> Rank:
    """Where a group stands among others. 0 stands for what is not known.

    oldest_idle_ms: how long the oldest pending entry has waited. growth: entries by which the lag has grown since the
    look before. gone: consumers without a sign, see `gone`.

    >>> stuck, late, busy = rank(3_600_000, 0, 1, 0, 0, 5), rank(0, 70, 0, 0, 900, 0), rank(20, 0, 0, 0, 3, 9_000)
    >>> sorted([busy, late, stuck]) == [stuck, late, busy]
    True
    """
    old_ms = oldest_idle_ms if oldest_idle_ms >= OLD_MS else 0
    return (-old_ms, -max(growth, 0), -gone, -dead_letters, -lag, -pending)


def is_stuck(of: Rank) -> bool:
    """Whether the oldest pending entry is old, the lag grows or consumers are gone."""
    return of[:3] < (0, 0, 0)


def gone(idle_and_pending: list[tuple[int, int]], lag: int) -> int:
    """Consumers without a sign for OLD_MS: those that hold entries; all of them where entries wait and none comes.

    idle_and_pending: of each consumer. A group without consumers has none that is gone.

    >>> gone([(90_000, 4), (90_000, 0), (10, 2)], lag=7), gone([(90_000, 4), (90_000, 0)], lag=7)
    (1, 2)
    """
    silent = [pending for idle_ms, pending in idle_and_pending if idle_ms >= OLD_MS]
    if lag > 0 and len(silent) == len(idle_and_pending):
        return len(silent)
    return sum(1 for pending in silent if pending)
