"""Rounds of a measure in which Spark takes part: each server in turn, until the JVM has compiled its own code."""

import statistics
from collections.abc import Callable, Mapping
from typing import Final

Row = dict[str, float]  # "rate": a second; "server_us", "jvm_us", "jit_us", "workers_us": CPU of one

QUIET: Final = 0.05  # share of the compilers in the JVM's CPU time, below which a round counts
MOST_DROPPED: Final = 3  # rounds, for each one that is to count; then a round counts as it is


def in_turns(runs: Mapping[str, Callable[[], Row]], rounds: int) -> dict[str, Row]:
    """The medians of so many rounds, in which each server has its turn, and the lowest and highest rate.

    Rounds in which the JVM still compiled its own code come before them and are not counted; `dropped` says how many.
    """
    kept: dict[str, list[Row]] = {name: [] for name in runs}
    dropped, most = 0, rounds * MOST_DROPPED
    names = list(runs)
    for _ in range(rounds + most):
        found = {name: runs[name]() for name in names}
        names.reverse()  # none of them is always the first
        is_loud = any(row["jit_us"] > QUIET * (row["jvm_us"] + row["jit_us"]) for row in found.values())
        if is_loud and dropped < most and not any(kept.values()):
            dropped += 1
            continue
        for name, row in found.items():
            kept[name].append(row)
        if all(len(rows) == rounds for rows in kept.values()):
            break
    return {name: summary(rows) | {"dropped": dropped} for name, rows in kept.items()}


def summary(rows: list[Row]) -> Row:
    rates = [row["rate"] for row in rows]
    medians = {figure: statistics.median(row[figure] for row in rows) for figure in rows[0]}
    return medians | {"lowest": min(rates), "highest": max(rates)}
