"""Whether the subjects of commits are `area: what it does now`, in at most 72 characters: `make lint` asks.

The commits that are looked at are those that HEAD has since the rule is checked. A clone with one commit has one of
them; a folder without a history, or a machine without git, has none.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SINCE: Final = "2026-11-28T00:00:00Z"  # of commits before it, some forty subjects are longer
LONGEST: Final = 72
FORM: Final = re.compile(r"\S[^:]*: \S")
MADE_BY_GIT: Final = ("Merge ", "Revert ", "fixup! ", "squash! ")


def problem(subject: str) -> str:
    """What is wrong with a subject, or ""."""
    if subject.startswith(MADE_BY_GIT):
        return ""
    if len(subject) > LONGEST:
        return f"{len(subject)} characters, {LONGEST} at most"
    return "" if FORM.match(subject) else "not `area: what it does now`"


def subjects(folder: Path) -> list[tuple[str, str]]:
    """The commits of HEAD since the rule is checked, each with its subject; none where git has none to show."""
    if not (folder / ".git").exists():  # else git would look at a repository that the folder lies in
        return []
    command = ["git", "-C", str(folder), "log", f"--since={SINCE}", "--format=%h %s", "HEAD"]
    try:
        shown = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", errors="replace").stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return []
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in shown.splitlines()]


def main(folder: Path) -> int:
    """Print the commits with a wrong subject; returns the exit status."""
    wrong = [f"{commit} {subject}: {problem(subject)}" for commit, subject in subjects(folder) if problem(subject)]
    sys.stderr.write("".join(f"commit {line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(ROOT))
