"""Hours of ordinary and hostile use of one server: `python -m tests.fuzz.soak --hours 1`.

Connections, scripts, expiry, publish and subscribe, blocked readers, a group's claims, transactions and rewrites of the
log, in rounds that leave the same data behind. Each minute the memory and the descriptors are printed; at the end the
slope of the memory since the first tenth of the time, in MiB an hour, and by how much the descriptors differ.
"""

import argparse
import os
import random
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.fuzz.limit import say
from tests.support.server_process import running_server
from tests.support.wire import Connection, Simple

CLIENTS: Final = 20
REQUESTS: Final = 200
KEYS: Final = 500
REWRITE_EVERY: Final = 50  # rounds
TOLD_S: Final = 60.0
PATIENCE_S: Final = 60.0
SETTLED: Final = 0.1  # of the time, before which the memory may grow
SCRIPT: Final = "redis.call('INCR', KEYS[1]) return {string.rep('x', tonumber(ARGV[1])), redis.call('GET', KEYS[1])}"


def memory_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - only their number


def one_round(port: int, chance: random.Random, number: int) -> None:
    """Clients come, work, wait and go."""
    with ExitStack() as crowd:
        clients = [crowd.enter_context(Connection("127.0.0.1", port, PATIENCE_S)) for _ in range(CLIENTS)]
        waiting = crowd.enter_context(Connection("127.0.0.1", port, PATIENCE_S))
        listening = crowd.enter_context(Connection("127.0.0.1", port, PATIENCE_S))
        worker = crowd.enter_context(Connection("127.0.0.1", port, PATIENCE_S))
        waiting.send("BLPOP", "list", "0")
        clients[0].ask("XGROUP", "CREATE", "stream", "group", "$", "MKSTREAM")
        worker.send("XREADGROUP", "GROUP", "group", f"worker:{number}", "BLOCK", "0", "STREAMS", "stream", ">")
        listening.ask("SUBSCRIBE", "channel")
        for _ in range(REQUESTS):
            client, key = chance.choice(clients), f"key:{chance.randrange(KEYS)}"
            how = chance.randrange(9)
            if how == 0:
                client.ask("SET", key, "v" * chance.randrange(2000), "PX", str(chance.randrange(1, 2000)))
            elif how == 1:
                client.ask("EVAL", SCRIPT, "1", "counter", str(chance.randrange(5000)))
            elif how == 2:
                client.ask("PUBLISH", "channel", "m" * chance.randrange(500))
            elif how == 3:
                client.ask("XADD", "stream", "MAXLEN", "1000", "*", "field", "v" * chance.randrange(200))
            elif how == 4:
                client.ask("MULTI")
                client.ask("HSET", "hash", key, "v")
                client.ask("HEXPIRE", "hash", "1", "FIELDS", "1", key)
                client.ask("EXEC")
            elif how == 5:
                client.ask("ZADD", "zset", str(chance.random()), key)
            elif how == 6:
                client.ask("XREADGROUP", "GROUP", "group", "reader", "COUNT", "3", "STREAMS", "stream", ">")
            elif how == 7:
                client.ask("XAUTOCLAIM", "stream", "group", "claimer", "5", "0", "COUNT", "5")
            else:
                client.ask("EVAL", f"return {number}{chance.random()}", "0")
        clients[0].ask("RPUSH", "list", "x")
        clients[0].ask("XADD", "stream", "*", "field", "v")  # for the worker, if none came before
        for consumer in ("reader", "claimer", f"worker:{number}"):
            clients[0].ask("XGROUP", "DELCONSUMER", "stream", "group", consumer)
        if number % REWRITE_EVERY == 0:
            clients[0].ask("BGREWRITEAOF")
            clients[0].ask("SCRIPT", "FLUSH")


def slope(samples: list[tuple[float, int]]) -> float:
    """KiB a second, by least squares; 0 for fewer than two samples."""
    count = len(samples)
    if count < 2:
        return 0.0
    middle_s = sum(at for at, _ in samples) / count
    middle_kib = sum(size for _, size in samples) / count
    spread = sum((at - middle_s) ** 2 for at, _ in samples)
    return sum((at - middle_s) * (size - middle_kib) for at, size in samples) / spread if spread else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--python", default="", help="the interpreter that runs the server (default: this one)")
    chosen = parser.parse_args()
    if chosen.python:
        sys.executable = chosen.python
        os.environ["PYTHONSAFEPATH"] = "1"
        os.environ.pop("PYTHONPATH", None)
    chance = random.Random(chosen.seed)
    with running_server("--appendonly", "yes", "--save", "") as server:
        began_s = told_s = time.monotonic()
        end_s = began_s + chosen.hours * 3600
        samples: list[tuple[float, int]] = []
        number = first_descriptors = 0
        while time.monotonic() < end_s:
            number += 1
            one_round(server.port, chance, number)
            now_s = time.monotonic()
            if now_s - began_s > SETTLED * (end_s - began_s):
                samples.append((now_s - began_s, memory_kib(server.pid)))
                first_descriptors = first_descriptors or descriptors(server.pid)
            if now_s - told_s > TOLD_S:
                told_s = now_s
                say(f"{number} rounds, {memory_kib(server.pid) // 1024} MiB, {descriptors(server.pid)} descriptors")
        with Connection("127.0.0.1", server.port, PATIENCE_S) as last:
            assert last.ask("PING") == Simple(b"PONG"), "it still answers"
        more = descriptors(server.pid) - first_descriptors
        say(f"{number} rounds: {slope(samples) * 3600 / 1024:+.2f} MiB an hour, {more:+d} descriptors")
        return 1 if any("Traceback" in line for line in server.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
