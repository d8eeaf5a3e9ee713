"""Handles orders as one consumer of the group `shop`, without a line for what fails: the server keeps that.

    python policy_worker.py NAME

An order of a dead worker is delivered again after half a minute; one that failed comes back after a growing pause;
one that failed five times lies in `orders:dead`. Workers say `>`, XACK and nothing else. REDIS_URL says where the
Penstock is (default: redis://127.0.0.1:6379).
"""

import os
import random
import sys
from typing import Final

import redis

STREAM: Final = "orders"
GROUP: Final = "shop"
POLICY: Final = "ACKWAIT 30000 BACKOFF 1000 60000 MAXDELIVER 5 DEADLETTER orders:dead REAP 3600000"


def main(name: str) -> None:
    client = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), decode_responses=True)
    try:
        client.xgroup_create(STREAM, GROUP, "0", mkstream=True)
    except redis.ResponseError as refusal:
        if not str(refusal).startswith("BUSYGROUP"):
            raise
    client.execute_command("PENSTOCK.POLICY", STREAM, "GROUP", GROUP, *POLICY.split())
    while True:
        for _, entries in client.xreadgroup(GROUP, name, {STREAM: ">"}, count=10, block=5_000):
            for entry_id, order in entries:
                if random.random() < 0.01:
                    client.execute_command("XNACK", STREAM, GROUP, "FAIL", "IDS", 1, entry_id)
                else:
                    client.xack(STREAM, GROUP, entry_id)
                    print(f"{name}: handled order {order['number']}")


if __name__ == "__main__":
    main(sys.argv[1])
