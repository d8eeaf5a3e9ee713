"""The list of second ways in docs/architecture.md: what it names is there, and no batched command is left out."""

import re
from pathlib import Path

from penstock.commands import registry
from penstock.engine.table.command_table import BATCHED, REPLAYED

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/architecture.md").read_text().partition("## Second ways")[2].partition("\n## ")[0]
ROWS = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| `")]
MODULES = {name for ways, *_ in ROWS for name in re.findall(r"`([\w/]+\.py)`", ways)}
ORACLES = {name for *_, oracle in ROWS for name in re.findall(r"`(\w+)`", oracle)}
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
FIGURES = re.compile(r"-|[\d.]+, [\d.]+|[\d.]+, not measured")


def test_each_second_way_is_a_module_with_figures_and_an_oracle_that_exists() -> None:
    paths = "\n".join(f"{path}" for path in (ROOT / "penstock").rglob("*.py"))

    assert len(ROWS) > 20
    assert [name for name in MODULES if len(re.findall(rf"/{name}$", paths, re.MULTILINE)) != 1] == []
    assert [name for name in ORACLES if f"def {name}(" not in TESTS] == []
    assert [row for row in ROWS if len(row) != 5 or "`test_" not in row[4]] == []
    assert [row for row in ROWS if not all(FIGURES.fullmatch(cell.strip()) for cell in row[2:4])] == []


def test_each_module_that_runs_batches_or_the_log_its_own_way_is_in_the_list() -> None:
    assert registry.TABLE
    functions = [*REPLAYED.values(), *[handler for handler, _ in BATCHED.values()]]

    assert {f"{function.__module__.rpartition('.')[2]}.py" for function in functions} - MODULES == set()
