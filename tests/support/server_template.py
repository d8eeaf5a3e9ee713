"""Servers without a start of Python: each is forked of one process that has imported what a server needs.

The start of Python and the imports take 0.3 s of CPU, and the quick tests start hundreds of servers. The template only
imports: what a server sets up, it sets up after the fork, as `penstock serve` does after its imports. It has no threads
and no event loop, so a fork copies all of it. Each server has a keeper, its parent, which waits for its end.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final, TextIO

REQUEST_BYTES: Final = 1 << 20
NUMBER: Final = struct.Struct("i")  # from the keeper: the server's pid, and later its exit code, as Popen has it
IMPORTS: Final = ("penstock.cli", "penstock.commands.registry", "penstock.server.run", "uvloop")
EXTRAS: Final = ("penstock.observe.metrics_server", "penstock.observe.console.console_server")


class Forked:
    """A process that runs `penstock` with these words; of subprocess.Popen what ServerProcess uses."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._code: int | None = None
        self._keeper, its_end = socket.socketpair()
        output, its_output = os.pipe()
        request = json.dumps([words, os.environ | environment]).encode()
        with its_end:
            socket.send_fds(_template(), [request], [its_end.fileno(), its_output])
        os.close(its_output)
        self.stdout: TextIO = os.fdopen(output, errors="replace")
        self.pid = self._number(None)

    def _number(self, seconds: float | None) -> int:
        self._keeper.settimeout(seconds)
        number: int = NUMBER.unpack(self._keeper.recv(NUMBER.size))[0]
        return number

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        with contextlib.suppress(TimeoutError, BlockingIOError):
            return self.wait(0)
        return None

    def wait(self, timeout: float) -> int:
        """The exit code; TimeoutError where the process does not end in time."""
        if self._code is None:
            self._code = self._number(timeout)
            self._keeper.close()
        return self._code

    def send_signal(self, number: int) -> None:
        """As of Popen, nothing where the process has ended: its keeper knows that a moment before it has said so."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _template() -> socket.socket:
    """The way to this process's template, which ends when the way is closed."""
    ours, its_own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
    with its_own:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(its_own.fileno())],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            pass_fds=[its_own.fileno()],
        )
    atexit.register(process.wait)
    atexit.register(ours.close)  # is called first
    return ours


def main() -> int:
    """Be a template until the tests end; in each process that is forked, be a server and return its exit code."""
    for name in IMPORTS:
        importlib.import_module(name)
    for name in EXTRAS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.collect()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # of keepers
    words = _words_of_a_server(socket.socket(fileno=int(sys.argv[1])))
    if os.environ.get("PENSTOCK_FAULT"):
        return importlib.import_module("tests.crash.faulty_disk").main(words[1:])
    sys.argv[1:] = words
    code: int = sys.modules["penstock.cli"].main()
    return code


def _words_of_a_server(requests: socket.socket) -> list[str]:
    """Fork a server for each request; returns in the servers only."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 2)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    requests.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tests, output = descriptors
    server = os.fork()
    if server:
        os.close(output)
        _keep(server, tests)
    os.close(tests)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    words, environment = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    return [str(word) for word in words]


def _keep(server: int, tests: int) -> None:
    """Say the server's pid, wait for its end, say its exit code; does not return."""
    with contextlib.suppress(OSError):  # the tests may have ended
        os.write(tests, NUMBER.pack(server))
        os.write(tests, NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
