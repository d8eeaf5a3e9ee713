"""Rows into and out of each stage, as a table that must balance, for one batch and for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

COUNTED: Final = ("ingested", "bad", "valid", "enriched", "late", "clean", "quarantined")
_HEAD: Final = ("stage", "rows in", "rows out", "held back", "", "balance")


@dataclass(frozen=True, slots=True)
class Stage:
    """Counts of a stage. `held` rows are not passed on and not lost: `where` names their folder or window."""

    name: str
    taken: int
    passed: int
    held: int = 0
    where: str = ""
    note: str = ""  # shown in place of the verdict

    @property
    def balances(self) -> bool:
        return self.taken == self.passed + self.held


def of_batch(counts: Mapping[str, int]) -> list[Stage]:
    """The stages up to the clean rows. `clean` and `quarantined` were counted in the files that were written."""
    return [
        Stage("validate", counts["ingested"], counts["valid"], counts["bad"], "quarantined"),
        Stage("enrich", counts["valid"], counts["enriched"]),
        Stage("in time", counts["enriched"], counts["clean"], counts["late"], "quarantined"),
        Stage("quarantine", counts["bad"] + counts["late"], counts["quarantined"]),
    ]


def table(title: str, stages: Sequence[Stage]) -> str:
    """The stages as text, a line each."""
    lines = [(title, *_HEAD[1:])]
    for stage in stages:
        verdict = stage.note or "even"
        if not stage.balances:
            verdict = f"{stage.taken - stage.passed - stage.held:+,} rows missing"
        held = f"{stage.held:,}" if stage.where else ""
        lines.append((stage.name, f"{stage.taken:,}", f"{stage.passed:,}", held, stage.where, verdict))
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEAD))]
    left = (0, 4, 5)
    return "\n".join(
        "  ".join(
            word.ljust(width) if at in left else word.rjust(width)
            for at, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
