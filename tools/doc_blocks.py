"""Runs the blocks of code of README.md and docs/ as a reader types them: in an empty folder, a page's blocks in order.

    python -m tools.doc_blocks [PAGE ...]

What a block is follows from its language and its first line:

  sh       each line is a command; `penstock serve` goes on until the page ends, or another is started without `&`
  python   a program; with functions `test_...`: a file for pytest
  none     with lines `> REQUEST`: requests to the server on port 6379, and the replies as redis-cli shows them;
           numbers of 13 digits and more (times, ids) may differ. Without expected lines a reply is no error.

A block behind a line `<!-- not run: why -->` is not run: it needs Docker, Java or another machine, or shows a form. A
page has a network of its own, in which 6379 is free (Linux, as root; elsewhere the machine's). The pipeline's pages are
run by tests/pipeline, that of clusters by tests/launching.
"""

import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import hiredis

from penstock.config.quoting import split
from penstock.errors import UsageError
from penstock.observe.console.names import reply_lines
from penstock.wire_client import WireClient, address

ROOT: Final = Path(__file__).parent.parent
WITH_OWN_TESTS: Final = {"pipeline.md", "recipes.md", "from-kafka.md", "cluster.md"}
PAGES: Final = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in WITH_OWN_TESTS),
]
REFERENCE: Final = (
    Path.home() / ".cache/penstock-reference/redis/bin"
)  # where `tools/reference-server redis` puts redis-cli
SEARCHED: Final = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], str(REFERENCE)])
BLOCK: Final = re.compile(r"^(?P<before>.*)\n```(?P<language>\w*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
NOT_RUN: Final = re.compile(r"<!-- not run: .+ -->")
SERVER: Final = re.compile(r"penstock serve\b(?!.*--check)")
CHANGING: Final = re.compile(r"\d{13,}(-\d+)?")  # times and ids
CLONE_NEWNET: Final = 0x40000000
SIOCSIFFLAGS: Final = 0x8914
UP: Final = 1
PATIENCE_S: Final = 60
CANNOT: Final = 77  # exit code


class Block(NamedTuple):
    """One block of a page. `line`: of its beginning. `reason`: why it is not run, or empty."""

    line: int
    language: str
    text: str
    reason: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page's text."""
    found = []
    for one in BLOCK.finditer(page):
        reason = one["before"] if NOT_RUN.fullmatch(one["before"]) else ""
        line = page.count("\n", 0, one.start()) + 2
        found.append(Block(line, one["language"], one["text"], reason))
    return found


class PageRun:
    """One page in its folder, with what it has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: list[subprocess.Popen[bytes]] = []
        self._environment = os.environ | {"PATH": SEARCHED, "PYTHONPATH": str(ROOT)}

    def run(self, block: Block) -> str:
        """Why the block fails, or nothing."""
        try:
            if block.language == "sh":
                return self._run_commands(block.text)
            if block.language == "python":
                return self._run_python(block)
            if block.text.startswith("> "):
                return self._hold_dialogue(block.text)
            return "no language and no request: mark it by <!-- not run: why -->"
        except (UsageError, subprocess.TimeoutExpired) as problem:
            return str(problem)

    def _run_commands(self, text: str) -> str:
        for line in text.replace("\\\n", " ").splitlines():
            command = line.partition("  #")[0].strip()
            if not command or command.startswith("#"):
                continue
            problem = (
                self._serve(command)
                if SERVER.match(command)
                else self._run(["bash", "-euo", "pipefail", "-c", command])
            )
            if problem:
                return f"{command}: {problem}"
        return ""

    def _run(self, words: list[str]) -> str:
        ran = subprocess.run(
            words,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return "" if ran.returncode == 0 else f"exit code {ran.returncode}: {ran.stderr[-800:]}{ran.stdout[-800:]}"

    def _serve(self, command: str) -> str:
        """Start a server, beside the others if `&` says so, and wait until it is ready."""
        if not command.endswith("&"):
            self.stop()
        said = self._folder.parent / f"server{len(self._servers)}.log"
        with said.open("wb") as log:
            words = ["bash", "-c", f"exec {command.rstrip('& ')}"]
            server = subprocess.Popen(words, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
        self._servers.append(server)
        until_s = time.monotonic() + PATIENCE_S
        while "Ready to accept connections" not in said.read_text(errors="replace"):
            if server.poll() is not None or time.monotonic() > until_s:
                return said.read_text(errors="replace")[-800:] or "it does not start"
            time.sleep(0.02)
        return ""

    def _run_python(self, block: Block) -> str:
        is_test = re.search(r"^(async )?def test_", block.text, re.MULTILINE) is not None
        file = self._folder / f"{'test_' if is_test else ''}page_{block.line}.py"
        file.write_text(block.text)
        runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(self._folder)] if is_test else []
        return self._run([sys.executable, *runner, str(file)])

    def _hold_dialogue(self, text: str) -> str:
        """Send each request; the lines behind it are what redis-cli shows of the reply."""
        problem = "" if self._serves_6379() else self._serve("penstock serve --dir .")
        if problem:
            return problem
        client = WireClient(address("redis://127.0.0.1:6379"))
        for part in text.removeprefix("> ").split("\n> "):
            request, _, expected = part.rstrip("\n").partition("\n")
            reply = client.ask(*(split(request.encode()) or []))
            shown = "\n".join(reply_lines(reply))
            if CHANGING.sub("N", shown) != CHANGING.sub("N", expected) if expected else is_error(reply):
                return f"> {request}\n{shown}\ninstead of\n{expected}"
        client.close()
        return ""

    def _serves_6379(self) -> bool:
        with socket.socket() as probe:
            return bool(self._servers) and probe.connect_ex(("127.0.0.1", 6379)) == 0

    def stop(self) -> None:
        """End the servers."""
        for server in self._servers:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
                server.wait(PATIENCE_S)
        self._servers = []


def is_error(reply: Any) -> bool:
    return isinstance(reply, hiredis.ReplyError)


def run_page(path: Path) -> tuple[int, list[str]]:
    """How many blocks of a page were run, and which failed: lines with the place and the reason."""
    run, failed = 0, []
    with ExitStack() as stack:
        outer = Path(tempfile.mkdtemp())
        stack.callback(shutil.rmtree, outer)
        folder = outer / "reader"
        folder.mkdir()
        page = PageRun(folder)
        stack.callback(page.stop)
        for block in blocks_of(path.read_text("utf-8")):
            if not block.reason:
                run += 1
                problem = page.run(block)
                if problem:
                    failed.append(f"{path.relative_to(ROOT)}:{block.line}: {problem}")
    return run, failed


def enter_own_network() -> bool:
    """Give this process a network of its own with a loopback interface; False where the system does not allow it."""
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            return False
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", UP, b""))
    except (AttributeError, OSError):
        return False
    return True


def main(names: list[str]) -> int:
    """Run pages and say what failed; returns the exit code."""
    if not enter_own_network():
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 6379)) == 0:
                sys.stderr.write("port 6379 is not free, and this process gets no network of its own\n")
                return CANNOT
    total, failures = 0, []
    for path in [Path(name).resolve() for name in names] or PAGES:
        run, failed = run_page(path)
        total += run
        failures += failed
    sys.stdout.write("".join(f"{line}\n" for line in failures) + f"{total} blocks run, {len(failures)} failed\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
