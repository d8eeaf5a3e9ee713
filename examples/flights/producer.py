"""A producer: sends every second flight with pipelined XADD, and none twice, whatever happens to its connection.

After a loss it does not know how much of the last pipeline arrived. The requests of a connection are carried out in
order, so what arrived is a beginning of the pipeline: the producer asks the stream for its own last entry and goes on
behind it.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import redis

from examples.audit.journals import Journal
from examples.flights.data import Flight, read_flights
from examples.flights.wire import LOST, RECONNECT_S, STREAM, connect

BATCH: Final = 100
HEADROOM: Final = 2_000  # a producer waits while the group is further behind than this many entries
HEADROOM_S: Final = 0.01
PAGE: Final = 200


class Producer:
    """Sends `flights` in order.

    Invariant: the first `_sent` flights are known to be in the stream, and of the others only those of the pipeline
    under way can be.
    """

    def __init__(self, port: int, name: str, flights: list[Flight], cut_at: int, journal: Journal) -> None:
        self._client = connect(port, name)
        self._name = name
        self._flights = [flight | {"producer": name} for flight in flights]
        self._cut_at = cut_at
        self._journal = journal
        self._sent = 0

    def run(self) -> None:
        in_doubt = False
        while True:
            try:
                if in_doubt:
                    self._end_old_connections()
                    self._note("found", self._arrived_since())
                    in_doubt = False
                self._send_the_rest()
                return
            except LOST as reason:
                in_doubt = True
                self._journal.write([("lost", type(reason).__name__)])
                time.sleep(RECONNECT_S)

    def _send_the_rest(self) -> None:
        while self._sent < len(self._flights):
            batch = self._flights[self._sent : self._sent + BATCH]
            if 0 <= self._cut_at < self._sent + len(batch):
                self._cut_at = -1
                self._send_half_of(batch)
            pipeline = self._client.pipeline(transaction=False)
            for flight in batch:
                pipeline.xadd(STREAM, flight)
            self._note("sent", [(str(entry), flight) for entry, flight in zip(pipeline.execute(), batch, strict=True)])
            while int(self._client.xinfo_groups(STREAM)[0]["lag"] or 0) > HEADROOM:
                time.sleep(HEADROOM_S)

    def _send_half_of(self, batch: list[Flight]) -> None:
        """Send a pipeline up to the middle of a request, and lose the connection."""
        connection = self._client.connection_pool.get_connection()
        requests = [("XADD", STREAM, "*", *(word for pair in flight.items() for word in pair)) for flight in batch]
        packed = b"".join(connection.pack_commands(requests))
        connection.send_packed_command([packed[: len(packed) // 2 + 7]])
        connection.disconnect()
        self._client.connection_pool.release(connection)
        raise redis.ConnectionError("cut in the middle of a pipeline")

    def _end_old_connections(self) -> None:
        """The server may still be reading what an old connection sent: it must not, once the stream has been asked."""
        own = self._client.client_info()["addr"]
        for client in self._client.client_list():
            if client["name"] == self._name and client["addr"] != own:
                self._client.client_kill_filter(addr=client["addr"])

    def _arrived_since(self) -> list[tuple[str, Flight]]:
        """Its own entries behind the last one it knows of, oldest first, read backwards from the stream's end."""
        last_known = self._flights[self._sent - 1]["serial"] if self._sent else None
        arrived: list[tuple[str, Flight]] = []
        newest = "+"
        while page := self._client.xrevrange(STREAM, max=newest, count=PAGE):
            for entry_id, flight in page:
                if flight["producer"] != self._name:
                    continue
                if flight["serial"] == last_known:
                    return arrived[::-1]
                arrived.append((entry_id, flight))
            newest = f"({page[-1][0]}"
        return arrived[::-1]

    def _note(self, verb: str, entries: Sequence[tuple[str, Flight]]) -> None:
        self._sent += len(entries)
        self._journal.write([(verb, entry_id, flight["serial"]) for entry_id, flight in entries])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--flights", type=int, required=True, help="how many flights there are for all producers")
    parser.add_argument("--of", type=int, required=True, help="how many producers there are")
    parser.add_argument("--share", type=int, required=True, help="which of them this one is, from 0")
    parser.add_argument("--cut-at", type=int, default=-1, help="lose the connection at this flight of its own")
    parser.add_argument("--journal", type=Path, required=True)
    chosen = parser.parse_args()
    mine = read_flights(chosen.flights)[chosen.share :: chosen.of]
    Producer(chosen.port, chosen.name, mine, chosen.cut_at, Journal(chosen.journal)).run()


if __name__ == "__main__":
    main()
