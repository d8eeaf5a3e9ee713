"""docs/cluster.md: each command line is run as it is typed, and each block of Python."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launching.test_cluster_command import Command
from tests.support.reference_server import NoReference, reference_binary

PAGE = (Path(__file__).parents[2] / "docs/cluster.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SHELL = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]


@pytest.mark.slow
def test_every_command_line_does_what_the_page_says(tmp_path: Path) -> None:
    """At other ports than the page's, which another program may have."""
    try:
        folder = reference_binary().parent
    except NoReference as absence:
        pytest.skip(str(absence))
    assert SHELL[0] == "penstock cluster 3"
    command = Command(tmp_path / "data", nodes=3)
    command.wait_until_said("The cluster is ready")
    here = {"700" + str(at): str(command.port + at) for at in range(3)}
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{folder}:{os.environ['PATH']}"}
    for line in SHELL[1:]:
        typed = re.sub(r"\b700\d\b", lambda found: here[found[0]], line)
        ran = subprocess.run(typed, shell=True, capture_output=True, text=True, env=environment, timeout=120)
        assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
        assert "ERR" not in ran.stdout, f"{line}\n{ran.stdout}"
    exec(re.sub(r"\b7000\b", str(command.port), PYTHON[0]))
    assert command.end(signal.SIGINT) == 0


@pytest.mark.slow
def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec(PYTHON[1], names)
    names["test_an_order_survives_its_node"](tmp_path)  # type: ignore[operator]  # a function
