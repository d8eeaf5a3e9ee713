"""docs/security.md names a test for each attack: each is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/security.md").read_text().replace("\\|", "/").splitlines()
    if line.startswith("| ") and not line.startswith("| attack")
]
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
