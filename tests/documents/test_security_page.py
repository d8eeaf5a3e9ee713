"""docs/security.md names a test for each attack, which is there, and a reason for each request that takes long."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADS = ("| attack", "| request")
LONGEST_S = 2.0  # SECURITY.md


def rows_of(text: str) -> list[list[str]]:
    """The cells of all tables of a text, without their heads."""
    lines = text.replace("\\|", "/").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(HEADS)]
    return [[cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")] for row in rows]


ATTACKS, LONGEST = (ROOT / "docs/security.md").read_text().split("## The longest requests")
ROWS = rows_of(ATTACKS)
TIMES, REASONS = map(rows_of, LONGEST.split("Above two seconds"))
NAMED = re.compile(r"`(\w+)` \[(\S+)\]")


def test_the_page_has_at_least_eighty_attacks_with_what_each_server_does() -> None:
    assert len(ROWS) >= 80
    assert [row for row in ROWS if len(row) != 4 or not all(row)] == []


def test_every_attack_has_a_test_that_is_there() -> None:
    found = {tuple(row): NAMED.fullmatch(row[3]) for row in ROWS}
    named = [(match[1], match[2]) for match in found.values() if match is not None]
    missing = [
        (name, path)
        for name, path in named
        if not (ROOT / path).is_file() or not re.search(rf"def {name}\(", (ROOT / path).read_text())
    ]

    assert [row for row, match in found.items() if match is None] == []
    assert missing == []


def test_every_request_that_takes_longer_than_is_promised_is_named_with_its_reason() -> None:
    above = [row[0] for row in TIMES if any(time_s and float(time_s) > LONGEST_S for time_s in row[1:3])]

    assert len(TIMES) >= 30
    assert above == [row[0] for row in REASONS]
