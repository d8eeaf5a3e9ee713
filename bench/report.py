"""docs/benchmarks.md and its plots, from what bench/results keeps; what people wrote around them stays as it is."""

from collections.abc import Iterator
from typing import Any, Final

from bench import plots, results
from bench.loads import LOADS
from bench.servers import NAMES, OURS

DOCUMENT: Final = results.ROOT / "docs/benchmarks.md"
BEGIN: Final = "<!-- made by `make bench` from here on -->"
END: Final = "<!-- to here -->"


def write() -> None:
    """Replace what is between the marks."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = "\n".join(line for section in SECTIONS for line in section())
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")


def heading(title: str, about: dict[str, str]) -> list[str]:
    return [
        f"## {title}",
        "",
        f"{about['date']}, commit {about['commit']}; {about['machine']}, other work on it: load {about['load']}.",
        "",
    ]


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def number(value: float | None) -> str:
    """Three figures."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def present(figures: dict[str, Any]) -> list[str]:
    return [name for name in NAMES if name in figures]


# -- the sections -----------------------------------------------------------------------------------------------------


def loads() -> Iterator[str]:
    kept = results.kept("loads")
    if kept is None:
        return
    about, figures = kept
    yield from heading("CPU time of the server, a command", about)
    yield "Microseconds of the cheapest round; ratios are to the better of Redis and Valkey, the median of the rounds."
    yield "A cycle is 10 XADD, one XREADGROUP and one XACK, its figures are for one of the twelve."
    yield ""
    known = [load for load in LOADS if load.name in figures]
    names = [name for name in NAMES if any(name in figures[load.name] for load in known)]
    rows = []
    for load in known:
        of_load = figures[load.name]
        cells = [number(of_load.get(name, {}).get("cpu_us")) for name in names]
        for name, floor in zip(OURS, (load.floor_plain, load.floor_compiled), strict=True):
            cells.append(verdict(of_load.get(name, {}).get("ratio"), floor))
        rows.append([load.name, *cells, number(load.goal or None)])
    yield from table(["load", *names, *(f"{name} : peer (floor)" for name in OURS), "goal"], rows)
    yield from plots.ratios(known, figures)
    differences = [(load.name, name) for load in known for name in names if of(figures, load.name, name, "difference")]
    if differences:
        yield (
            "Replies that differ from the reference's: "
            + ", ".join(f"{load} ({name})" for load, name in differences)
            + "."
        )
        yield ""
    yield "Commands a second through one pipelined connection, and round trips of a batch in ms (50%, 99%, 99.9%):"
    yield ""
    rows = []
    for load in known:
        cells = []
        for name in names:
            found = figures[load.name].get(name, {})
            cells.append(f"{number(found['rate'])}: {trips(found)}" if "rate" in found else "")
        rows.append([load.name, *cells])
    yield from table(["load", *names], rows)


def of(figures: dict[str, Any], load: str, name: str, what: str) -> Any:
    return figures[load].get(name, {}).get(what)


def verdict(ratio: float | None, floor: float) -> str:
    if not ratio:
        return ""
    if not floor:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ({floor})" if ratio <= floor else f"**{ratio:.2f}** ({floor})"


def trips(found: dict[str, float]) -> str:
    return " ".join(number(found[what]) for what in ("p50_ms", "p99_ms", "p999_ms"))


def tail() -> Iterator[str]:
    kept = results.kept("tail")
    if kept is None:
        return
    about, figures = kept
    yield from heading("One command at a time", about)
    yield "Commands a second: latency in ms (50%, 99%, 99.9%), CPU in microseconds a command; the best of the rounds."
    yield ""
    names = present(next(iter(figures.values())))
    rows = [
        [load, *(f"{number(row[name]['rate'])}: {trips(row[name])}, {number(row[name]['cpu_us'])}" for name in names)]
        for load, row in figures.items()
    ]
    yield from table(["load", *names], rows)


def wakeups() -> Iterator[str]:
    kept = results.kept("wakeups")
    if kept is None:
        return
    about, figures = kept
    yield from heading("Waking a parked reader", about)
    yield "From the XADD to the reader's reply in ms (50%, 99%, 99.9%), CPU in microseconds a wake-up."
    yield ""
    counts = list(dict.fromkeys(count for of_server in figures.values() for count in of_server))
    rows = []
    for name in present(figures):
        cells = [figures[name].get(count) for count in counts]
        rows.append([name, *(f"{trips(cell)}, {number(cell.get('cpu_us'))}" if cell else "" for cell in cells)])
    yield from table(["server", *(f"{int(count):,} parked" for count in counts)], rows)


def stalls() -> Iterator[str]:
    yield from plain_table("stalls", "The longest that another client waits", "In ms, beside {entries} entries.")


def steady() -> Iterator[str]:
    yield from plain_table(
        "steady",
        "PING under a steady load",
        "{entries} entries, half of them pending; XADD, XREADGROUP, XACK, SET with expiry, a rewrite half-way.",
    )


def memory() -> Iterator[str]:
    yield from plain_table(
        "memory", "Memory", "Bytes of resident memory, of fresh processes that hold {entries} entries."
    )


def plain_table(part: str, title: str, note: str) -> Iterator[str]:
    kept = results.kept(part)
    if kept is None:
        return
    about, figures = kept
    yield from heading(title, about)
    yield note.format(entries=about["entries"])
    yield ""
    columns = list(dict.fromkeys(column for row in figures.values() for column in row))
    rows = [[name, *(number(figures[name].get(column)) for column in columns)] for name in present(figures)]
    yield from table(["server", *columns], rows)


def growth() -> Iterator[str]:
    kept = results.kept("growth")
    if kept is None:
        return
    about, figures = kept
    yield from heading("Growth", about)
    yield "CPU in microseconds a command by the stream's length; half as many entries are pending."
    yield ""
    sizes, costs = figures["sizes"], figures["costs"]
    rows = [
        [command, name, *(number(cost) for cost in costs[name][command])]
        for command in next(iter(costs.values()))
        for name in present(costs)
        if command in costs[name]
    ]
    yield from table(["command", "server", *(f"{size:,}" for size in sizes)], rows)
    yield from plots.growth(sizes, costs)


SECTIONS: Final = (loads, tail, wakeups, stalls, steady, memory, growth)
