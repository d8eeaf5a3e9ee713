"""Runs suites of libraries that test with fakeredis, and fakeredis's own: as they are, and with only imports changed.

    python -m tests.clients.fakeredis_suites [LIBRARY ...]

The libraries' sources, with their tests, are downloaded into build/clients/suites.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.deployments import RedisProcess

ROOT: Final = Path(__file__).parent.parent.parent
FOLDER: Final = ROOT / "build/clients/suites"
PYTHON: Final = FOLDER / "python/bin/python"
CHANGES: Final = (  # of lines, as docs/instead-of-fakeredis.md has them
    (r"^import fakeredis(\.aioredis)?$", "from penstock.testing import fake as fakeredis"),
    (r"^( *)from fakeredis(\.aioredis)? import (?!_)", r"\1from penstock.testing.fake\2 import "),
    (r"^(from fakeredis\._clients.* import .*TcpFakeServer)$", r"\1\nfrom penstock.testing.fake import TcpFakeServer"),
    (r"\"fakeredis\.", '"penstock.testing.fake.'),
)
OURS: Final = (f"{ROOT}[lua]", "redis==8.1.0")
FAKEREDIS: Final = "fakeredis[lua]==2.41.0"
LONGEST_S: Final = 1800


class Suite(NamedTuple):
    """A library with tests in its source distribution: `needs` for them, `paths` and `only` (-k, -m) tests.

    options: of pytest. redis_port: where the tests want a Redis, also those that do not use it.
    """

    library: str
    version: str
    needs: tuple[str, ...]
    paths: tuple[str, ...]
    only: str = ""
    marks: str = ""
    options: tuple[str, ...] = ()
    redis_port: int = 0

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.library.replace('-', '_')}-{self.version}"

    @property
    def changed(self) -> Path:
        """A copy with other imports."""
        return FOLDER / "changed" / self.folder.name


SUITES: Final = (
    Suite("celery-redbeat", "2.4.2", ("pytz",), ("tests",)),
    Suite("throttled-py", "3.5.0", ("pytest-asyncio",), ("tests/store", "tests/asyncio/store")),
    Suite(
        "hishel",
        "2.0.0",
        (
            "anysqlite",
            "anyio",
            "trio",
            "inline-snapshot",
            "time-machine",
            "msgpack",
            "httpx",
            "httpx2",
            "requests",
            "fastapi",
        ),
        (
            "tests/_core/_sync/test_redis_storage.py",
            "tests/_core/_async/test_redis_storage.py",
            "tests/test_sync_httpx.py",
            "tests/test_async_httpx.py",
        ),
        "redis or Redis",
    ),
    Suite(  # those on a live Redis are skipped
        "portalocker",
        "4.4.2",
        ("coverage-conditional-plugin", "pytest-cov", "pytest-rerunfailures", "pytest-timeout", "typing_extensions"),
        ("portalocker_tests/test_redis.py", "portalocker_tests/test_redis_random_sleep.py"),
        options=("--no-cov",),
    ),
    Suite(  # without those of modules of Redis, of Dragonfly, and of random requests beside a Redis
        "fakeredis",
        "2.41.0",
        ("valkey", "jsonpath-ng", "pyprobables", "pytest-asyncio", "pytest-mock", "pytest-timeout", "hypothesis"),
        (
            "test/test_mixins",
            "test/test_async",
            "test/test_tcp_server",
            "test/test_valkey",
            "test/test_internals",
            "test/test_keyspace_notifications.py",
            "test/test_subkey_notifications.py",
        ),
        marks="fake or tcp_server",
        redis_port=6390,
    ),
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
        (PYTHON, "-m", "pip", "install", FOLDER / archive, "pytest", FAKEREDIS, *suite.needs, *OURS),
        ("tar", "--extract", "--gzip", "--file", FOLDER / archive, "--directory", FOLDER),  # last: it says "installed"
    ]
    for command in commands:
        ended = run(*command, PENSTOCK_COMPILE="0")  # the tests run on the source
        if ended.returncode:
            raise RuntimeError(ended.stderr)


def change_imports(suite: Suite) -> None:
    """Copy the library's source, and change the imports of its tests."""
    shutil.copytree(suite.folder, suite.changed)
    for path in suite.changed.glob("*test*/**/*.py"):
        text = path.read_text()
        for pattern, changed in CHANGES:
            text = re.sub(pattern, changed, text, flags=re.MULTILINE)
        path.write_text(text)


def result_of(suite: Suite, folder: Path) -> str:
    """The last line that pytest says, and the tests that failed."""
    ended = run(
        PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-rfE", "-k", suite.only,
        "-m", suite.marks, *suite.options, *suite.paths, folder=folder, PYTHONPATH=str(ROOT),
    )  # fmt: skip
    lines = ended.stdout.splitlines() or [ended.stderr]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return "\n".join([lines[-1], *failed])


def results(suite: Suite) -> Iterator[str]:
    """The results of one suite, in lines."""
    yield f"{suite.library} {suite.version}"
    with ExitStack() as stack:
        if suite.redis_port:
            server = RedisProcess(FOLDER, "--port", str(suite.redis_port), "--save", "", port=suite.redis_port)
            stack.callback(server.kill)
        yield "  on fakeredis: " + result_of(suite, suite.folder)
        yield "  on penstock:  " + result_of(suite, suite.changed)


def main() -> int:
    """Install what is missing, and run the suites that are named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for suite in [one for one in SUITES if one.library in sys.argv[1:] or not sys.argv[1:]]:
        if not suite.folder.exists():
            install(suite)
        if not suite.changed.exists():
            change_imports(suite)
        for line in results(suite):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
