"""A worker of the group: reads flights, does their work, and acknowledges them.

Whenever it starts or finds its connection lost, it first reads its own history from id 0 until that is empty: whatever
was delivered to its name and not acknowledged, by an earlier process of that name too. Work is written to the journal
before it is acknowledged, so that a death in between means work done again, never work left out.

Three characters: `plain`; `refuser`, which gives every cancelled flight back with XNACK FAIL; `rescuer`, which takes
over what others left too long, and what was given back, with XAUTOCLAIM and XREADGROUP CLAIM.
"""

import argparse
import signal
import time
from pathlib import Path
from typing import Any, Final

from examples.audit.journals import Journal
from examples.flights.data import Flight, is_cancelled
from examples.flights.wire import GROUP, LOST, RECONNECT_S, STREAM, connect

COUNT: Final = 50
BLOCK_MS: Final = 200
STALE_MS: Final = 3_000

Delivery = tuple[str, Flight, int]  # id, fields, deliveries so far, this one included


class Worker:
    def __init__(self, port: int, name: str, character: str, journal: Journal) -> None:
        self._client = connect(port, name)
        self._name = name
        self._character = character
        self._journal = journal
        self._stopping = False
        self._cursor = "0-0"
        self._can_refuse = True

    def stop(self, *_: object) -> None:
        """Finish the batch in hand, then return from `run`."""
        self._stopping = True

    def run(self) -> None:
        while not self._stopping:
            try:
                self._can_refuse = "xnack" in self._client.execute_command("COMMAND LIST")
                self._work_off_history()
                while not self._stopping:
                    if self._character == "rescuer":
                        self._take_over_stale_work()
                    self._work_off_new()
            except LOST as reason:
                self._journal.write([("lost", type(reason).__name__)])
                time.sleep(RECONNECT_S)

    def _work_off_history(self) -> None:
        while True:
            asked_ns = time.monotonic_ns()
            entries = self._read("0")
            if not entries:
                return
            self._work([(entry[0], entry[1], 0) for entry in entries], "history", asked_ns)

    def _work_off_new(self) -> None:
        asked_ns = time.monotonic_ns()
        deliveries: list[Delivery] = []
        for entry in self._read(">"):
            # An entry that CLAIM delivers has two more elements: how long it idled, and how often it was delivered.
            deliveries.append((entry[0], entry[1], entry[3] + 1 if len(entry) == 4 and entry[3] else 1))
        claimed = [delivery for delivery in deliveries if delivery[2] > 1]
        fresh = [delivery for delivery in deliveries if delivery[2] == 1]
        self._work(claimed, "claim", asked_ns)
        self._work(fresh, "new", asked_ns)

    def _take_over_stale_work(self) -> None:
        asked_ns = time.monotonic_ns()
        self._cursor, entries, _ = self._client.xautoclaim(
            STREAM, GROUP, self._name, STALE_MS, start_id=self._cursor, count=COUNT
        )
        self._work([(entry_id, flight, 0) for entry_id, flight in entries], "autoclaim", asked_ns)

    def _read(self, from_id: str) -> list[Any]:
        claim_ms = STALE_MS if self._character == "rescuer" and from_id == ">" else None
        streams = self._client.xreadgroup(
            GROUP, self._name, {STREAM: from_id}, count=COUNT, block=BLOCK_MS, claim_min_idle_time=claim_ms
        )
        return list(streams[0][1]) if streams else []

    def _work(self, batch: list[Delivery], source: str, asked_ns: int) -> None:
        """Do the work, journal it, and acknowledge it; give back what this worker refuses."""
        if not batch:
            return
        if source in ("history", "autoclaim"):
            batch = self._with_deliveries(batch)
        refuses = self._character == "refuser" and self._can_refuse
        refused = [delivery for delivery in batch if refuses and is_cancelled(delivery[1])]
        accepted = [delivery for delivery in batch if delivery not in refused]
        for verb, deliveries in (("processed", accepted), ("refused", refused)):
            self._journal.write(
                [
                    (verb, entry_id, flight["serial"], str(count), source, str(asked_ns))
                    for entry_id, flight, count in deliveries
                ]
            )
        if accepted:
            ids = [entry_id for entry_id, _, _ in accepted]
            self._client.xack(STREAM, GROUP, *ids)
            replied_ns = str(time.monotonic_ns())
            self._journal.write([("acked", entry_id, replied_ns) for entry_id in ids])
        if refused:
            self._client.xnack(STREAM, GROUP, "FAIL", *(entry_id for entry_id, _, _ in refused))

    def _with_deliveries(self, batch: list[Delivery]) -> list[Delivery]:
        """These replies carry no delivery counts: XPENDING has them.

        An entry that was taken over or acknowledged elsewhere since is left out: it is not this worker's any more.
        """
        pending = self._client.xpending_range(
            STREAM, GROUP, min=batch[0][0], max=batch[-1][0], count=10 * COUNT, consumername=self._name
        )
        counts = {row["message_id"]: int(row["times_delivered"]) for row in pending}
        return [(entry_id, flight, counts[entry_id]) for entry_id, flight, _ in batch if entry_id in counts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--character", choices=["plain", "refuser", "rescuer"], default="plain")
    parser.add_argument("--journal", type=Path, required=True)
    chosen = parser.parse_args()
    worker = Worker(chosen.port, chosen.name, chosen.character, Journal(chosen.journal))
    signal.signal(signal.SIGTERM, worker.stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the director's business: a terminal sends it to every process
    worker.run()


if __name__ == "__main__":
    main()
