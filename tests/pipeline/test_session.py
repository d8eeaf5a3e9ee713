"""What Spark needs here, said before Spark says it."""

import sys
from pathlib import Path

import pytest

from penstock.pipeline import session
from penstock.pipeline.errors import PipelineError


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and a Java in it that says what its file `said` holds."""
    program = tmp_path / "java"
    program.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; print(open(sys.argv[1]).read())' {tmp_path}/said\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: object())
    return tmp_path


@pytest.mark.parametrize(
    ("said", "lack"),
    [
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "25" 2025-09-16 LTS', None),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21.0.2" 2024-01-16', None),
        ('java version "1.8.0_442"', "is Java 8: install it"),
        ('openjdk version "11.0.20"', "is Java 11: install it"),
        ("Unable to locate a Java Runtime.", "is Java 0: install it"),
    ],
)
def test_the_java_on_the_path_is_asked_its_version(java: Path, said: str, lack: str | None) -> None:
    (java / "said").write_text(said)

    assert session.missing() is None if lack is None else lack in (session.missing() or "")


def test_where_there_is_no_java_one_sentence_says_how_to_get_it(java: Path) -> None:
    (java / "java").unlink()

    with pytest.raises(PipelineError, match=r"Spark needs Java 17 or later, and there is none: install it .*JAVA_HOME"):
        session.require()


def test_java_home_is_looked_at_first(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java / "nowhere"))

    assert session.java_program() is None


def test_where_there_is_no_pyspark_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: None)

    assert (
        session.missing()
        == "the pipeline needs pyspark, which is not installed: pip install '.[spark]' in a clone of Penstock"
    )
