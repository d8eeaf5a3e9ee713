"""examples/high-availability and the compose profile `ha`: they start a master, two replicas and three Sentinels."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.deploying.started_by_script import FOLDER, NAMES, ROOT, Started, environment, write_programs
from tests.support.deployments import until
from tests.support.reference_server import NoReference

CHECK = f'exec {sys.executable} -m penstock serve --check "$@"'
SENTINELS_NAME = 'case "$6" in GET*) echo {}; echo 6379;; esac'  # of the words of redis-cli the sixth is the question


def run(tmp_path: Path, kind: str, number: int, redis_cli: str = "exit 1") -> subprocess.CompletedProcess[str]:
    """Run `start`; the server only checks its file, and the Sentinel only shows it."""
    folder = tmp_path / "volume"
    folder.mkdir(exist_ok=True)
    shutil.rmtree(tmp_path / "bin", ignore_errors=True)
    write_programs(tmp_path / "bin", redis_server=CHECK, redis_sentinel='cat "$1"', redis_cli=redis_cli)
    command = ["sh", str(FOLDER / "start"), kind]
    told = environment(tmp_path / "bin", NAMES[number], 6379, 26379)
    return subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, timeout=60)


def roles(tmp_path: Path) -> list[str]:
    """The lines of the server's file that make it a replica."""
    return re.findall("^replicaof (.*)$", (tmp_path / "volume" / "server.conf").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("number", "redis_cli", "expected"),
    [
        pytest.param(0, "exit 1", [], id="the first one, and no Sentinel"),
        pytest.param(1, "exit 1", ["127.0.1.1 6379"], id="another one, and no Sentinel"),
        pytest.param(1, SENTINELS_NAME.format("127.0.1.3"), ["127.0.1.3 6379"], id="Sentinels that name a third one"),
        pytest.param(0, SENTINELS_NAME.format("127.0.1.3"), ["127.0.1.3 6379"], id="the first one, after a failover"),
        pytest.param(0, SENTINELS_NAME.format("127.0.1.1"), [], id="the first one, of which no replica is known"),
    ],
)
def test_a_server_without_a_file_follows_the_master_that_is_named(
    tmp_path: Path, number: int, redis_cli: str, expected: list[str]
) -> None:
    ran = run(tmp_path, "server", number, redis_cli)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert roles(tmp_path) == expected


def test_a_server_keeps_the_role_that_is_in_its_file(tmp_path: Path) -> None:
    run(tmp_path, "server", 1)

    ran = run(tmp_path, "server", 1, SENTINELS_NAME.format("127.0.1.3"))

    assert ran.returncode == 0
    assert roles(tmp_path) == ["127.0.1.1 6379"]


def test_all_of_a_file_is_filled_in(tmp_path: Path) -> None:
    ran = run(tmp_path, "sentinel", 1)

    assert "sentinel monitor main 127.0.1.1 6379 2" in ran.stdout.splitlines()
    assert not re.search("@[A-Z]", ran.stdout + (tmp_path / "volume" / "sentinel.conf").read_text())


def test_the_page_shows_the_rights_that_the_example_gives_to_sentinels() -> None:
    line = re.findall("^user sentinel .* (resetchannels .*)$", (FOLDER / "server.conf").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "high-availability.md").read_text()

    assert len(line) == 1
    assert line[0] in re.sub(r" *\\\n *", " ", page)


# -- the compose profile ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="no PyYAML: run `make .venv/tested`")
    found = yaml.safe_load((ROOT / "compose.yaml").read_text())
    of_profile = {name: one for name, one in found["services"].items() if one.get("profiles") == ["ha"]}
    assert set(found["volumes"]) >= {f"{name}-data" for name in of_profile}
    return of_profile


def test_the_profile_has_three_servers_and_three_sentinels_that_run_the_script(services: dict[str, Any]) -> None:
    started = {name: one["command"] for name, one in services.items()}

    assert started == {
        f"{kind}-{number}": f"sh /etc/high-availability/start {kind}"
        for kind in ("server", "sentinel")
        for number in (1, 2, 3)
    }
    assert {one["image"] for name, one in services.items() if name.startswith("server")} == {"penstock"}


def test_each_service_has_a_volume_and_a_name_of_its_own_and_knows_the_others(services: dict[str, Any]) -> None:
    mount = "./examples/high-availability:/etc/high-availability:ro"

    assert {name: (one["hostname"], one["volumes"]) for name, one in services.items()} == {
        name: (name, [mount, f"{name}-data:/data"]) for name in services
    }
    assert {(one["environment"]["FIRST"], one["environment"]["SENTINELS"]) for one in services.values()} == {
        ("server-1", "sentinel-1 sentinel-2 sentinel-3")
    }
    assert (ROOT / mount.partition(":")[0] / "start").is_file()


def test_each_server_of_the_profile_may_write_its_volume_alone(services: dict[str, Any]) -> None:
    servers = [one for name, one in services.items() if name.startswith("server")]

    assert [(one["user"], one["read_only"], one["cap_drop"], one["security_opt"]) for one in servers] == [
        ("999:999", True, ["ALL"], ["no-new-privileges:true"])
    ] * 3


# -- real processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    with ExitStack() as stack:
        try:
            found = Started(stack, tmp_path)
        except NoReference as absence:
            pytest.skip(str(absence))
        for number in range(len(NAMES)):
            found.start("sentinel", number)
            found.start("server", number)
        found.wait_until_settled()
        yield found


@pytest.mark.slow
def test_a_master_whose_volume_was_lost_waits_for_another_one_and_takes_its_data(started: Started) -> None:
    assert started.master == 0
    started.clients[0].set("k", "v")
    assert started.clients[0].wait(2, 60_000) == 2

    started.kill("server", 0)
    shutil.rmtree(started.folder("server", 0))
    started.start("server", 0)

    until(lambda: started.master != 0, "no replica was promoted")
    started.wait_until_settled()
    assert "The data of the master is lost here" in started.said("server", 0)
    assert [one.get("k") for one in started.clients] == ["v"] * 3


@pytest.mark.slow
def test_all_that_were_stopped_find_their_roles_again(started: Started) -> None:
    started.kill("server", 0)
    until(lambda: started.master != 0, "no replica was promoted")
    started.start("server", 0)
    started.wait_until_settled()
    master = started.master

    for kind in ("server", "sentinel"):
        for number in range(len(NAMES)):
            started.kill(kind, number)
            started.start(kind, number)

    started.wait_until_settled()
    assert started.master == master
