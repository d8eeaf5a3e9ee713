"""Adds an order to the stream `orders` every 200 ms.

    python producer.py [how many]

REDIS_URL says where the server is (default: redis://127.0.0.1:6379). Without a number it goes on until it is stopped.
"""

import itertools
import os
import random
import sys
import time
from typing import Final

import redis

STREAM: Final = "orders"
PAUSE_S: Final = 0.2
KEPT: Final = 10_000  # entries; older ones are trimmed


def main() -> None:
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), decode_responses=True)
    numbers = range(int(sys.argv[1])) if len(sys.argv) > 1 else itertools.count()
    for number in numbers:
        order = {"number": number, "cents": random.randrange(100, 100_000)}
        entry_id = client.xadd(STREAM, order, maxlen=KEPT, approximate=True)
        print(f"added {entry_id}: order {number}")
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
