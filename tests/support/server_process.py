"""A real server process for tests: `with running_server("--appendfsync", "always") as server: ... server.port`."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.server_template import Forked

READY = "Ready to accept connections"
START_S = 60.0  # what a busy machine may need
END_S = 60.0
CAN_FORK = sys.platform == "linux" and "PYTEST_VERSION" in os.environ  # what measures a server starts a real one
LISTENING = re.compile(r"Listening on (?:\[[^\]]*\]|[^ ]*):(\d+)$")


FAULTY = Path(__file__).parents[1] / "crash" / "faulty_disk.py"


def program(environment: dict[str, str]) -> list[str]:
    """What Python is to run: the server, or one with faults of its disk."""
    return [str(FAULTY)] if environment.get("PENSTOCK_FAULT") else ["-m", "penstock", "serve"]


class ServerProcess:
    """One `penstock serve`. `port` is its TCP port (0: it has none), `lines` what it said so far.

    flags: directives, after the path of a configuration file, if it has one. Without a wrapper, a session and variables
    of Python it is forked of a process that has imported the server, which saves the start of Python.
    """

    def __init__(
        self,
        flags: tuple[str, ...],
        directory: Path,
        environment: dict[str, str],
        wrapper: tuple[str, ...] = (),
        leads_session: bool = False,
    ) -> None:
        self.directory = directory
        self.port = 0
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._heard = threading.Condition()
        words = ["--port", "0", "--dir", str(directory), *flags]
        if flags and not flags[0].startswith("-"):
            words = [*flags[:1], *words[:4], *flags[1:]]
        self._process: Forked | subprocess.Popen[str]
        for_python = any(name.startswith("PYTHON") for name in environment)
        if CAN_FORK and not (wrapper or leads_session or for_python):
            self._process = Forked(["serve", *words], environment)
        else:
            self._process = subprocess.Popen(
                [*wrapper, sys.executable, *program(environment), *words],
                cwd=Path(__file__).parents[2],
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=leads_session,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._heard:
                self.lines.append(line.rstrip("\n"))
                self._heard.notify_all()
            found = LISTENING.search(self.lines[-1])
            if found:
                self.port = int(found[1])
            if READY in line:
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self, seconds: float = START_S) -> None:
        assert self._ready.wait(seconds), "the server does not start:\n" + self.said
        assert self._process.poll() is None and READY in self.said, "the server ended:\n" + self.said

    def wait_until_said(self, text: str, seconds: float = START_S) -> None:
        """Return once a line of the log has the text."""
        with self._heard:
            assert self._heard.wait_for(lambda: text in self.said, seconds), f"{text!r} is not in:\n{self.said}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL: as if the power had gone."""
        self._process.kill()
        self.wait()

    def wait(self) -> int:
        """The exit code, once the process has ended."""
        code = self._process.wait(END_S)
        self._reader.join(END_S)
        return code


def ended(*words: str) -> tuple[int, str]:
    """The exit code of `penstock` with these words, and all that it says; nothing comes from its standard input.

    One that does not end in time is killed: the code tells, or TimeoutExpired where it could not be forked.
    """
    if CAN_FORK:
        process = Forked(list(words), {})
        killing = threading.Timer(END_S, process.kill)
        killing.start()
        with process.stdout:
            said = process.stdout.read()
        killing.cancel()
        return process.wait(END_S), said
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", *words], cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=END_S,
    )  # fmt: skip
    return ran.returncode, ran.stdout


@contextmanager
def running_server(
    *flags: str,
    dir: Path | str | None = None,
    environment: dict[str, str] | None = None,
    start_s: float = START_S,
    wrapper: tuple[str, ...] = (),
) -> Iterator[ServerProcess]:
    """A server on a free port, ready to be asked; its data are in `dir`, or in a directory that goes with it.

    wrapper: the command that runs it, if not the system; `("env",)` has Python start for it, where it might be forked.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-") as own:
        server = ServerProcess(flags, Path(dir or own), environment or {}, wrapper)
        try:
            server.wait_until_ready(start_s)
            yield server
        finally:
            server.kill()
