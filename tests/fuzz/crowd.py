"""A crowd at a server, and at a real Redis in the same run: `make crowd`, or `python -m tests.fuzz.crowd --scale 0.1`.

10,000 idle clients (3,000 of them with TLS), 1,000 that ask and do not read, 1,000 that wait in XREAD, and clients that
come and are reset, 5,000 a second. Meanwhile one client sends PING: its latencies and the server's memory are printed.
Needs `ulimit -n` of twice the number of clients; --scale makes them fewer.
"""

import argparse
import os
import re
import resource
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.fuzz.limit import say
from tests.support.certificates import Authority
from tests.support.reference_server import NoReference, free_port, reference_server
from tests.support.server_process import running_server
from tests.support.wire import Bulk, Connection, pack

IDLE: Final = 7000
IDLE_TLS: Final = 3000
SLOW: Final = 1000
BLOCKED: Final = 1000
SLOW_REPLY: Final = 50_000  # bytes of each reply that is not read
SLOW_REQUESTS: Final = 20
STORM: Final = 5000  # connections and resets a second
AHEAD_S: Final = 0.002  # of its pace, when the storm rests
SPARE_FILES: Final = 200
PATIENCE_S: Final = 60.0
RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: close sends a reset


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S)


class Storm(threading.Thread):
    """Connects and resets, so many times a second, until it is told to stop. `count`: how often."""

    def __init__(self, port: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._rate = rate
        self.stops = False
        self.count = 0

    def run(self) -> None:
        began_s = time.monotonic()
        while not self.stops:
            if began_s + self.count / self._rate > time.monotonic() + AHEAD_S:
                time.sleep(AHEAD_S)
                continue
            try:
                link = connected(self._port)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                link.close()
                self.count += 1
            except OSError:
                time.sleep(0.01)  # out of ports for a moment


def memory_mb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


def pid_of(port: int) -> int:
    with Connection("127.0.0.1", port, PATIENCE_S) as client:
        told = client.ask("INFO", "server")
    assert isinstance(told, Bulk)
    found = re.search(rb"process_id:(\d+)", told.text)
    assert found is not None, "INFO names the process"
    return int(found[1])


def latencies_ms(port: int, seconds: float) -> list[float]:
    """Of PINGs, one after the other."""
    found: list[float] = []
    with Connection("127.0.0.1", port, PATIENCE_S) as client:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            began_s = time.perf_counter()
            client.ask("PING")
            found.append((time.perf_counter() - began_s) * 1000)
    return sorted(found)


def visit(name: str, port: int, tls_port: int, authority: str, scale: float, seconds: float, storm_rate: float) -> None:
    """Have the crowd come, measure, and print a line."""
    pid = pid_of(port)
    alone, quiet_mb = latencies_ms(port, seconds / 4), memory_mb(pid)
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False
    with Connection("127.0.0.1", port, PATIENCE_S) as client:
        client.ask("SET", "value", b"x" * SLOW_REPLY)
    with ExitStack() as crowd:
        for _ in range(int(IDLE * scale)):
            crowd.enter_context(connected(port))
        for _ in range(int(IDLE_TLS * scale)):
            crowd.enter_context(context.wrap_socket(connected(tls_port)))
        for _ in range(int(SLOW * scale)):
            link = crowd.enter_context(connected(port))
            link.sendall(pack("GET", "value") * SLOW_REQUESTS)
        for _ in range(int(BLOCKED * scale)):
            link = crowd.enter_context(connected(port))
            link.sendall(pack("XREAD", "BLOCK", "0", "STREAMS", "never", "$"))
        storm = Storm(port, storm_rate)
        storm.start()
        began_s = time.monotonic()
        found = latencies_ms(port, seconds)
        storm.stops = True
        storm.join(PATIENCE_S)
        rate = storm.count / (time.monotonic() - began_s)
        p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
        say(
            f"{name:9} PING alone p99 {alone[len(alone) * 99 // 100]:.2f} ms; in the crowd p50 {p50:.2f} ms,"
            f" p99 {p99:.2f} ms, longest {found[-1]:.1f} ms; {rate:.0f} resets a second;"
            f" memory {quiet_mb} MB, then {memory_mb(pid)} MB"
        )


@contextmanager
def penstock(flags: list[str]) -> Iterator[int]:
    port = free_port()
    with running_server("--appendonly", "no", "--maxclients", "20000", "--port", str(port), *flags):
        yield port


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.crowd", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of clients (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of PINGs (default: %(default)s)")
    parser.add_argument("--storm", type=float, default=STORM, help="resets a second (default: %(default)s)")
    parser.add_argument("--python", default="", help="the interpreter that runs the server (default: this one)")
    chosen = parser.parse_args()
    if chosen.python:
        sys.executable = chosen.python
        os.environ["PYTHONSAFEPATH"] = "1"
        os.environ.pop("PYTHONPATH", None)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    scale = min(chosen.scale, (most - SPARE_FILES) / (IDLE + IDLE_TLS + SLOW + BLOCKED))
    if scale < chosen.scale:
        say(f"ulimit -n is {most}: the crowd is {scale:.2f} as large")
    with tempfile.TemporaryDirectory(prefix="penstock-crowd-") as folder:
        authority = Authority(Path(folder))
        own = authority.sign("server")
        tls = ["--tls-cert-file", str(own.certificate), "--tls-key-file", str(own.key)]
        tls += ["--tls-auth-clients", "no", "--tls-ca-cert-file", str(authority.file)]
        tls_port = free_port()
        with penstock(["--tls-port", str(tls_port), *tls]) as port:
            visit("Penstock", port, tls_port, str(authority.file), scale, chosen.seconds, chosen.storm)
        try:
            tls_port = free_port()
            flags = ["--maxclients", "20000", "--tls-port", str(tls_port), *tls]
            with reference_server(*flags) as port:
                visit("Redis", port, tls_port, str(authority.file), scale, chosen.seconds, chosen.storm)
        except NoReference as absence:
            say(f"no Redis to compare with: {absence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
