"""A run says at its end what it did not run."""

import pytest

from tests.support.reference_server import NoReference, reference_binary
from tests.support.skips import skip_lines


def test_a_run_says_how_many_tests_it_skipped_and_why() -> None:
    reasons = ["Skipped: no promtool", *["Skipped: no redis-server: run `tools/reference-server redis`"] * 1832]

    assert list(skip_lines(reasons)) == [
        "1833 skipped:",
        "   1832 no redis-server: run `tools/reference-server redis`",
        "      1 no promtool",
        "  to run more of them: tools/reference-server redis",
    ]


def test_two_things_that_are_missing_are_fetched_by_one_line() -> None:
    lines = list(skip_lines(["a: run `x`", "b: run `y z`", *[f"reason {number}" for number in range(9)]]))

    assert lines[-2:] == ["        and 3 more reasons (pytest -rs)", "  to run more of them: x && y z"]


def test_a_run_that_skipped_nothing_says_nothing() -> None:
    assert list(skip_lines([])) == []


@pytest.mark.parametrize("kind", ["redis", "valkey"])
def test_the_absence_of_a_reference_names_its_command(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("REFERENCE_REDIS", raising=False)

    with pytest.raises(NoReference) as absence:
        reference_binary(kind)
    assert list(skip_lines([str(absence.value)]))[-1] == f"  to run more of them: tools/reference-server {kind}"
