"""The command line, up to the point where a server would start."""

import io
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from penstock import cli
from penstock.config.cluster_directives import CLUSTER
from penstock.config.directive_help import FIRST_OF_GROUP
from penstock.config.directives import USED
from penstock.config.settings import Settings
from penstock.engine.versions import BUILD, PENSTOCK_VERSION, REDIS_VERSION

ROOT = Path(__file__).parent.parent


class Started:
    """What a server would have been given."""

    def __init__(self) -> None:
        self.settings = Settings()

    def serve(self, settings: Settings, companions: Sequence[object] = ()) -> int:
        self.settings = settings
        return 7


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Stands in for penstock.server.run."""
    instead = Started()
    run = ModuleType("penstock.server.run")
    run.serve = instead.serve  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "penstock.server.run", run)
    return instead


def test_serve_starts_with_a_file_and_flags(started: Started, tmp_path: Path) -> None:
    path = tmp_path / "redis.conf"
    path.write_text("port 7000\ntimeout 5\n")

    assert cli.main(["serve", str(path), "--port", "7001", "--save", ""]) == 7
    assert started.settings.file == str(path)
    assert (started.settings.number("port"), started.settings.number("timeout")) == (7001, 5)


def test_serve_alone_starts_with_the_defaults(started: Started) -> None:
    assert cli.main(["serve"]) == 7
    assert (started.settings.text("bind"), started.settings.yes("appendonly")) == ("127.0.0.1", True)


def test_a_dash_reads_standard_input(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"port 7002\n")))

    cli.main(["serve", "-", "--timeout", "3"])

    assert (started.settings.number("port"), started.settings.number("timeout")) == (7002, 3)
    assert started.settings.file is None


def test_a_mistake_is_told_on_standard_error(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--port", "abc"]) == 1
    assert capsys.readouterr().err == (
        "*** FATAL CONFIG FILE ERROR ***\n"
        "Reading the command line\n"
        ">>> '--port abc'\n"
        "argument couldn't be parsed into an integer\n"
    )


def test_warnings_are_told_before_the_start(started: Started, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["serve", "--lookahead", "1"])

    assert capsys.readouterr().err == "warning: accepted and without effect here: lookahead\n"


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_and_the_build_are_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    python = ".".join(map(str, sys.version_info[:3]))

    assert exit_code(arguments) == 0
    assert capsys.readouterr().out.startswith(f"penstock {PENSTOCK_VERSION} ({BUILD} build, Python {python}")


def exit_code(arguments: list[str]) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as leaving:
        return int(leaving.code or 0)


def test_the_version_is_the_package_s() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == PENSTOCK_VERSION


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["serve", "--help"], 0), ([], 2), (["bogus"], 2)])
def test_help_is_given_and_nonsense_refused(arguments: list[str], code: int) -> None:
    assert exit_code(arguments) == code


def test_serve_help_names_every_directive_by_group_and_tells_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert [exit_code(["serve", "--help", *name]) for name in ([], ["appendfsync"], ["--apendfsync"])] == [0, 0, 1]

    told, refused = capsys.readouterr()
    assert [row.name for row in USED if f" {row.name}" not in told] == []
    assert {row.name for row in (*USED, *CLUSTER)} >= set(FIRST_OF_GROUP)
    assert "network:\n  port " in told
    assert "appendfsync (default: everysec)\n  When" in told
    assert refused == "There is no directive --apendfsync. Did you mean appendfsync?\n"


MISPLACED = [
    (["--port", "7000"], "`--port` is for a server: penstock serve --port 7000"),
    (
        ["redis.conf", "--requirepass", "a b"],
        "`redis.conf` is for a server: penstock serve redis.conf --requirepass 'a b'",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), MISPLACED)
def test_what_is_for_a_server_suggests_serve(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(words) == 2
    assert capsys.readouterr().err == f"{sentence}\n"


@pytest.mark.parametrize(("name", "code"), [("serve", 0), ("top", 0), ("bogus", 2)])
def test_help_of_a_subcommand_may_come_before_its_name(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["--help", name]) == code
    assert f"penstock {name}" in "".join(capsys.readouterr()) or code


# -- the directory of --dir -------------------------------------------------------------------------------------------


def test_a_directory_that_is_missing_is_made_where_its_parent_is_there(
    started: Started, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", "--dir", str(tmp_path / "data")]) == 7
    assert (tmp_path / "data").is_dir()
    assert capsys.readouterr().err == f"{tmp_path}/data is a new directory\n"
    assert cli.main(["serve", "--dir", str(tmp_path / "data")]) == 7
    assert capsys.readouterr().err == ""


def test_a_check_makes_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--dir", str(tmp_path / "data"), "--check"]) == 0
    assert list(tmp_path.iterdir()) == []


REFUSING = {
    "a file": lambda folder: cli.main(["serve", str(folder / "redis.conf")]),
    "the stand-in of redis-server": lambda folder: cli.redis_server_main(["--dir", str(folder / "data")]),
    "a directory without its parent": lambda folder: cli.main(["serve", "--dir", str(folder / "a" / "b")]),
    "install-redis-server": lambda folder: cli.main(["install-redis-server", str(folder / "data")]),
}


@pytest.mark.parametrize("start", REFUSING.values(), ids=REFUSING)
def test_elsewhere_a_directory_that_is_missing_is_refused(
    started: Started, tmp_path: Path, capsys: pytest.CaptureFixture[str], start: Callable[[Path], int]
) -> None:
    (tmp_path / "redis.conf").write_text(f"dir {tmp_path}/data\n")

    assert start(tmp_path) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 or "FATAL CONFIG FILE ERROR" in said
    assert "directory" in said
    assert [path.name for path in tmp_path.iterdir()] == ["redis.conf"]


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_redis_server_tells_its_version_in_redis_s_form(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.redis_server_main([flag]) == 0
    assert re.fullmatch(
        rf"Redis server v={REDIS_VERSION} sha=[0-9a-f]{{8}}:\d malloc=\S+ bits=64 build=penstock-\S+\n",
        capsys.readouterr().out,
    )


def test_redis_server_takes_what_compose_files_give_it(started: Started) -> None:
    flags = ["--appendonly", "yes", "--requirepass", "x", "--save", "60", "1", "--loglevel", "warning"]

    assert cli.redis_server_main(flags) == 7
    assert (started.settings.text("requirepass"), started.settings.canonical("save")) == ("x", "60 1")


def test_redis_server_help_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.redis_server_main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: redis-server ")


def test_a_server_starts_without_what_few_servers_need() -> None:
    needed_later = (
        "zstandard", "decimal", "lupa", "calendar", "penstock.engine.scripting.lua_machine",
        "penstock.engine.matching.regex_parser",
    )  # fmt: skip
    program = f"import sys, penstock.server.run; print([name for name in {needed_later} if name in sys.modules])"

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_a_compiled_server_starts_without_the_tables_of_the_uncompiled_parser() -> None:
    program = (
        "import sys; from penstock.native import build; build.IS_COMPILED = True; import penstock.server.run; "
        "print([name for name in sys.modules if name.startswith('penstock.protocol.line_')])"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
