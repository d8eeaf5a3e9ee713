"""Runs suites of libraries that test with fakeredis: on fakeredis, on embedded servers, and on a server by its URL.

    python -m tests.clients.fakeredis_suites [redis://127.0.0.1:6399]

The server at the URL is emptied. The libraries' sources, with their tests, are downloaded into build/clients/suites.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
FOLDER: Final = ROOT / "build/clients/suites"
PYTHON: Final = FOLDER / "python/bin/python"
PLUGIN: Final = "in_place_of_fakeredis"  # beside this file: the suites have a package `tests` of their own
OURS: Final = (f"{ROOT}[lua]", "redis==8.1.0")
FAKEREDIS: Final = "fakeredis[lua]==2.40.0"
LONGEST_S: Final = 1800


class Suite(NamedTuple):
    """A library with tests in its source distribution; `needs` are their packages, `paths` the tests."""

    library: str
    version: str
    needs: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.library.replace('-', '_')}-{self.version}"


SUITES: Final = (
    Suite("celery-redbeat", "2.4.2", ("pytz",), ("tests",)),
    Suite("throttled-py", "3.5.0", ("pytest-asyncio",), ("tests/store", "tests/asyncio/store")),
)


def run(*words: str | Path, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )


def install(suite: Suite) -> None:
    """Unpack the library's source, and install it with what its tests need. RuntimeError where that fails."""
    pinned = f"{suite.library}=={suite.version}"
    archive = f"{suite.folder.name}.tar.gz"
    commands: list[tuple[str | Path, ...]] = [
        (sys.executable, "-m", "venv", PYTHON.parent.parent),
        (PYTHON, "-m", "pip", "download", "--no-deps", "--no-binary", suite.library, "--dest", FOLDER, pinned),
        ("tar", "--extract", "--gzip", "--file", FOLDER / archive, "--directory", FOLDER),
        (PYTHON, "-m", "pip", "install", suite.folder, "pytest", FAKEREDIS, *suite.needs, *OURS),
    ]
    for command in commands:
        ended = run(*command)
        if ended.returncode:
            raise RuntimeError(ended.stderr)


def result_of(suite: Suite, *options: str, **environment: str) -> str:
    """The last line that pytest says, and the tests that failed."""
    ended = run(
        PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *options, *suite.paths,
        folder=suite.folder, PYTHONPATH=f"{ROOT}:{HERE}", **environment,
    )  # fmt: skip
    lines = ended.stdout.splitlines() or [ended.stderr]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return "\n".join([lines[-1], *failed])


def told(suite: Suite, urls: list[str]) -> Iterator[str]:
    """The results of one suite, in lines."""
    yield f"{suite.library} {suite.version}"
    yield "  on fakeredis: " + result_of(suite, "-p", "no:penstock")
    yield "  on penstock:  " + result_of(suite, "-p", PLUGIN)
    for url in urls:
        yield f"  on {url}: " + result_of(suite, "-p", PLUGIN, SUITE_URL=url)


def main(urls: list[str]) -> int:
    """Install what is missing, and run all suites."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for suite in SUITES:
        if not suite.folder.exists():
            install(suite)
        for line in told(suite, urls):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
