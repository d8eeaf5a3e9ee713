"""`python -m bench [options]`: Penstock beside Redis, Valkey and fakeredis, and docs/benchmarks.md from what was seen.

Every part may be run alone, and keeps its figures in bench/results; the document is made from what is kept.
`python -m bench NAME [options]` runs one of the older scripts of this folder instead.
"""

import argparse
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import compare, growth, memory, report, results, stalls, steady, tail, wakeups
from bench.loads import LOADS
from bench.servers import FAKE, NAMES, Absent, Pythons, Server, running

SCRIPTS: Final = ("group_commit", "load_speed", "pipeline_read", "pipeline_write", "rewrite_latency")
MILLION: Final = 1_000_000


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in SCRIPTS:
        name = sys.argv.pop(1)
        runpy.run_module(f"bench.{name}", run_name="__main__")
        return 0
    args = options()
    if not sys.platform.startswith("linux"):
        sys.stderr.write("what a process costs is read from /proc, which only Linux has\n")
        return 2
    parts = args.parts.split(",")
    if unknown := [part for part in parts if part not in RUNS]:
        sys.stderr.write(f"no part is called {unknown[0]!r}: there are {', '.join(RUNS)}\n")
        return 2
    for part in parts:
        print(f"-- {part}", flush=True)
        figures = RUNS[part](args, Pythons(args.python, args.compiled_python))
        if not args.dry:
            results.keep(part, figures, entries_of(args))
    if not args.dry:
        report.write()
    return 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Penstock beside the others.")
    parser.add_argument("--parts", default=",".join(RUNS), help=f"comma between (default: {','.join(RUNS)})")
    parser.add_argument("--loads", default="", help="beginnings of names, comma between (default: all)")
    parser.add_argument("--servers", default=",".join(NAMES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the commands, a tenth of the entries")
    parser.add_argument("--largest", type=lambda word: int(float(word)), default=MILLION, help="of the growth (1e7)")
    parser.add_argument("--rate", type=int, default=20_000, help="commands a second of the steady load")
    parser.add_argument("--dry", action="store_true", help="print, and leave results and document alone")
    parser.add_argument("--python", type=Path, default=Pythons().plain, help="that runs the plain source")
    parser.add_argument("--compiled-python", type=Path, default=Pythons().compiled, help="that has a compiled wheel")
    return parser.parse_args()


@contextmanager
def started(args: argparse.Namespace, pythons: Pythons, *flags: str) -> Iterator[list[Server]]:
    """Those of the servers that can be started here, side by side."""
    with ExitStack() as stack:
        found = []
        for name in args.servers.split(","):
            try:
                found.append(stack.enter_context(running(name, *flags, pythons=pythons)))
            except Absent as absence:
                sys.stderr.write(f"{absence}\n")
        yield found


def real(args: argparse.Namespace) -> list[str]:
    """The servers that keep what they are given in bulk."""
    return [name for name in args.servers.split(",") if name != FAKE]


# -- the parts --------------------------------------------------------------------------------------------------------


def run_loads(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    chosen = [load for load in LOADS if load.name.startswith(tuple(args.loads.split(",")))]
    old = results.kept("loads")
    found = dict(old[1]) if old and len(chosen) < len(LOADS) else {}
    for policy in dict.fromkeys(load.log for load in chosen):
        flags = ("--appendonly", "yes", "--appendfsync", policy) if policy else ("--appendonly", "no")
        with started(args, pythons, *flags) as side_by_side:
            print(f"{'log ' + (policy or 'off'):<22}" + "".join(f" {server.name:>9}" for server in side_by_side))
            of_policy = [load for load in chosen if load.log == policy]
            found |= compare.measure(of_policy, side_by_side, args.rounds, 0.25 if args.quick else 1.0)
    return found


def run_tail(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    with started(args, pythons, "--appendonly", "no") as side_by_side:
        return dict(tail.measure(side_by_side, args.rounds, 0.25 if args.quick else 1.0))


def run_wakeups(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    return dict(wakeups.measure(args.servers.split(","), 1_000 if args.quick else 10_000, pythons))


def run_stalls(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    rounds = 1 if args.quick else min(args.rounds, 3)
    return dict(stalls.measure(real(args), entries_of(args), rounds, pythons))


def run_steady(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    return dict(steady.measure(real(args), entries_of(args), args.rate, 5.0 if args.quick else 30.0, pythons))


def run_memory(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    return dict(memory.measure(real(args), entries_of(args), pythons))


def run_growth(args: argparse.Namespace, pythons: Pythons) -> results.Figures:
    sizes, costs = growth.measure(
        real(args), min(args.largest, entries_of(args)) if args.quick else args.largest, pythons
    )
    return {"sizes": sizes, "costs": costs}


def entries_of(args: argparse.Namespace) -> int:
    return MILLION // 10 if args.quick else MILLION


RUNS: Final[dict[str, Callable[[argparse.Namespace, Pythons], results.Figures]]] = {
    "loads": run_loads,
    "tail": run_tail,
    "wakeups": run_wakeups,
    "stalls": run_stalls,
    "steady": run_steady,
    "memory": run_memory,
    "growth": run_growth,
}


if __name__ == "__main__":
    sys.exit(main())
