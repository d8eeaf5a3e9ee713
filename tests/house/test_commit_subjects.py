"""The subjects of commits are checked from a day on; a clone with little history, or none, passes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.commit_subjects import main, problem

SUBJECTS = {
    "short": ("streams: XADD takes two ids", ""),
    "of 72 characters": ("a: " + "x" * 69, ""),
    "of 73 characters": ("a: " + "x" * 70, "73 characters, 72 at most"),
    "without an area": ("XADD takes two ids", "not `area: what it does now`"),
    "with an area only": ("streams: ", "not `area: what it does now`"),
    "of a merge, by git": (f"Merge {'a' * 40} into {'b' * 40}", ""),
}
LONG = "a: " + "x" * 70


@pytest.mark.parametrize(("subject", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_a_subject_has_an_area_and_at_most_72_characters(subject: str, expected: str) -> None:
    assert problem(subject) == expected


def git(folder: Path, *words: str, day: str = "2026-12-01T12:00:00Z") -> None:
    names = {f"GIT_{role}_{kind}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for kind in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=os.environ | names | dates)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit, of a day before the rule was checked."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", LONG, day="2026-11-01T12:00:00Z")
    return folder


def test_commits_of_before_the_rule_are_let_through(clone: Path) -> None:
    assert main(clone) == 0


def test_a_commit_with_a_long_subject_is_named(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(clone, "commit", "--quiet", "--allow-empty", "--message", LONG)

    assert main(clone) == 1
    assert f"{LONG}: 73 characters, 72 at most" in capsys.readouterr().err


def test_a_shallow_clone_passes(clone: Path, tmp_path: Path) -> None:
    git(clone, "commit", "--quiet", "--allow-empty", "--message", LONG)
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "a: b")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{clone}", "shallow")

    assert main(tmp_path / "shallow") == 0


def test_a_folder_without_a_history_of_its_own_passes(clone: Path, tmp_path: Path) -> None:
    git(clone, "commit", "--quiet", "--allow-empty", "--message", LONG)
    (clone / "source").mkdir()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")

    assert [main(clone / "source"), main(tmp_path / "empty"), main(tmp_path)] == [0, 0, 0]
