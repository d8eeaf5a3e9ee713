"""The document's plots. Without matplotlib (the extra `plot`) there are none, and the tables say it all."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bench.loads import Load
from bench.results import ROOT
from bench.servers import OURS

FOLDER: Final = ROOT / "docs/benchmarks"
COLOURS: Final = {
    "plain": "#3a6ea5",
    "compiled": "#d1495b",
    "redis": "#888888",
    "valkey": "#bbbbbb",
    "fakeredis": "#e0c36b",
}
DPI: Final = 80


def ratios(loads: Sequence[Load], figures: dict[str, Any]) -> Iterator[str]:
    """Bars of our CPU beside the better peer's, which is 1; a tick at each floor."""
    plt = pyplot()
    shown = [load for load in loads if any(figures[load.name].get(name, {}).get("ratio") for name in OURS)]
    if plt is None or not shown:
        return
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(shown) + 1))
    for row, load in enumerate(shown):
        for offset, (name, floor) in enumerate(zip(OURS, (load.floor_plain, load.floor_compiled), strict=True)):
            place = row + (0.2 if offset else -0.2)
            ratio = figures[load.name].get(name, {}).get("ratio")
            if ratio:
                axes.barh(place, ratio, 0.36, color=COLOURS[name], label=name if row == 0 else None)
            if floor:
                axes.plot([floor, floor], [place - 0.2, place + 0.2], color="black", linewidth=1.5)
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [load.name for load in shown])
    axes.invert_yaxis()
    axes.set_xlabel("CPU beside the better of Redis and Valkey (black: the floor)")
    axes.legend(loc="lower right")
    yield from saved(plt, figure, "ratios", "CPU of each load beside the better peer")


def growth(sizes: list[int], costs: dict[str, Any]) -> Iterator[str]:
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


def saved(plt: Any, figure: Any, name: str, title: str) -> Iterator[str]:
    FOLDER.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(FOLDER / f"{name}.png", dpi=DPI, metadata={"Software": None})
    plt.close(figure)
    yield f"![{title}](benchmarks/{name}.png)"
    yield ""


def pyplot() -> Any:
    """matplotlib's, drawing to files; None where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt
