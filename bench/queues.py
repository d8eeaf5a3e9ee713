"""What a queue's own load costs: BullMQ, unmodified, adds jobs, works through them and removes some.

Each phase is a Node process of its own; the server's CPU time for it counts. The scripts are those of the package that
`make clients` installs.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench.servers import REPLY_S, ROOT, WITHOUT_LOG, Absent, Candidate, Link, Server, cpu_ns, of_better_peer, running

PACKAGES: Final = ROOT / "build/clients/npm"
PROGRAM: Final = Path(__file__).parent / "bullmq.mjs"
JOBS: Final = 10_000
REMOVED: Final = 4_000
PHASES: Final = {"add": JOBS, "work": JOBS, "remove": REMOVED}  # and the jobs of each
GOAL: Final = 1.5  # of the better peer's CPU time, compiled

Costs = dict[str, dict[str, float]]  # server -> phase -> seconds of CPU


def bullmq(candidates: Sequence[Candidate], scale: float, rounds: int) -> Costs:
    """The medians of the rounds, in which each server has its turn. Absent without Node or the package."""
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for candidate in candidates:
            for phase, cost_s in life(candidate, scale).items():
                found.setdefault(candidate.name, {}).setdefault(phase, []).append(cost_s)
    costs = {name: {phase: median(rows) for phase, rows in phases.items()} for name, phases in found.items()}
    for name, phases in costs.items():
        texts = (f"{phase} {cost_s:.2f} s, {of_peer(costs, name, phase):.2f}" for phase, cost_s in phases.items())
        print(f"{name:<10}", *texts, sep="  ", flush=True)
    return costs


def life(candidate: Candidate, scale: float) -> dict[str, float]:
    """phase -> seconds of the server's CPU."""
    found = {}
    with running(candidate, *WITHOUT_LOG) as server:
        for phase, jobs in PHASES.items():
            was_ns = cpu_ns(server.pid)
            run_phase(server, phase, int(jobs * scale))
            found[phase] = (cpu_ns(server.pid) - was_ns) / 1e9
        with Link(server.port) as link:
            left = link.ask(b"ZCARD", b"bull:jobs:completed")
            assert left == int(JOBS * scale) - int(REMOVED * scale), f"{left} completed jobs are left"
    return found


def run_phase(server: Server, phase: str, jobs: int) -> None:
    """A phase by a Node process. Absent without Node or the package."""
    node = shutil.which("node")
    if node is None or not (PACKAGES / "node_modules/bullmq").exists():
        raise Absent(f"no Node, or no BullMQ in {PACKAGES}: `make clients` installs it")
    words = [node, str(PROGRAM), str(PACKAGES), str(server.port), phase, str(jobs)]
    subprocess.run(words, check=True, timeout=REPLY_S)


def of_peer(costs: Costs, name: str, phase: str) -> float:
    """A server's CPU beside the cheaper of the peers; 0 if none of them ran."""
    return of_better_peer({server: phases[phase] for server, phases in costs.items()}, name)
