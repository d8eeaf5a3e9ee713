"""What others make and we run: actions by commit, images by digest, tools by version.

EXCEPTIONS has what is not pinned yet, because its hash could not be looked up where it was written. The list only gets
shorter: with access to the registry, replace the tag by the hash, and remove the line here.
"""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
COMMIT: Final = re.compile(r"@[0-9a-f]{40}$")
DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")
OURS: Final = {"penstock", "penstock-examples"}  # images that a compose file builds
EXCEPTIONS: Final = {
    ".github/workflows/tests.yml: actions/checkout@v4",
    ".github/workflows/tests.yml: actions/setup-python@v5",
    ".github/workflows/wheels.yml: actions/attest-build-provenance@v3",
    ".github/workflows/wheels.yml: actions/checkout@v4",
    ".github/workflows/wheels.yml: actions/download-artifact@v4",
    ".github/workflows/wheels.yml: actions/setup-python@v5",
    ".github/workflows/wheels.yml: actions/upload-artifact@v4",
    ".github/workflows/wheels.yml: pypa/cibuildwheel@v3.2",
    ".github/workflows/wheels.yml: pypa/gh-action-pypi-publish@release/v1",
    "Dockerfile: python:${PYTHON}",
    "Dockerfile: python:${PYTHON}-slim",
    "compose.yaml: grafana/grafana",
    "compose.yaml: prom/prometheus",
    "compose.yaml: redis:8",
    "examples/kubernetes/servers.yaml: redis:8",
    "examples/migrate/compose.yaml: redis:8",
    "packaging/examples.Dockerfile: python:3.13-slim",
    "packaging/pipeline.Dockerfile: python:3.13-slim",
}


def named(pattern: str, *globs: str) -> set[str]:
    """`FILE: NAME` of what a pattern finds in the files."""
    found: set[str] = set()
    for path in [path for one in globs for path in ROOT.glob(one)]:
        names = re.findall(pattern, path.read_text(), re.MULTILINE)
        found |= {f"{path.relative_to(ROOT).as_posix()}: {name}" for name in names}
    return found


def actions() -> set[str]:
    return named(r"^\s*(?:- )?uses: (\S+)", ".github/workflows/*.yml")


def images() -> set[str]:
    in_compose = named(r"^\s*image: (\S+)", "compose.yaml", "examples/**/compose*.y*ml", "examples/kubernetes/*.yaml")
    in_builds = named(r"^FROM (\S+)", "Dockerfile", "packaging/*Dockerfile", "examples/**/*Dockerfile")
    return {one for one in in_compose | in_builds if one.split(": ")[1] not in OURS}


def test_actions_are_named_by_commit_and_images_by_digest() -> None:
    assert len(actions()) > 5 and len(images()) > 5
    unpinned = {one for one in actions() if not COMMIT.search(one)} | {
        one for one in images() if not DIGEST.search(one)
    }

    assert unpinned == EXCEPTIONS


def test_tools_that_a_workflow_runs_have_a_version() -> None:
    tools = named(r"pipx run (\S+)", ".github/workflows/*.yml")

    assert tools
    assert {one for one in tools if not re.search(r"==[0-9.]+$", one)} == set()


def test_every_installation_of_an_image_is_constrained() -> None:
    installed = named(r"(pip install [^\n]*)", "Dockerfile", "packaging/*Dockerfile")

    assert installed
    assert {one for one in installed if "--constraint" not in one} == set()
