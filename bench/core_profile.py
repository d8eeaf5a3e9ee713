"""`python -m bench.core_profile`: which modules the core build compiles, into packaging/core_modules.txt.

Under every load of `make bench` (its parts `loads`, `singles` and `queues`), and under the frameworks of `make clients`
that are installed, a server tells how long it was in each module (bench/profiled_server.py). In the core are the
modules that have nearly all of the time under any of them; and whatever the load, those of `always_in_core`.
"""

import importlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Final

from bench.costs import Turn
from bench.loads import LOADS, Load
from bench.queues import PHASES, run_phase
from bench.servers import ROOT, WITHOUT_LOG, Absent, Candidate, Server, packed, running
from bench.singles import ONE_AT_A_TIME, SingleLoad, SingleTurn

SHARE: Final = 0.99  # of our code's time under each load that is to be in the core
SHARE_OF_FRAMEWORKS: Final = 0.9  # lower: their profiles also have the start and every connection
SCALE: Final = 0.25  # of a load's requests
PATIENCE_S: Final = 30.0
LOOK_EVERY_S: Final = 0.01
PROFILED: Final = "bench.profiled_server"
VERSIONS: Final = "penstock/engine/versions.py"  # that it is not in the core tells the core from the whole build

Seconds = dict[str, float]  # path of a module -> how long the server was in it


# -- the profiles -----------------------------------------------------------------------------------------------------


class Profiled(Candidate):
    """The server that tells its modules' times."""

    __slots__ = ()

    def command(self, port: int, directory: Path, faulty: bool = False) -> list[str]:
        return [str(self.python), "-m", PROFILED, "--port", str(port), "--dir", str(directory)]


def of_loads(folder: Path) -> Iterator[tuple[str, Seconds]]:
    candidate = Profiled("profiled", Path(sys.executable), ROOT)
    loads: list[Load | SingleLoad] = [*LOADS, *ONE_AT_A_TIME]
    for policy in dict.fromkeys(load.log for load in loads):
        flags = ("--appendonly", "yes", "--appendfsync", policy) if policy else WITHOUT_LOG
        with running(candidate, *flags, variables={"PROFILE_INTO": str(folder)}) as server:
            for load in loads:
                if load.log == policy:
                    yield load.name, of_load(load, server, folder)


def of_load(load: Load | SingleLoad, server: Server, folder: Path) -> Seconds:
    """One round, without what prepares it."""
    turn: Turn | SingleTurn
    if isinstance(load, SingleLoad):
        size = int(load.requests * SCALE)
        turn = single = SingleTurn(load, server, size)
        os.kill(server.pid, signal.SIGUSR1)
        single.slice(size)
    else:
        requests = list(load.timed(max(load.batch, int(load.requests * SCALE))))
        batches = [requests[at : at + load.batch] for at in range(0, len(requests), load.batch)]
        turn = Turn(load, server, [(packed(batch), len(batch)) for batch in batches], keep_replies=False)
        turn.prepare(len(requests))
        os.kill(server.pid, signal.SIGUSR1)
        turn.slice(0, len(batches))
    os.kill(server.pid, signal.SIGUSR1)
    turn.close()
    return told(load.name, folder)


def of_queue(folder: Path) -> Iterator[tuple[str, Seconds]]:
    """Each phase of a queue's life; none where the package is not installed."""
    candidate = Profiled("profiled", Path(sys.executable), ROOT)
    with running(candidate, *WITHOUT_LOG, variables={"PROFILE_INTO": str(folder)}) as server:
        for phase, jobs in PHASES.items():
            os.kill(server.pid, signal.SIGUSR1)
            try:
                run_phase(server, phase, int(jobs * SCALE))
            except Absent:
                yield f"queue, {phase}", {}
                return
            os.kill(server.pid, signal.SIGUSR1)
            yield f"queue, {phase}", told(phase, folder)


def told(load: str, folder: Path) -> Seconds:
    """What the server writes when its profile ends."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := taken(folder)):
        assert time.monotonic() < deadline_s, f"{load}: the server wrote no profile"
        time.sleep(LOOK_EVERY_S)
    return found


def of_frameworks(folder: Path) -> Iterator[tuple[str, Seconds]]:
    """Each framework's course, until its server is stopped half-way."""
    from tests.clients import servers
    from tests.clients.frameworks import FRAMEWORKS
    from tests.clients.report import ran

    program = folder / "server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {PROFILED} "$@"\n')
    program.chmod(0o755)
    os.environ |= {servers.NAMED: str(program), "PROFILE_INTO": str(folder), "PROFILE_FROM_START": "yes"}
    for framework in FRAMEWORKS:
        ran(framework)
        yield framework.name, taken(folder)


def taken(folder: Path) -> Seconds:
    """What servers wrote since the last call; nothing if they wrote nothing."""
    total: Seconds = {}
    for file in folder.glob("*.json"):
        for module, seconds in json.loads(file.read_text()).items():
            total[module] = total.get(module, 0.0) + seconds
        file.unlink()
    return total


# -- the choice -------------------------------------------------------------------------------------------------------


def busiest(seconds: Seconds, compilable: set[str], share: float) -> Iterator[str]:
    """The modules that have this share of the time of all that can be compiled, the longest first."""
    left = share * sum(seconds.get(module, 0.0) for module in compilable)
    for module in sorted(compilable & seconds.keys(), key=seconds.__getitem__, reverse=True):
        if left <= 0:
            return
        left -= seconds[module]
        yield module


def always_in_core(compilable: set[str]) -> set[str]:
    """What branches on IS_COMPILED, and the loops that are written for compiled code and chosen by such a branch."""
    branching = {module for module in compilable if re.search(r"\bIS_COMPILED\b", (ROOT / module).read_text())}
    native = {module for module in compilable if "/native" in module}
    return (branching | native) - {VERSIONS}


def with_relatives(chosen: set[str], compilable: set[str]) -> set[str]:
    """Those and what their classes extend, and what extends these: all of a family of classes is compiled, or none."""
    families = [(module, base) for module in compilable for base in bases(module) & compilable]
    found = set(chosen)
    while True:
        added = {one for pair in families if not found.isdisjoint(pair) for one in pair} - found
        if not added:
            return found
        found |= added


def bases(module: str) -> set[str]:
    """The other modules in which the bases of a module's classes are."""
    name = module.removesuffix(".py").replace("/", ".")
    classes = [one for one in vars(importlib.import_module(name)).values() if isinstance(one, type)]
    of_own = {base.__module__ for one in classes if one.__module__ == name for base in one.__bases__}
    return {base.replace(".", "/") + ".py" for base in of_own - {name}}


def main() -> int:
    compiling = run_path(str(ROOT / "packaging/compiling.py"))
    compilable = set(compiling["sources"](ROOT))
    chosen = always_in_core(compilable)
    with tempfile.TemporaryDirectory(prefix="penstock-profile-") as name:
        folder = Path(name)
        for profiles, share in ((of_loads, SHARE), (of_queue, SHARE), (of_frameworks, SHARE_OF_FRAMEWORKS)):
            for of, seconds in profiles(folder):
                new = [module for module in busiest(seconds, compilable, share) if module not in chosen]
                chosen.update(new)
                shown = f"{sum(seconds.values()):.2f} s {' '.join(new)}" if seconds else "not there"
                print(f"{of}: {shown}", flush=True)
    core = sorted(with_relatives(chosen, compilable))
    (ROOT / compiling["CORE_LIST"]).write_text("".join(f"{module}\n" for module in core))
    print(f"{len(core)} of {len(compilable)} modules are the core: {compiling['CORE_LIST']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
