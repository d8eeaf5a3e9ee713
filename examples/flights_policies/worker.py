"""A worker of a server that keeps the policies: it reads, works, acknowledges, and has no line for recovery.

`work` is all that a worker needs. What may go wrong with a flight is in `Desk`: some are poison, those from LaGuardia
fail while a dependency is down (a file says so), and what is cancelled is not to be handled before it is RIPE_MS old.
"""

import argparse
import time
from pathlib import Path
from typing import Final

import redis

from examples.audit.journals import Journal
from examples.flights.data import Flight, is_cancelled
from examples.flights.wire import GROUP, STREAM, connect

COUNT: Final = 20
BLOCK_MS: Final = 1000
RIPE_MS: Final = 1500
POISON_EVERY: Final = 3000
FRAGILE: Final = "LGA"
DOWN: Final = "dependency-is-down"


class Failed(Exception):
    """The flight could not be handled: again, after a pause."""


class TooEarly(Exception):
    """The flight is not to be handled before a moment, in unix ms."""

    def __init__(self, until_ms: int) -> None:
        super().__init__(until_ms)
        self.until_ms = until_ms


def is_poison(serial: int) -> bool:
    return serial % POISON_EVERY == POISON_EVERY // 2


def work(client: redis.Redis, name: str, desk: "Desk") -> None:
    while True:
        for _, entries in client.xreadgroup(GROUP, name, {STREAM: ">"}, count=COUNT, block=BLOCK_MS) or ():
            for entry_id, flight in entries:
                try:
                    desk.handle(entry_id, flight)
                except Failed:
                    client.execute_command("XNACK", STREAM, GROUP, "FAIL", "IDS", 1, entry_id)
                except TooEarly as early:
                    nack = ("PENSTOCK.XNACK", STREAM, GROUP, "SILENT", "IDS", 1, entry_id, "UNTIL", early.until_ms)
                    client.execute_command(*nack)
                else:
                    client.xack(STREAM, GROUP, entry_id)


class Desk:
    """Handles flights, and writes down each with its aircraft: `handled serial tailnum ns`."""

    def __init__(self, directory: Path, name: str) -> None:
        self._down = directory / DOWN
        self._journal = Journal(directory / f"{name}.journal")

    def handle(self, entry_id: str, flight: Flight) -> None:
        """Failed or TooEarly where it cannot be done."""
        ripe_ms = int(entry_id.split("-")[0]) + RIPE_MS
        if is_cancelled(flight) and time.time() * 1000 < ripe_ms:
            raise TooEarly(ripe_ms)
        if is_poison(int(flight["serial"])) or (flight["origin"] == FRAGILE and self._down.exists()):
            raise Failed
        self._journal.write([("handled", flight["serial"], flight.get("tailnum", "-"), str(time.monotonic_ns()))])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--directory", type=Path, required=True)
    chosen = parser.parse_args()
    work(connect(chosen.port, chosen.name), chosen.name, Desk(chosen.directory, chosen.name))


if __name__ == "__main__":
    main()
