"""`python -m bench [options]`: Penstock beside Redis, Valkey and fakeredis, and docs/benchmarks.md from the figures.

Each part may be run alone. Its figures are kept in bench/results, and the document is made from what is kept. With
`--builds before=PATH after=PATH` builds of Penstock are compared in one run instead, and nothing is kept.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from bench import costs, latency, log, nodes, queues, report, scale, singles, sizes, suites
from bench.loads import LOADS, RESTRICTED
from bench.servers import FAKE, NAMES, PEERS, ROOT, Absent, Candidate, Server, build, running, usual
from bench.singles import ONE_AT_A_TIME

MILLION: Final = 1_000_000
POLICIES: Final = ("no", "everysec", "always", "off")


class Plan:
    """Which servers are measured, and how much; `quick`: a tenth of the entries, a quarter of the requests."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.quick: bool = args.quick
        self.entries: int = args.entries // 10 if args.quick else args.entries
        self.scale = 0.25 if args.quick else 1.0
        self.rounds: int = args.rounds
        self.few_rounds: int = 1 if args.quick else min(args.rounds, 3)
        self.builds = [build(name, path, args.python) for name, path in args.builds]
        usual_names = PEERS if self.builds else NAMES
        names = usual_names if args.servers is None else args.servers.split(",")
        others = [usual(name, args.python, args.compiled_python) for name in names if name]
        self.candidates = [*self.builds, *present(others)]

    @property
    def compared(self) -> list[str]:
        return [candidate.name for candidate in self.builds]

    @property
    def real(self) -> list[Candidate]:
        """The servers that can be given a million entries."""
        return [candidate for candidate in self.candidates if candidate.name != FAKE]


def present(candidates: list[Candidate]) -> list[Candidate]:
    """Those that are there; the others are named."""
    found = []
    for candidate in candidates:
        try:
            candidate.command(0, Path())
            found.append(candidate)
        except Absent as absence:
            sys.stderr.write(f"{absence}\n")
    return found


def named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path) or name in NAMES:
        raise argparse.ArgumentTypeError(f"NAME=PATH, with a name other than {', '.join(NAMES)}; not {text!r}")
    return name, Path(path)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Penstock beside other servers.")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"by comma (default: {','.join(PARTS)})")
    parser.add_argument("--loads", default="", help="of the parts `loads` and `singles`: beginnings of names, by comma")
    parser.add_argument(
        "--servers", default=None, help=f"by comma (default: {','.join(NAMES)}; with --builds: {','.join(PEERS)})"
    )
    parser.add_argument("--builds", nargs="+", default=[], type=named_path, metavar="NAME=PATH",
                        help="builds of Penstock to compare: checkouts, virtual environments, or Pythons")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the commands, a tenth of the entries")
    parser.add_argument("--entries", type=whole, default=MILLION, help="of a large stream (1e6)")
    parser.add_argument("--largest", type=whole, default=10 * MILLION, help="of the part `growth` (1e7)")
    parser.add_argument("--rate", type=int, default=20_000, help="commands a second of a steady load")
    parser.add_argument("--policy", default="everysec", choices=POLICIES, help="appendfsync of rewrite and spark-write")
    parser.add_argument("--master", default="local[2]", help="Spark's")
    parser.add_argument("--dry", action="store_true", help="print, and leave results and document alone")
    parser.add_argument("--python", type=absolute, default=Path(sys.executable), help="that runs the plain source")
    parser.add_argument("--compiled-python", type=absolute, default=ROOT / "build/compiled/bin/python",
                        help="that has a compiled wheel")  # fmt: skip
    args = parser.parse_args()
    if unknown := [part for part in args.parts.split(",") if part not in PARTS]:
        parser.error(f"no part is called {unknown[0]!r}: there are {', '.join(PARTS)}")
    if args.policy == "off" and "rewrite" in args.parts.split(","):
        parser.error("the part `rewrite` needs a log: --policy off is for spark-write alone")
    return args


def absolute(text: str) -> Path:
    """A path that holds in another working directory, too: a server runs in one of its own."""
    return Path(text).absolute()


def whole(text: str) -> int:
    return int(float(text))


def main() -> int:
    args = options()
    if not sys.platform.startswith("linux"):
        sys.stderr.write("what a process uses is read from /proc, which only Linux has\n")
        return 2
    try:
        plan = Plan(args)
    except Absent as absence:
        sys.stderr.write(f"{absence}\n")
        return 2
    is_kept = not (args.dry or plan.builds)
    for part in args.parts.split(","):
        print(f"-- {part}", flush=True)
        try:
            figures = PARTS[part](plan)
        except Absent as absence:
            sys.stderr.write(f"{part} left out: {absence}\n")
            continue
        if is_kept:
            report.keep(part, figures, plan.entries)
    if is_kept:
        report.write()
    return 0


# -- the parts --------------------------------------------------------------------------------------------------------


@contextmanager
def started(candidates: list[Candidate], *flags: str) -> Iterator[list[Server]]:
    """All servers that start, side by side; the others are named."""
    with ExitStack() as stack:
        servers = []
        for candidate in candidates:
            try:
                servers.append(stack.enter_context(running(candidate, *flags)))
            except Absent as absence:
                sys.stderr.write(f"{absence}\n")
        yield servers


def by_log(plan: Plan, part: str, loads: Sequence[Any], measure: Callable[..., Mapping[str, Any]]) -> dict[str, Any]:
    """load -> figures of those that --loads names, each on servers that keep its log; of the others what was kept."""
    chosen = [load for load in loads if load.name.startswith(tuple(plan.args.loads.split(",")))]
    kept = report.kept(part)
    found: dict[str, Any] = dict(kept[1]) if kept and len(chosen) < len(loads) else {}
    for policy in dict.fromkeys(load.log for load in chosen):
        flags = ("--appendonly", "yes", "--appendfsync", policy) if policy else ("--appendonly", "no")
        with started(plan.candidates, *flags) as servers:
            print(f"{'log ' + (policy or 'off'):<22}" + "".join(f" {server.name:>9}" for server in servers))
            of_policy = [load for load in chosen if load.log == policy]
            found |= measure(of_policy, servers, plan.rounds, plan.scale, plan.compared)
    return found


def run_loads(plan: Plan) -> dict[str, Any]:
    return by_log(plan, "loads", LOADS, costs.pipelined)


def run_restricted(plan: Plan) -> dict[str, Any]:
    chosen = [load for load in LOADS if load.name in RESTRICTED]
    with started(plan.real, "--appendonly", "no") as servers:
        return dict(costs.restricted(chosen, servers, plan.rounds, plan.scale))


def run_singles(plan: Plan) -> dict[str, Any]:
    return by_log(plan, "singles", ONE_AT_A_TIME, singles.one_at_a_time)


def run_queues(plan: Plan) -> dict[str, Any]:
    return dict(queues.bullmq(plan.real, 0.1 if plan.quick else 1.0, plan.few_rounds))


def run_nodes(plan: Plan) -> dict[str, Any]:
    return dict(nodes.nodes(plan.real, 0.1 if plan.quick else 1.0, plan.few_rounds))


def run_suites(plan: Plan) -> dict[str, Any]:
    return dict(suites.suites(plan.few_rounds))


def run_starts(plan: Plan) -> dict[str, Any]:
    return dict(latency.starts(plan.real, 5 if plan.quick else 21))


def run_wakeups(plan: Plan) -> dict[str, Any]:
    return dict(latency.wakeups(plan.candidates, 1_000 if plan.quick else 10_000))


def run_stalls(plan: Plan) -> dict[str, Any]:
    return dict(latency.stalls(plan.real, plan.entries, plan.few_rounds))


def run_steady(plan: Plan) -> dict[str, Any]:
    return dict(latency.steady(plan.real, plan.entries, plan.args.rate, 5.0 if plan.quick else 30.0))


def run_memory(plan: Plan) -> dict[str, Any]:
    return dict(scale.memory(plan.real, plan.entries))


def run_growth(plan: Plan) -> dict[str, Any]:
    sizes, of_server = scale.growth(
        plan.real, min(plan.args.largest, plan.entries) if plan.quick else plan.args.largest
    )
    return {"sizes": sizes, "costs": of_server}


def run_sizes(plan: Plan) -> dict[str, Any]:
    return dict(sizes.sizes(plan.real, min(plan.args.largest, plan.entries)))


def run_policies(plan: Plan) -> dict[str, Any]:
    return dict(latency.policies(plan.real, plan.entries))


def run_group_commit(plan: Plan) -> dict[str, Any]:
    return dict(log.group_commit(plan.real, 1.0 if plan.quick else 5.0, plan.few_rounds))


def run_rewrite(plan: Plan) -> dict[str, Any]:
    seconds = 2.0 if plan.quick else 10.0
    return dict(log.rewrite(plan.real, plan.entries, plan.args.rate, seconds, plan.few_rounds, plan.args.policy))


def run_loading(plan: Plan) -> dict[str, Any]:
    return dict(log.loading(plan.real, plan.entries * 3 // 10, plan.entries // 10, plan.few_rounds))


def run_snapshots(plan: Plan) -> dict[str, Any]:
    return dict(scale.snapshots(plan.real, plan.entries, plan.few_rounds))


def run_spark_read(plan: Plan) -> dict[str, Any]:
    samples = 5 if plan.quick else 60
    return dict(spark().read(plan.real, plan.entries * 2, plan.few_rounds, samples, plan.args.master))


def run_spark_write(plan: Plan) -> dict[str, Any]:
    rows, letters = plan.entries * 2, plan.entries // 10
    return dict(spark().write(plan.real, rows, letters, plan.few_rounds, plan.args.policy, plan.args.master))


def spark() -> Any:
    """The module, imported only where it is used: it needs the extra `spark`."""
    try:
        from bench import spark
    except ImportError as missing:
        raise Absent(f"{missing} (`make spark` installs Spark)") from None
    return spark


PARTS: Final[dict[str, Callable[[Plan], dict[str, Any]]]] = {
    "loads": run_loads,
    "restricted": run_restricted,
    "singles": run_singles,
    "queues": run_queues,
    "nodes": run_nodes,
    "suites": run_suites,
    "starts": run_starts,
    "wakeups": run_wakeups,
    "stalls": run_stalls,
    "steady": run_steady,
    "memory": run_memory,
    "growth": run_growth,
    "sizes": run_sizes,
    "policies": run_policies,
    "group-commit": run_group_commit,
    "rewrite": run_rewrite,
    "loading": run_loading,
    "snapshots": run_snapshots,
    "spark-read": run_spark_read,
    "spark-write": run_spark_write,
}


if __name__ == "__main__":
    sys.exit(main())
