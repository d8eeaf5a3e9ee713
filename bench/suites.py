"""What tests cost by what they talk to: a run of pytest over tests of a queue, the CPU of all its processes.

Each kind is installed as a user would, Penstock from its source and not compiled, in an environment below build/.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.servers import LOCALHOST, REDIS, REPLY_S, ROOT, Absent, Candidate

ENVIRONMENT: Final = ROOT / "build/bench-suites"
TOOLS: Final = ("fakeredis[lua]>=2.40", "pytest", "pytest-redis", "pytest-xdist")
FIXTURE, FAKEREDIS, PYTEST_REDIS = KINDS = ("fixture penstock", "fakeredis", "pytest-redis")
RUNS: Final[dict[str, tuple[int, bool, tuple[str, ...]]]] = {  # tests, with caches, options of pytest
    "1 test": (1, True, ()),
    "1, uncached": (1, False, ()),
    "200 tests": (200, True, ()),
    "200, uncached": (200, False, ()),
    "200, xdist -n 2": (200, True, ("-n", "2")),
}
GOAL: Final = 1.3  # of fakeredis's CPU, 200 tests, uncached

QUEUE: Final = """
def queue(client, number):
    job = client.xadd("jobs", {"number": number})
    client.xgroup_create("jobs", "workers", id="0")
    assert client.xreadgroup("workers", "worker", {"jobs": ">"}, count=10)[0][1][0][0] == job
    assert client.xpending("jobs", "workers")["pending"] == 1
    assert client.xack("jobs", "workers", job) == 1
    assert client.expire("jobs", 60)
"""
SETUPS: Final = {
    FIXTURE: ("penstock", ""),
    FAKEREDIS: (
        "client",
        "import fakeredis\nimport pytest\n\n\n"
        "@pytest.fixture\ndef client():\n    return fakeredis.FakeRedis(server=fakeredis.FakeServer())\n",
    ),
    PYTEST_REDIS: (
        "client",
        'from pytest_redis import factories\n\nserver = factories.redis_proc(executable="{server}", host="{host}")\n'
        'client = factories.redisdb("server")\n',
    ),
}

Costs = dict[str, dict[str, float]]  # kind -> run -> seconds of CPU


def suites(rounds: int) -> Costs:
    """The medians of the rounds, in which each kind has its turn. Absent without what it is installed from."""
    python = installed()
    server = Candidate(REDIS).command(0, Path())[0]
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-suites-") as folder:
        for _ in range(rounds + 1):  # the first one fills the caches
            for run, (tests, is_cached, options) in RUNS.items():
                for kind in KINDS:
                    file = written(Path(folder), kind, tests, server)
                    found.setdefault((kind, run), []).append(cost_s(python, file, is_cached, options))
    costs: Costs = {}
    for (kind, run), seconds in found.items():
        costs.setdefault(kind, {})[run] = median(seconds[1:])
    for kind, by_run in costs.items():
        print(f"{kind:<17}", *(f"{run} {cost:.2f} s" for run, cost in by_run.items()), sep="  ", flush=True)
    return costs


def installed() -> Path:
    """The Python of the environment, made anew if there is none."""
    python = ENVIRONMENT / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    done = subprocess.run(
        [*pip, str(ROOT), *TOOLS], env=os.environ | {"PENSTOCK_COMPILE": "0"}, capture_output=True, text=True
    )
    if done.returncode:
        raise Absent(f"{ENVIRONMENT} cannot be made: {done.stderr[-300:]}")
    return python


def written(folder: Path, kind: str, tests: int, server: str) -> Path:
    fixture, setup = SETUPS[kind]
    file = folder / f"test_{kind.replace(' ', '_').replace('-', '_')}_{tests}.py"
    text = setup.format(server=server, host=LOCALHOST) + QUEUE
    text += "".join(f"\n\ndef test_{at}({fixture}):\n    queue({fixture}, {at})\n" for at in range(tests))
    if not file.exists():
        file.write_text(text)
    return file


def cost_s(python: Path, file: Path, is_cached: bool, options: Sequence[str]) -> float:
    """Seconds of CPU of a run and all processes that it waited for."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    uncached = ("-p", "no:cacheprovider")
    if not is_cached:
        variables["PYTHONDONTWRITEBYTECODE"] = "1"
        options = [*options, *uncached]
    was_s = of_children_s()
    words = [str(python), "-m", "pytest", "-q", *options, str(file)]
    subprocess.run(words, check=True, cwd=file.parent, env=variables, timeout=REPLY_S, stdout=subprocess.DEVNULL)
    return of_children_s() - was_s


def of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_fakeredis(costs: Costs, kind: str, run: str) -> float:
    """A kind's CPU beside fakeredis's."""
    return costs[kind][run] / costs[FAKEREDIS][run]
