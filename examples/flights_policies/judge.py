"""What became of every flight, by the workers' journals and the dead letters; and a picture of the redeliveries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from examples.flights_policies.worker import is_poison

ROWS: Final = 24  # of the picture
WIDTH: Final = 46


@dataclass(slots=True)
class Verdict:
    """What happened to the flights; the last five must be 0 (`is_clean`)."""

    handled: int
    again: int  # flights that were handled more than once: a worker died before its acknowledgement
    dead_letters: int
    redelivered: int
    reaped: int  # consumers
    lost: int  # neither handled nor a dead letter
    overtaken: int  # handled after a later flight of the same aircraft
    wrong: int  # dead letters that are no poison, and poison that is no dead letter
    left: int  # entries that are pending, or still in the stream
    kept: int  # dead workers that are still in the list of consumers

    def is_clean(self) -> bool:
        return not (self.lost or self.overtaken or self.wrong or self.left or self.kept)


Handled = tuple[int, str, int]  # serial, aircraft ("-": unknown), when in ns


def handled_in(directory: Path) -> list[Handled]:
    """The lines of all workers' journals, by time. A last line that a death cut off is left out."""
    found = []
    for path in directory.glob("*.journal"):
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) == 4 and words[0] == "handled":
                found.append((int(words[1]), words[2], int(words[3])))
    return sorted(found, key=lambda one: one[2])


def overtaken(handled: Iterable[Handled]) -> int:
    """How often a flight was handled after a later one of the same aircraft.

    >>> overtaken([(1, "N1", 10), (2, "N2", 20), (3, "N1", 30), (1, "N1", 40)])
    1
    """
    last: dict[str, int] = {}
    count = 0
    for serial, aircraft, _ in handled:
        if aircraft != "-":
            count += serial < last.get(aircraft, -1)
            last[aircraft] = max(serial, last.get(aircraft, -1))
    return count


def judge(
    flights: int, handled: Sequence[Handled], dead: Sequence[int], redelivered: int, reaped: int, left: int, kept: int
) -> Verdict:
    serials = {serial for serial, _, _ in handled}
    poison = {serial for serial in range(flights) if is_poison(serial)}
    return Verdict(
        handled=len(serials),
        again=len(handled) - len(serials),
        dead_letters=len(dead),
        redelivered=redelivered,
        reaped=reaped,
        lost=len(set(range(flights)) - serials - set(dead)),
        overtaken=overtaken(handled),
        wrong=len(poison.symmetric_difference(dead)) + len(dead) - len(set(dead)),
        left=left,
        kept=kept,
    )


def table(verdict: Verdict, flights: int, wall_s: float) -> str:
    rows = (
        ("flights", f"{flights:,}", ""),
        ("handled", f"{verdict.handled:,}", ""),
        ("  again, because a worker had died", f"{verdict.again:,}", ""),
        ("delivered again", f"{verdict.redelivered:,}", ""),
        ("dead letters", f"{verdict.dead_letters:,}", ""),
        ("dead workers removed", f"{verdict.reaped:,}", ""),
        ("lost", f"{verdict.lost:,}", "must be 0"),
        ("overtaken by a flight of the same aircraft", f"{verdict.overtaken:,}", "must be 0"),
        ("dead letters but poison, poison but dead", f"{verdict.wrong:,}", "must be 0"),
        ("left in the stream", f"{verdict.left:,}", "must be 0"),
        ("dead workers left in XINFO CONSUMERS", f"{verdict.kept:,}", "must be 0"),
        ("wall time, s", f"{wall_s:,.1f}", ""),
    )
    return "\n".join(f"{name:<44}{number:>10}  {rule}".rstrip() for name, number, rule in rows)


def picture(samples: Sequence[tuple[float, int]], events: Sequence[tuple[float, str]]) -> str:
    """Redeliveries over time, a bar for each of at most ROWS spans; what happened stands beside its span.

    samples: seconds since the start, and how many redeliveries there had been by then.
    """
    span_s = max(1.0, samples[-1][0] / ROWS)
    counts = [0] * (int(samples[-1][0] / span_s) + 1)
    for (_, before), (at_s, count) in pairwise(samples):
        counts[int(at_s / span_s)] += count - before
    most = max([1, *counts])
    lines = ["delivered again, over time:"]
    for row, count in enumerate(counts):
        told = ", ".join(text for at_s, text in events if int(at_s / span_s) == row)
        bar = "#" * -(-count * WIDTH // most)
        lines.append(f"{row * span_s:>5.0f} s  {bar:<{WIDTH}} {count:>7,}  {told}".rstrip())
    return "\n".join(lines)
