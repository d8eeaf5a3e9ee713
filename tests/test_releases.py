"""What a release is made of: its name, its files, and the program redis-server that is made on request."""

import argparse
import configparser
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from penstock import redis_server_script
from penstock.config.settings import Settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def install(folder: Path) -> int:
    return redis_server_script.main(argparse.Namespace(folder=folder))


def test_redis_server_is_penstock_where_it_was_asked_for(tmp_path: Path) -> None:
    assert install(tmp_path) == 0

    done = subprocess.run(
        [tmp_path / "redis-server", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert "build=penstock-" in done.stdout
    assert install(tmp_path) == 0


def test_a_redis_server_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "redis-server"
    other.write_bytes(b"\x7fELF\xff")

    assert install(tmp_path) == 1
    assert "stays as it is" in capsys.readouterr().err
    assert other.read_bytes() == b"\x7fELF\xff"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install(tmp_path / "no") == 1
    assert f"cannot write {tmp_path / 'no' / 'redis-server'}: No such file or directory" in capsys.readouterr().err


def test_the_distribution_has_a_name_of_its_own_and_every_extra() -> None:
    project = PROJECT["project"]

    assert project["name"] == "penstock-server"
    assert {"spark", "testing", "metrics", "console", "plot", "lua", "top"} <= set(project["optional-dependencies"])
    assert set(project["scripts"]) == {"penstock"}


def test_wheels_are_built_for_every_python_that_the_classifiers_name() -> None:
    named = [one.rpartition(" :: ")[2] for one in PROJECT["project"]["classifiers"] if ":: 3." in one]

    assert PROJECT["tool"]["cibuildwheel"]["build"] == " ".join(f"cp{one.replace('.', '')}-*" for one in named)


def test_the_directives_of_the_systemd_unit_are_known() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # names of units have capitals
    unit.read(ROOT / "packaging" / "penstock.service")
    words = unit["Service"]["ExecStart"].split()

    flags = [word.removeprefix("--") for word in words if word.startswith("--")]
    assert flags == ["supervised", "dir"]
    assert all(Settings.row(flag) is not None for flag in flags)


@pytest.mark.slow
def test_an_installed_penstock_passes_the_smoke_test() -> None:
    smoke = [sys.executable, str(ROOT / "packaging" / "smoke.py")]
    done = subprocess.run(
        smoke, capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )

    assert done.returncode == 0, done.stderr
    assert "serves, keeps and restarts" in done.stdout
