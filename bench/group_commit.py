"""How many commands one sync serves: single XADDs with `appendfsync always`, from 1 and from 50 connections.

`python -m bench.group_commit` measures twice: with a sync that takes 2 ms longer (a fault point adds it), and with the
bare disk, whose own sync time stands beside. Loads come from this process; every connection waits for each reply.
"""

import argparse
import os
import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serverproc import running_server

REQUEST = b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n"
SYNCS = 200


@contextmanager
def connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    links = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(count)]
    try:
        yield links
    finally:
        for link in links:
            link.close()


def rate(port: int, count: int, seconds: float) -> float:
    """Commands a second of so many connections, each with one command on the way."""
    done = 0
    with connections(port, count) as links, selectors.DefaultSelector() as selector:
        for link in links:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(REQUEST)
            selector.register(link, selectors.EVENT_READ, link)
        began_s = time.perf_counter()
        while (spent_s := time.perf_counter() - began_s) < seconds:
            for key, _ in selector.select(1):
                reply = key.data.recv(4096)
                assert reply.startswith(b"$"), reply
                done += 1
                key.data.sendall(REQUEST)
    return done / spent_s


def sync_ms(directory: Path) -> float:
    """What appending 100 bytes and an fdatasync take on the bare disk, the mean."""
    fd = os.open(directory / "probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began_s = time.perf_counter()
    for _ in range(SYNCS):
        os.write(fd, bytes(100))
        os.fdatasync(fd)
    spent_s = time.perf_counter() - began_s
    os.close(fd)
    return 1000 * spent_s / SYNCS


def measure(name: str, fault: str, args: argparse.Namespace) -> None:
    with running_server("--appendfsync", "always", environment={"PENSTOCK_FAULT": fault}) as server:
        rate(server.port, args.connections, 0.5)  # warm
        one = rate(server.port, 1, args.seconds)
        many = rate(server.port, args.connections, args.seconds)
    print(f"{name}: 1 connection {one:.0f}/s, {args.connections} connections {many:.0f}/s, ratio {many / one:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.group_commit", description="Group commit.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=50)
    args = parser.parse_args()
    measure("sync takes 2 ms longer", "sync:sleep2ms", args)
    with tempfile.TemporaryDirectory() as directory:
        print(f"the bare disk takes {sync_ms(Path(directory)):.2f} ms a sync")
    measure("bare disk", "", args)


if __name__ == "__main__":
    main()
