"""Charts of jobs' results: bars of one column over another, or a histogram, with a colour for each group."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from penstock.pipeline.errors import PipelineError

MOST_BARS: Final = 40
BINS: Final = 40
RATIO: Final = 1_000  # of the largest to the smallest value, above which the axis is logarithmic


def chart(rows: Any, columns: Sequence[str], split_by: str, title: str, path: str) -> None:
    """Draw a DataFrame's columns into a file: (x, y) as bars, (x,) as a histogram that Spark counts."""
    try:
        import matplotlib
    except ImportError:
        raise PipelineError("--plot needs matplotlib, which is not installed: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    if len(columns) == 1:
        _histogram(rows, columns[0], split_by, axes)
    else:
        _bars(rows, columns[0], columns[1], split_by, axes)
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _bars(rows: Any, x: str, y: str, split_by: str, axes: Any) -> None:
    found = rows.limit(MOST_BARS).collect()
    kinds = sorted({str(row[split_by]) for row in found}) if split_by else [""]
    names = list(dict.fromkeys(str(row[x]) for row in found))
    for at, kind in enumerate(kinds):
        own = [row for row in found if not split_by or str(row[split_by]) == kind]
        width = 0.8 / len(kinds)
        places = [names.index(str(row[x])) + (at - (len(kinds) - 1) / 2) * width for row in own]
        axes.bar(places, [row[y] or 0 for row in own], width, label=kind or None)
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=30 if len("".join(names)) > 60 else 0,
        ha="right" if len("".join(names)) > 60 else "center",
    )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if split_by and len(kinds) > 1:
        axes.legend(title=split_by)


def _histogram(rows: Any, column: str, split_by: str, axes: Any) -> None:
    """Spark counts the bins; only they come to the driver."""
    from pyspark.sql import functions as f

    value = f.col(column).cast("double")
    (ends,) = rows.agg(f.min(value).alias("low"), f.max(value).alias("high")).collect()
    if ends["high"] is None:
        axes.text(0.5, 0.5, "no rows", transform=axes.transAxes, ha="center")
        return
    low, high = ends["low"], ends["high"]
    by_decades = low >= 0 and high > RATIO * max(low, 1)
    scaled = f.log10(f.greatest(value, f.lit(1.0))) if by_decades else value
    first, last = (math.log10(max(low, 1)), math.log10(high)) if by_decades else (low, high)
    width = (last - first) / BINS or 1.0
    at = f.least(f.floor((scaled - first) / width), f.lit(BINS - 1)).alias("bin")
    kind = f.col(split_by).cast("string") if split_by else f.lit("")
    counts = rows.where(value.isNotNull()).groupBy(kind.alias("kind"), at).count().collect()
    below = [0] * BINS
    edges = [first + width * place for place in range(BINS + 1)]
    if by_decades:
        edges = [10**edge for edge in edges]
        axes.set_xscale("log")
    for name in sorted({row["kind"] for row in counts}):
        own = [0] * BINS
        for row in counts:
            if row["kind"] == name:
                own[int(row["bin"])] = row["count"]
        lengths = [right - left for left, right in pairwise(edges)]
        axes.bar(edges[:-1], own, lengths, bottom=below, align="edge", label=f"{name} ({sum(own):,})" if name else None)
        below = [lower + more for lower, more in zip(below, own, strict=True)]
    if split_by:
        axes.legend(title=split_by)
    axes.set_xlabel(column)
    axes.set_ylabel("entries")
