"""Puts the flights of 2013 into the stream `flights`; started again, it goes on where it was."""

import os
import time
from typing import Final

import redis

from examples.flights.data import ALL_FLIGHTS, read_flights
from examples.flights.wire import STREAM

BATCH: Final = 500
PAUSE_S: Final = 0.1


def main() -> None:
    client = redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    flights = read_flights(int(os.environ.get("FLIGHTS", ALL_FLIGHTS)))
    for at in range(client.xlen(STREAM), len(flights), BATCH):
        pipeline = client.pipeline(transaction=True)  # a batch is there or not, whatever happens in between
        for flight in flights[at : at + BATCH]:
            pipeline.xadd(STREAM, flight)
        pipeline.execute()
        time.sleep(PAUSE_S)
    print(f"{client.xlen(STREAM):,} flights are in the stream")


if __name__ == "__main__":
    main()
