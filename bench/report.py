"""docs/benchmarks.md and its plots, from figures that are kept as one JSON file a part in bench/results.

What people wrote around the made part of the document stays as it is. Without matplotlib (the extra `plot`) there are
no new plots; the tables have every figure.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bench.costs import OF_FEW
from bench.loads import LOADS, Load
from bench.nodes import CLIENTS as CLIENTS_OF_NODES
from bench.nodes import DEPTHS, NODES
from bench.nodes import of_peer as node_of_peer
from bench.queues import GOAL as GOAL_OF_QUEUES
from bench.queues import PHASES, of_peer
from bench.scale import CHEAPEST_PASSES, PART_SIZES, PASSES, STREAM_REST_S
from bench.servers import COMPILED, NAMES, OURS, ROOT, of_better_peer
from bench.singles import DAY, GOAL_OF_P99, ONE_AT_A_TIME, WORKER
from bench.suites import FAKEREDIS, KINDS, RUNS, of_fakeredis
from bench.suites import GOAL as GOAL_OF_SUITES

DOCUMENT: Final = ROOT / "docs/benchmarks.md"
PLOTS: Final = ROOT / "docs/benchmarks"
RESULTS: Final = Path(__file__).parent / "results"
BEGIN: Final = "<!-- made by `make bench` from here on -->"
END: Final = "<!-- to here -->"

Figures = dict[str, Any]
Lines = Iterator[str]


# -- what is kept -----------------------------------------------------------------------------------------------------


def keep(part: str, figures: Figures, entries: int) -> None:
    """Replace what was kept of a part; `entries` is the length of its large stream, if it has one."""
    RESULTS.mkdir(exist_ok=True)
    kept = {"about": about() | {"entries": f"{entries:,}"}, "figures": figures}
    (RESULTS / f"{part}.json").write_text(json.dumps(kept, indent=1) + "\n")


def kept(part: str) -> tuple[dict[str, str], Figures] | None:
    """When and on what a part was measured, and its figures; None if it never was."""
    file = RESULTS / f"{part}.json"
    if not file.exists():
        return None
    read = json.loads(file.read_text())
    return read["about"], read["figures"]


def about() -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "penstock"], cwd=ROOT).returncode
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit.stdout.strip() + (" with changes" if changed else ""),
        "machine": f"{os.cpu_count()} cores, {processor()}, {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}",
        "load": f"{os.getloadavg()[1]:.1f}",
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


# -- the document -----------------------------------------------------------------------------------------------------


def write() -> None:
    """Replace what is between the marks."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = "\n".join(line for section in sections() for line in section)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")


def sections() -> Iterator[Lines]:
    yield section("loads", "CPU time of the server, a command", loads)
    yield section("restricted", "A user with few rights", restricted)
    yield section("singles", "One command at a time", singles)
    yield section("queues", "A queue of BullMQ", a_queue)
    yield section("nodes", "Several processes", several_nodes)
    yield section("suites", "Tests", suites)
    yield by_server(
        "starts",
        "Starting",
        "Until the server answers PING, with an empty log; the median. Aims: plain 150 ms, inside a process 5 ms.",
    )
    yield section("wakeups", "Waking a blocked reader", wakeups)
    yield by_server("stalls", "The longest that another client waits", "In ms, beside {entries} entries.")
    yield by_server(
        "steady",
        "PING under a steady load",
        "{entries} entries, half of them pending; XADD, XREADGROUP, XACK, SET with expiry, a rewrite half-way.",
    )
    yield section("memory", "Memory", memory)
    yield section("growth", "Growth", growth)
    yield section("sizes", "Many things", sizes)
    yield section("policies", "Policies", policies)
    yield by_server(
        "group-commit",
        "Group commit",
        "Single XADDs a second with `appendfsync always`, every connection waiting for each reply.",
    )
    yield section("rewrite", "A rewrite under load", rewrite)
    yield by_server(
        "loading",
        "Loading a log",
        "CPU seconds of a start less those of an empty one. Of {entries} entries three tenths are in the logs of XADDs"
        " (a hundred in a millisecond, and one), a tenth in the logs of deliveries (acknowledged 90 at once, and one by"
        " one; each server loads its own).",
    )
    yield section("snapshots", "RDB files", snapshots)
    yield section("spark-read", "Reading with Spark", spark_read)
    yield section("spark-write", "Writing with Spark", spark_write)


def section(part: str, title: str, body: Any) -> Lines:
    """A part's heading, when and where it was measured, and its body; nothing if it never was."""
    found = kept(part)
    if found is None:
        return
    of_run, figures = found
    yield f"## {title}"
    yield ""
    yield f"{of_run['date']}, commit {of_run['commit']}; {of_run['machine']}; load average {of_run['load']}."
    yield ""
    yield from body(figures, of_run["entries"])


def by_server(part: str, title: str, note: str) -> Lines:
    """One row a server, one column a figure."""

    def body(figures: Figures, entries: str) -> Lines:
        yield note.format(entries=entries)
        yield ""
        columns = list(dict.fromkeys(column for row in figures.values() for column in row))
        rows = [[name, *(number(figures[name].get(column)) for column in columns)] for name in known(figures)]
        yield from table(["server", *columns], rows)

    return section(part, title, body)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def number(value: float | None) -> str:
    """Three figures."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def known(figures: Figures) -> list[str]:
    """The servers that have figures, in the usual order."""
    return [name for name in NAMES if name in figures]


def latencies(found: dict[str, float]) -> str:
    return " ".join(number(found[figure]) for figure in ("p50_ms", "p99_ms", "p999_ms"))


def loads(figures: Figures, _: str) -> Lines:
    yield "Microseconds of the cheapest round; ratios are to the better of Redis and Valkey, the median of the rounds."
    yield "A cycle is 10 XADD, one XREADGROUP and one XACK, its figures are for one of the twelve."
    yield ""
    measured = [load for load in LOADS if load.name in figures]
    names = [name for name in NAMES if any(name in figures[load.name] for load in measured)]
    ours = [name for name in names if name in OURS]
    rows = []
    for load in measured:
        of_load = figures[load.name]
        cells = [number(of_load.get(name, {}).get("cpu_us")) for name in names]
        cells += [verdict(of_load.get(name, {}).get("ratio"), load.floor(name)) for name in ours]
        rows.append([load.name, *cells, number(load.goal or None)])
    yield from table(["load", *names, *(f"{name} : peer (floor)" for name in ours), "goal"], rows)
    yield from plot_ratios(measured, figures)
    differing = [
        f"{load.name} ({name})"
        for load in measured
        for name in names
        if figures[load.name].get(name, {}).get("difference")
    ]
    if differing:
        yield f"Replies that differ from the reference's: {', '.join(differing)}."
        yield ""
    yield "Commands a second through one pipelined connection, and round trips of a batch in ms (50%, 99%, 99.9%):"
    yield ""
    rows = []
    for load in measured:
        found = [figures[load.name].get(name, {}) for name in names]
        rows.append(
            [load.name, *(f"{number(row['rate'])}: {latencies(row)}" if "rate" in row else "" for row in found)]
        )
    yield from table(["load", *names], rows)


def restricted(figures: Figures, _: str) -> Lines:
    yield "CPU in microseconds a command of a user that may use these commands and one key; its ratio to the default"
    yield "user's, the median of the rounds. The goal is 1.2, compiled."
    yield ""
    names = [name for name in NAMES if any(name in row for row in figures.values())]
    rows = []
    for load, row in figures.items():
        of_few = [row[f"{name}{OF_FEW}"] for name in names]
        rows.append([load, *(f"{number(found['cpu_us'])}, {found['of_default']:.2f}" for found in of_few)])
    yield from table(["load", *names], rows)


def verdict(ratio: float | None, floor: float, is_told: bool = True) -> str:
    """A ratio, bold if it is above the floor (0: there is none), which is told behind it."""
    if not ratio:
        return ""
    text = f"{ratio:.2f}" if not floor or ratio <= floor else f"**{ratio:.2f}**"
    return f"{text} ({floor})" if floor and is_told else text


def singles(figures: Figures, _: str) -> Lines:
    yield "Commands a second: latency in ms (50%, 99%, 99.9%), CPU in microseconds a command; the best of the rounds."
    yield "Ratios of CPU and of the 99% are to the better of Redis and Valkey, the medians of the rounds; the goal of"
    yield f"CPU is in brackets, that of the 99% is {GOAL_OF_P99}. `{WORKER}`: fifty workers, with entries"
    yield f"to read. `{DAY}`: 12 producers with MAXLEN ~ and 25 workers of four streams, 13 clients of a cache."
    yield ""
    measured = [load for load in ONE_AT_A_TIME if load.name in figures]
    names = [name for name in NAMES if any(name in figures[load.name] for load in measured)]
    ours = [name for name in names if name in OURS]
    rows = []
    for load in measured:
        of_load = figures[load.name]
        cells = [
            f"{number(row['rate'])}: {latencies(row)}, {number(row['cpu_us'])}" if row else ""
            for row in (of_load.get(name) for name in names)
        ]
        for name in ours:
            row = of_load.get(name, {})
            ratios = (
                verdict(row.get("cpu_ratio"), load.goal_of(name)),
                verdict(row.get("p99_ratio"), GOAL_OF_P99, is_told=False),
            )
            cells.append(", ".join(filter(None, ratios)))
        rows.append([load.name, *cells])
    yield from table(["load", *names, *(f"{name} : peer" for name in ours)], rows)


def wakeups(figures: Figures, _: str) -> Lines:
    yield "From the XADD to the reader's reply in ms (50%, 99%, 99.9%), CPU in microseconds a wake-up."
    yield ""
    counts = list(dict.fromkeys(count for of_server in figures.values() for count in of_server))
    rows = []
    for name in known(figures):
        cells = [figures[name].get(count) for count in counts]
        rows.append([name, *(f"{latencies(cell)}, {number(cell.get('cpu_us'))}" if cell else "" for cell in cells)])
    yield from table(["server", *(f"{int(count):,} blocked" for count in counts)], rows)


def memory(figures: Figures, entries: str) -> Lines:
    yield f"Bytes of resident memory, of fresh processes that hold {entries} entries with a value of 64 hexadecimal"
    yield "digits, or as much of something else. `best` and `worst` are patterns of ids and of deliveries."
    yield f"Streams of so many entries got none for {STREAM_REST_S} seconds before they were measured."
    yield ""
    names = known(figures)
    rows = []
    for what in dict.fromkeys(what for row in figures.values() for what in row):
        of_servers = {name: figures[name][what] for name in names if what in figures[name]}
        ratio = (of_better_peer(of_servers, COMPILED) or None) if COMPILED in of_servers else None
        goal = next((goal for start, goal in MEMORY_GOALS.items() if what.startswith(start)), 0.0)
        rows.append([what, *(number(of_servers.get(name)) for name in names), verdict(ratio, goal)])
    yield from table(["", *names, "compiled : peer (goal)"], rows)


# By how a row's name begins.
MEMORY_GOALS: Final = {
    "entry, best": 1.1,
    "entry, worst": 1.1,
    "entry of five fields": 1.2,
    "string of": 1.3,
    "hash of": 1.3,
    "list of": 1.3,
    **{f"set of {size:,} integers": 1.5 for size in PART_SIZES},
    "set of": 1.3,
    "sorted set of": 1.3,
    "stream of": 1.3,
    "idle connection": 1.5,
}


def growth(figures: Figures, _: str) -> Lines:
    passes = f"the {CHEAPEST_PASSES} cheapest of {PASSES} passes"
    yield f"CPU in microseconds a command by the stream's length, of {passes}; half as many"
    yield "entries are pending."
    yield ""
    sizes, costs = figures["sizes"], figures["costs"]
    rows = [
        [command, name, *(number(cost) for cost in costs[name][command])]
        for command in next(iter(costs.values()))
        for name in known(costs)
        if command in costs[name]
    ]
    yield from table(["command", "server", *(f"{size:,}" for size in sizes)], rows)
    yield from plot_growth(sizes, costs)


def sizes(figures: Figures, _: str) -> Lines:
    yield "CPU in microseconds a command by how many things there are; `once` is the first request of its kind,"
    yield "`linear` what grows in Redis, too."
    yield ""
    shown = [str(10**power) for power in range(7)]
    rows = [
        [command, name, *(number(figures[name][command].get(size)) for size in shown)]
        for command in next(iter(figures.values()))
        for name in known(figures)
        if command in figures[name]
    ]
    yield from table(["things: command", "server", *(f"{int(size):,}" for size in shown)], rows)


def a_queue(figures: Figures, _: str) -> Lines:
    jobs = ", ".join(f"{phase} {count:,} jobs" for phase, count in PHASES.items())
    yield f"BullMQ as it is installed, by scripts: {jobs}. The server's CPU in seconds, in brackets the ratio to the"
    yield f"better of Redis and Valkey; the goal is {GOAL_OF_QUEUES} for compiled builds."
    yield ""
    names = known(figures)
    rows = [
        [phase, *(f"{figures[name][phase]:.2f} ({of_peer(figures, name, phase):.2f})" for name in names)]
        for phase in PHASES
    ]
    yield from table(["", *names], rows)


def several_nodes(figures: Figures, _: str) -> Lines:
    yield "A cluster on this machine (`penstock cluster`; as many Redis processes) under redis-benchmark with"
    yield f"{CLIENTS_OF_NODES} clients: XADD to 16,384 streams of all nodes, thousands of requests a second, and the"
    yield "nodes' CPU in us a request, in brackets the ratio to the better of Redis and Valkey. All share the cores."
    yield ""
    names = known(figures)
    rows = []
    for load in DEPTHS:
        for count in map(str, NODES):
            row = [f"{load}, {count} node{'s' * (count != '1')}"]
            for name in names:
                measured = figures[name][count][load]
                ratio = node_of_peer(figures, name, count, load)
                row.append(f"{measured['rate'] / 1000:.0f}, {measured['cpu_us']:.1f} ({ratio:.2f})")
            rows.append(row)
    yield from table(["", *names], rows)


def suites(figures: Figures, _: str) -> Lines:
    yield "A run of pytest over tests of a queue (add, group, read, pending, acknowledge, expiry), each with a server"
    yield "of its own: seconds of CPU of all processes, in brackets the ratio to fakeredis. Uncached: no bytecode is"
    yield f"kept, as in CI. The goal is {GOAL_OF_SUITES} for 200 tests, uncached."
    yield ""
    rows = []
    for run in RUNS:
        row = [run]
        for kind in KINDS:
            ratio = "" if kind == FAKEREDIS else f" ({of_fakeredis(figures, kind, run):.2f})"
            row.append(f"{figures[kind][run]:.2f}{ratio}")
        rows.append(row)
    yield from table(["", *KINDS], rows)


def policies(figures: Figures, entries: str) -> Lines:
    yield f"A group with ACKWAIT: {entries} entries delivered, a tenth of them held, a blocked reader for each hundred."
    yield "Then each option of a group and of a stream, reads one by one, XADDs in pipelines: of a hundred tenants, one"
    yield "has nine tenths of the entries."
    yield ""
    names = known(figures)
    rows = [[what, *(number(figures[name].get(what)) for name in names)] for what in next(iter(figures.values()))]
    yield from table(["", *names], rows)


def snapshots(figures: Figures, entries: str) -> Lines:
    yield f"CPU seconds of SAVE, and of a start that loads the file less those of an empty one: {entries} entries of a"
    yield "stream, or as many small keys. Each server loads its own file. The goal is four times Redis's, compiled."
    yield ""
    names = known(figures)
    rows = [[what, *(number(figures[name].get(what)) for name in names)] for what in next(iter(figures.values()))]
    yield from table(["", *names], rows)


def rewrite(figures: Figures, entries: str) -> Lines:
    yield f"{entries} entries, half of them pending; producers of ten XADDs at once, workers that acknowledge ten"
    yield "entries and read ten more. Medians of the turns; at the end the server is killed amid a rewrite. Redis and"
    yield "Valkey rewrite into a snapshot, which is their default."
    yield ""
    names = known(figures)
    rows = [[what, *(number(figures[name].get(what)) for name in names)] for what in next(iter(figures.values()))]
    yield from table(["", *names], rows)


def spark_read(figures: Figures, entries: str) -> Lines:
    yield f"Streams of {twice(entries)} entries; the two baselines, row tuples and redis-py, read a tenth of that."
    yield ""
    for measure, of_core in figures["decoding"].items():
        yield f"{measure}: {of_core['-']['entries_s'] / 1e6:.2f} million entries a second of CPU, without Spark."
    yield ""
    yield from spark_rates("read", figures["rates"], "into Spark's `noop` sink")
    yield ""
    for of_spark in figures.get("memory", {}).values():
        used = of_spark["-"]
        yield f"Memory of Spark's JVM {used['jvm_mb']:.0f} MB, of its largest Python worker {used['worker_mb']:.0f} MB."
        yield ""
    names = known(next(iter(figures["rates"].values())))
    rows = [
        [f"{measure}: commands a second", *(number(of_server[name]["commands_s"]) for name in names)]
        for measure, of_server in figures["idle"].items()
    ]
    for measure, of_server in figures["latency"].items():
        delays = [of_server[name] for name in names]
        rows.append([f"{measure}, ms: 50%, 99%", *(f"{row['p50_ms']:.0f}, {row['p99_ms']:.0f}" for row in delays)])
        spent = (f"{row['batch_ms']:.0f}, {row['offset_ms']:.0f}" for row in delays)
        rows.append(["a batch of one entry, ms: all, its planning", *spent])
    for measure, of_server in figures.get("many", {}).items():
        for what, name in (("a look", "look"), ("a poll", "poll"), ("one new entry", "new")):
            spent = (f"{of_server[one][f'{name}_ms']:.3g}, {of_server[one][f'{name}_server_ms']:.3g}" for one in names)
            rows.append([f"{measure}, {what}, ms of CPU: driver, server", *spent])
        rows.append([f"{measure}, bytes of an offset", *(number(of_server[one]["offset_bytes"]) for one in names)])
    goals = [SPARK_GOALS.get(row[0].partition(":")[0], "") for row in rows]
    yield from table(["", *names, "goal"], [[*row, goal] for row, goal in zip(rows, goals, strict=True)])


def spark_write(figures: Figures, entries: str) -> Lines:
    yield f"{twice(entries)} rows of four columns, about 100 bytes; the servers have a log (`everysec`)."
    yield ""
    yield from spark_rates("written", figures, "by Spark")


def twice(entries: str) -> str:
    """What the parts with Spark make of the length of a large stream."""
    return f"{2 * int(entries.replace(',', '')):,}"


# What was aimed at: rows a second on two processors that do nothing else; microseconds of all processes.
SPARK_GOALS: Final = {
    "1 key, columns": "1,300,000; 1.0 us",
    "1 key, fields map": "1.3 us",
    "pending entries": "800,000",
    "rows written, exactly-once": "300,000; 2.2 us (with a log 3.2)",
    "dead letters moved": "60,000",
    "MB of log read by one task": "100",
    "a batch of one entry, ms": "60",
    "10,000 streams, a look, ms of CPU": "20, 30",
    "10,000 streams, one new entry, ms of CPU": "50",
}


def spark_rates(what: str, figures: Figures, where: str) -> Lines:
    yield f"A second, {where}: the median of the rounds (lowest to highest); CPU of one in us: server, JVM, workers."
    yield "The JVM's own compilers are not in it; rounds in which they were busy were dropped, up to three for each"
    yield "that counts. The load average tells whether the machine had other work, which rates depend on most."
    yield ""
    names = known(next(iter(figures.values())))
    rows = []
    for measure, of_server in figures.items():
        cells = [measure]
        for name in names:
            row = of_server.get(name)
            if row is None:  # it does not know the command
                cells.append("")
                continue
            used = ", ".join(number(row[f"{process}_us"]) or "?" for process in ("server", "jvm", "workers"))
            rates = [number(row[figure]) for figure in ("rate", "lowest", "highest")]
            cells.append(f"{rates[0]} ({rates[1]} to {rates[2]}); {used}")
        rows.append([*cells, SPARK_GOALS.get(measure, "")])
    yield from table([what, *names, "goal"], rows)


# -- plots ------------------------------------------------------------------------------------------------------------

COLOURS: Final = {
    "plain": "#3a6ea5",
    "core": "#6aa84f",
    "compiled": "#d1495b",
    "redis": "#888888",
    "valkey": "#bbbbbb",
    "fakeredis": "#e0c36b",
}
DPI: Final = 80


def plot_ratios(measured: Sequence[Load], figures: Figures) -> Lines:
    """Bars of our CPU beside the better peer's, which is 1; a tick at each floor."""
    plt = pyplot()
    shown = [load for load in measured if any(figures[load.name].get(name, {}).get("ratio") for name in OURS)]
    if plt is None or not shown:
        return
    figure, axes = plt.subplots(figsize=(8, 0.45 * len(shown) + 1))
    for row, load in enumerate(shown):
        for offset, name in enumerate(OURS):
            place, floor = row + 0.27 * (offset - 1), load.floor(name)
            ratio = figures[load.name].get(name, {}).get("ratio")
            if ratio:
                axes.barh(place, ratio, 0.25, color=COLOURS[name], label=name if row == 0 else None)
            if floor:
                axes.plot([floor, floor], [place - 0.13, place + 0.13], color="black", linewidth=1.5)
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [load.name for load in shown])
    axes.invert_yaxis()
    axes.set_xlabel("CPU beside the better of Redis and Valkey (black: the floor)")
    axes.legend(loc="lower right")
    yield from saved(plt, figure, "ratios", "CPU of each load beside the better peer")


def plot_growth(sizes: list[int], costs: Figures) -> Lines:
    """One small plot a command, both axes logarithmic: flat is flat."""
    plt = pyplot()
    if plt is None:
        return
    commands = list(next(iter(costs.values())))
    figure, grid = plt.subplots(2, -(-len(commands) // 2), figsize=(11, 5), sharex=True)
    for axes, command in zip(grid.flat, commands, strict=False):
        for name, of_server in costs.items():
            if command in of_server:
                axes.loglog(sizes, of_server[command], marker=".", color=COLOURS[name], label=name)
        axes.set_title(command, fontsize=9)
        axes.set_ylim(1, 10_000)
    for axes in grid.flat[len(commands) :]:
        axes.set_axis_off()
    grid.flat[0].legend(fontsize=8)
    grid.flat[0].set_ylabel("microseconds")
    yield from saved(plt, figure, "growth", "CPU a command by the length of the stream")


def saved(plt: Any, figure: Any, name: str, title: str) -> Lines:
    PLOTS.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(PLOTS / f"{name}.png", dpi=DPI, metadata={"Software": None})
    plt.close(figure)
    yield f"![{title}](benchmarks/{name}.png)"
    yield ""


def pyplot() -> Any:
    """matplotlib's, drawing to files; None if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt
