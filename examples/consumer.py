"""Handles orders as one consumer of the group `shop`; start as many as you like, each with a name of its own.

    python consumer.py NAME

It first works off what an earlier process of this name has left, then what is new or what others have left for half a
minute. An order that it cannot handle it gives back at once with XNACK, for another consumer to try. REDIS_URL says
where the server is (default: redis://127.0.0.1:6379).
"""

import os
import random
import sys
from typing import Any, Final

import redis

STREAM: Final = "orders"
GROUP: Final = "shop"
COUNT: Final = 10
BLOCK_MS: Final = 5_000
STALE_MS: Final = 30_000


def main(name: str) -> None:
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), decode_responses=True)
    try:
        client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
    except redis.ResponseError as refusal:
        if not str(refusal).startswith("BUSYGROUP"):
            raise
    while left := read(client, name, "0", None):
        handle(client, name, left)
    while True:
        handle(client, name, read(client, name, ">", STALE_MS))


def read(client: Any, name: str, after: str, claim_ms: int | None) -> list[Any]:
    streams = client.xreadgroup(GROUP, name, {STREAM: after}, count=COUNT, block=BLOCK_MS, claim_min_idle_time=claim_ms)
    return list(streams[0][1]) if streams else []


def handle(client: Any, name: str, entries: list[Any]) -> None:
    for entry_id, order, *_ in entries:  # behind the fields, CLAIM adds idle time and delivery count
        if random.random() < 0.01:
            client.xnack(STREAM, GROUP, "FAIL", entry_id)
            print(f"{name}: gave back order {order['number']}")
        else:
            client.xack(STREAM, GROUP, entry_id)
            print(f"{name}: handled order {order['number']}")


if __name__ == "__main__":
    main(sys.argv[1])
