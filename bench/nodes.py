"""What several processes give: a cluster of 1, 2, 4 and 8 nodes on this machine, under Redis's own load generator.

redis-benchmark adds entries to streams of all nodes, by clients that wait for each reply and by pipelines. A node more
than the machine has cores can only share them: the CPU time of a request says what that costs.
"""

import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from bench.servers import (
    LOCALHOST,
    REDIS,
    REPLY_S,
    START_S,
    WITHOUT_LOG,
    Absent,
    Candidate,
    Link,
    Server,
    answers,
    cpu_ns,
    information,
    of_better_peer,
    running,
    wait_for_end,
)  # fmt: skip

NODES: Final = (1, 2, 4, 8)
CLIENTS: Final = 48
DEPTHS: Final = {"waiting": 1, "pipelines of 16": 16}
REQUESTS: Final = {"waiting": 100_000, "pipelines of 16": 400_000}
SLOTS: Final = 16_384
PORTS: Final = (12_000, 32_000)
RATE: Final = re.compile(r"([\d.]+) requests per second")
LOOK_EVERY_S: Final = 0.05
CLUSTERED: Final = ("--cluster-enabled", "yes", *WITHOUT_LOG, "--cluster-port")  # and the port

Costs = dict[str, dict[str, dict[str, dict[str, float]]]]  # server -> nodes -> load -> requests a second, us of CPU


def nodes(candidates: Sequence[Candidate], scale: float, rounds: int) -> Costs:
    """The medians of the rounds, in which each server has its turn. Absent without redis-benchmark."""
    program = benchmark()
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for count in NODES:
            for candidate in candidates:
                with cluster(candidate, count) as (port, pids):
                    for load in DEPTHS:
                        figures = run(program, port, pids, load, int(REQUESTS[load] * scale))
                        found.setdefault((candidate.name, str(count), load), []).append(figures)
    costs: Costs = {}
    for (name, count_text, load), measured in found.items():
        rate, cpu_us = (median(column) for column in zip(*measured, strict=True))
        costs.setdefault(name, {}).setdefault(count_text, {})[load] = {"rate": rate, "cpu_us": cpu_us}
        print(f"{name:<10} {count_text} {load:<16} {rate:>9,.0f} a second {cpu_us:6.2f} us of CPU", flush=True)
    return costs


def benchmark() -> Path:
    words = Candidate(REDIS).command(0, Path())
    return Path(words[0]).with_name("redis-benchmark")


def run(program: Path, port: int, pids: Sequence[int], load: str, requests: int) -> tuple[float, float]:
    """Requests a second, and microseconds of all nodes' CPU a request."""
    # It takes one node for no cluster, and has a key for each slot of several.
    spread, key = (("-r", str(SLOTS)), "s:__rand_int__") if len(pids) == 1 else (("--cluster",), "s:{tag}")
    words = [str(program), *spread, "-p", str(port), "-c", str(CLIENTS), "-n", str(requests), "-q"]
    words += ["-P", str(DEPTHS[load]), "XADD", key, "*", "field", "value" * 8]
    was_ns = sum(map(cpu_ns, pids))
    done = subprocess.run(words, check=True, timeout=REPLY_S, capture_output=True, text=True)
    spent_ns = sum(map(cpu_ns, pids)) - was_ns
    rates = RATE.findall(done.stdout)
    assert rates, f"redis-benchmark told no rate: {done.stdout[-300:]}{done.stderr[-300:]}"
    return float(rates[-1]), spent_ns / requests / 1000


@contextmanager
def cluster(candidate: Candidate, count: int) -> Iterator[tuple[int, list[int]]]:
    """A port of a cluster that serves all slots, and the processes of its nodes."""
    with ExitStack() as stack:
        if candidate.is_penstock:
            ports = stack.enter_context(penstock_cluster(candidate, count))
        else:
            bus = free_ports(count)
            started = [stack.enter_context(running(candidate, *CLUSTERED, str(bus + at))) for at in range(count)]
            ports = [server.port for server in started]
            join(started, bus)
        wait_until_whole(candidate.name, ports)
        yield ports[0], [int(information(port, b"server")["process_id"]) for port in ports]


@contextmanager
def penstock_cluster(candidate: Candidate, count: int) -> Iterator[list[int]]:
    """The ports of `penstock cluster`."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{candidate.name}-") as folder:
        first = free_ports(count)
        serve = candidate.command(first, Path(folder))
        words = [*serve[: serve.index("serve")], "cluster", str(count), "--port", str(first), "--dir", f"{folder}/data"]
        with Path(folder, "output").open("wb") as output:
            process = subprocess.Popen(
                [*words, "--", *WITHOUT_LOG], cwd=folder, env=candidate.environment(), stdout=output, stderr=output
            )
            try:
                yield [first + number for number in range(count)]
            finally:
                process.send_signal(signal.SIGINT)
                wait_for_end(process)


def free_ports(count: int) -> int:
    """The first of as many neighbouring ports that nothing listens on, below those that the kernel gives to clients."""
    while True:
        first = random.randrange(*PORTS)
        if not any(map(answers, range(first, first + count))):
            return first


def join(servers: Sequence[Server], bus: int) -> None:
    """Divide the slots, and let the nodes meet the first, that hears other nodes at the port `bus`."""
    bounds = [SLOTS * number // len(servers) for number in range(len(servers) + 1)]
    for server, first, end in zip(servers, bounds, bounds[1:], strict=False):
        with Link(server.port) as link:
            slots = (b"%d" % first, b"%d" % (end - 1))
            link.deliver([(b"CLUSTER", b"ADDSLOTSRANGE", *slots)])
            link.deliver([(b"CLUSTER", b"MEET", LOCALHOST.encode(), b"%d" % servers[0].port, b"%d" % bus)])


def wait_until_whole(name: str, ports: Sequence[int]) -> None:
    """Until every node knows all nodes and slots; Absent after START_S."""
    deadline_s = time.monotonic() + START_S
    for port in ports:
        while not is_whole(port, len(ports)):
            if time.monotonic() > deadline_s:
                raise Absent(f"{name}: a cluster of {len(ports)} nodes did not come up")
            time.sleep(LOOK_EVERY_S)


def is_whole(port: int, count: int) -> bool:
    try:
        with Link(port) as link:
            told = link.ask(b"CLUSTER", b"INFO")
            slots = link.ask(b"CLUSTER", b"SLOTS")
    except OSError:
        return False
    is_ok = isinstance(told, bytes) and b"cluster_state:ok" in told and b"cluster_known_nodes:%d\r" % count in told
    return is_ok and isinstance(slots, list) and len(slots) == count


def of_peer(costs: Costs, name: str, count: str, load: str) -> float:
    """A server's CPU a request, as `of_better_peer` has it."""
    return of_better_peer({server: by_count[count][load]["cpu_us"] for server, by_count in costs.items()}, name)
