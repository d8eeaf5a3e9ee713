"""Compare Penstock with a real Redis for as long as one likes: `python -m tests.against_redis.run --minutes 30`."""

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Iterator

from tests.against_redis import blocked_clients
from tests.against_redis.comparison import Comparison, report, scenario_of
from tests.against_redis.dialogues import compare as compare_dialogues
from tests.against_redis.generator import Generator
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hyperloglogs import HyperLogLogs
from tests.against_redis.makers.places import Places
from tests.against_redis.makers.sizes import MEASURED
from tests.against_redis.queue_scenes import QueueScenes
from tests.against_redis.scenes import Scenes
from tests.against_redis.talkers import Cluster, Hindered, Tracking
from tests.against_redis.typed import MAKERS, compare_types
from tests.support.compared_sides import InProcess, Piped, known_by
from tests.support.reference_knowledge import Known
from tests.support.reference_server import NoReference, reference_binary, reference_cluster, reference_server
from tests.support.server_process import running_server

REQUESTS = 2000  # a scenario
MAKERS_BY_NAME = {
    maker.__name__.lower(): maker for maker in (*MAKERS, *MEASURED, HyperLogLogs, Places) if maker is not Anything
}


def compare(
    reference: Piped, known: Known, port: int, seed: str, requests: int, compat_version: str = "newest"
) -> tuple[Comparison, str]:
    """A run of so many random requests with one seed, and the first difference as a text.

    port: of a Penstock to compare with; 0: an engine in this process is compared.
    """
    comparison = Comparison(reference, known, Piped(port) if port else InProcess(compat_version))
    for number in range(-(-requests // REQUESTS)):
        named = f"{seed}/{number}"
        scenario = scenario_of(named, Generator(random.Random(named), known), min(REQUESTS, requests))
        difference = comparison.first_difference(scenario)
        if difference is not None:
            return comparison, report(*comparison.shrunk(scenario, difference))
    return comparison, ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.against_redis.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long (default: when --runs are done)")
    parser.add_argument("--runs", type=int, default=0, help="how many seeds (default: 1, or as the minutes allow)")
    parser.add_argument("--commands", type=int, default=200_000, help="requests of a run (default: %(default)s)")
    parser.add_argument("--scenarios", type=int, default=2000, help="of a run with --blocking (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="the first run's seed (default: a fresh one)")
    parser.add_argument("--blocking", action="store_true", help="compare which clients are woken, and when, instead")
    parser.add_argument(
        "--types",
        action="store_true",
        help="compare requests over all types of values instead (--blocking: those that wait)",
    )
    parser.add_argument(
        "--makers",
        nargs="+",
        choices=sorted(MAKERS_BY_NAME),
        default=[],
        help="with --types: only requests of these makers, and about keys of any type (default: those of all types)",
    )
    parser.add_argument("--tracking", action="store_true", help="compare what clients are told that track keys instead")
    parser.add_argument("--hindered", action="store_true", help="compare what a server refuses for its state instead")
    parser.add_argument("--cluster", action="store_true", help="compare the clients of a cluster of one instead")
    parser.add_argument("--tcp", action="store_true", help="compare a Penstock process instead of an engine")
    parser.add_argument("--reference", default="redis", help="redis, valkey, or a server's path (default: %(default)s)")
    parser.add_argument(
        "--compat-version",
        default="newest",
        help="of the engine that is compared; what the reference does not know is sent too (default: %(default)s)",
    )
    chosen = parser.parse_args()
    makers = (Anything, *(MAKERS_BY_NAME[name] for name in chosen.makers)) if chosen.makers else MAKERS
    first = random.SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    ends = time.monotonic() + chosen.minutes * 60
    most = chosen.runs or (sys.maxsize if chosen.minutes else 1)
    failed = total = runs = 0
    try:
        with server_to_compare_with(chosen.reference, chosen.cluster) as port, penstock(chosen.tcp) as ours:
            known = known_by(port, strict=chosen.compat_version != "newest")
            say(f"compared with Redis {'.'.join(map(str, known.version))}")
            for seed in range(first, first + most):
                if chosen.minutes and time.monotonic() > ends:
                    break
                started = time.monotonic()
                if chosen.blocking:
                    kind = QueueScenes if chosen.types else Scenes
                    counted, found = blocked_clients.compare(port, known, ours, str(seed), chosen.scenarios, kind)
                elif chosen.tracking or chosen.cluster or chosen.hindered:
                    talker = Cluster if chosen.cluster else Hindered if chosen.hindered else Tracking
                    handled, found = compare_dialogues(port, known, str(seed), chosen.commands, talker)
                    counted = f"{handled} requests"
                    total += handled
                elif chosen.types:
                    with contextlib.closing(Piped(port)) as reference:
                        typed, found = compare_types(reference, known, str(seed), chosen.commands, makers)
                    counted = f"{typed.handled} requests, {typed.refused} of them refused"
                    total += typed.handled
                else:
                    with contextlib.closing(Piped(port)) as reference:
                        comparison, found = compare(
                            reference, known, ours, str(seed), chosen.commands, chosen.compat_version
                        )
                    counted = f"{comparison.handled} requests, {comparison.refused} of them refused"
                    total += comparison.handled
                runs += 1
                failed += bool(found)
                taken = time.monotonic() - started
                say(f"seed {seed}: {counted}, {taken:.0f} s: {found or 'no difference'}")
    except NoReference as absence:
        say(str(absence))
        return 2
    say(f"{runs} runs, {total} requests, {failed} runs with a difference")
    return 1 if failed else 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def server_to_compare_with(kind: str, in_cluster: bool) -> contextlib.AbstractContextManager[int]:
    """Its port."""
    binary = reference_binary(kind)
    return reference_cluster(binary) if in_cluster else reference_server(binary=binary)


@contextlib.contextmanager
def penstock(wanted: bool) -> Iterator[int]:
    """The port of a Penstock process, or 0 where an engine in this process is compared."""
    if not wanted:
        yield 0
        return
    with running_server("--appendonly", "no") as server:
        yield server.port


if __name__ == "__main__":
    sys.exit(main())
