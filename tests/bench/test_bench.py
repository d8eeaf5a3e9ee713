"""`python -m bench`: its parts run, builds are found by their paths, and the report leaves people's words alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import report
from bench.servers import CORE_FOLDER, Absent, build, usual

ROOT = Path(__file__).parents[2]
PYTHON = Path(sys.executable)


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "--quick", "--dry", "--rounds", "1", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}  # with an installed package, too: its tests look elsewhere
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_load_is_measured_on_two_builds_in_one_run() -> None:
    ran = bench("--parts", "loads", "--loads", "ping", "--servers", "", "--builds", f"before={ROOT}", f"after={ROOT}")

    assert ran.returncode == 0, ran.stderr
    assert "before     after" in ran.stdout
    assert "after : before" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "restricted",
        "singles",
        "nodes",
        "wakeups",
        "stalls",
        "starts",
        "memory",
        "growth",
        "sizes",
        "policies",
        "group-commit",
        "loading",
        "snapshots",
    ],
)
def test_a_part_runs_on_plain_penstock(part: str) -> None:
    ran = bench("--parts", part, "--servers", "plain", "--entries", "20000")

    assert ran.returncode == 0, ran.stderr
    assert "plain" in ran.stdout
    assert "left out" not in ran.stderr


def test_an_unknown_part_is_refused_with_the_names_of_all() -> None:
    ran = bench("--parts", "speed")

    assert ran.returncode == 2
    assert "no part is called 'speed': there are loads, restricted," in ran.stderr


def test_a_build_may_not_have_the_name_of_a_usual_server() -> None:
    ran = bench("--parts", "loads", "--builds", "redis=/tmp")

    assert ran.returncode == 2
    assert "NAME=PATH, with a name other than plain, core, compiled, redis, valkey, fakeredis" in ran.stderr


def test_a_build_is_a_checkout_a_virtual_environment_or_a_python(tmp_path: Path) -> None:
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()

    assert build("before", ROOT, PYTHON).source == ROOT
    assert build("before", tmp_path / "env", PYTHON).python == python
    assert build("before", python, PYTHON).source is None
    with pytest.raises(Absent, match="is no checkout of Penstock"):
        build("before", tmp_path, PYTHON)


def test_plain_source_runs_from_this_folder_and_a_compiled_wheel_without_it() -> None:
    assert usual("plain", PYTHON, PYTHON).environment()["PYTHONPATH"] == str(ROOT)
    assert "PYTHONPATH" not in usual("compiled", PYTHON, PYTHON).environment()


def test_the_core_build_is_a_folder_before_the_source() -> None:
    assert usual("core", PYTHON, PYTHON).environment()["PYTHONPATH"] == str(CORE_FOLDER)


def test_the_report_keeps_what_people_wrote_around_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "DOCUMENT", document)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    report.keep("memory", {"plain": {"entry, best": 148.2}}, 1_000_000)

    report.write()

    text = document.read_text()
    assert text.startswith(f"before\n{report.BEGIN}\n\n## Memory\n")
    assert "| entry, best | 148 |  |" in text
    assert text.endswith(f"{report.END}\nafter\n")
