"""A server of the demo's own: started on a free port of the loopback address, killed, and started again on its log."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from examples.flights.wire import LOST, connect

START_S: Final = 600  # half a year of flights takes a while to load on a busy machine
POLL_S: Final = 0.02


class Server:
    """Keeps its log in `directory` with `appendfsync always`; its own words go to `server.log` there.

    `program` is how it is started, before its directives: ["python", "-m", "penstock", "serve"], or ["redis-server"];
    `directives` are further ones.
    """

    def __init__(self, program: list[str], directory: Path, directives: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        self._directory = directory
        self._command = [
            *program,
            *("--port", str(self.port), "--dir", str(directory), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always"),
            *directives,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers PING; RuntimeError when it has ended or takes too long."""
        with (self._directory / "server.log").open("ab") as words:
            self._process = subprocess.Popen(self._command, stdout=words, stderr=words, start_new_session=True)
        client = connect(self.port, "director")
        deadline = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                client.ping()
                client.close()
                return
            except LOST:
                time.sleep(POLL_S)
        raise RuntimeError(f"the server did not start; see {self._directory / 'server.log'}")

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, no client is notified."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def penstock() -> list[str]:
    return [sys.executable, "-m", "penstock", "serve"]
