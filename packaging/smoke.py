"""The smoke test of an installed Penstock: serves, keeps, restarts. Needs nothing but the Python it is run with.

`python packaging/smoke.py [--build NAME]`; NAME is that of `penstock version`: python, core or compiled.
"""

import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE_S = 60
PENSTOCK = [sys.executable, "-P", "-m", "penstock"]  # -P: not the source that may lie in this folder


def packed(line: str) -> bytes:
    words = [word.encode() for word in line.split()]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def answers(port: int, requests: list[str], last: bytes) -> bytes:
    """All replies to some requests; their last bytes are known."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as link:
        link.sendall(b"".join(packed(one) for one in requests))
        told = b""
        while not told.endswith(last):
            piece = link.recv(65536)
            if not piece:
                raise SystemExit(f"smoke: the server closed the connection after {told!r}")
            told += piece
        return told


class Served:
    """A server in a folder, for a `with` block, which ends it by SIGTERM."""

    def __init__(self, folder: str) -> None:
        self._command = [*PENSTOCK, "serve", "--port", "0", "--dir", folder]

    def __enter__(self) -> int:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        port = 0
        said = ""
        for line in self._process.stdout:
            said += line
            found = re.search(r"Listening on 127\.0\.0\.1:(\d+)$", line.rstrip())
            port = int(found[1]) if found else port
            if "Ready to accept connections" in line:
                return port
        raise SystemExit(f"smoke: the server does not start:\n{said}")

    def __exit__(self, *failure: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=PATIENCE_S)
        if self._process.returncode:
            raise SystemExit(f"smoke: the server ended with {self._process.returncode}")


def main() -> None:
    version = subprocess.run([*PENSTOCK, "version"], check=True, capture_output=True, text=True).stdout.strip()
    wanted = sys.argv[2] if sys.argv[1:2] == ["--build"] else ""
    if f"{wanted} build" not in version:
        raise SystemExit(f"smoke: not the {wanted} build: {version}")
    with tempfile.TemporaryDirectory() as folder:
        with Served(folder) as port:
            told = answers(
                port,
                [
                    "PING",
                    "XADD orders 1-1 number 1",
                    "XADD orders 1-2 number 2",
                    "XGROUP CREATE orders shop 0",
                    "XREADGROUP GROUP shop alice COUNT 1 STREAMS orders >",
                    "XACK orders shop 1-1",
                ],
                b":1\r\n",
            )
            if not told.startswith(b"+PONG\r\n$3\r\n1-1\r\n$3\r\n1-2\r\n+OK\r\n"):
                raise SystemExit(f"smoke: unexpected replies: {told!r}")
        if not list(Path(folder).glob("appendonlydir/*.aof")):
            raise SystemExit("smoke: there is no log")
        with Served(folder) as port:
            answers(port, ["XLEN orders"], b":2\r\n")
    print(f"smoke: {version} serves, keeps and restarts")


if __name__ == "__main__":
    main()
