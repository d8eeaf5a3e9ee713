"""Scripts that attack a real server process: `python -m tests.scripts.hostile --count 200000 --seed 1`.

A second client asks all the time, as any other would: it must be answered within seconds, and be able to end what runs.
A script that looks at all that scripts share is run between, and must answer as at the start.
"""

import argparse
import random
import re
import select
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.against_redis.shrinking import without
from tests.scripts.hostile_scripts import CANARY, HostileScripts, Request
from tests.serverproc import ServerProcess, running_server
from tests.wire import Array, Closed, Connection, Error, Simple, Value, pack

MEGABYTE: Final = 1 << 20
MOST_MEMORY: Final = (512 + 256) * MEGABYTE  # Lua's bound, and what replies and the allocators may take beside it
THRESHOLD_MS: Final = 20
FLAGS: Final = ("--appendonly", "no", "--busy-reply-threshold", str(THRESHOLD_MS))
CANARY_EVERY: Final = 25
PATIENCE_S: Final = 2.0
SHORTENING_S: Final = 30.0  # to find a shorter script, a server each attempt
SETTINGS: Final = (  # what a script may set for all that follow, as in Redis
    b"cjson.encode_max_depth(1000) cjson.decode_max_depth(1000) cjson.encode_sparse_array(false, 2, 10) "
    b"cjson.encode_number_precision(14) cjson.encode_keep_buffer(true) cjson.encode_invalid_numbers(false) "
    b"cjson.decode_invalid_numbers(true)"
)
BUSY: Final = b"BUSY "
PWNED: Final = (b"pwned", b"LEAK", b"evil\r\n")


class Failure(Exception):
    """The server did what no script may make it do; the text says what."""


@dataclass(frozen=True, slots=True)
class Report:
    """A failure: which script, made by what, and the shortest requests that show it alone, if any do."""

    seed: str
    kind: str
    text: str
    requests: list[Request]
    is_alone: bool

    def __str__(self) -> str:
        shown = "\n  ".join(" ".join(map(repr, request)) for request in self.requests)
        alone = "" if self.is_alone else "\n  (not by itself: by what went before)"
        return f"{self.text}\n  seed {self.seed}, {self.kind}{alone}\n  {shown}\n"


class Target:
    """A server under attack: one client that attacks, one that watches."""

    def __init__(self, server: ServerProcess, patience_s: float) -> None:
        self._server = server
        self._patience_s = patience_s
        self._watcher = Connection("127.0.0.1", server.port, patience_s)
        self._attacker = Connection("127.0.0.1", server.port, patience_s)
        self.late = 0
        self.closed = 0
        self._watcher.ask("EVAL", SETTINGS, "0")
        self._canary = self._canary_answer()
        self._base = self._memory()
        self.most_memory = self._base

    def attack(self, requests: list[Request]) -> None:
        """Send requests, wait until they are answered, ending what lasts. Failure if that cannot be done."""
        try:
            self._attacker.send_raw(b"".join(pack(*request) for request in requests))
            for _ in requests:
                self._reply()
        except Closed:
            self._is_alive("the client's connection was closed")
            raise Failure("the client's connection was closed") from None
        except TimeoutError:
            raise Failure("the requests are not read") from None

    def _reply(self) -> None:
        began = time.monotonic()
        killed_at = 0.0
        while True:
            value = self._arrived(0.1 if killed_at else 0.03)
            if value is not None:
                self._look_at(value)
                return
            answer = self._asked("PING")
            now = time.monotonic()
            if isinstance(answer, Error) and answer.text.startswith(BUSY):
                self.late += not killed_at
                if not killed_at:
                    killed_at = now
                killed = [self._asked("SCRIPT", "KILL"), self._asked("FUNCTION", "KILL")]
                if any(isinstance(one, Error) and one.text.startswith(b"UNKILLABLE") for one in killed):
                    raise Unkillable
                if now - killed_at > self._patience_s:
                    raise Failure(f"SCRIPT KILL did not end it within {self._patience_s} s")
            elif now - began > 5 * self._patience_s:
                raise Failure("it is not answered, though the server is not busy")

    def _arrived(self, seconds: float) -> Value | None:
        # A reply may come in pieces: once it has begun, the rest may take longer.
        if self._attacker_is_silent(seconds):
            return None
        return self._attacker.reply(5 * self._patience_s)

    def _attacker_is_silent(self, seconds: float) -> bool:
        buffered, sock = self._attacker._buffer, self._attacker._socket
        return not buffered and not select.select([sock], [], [], seconds)[0]

    def _look_at(self, value: Value) -> None:
        text = repr(value).encode()
        for word in PWNED[:2]:
            if word in text:
                raise Failure(f"what no script may see or send: {text[:300]!r}")

    def _asked(self, *words: bytes | str) -> Value:
        """The watcher's answer."""
        try:
            return self._watcher.ask(*words)
        except TimeoutError:
            raise Failure(f"another client was not answered within {self._patience_s} s") from None
        except Closed:
            self._is_alive("another client's connection was closed")
            raise Failure("another client's connection was closed") from None

    def _is_alive(self, otherwise: str) -> None:
        try:
            code = self._server._process.wait(1)
        except Exception:  # it runs on
            raise Failure(otherwise) from None
        raise Failure(f"the process died, exit code {code}: {' | '.join(self._server.lines[-6:])[-400:]}")

    def look(self) -> None:
        """Failure if the memory's bound was passed, or if what scripts share has changed."""
        used = self._memory()
        self.most_memory = max(self.most_memory, used)
        if used - self._base > MOST_MEMORY:
            raise Failure(f"{(used - self._base) // MEGABYTE} MB at most were used, beyond {self._base // MEGABYTE} MB at the start")
        settled = self._asked("EVAL", SETTINGS, "0")
        if isinstance(settled, Error):
            raise Failure(f"cjson cannot be set up any more: {settled.text!r}")
        answer = self._canary_answer()
        if answer != self._canary:
            raise Failure(f"what scripts share has changed: {difference(self._canary, answer)}")

    def _canary_answer(self) -> Value:
        return self._asked("EVAL", CANARY, "0", "argument")

    def _memory(self) -> int:
        """The most memory that the process ever used, in bytes; 0 where the system does not tell."""
        try:
            status = Path(f"/proc/{self._server.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def close(self) -> None:
        self._watcher.close()
        self._attacker.close()


class Unkillable(Exception):
    """The script has written: no one may end it, as in Redis."""


def difference(before: Value, after: Value) -> str:
    if isinstance(before, Array) and isinstance(after, Array):
        pairs = zip(before.elements, after.elements, strict=False)
        return "; ".join(f"{one!r:.300} was {other!r:.300}" for other, one in pairs if one != other)
    return f"{after!r:.300}"


def run(count: int, seed: str, patience_s: float = PATIENCE_S, environment: dict[str, str] | None = None) -> Iterator[Report | str]:
    """Attack with so many scripts; failures as they are found, and a line about every thousand scripts."""
    number = late = servers = 0
    most_memory = 0
    failed: Counter[str] = Counter()
    while number < count:
        servers += 1
        with running_server(*FLAGS, environment=environment) as server:
            target = Target(server, patience_s)
            recent: list[list[Request]] = []
            while number < count:
                maker = HostileScripts(random.Random(f"{seed}/{number}"))
                requests = maker.requests()
                recent = [*recent[-CANARY_EVERY:], requests]
                number += 1
                try:
                    target.attack(requests)
                    if number % CANARY_EVERY == 0:
                        target.look()
                except Unkillable:
                    break
                except Failure as failure:
                    text = str(failure)
                    failed[text[:24]] += 1
                    suspects = [requests] if number % CANARY_EVERY else recent[::-1]
                    yield reported(f"{seed}/{number - 1}", maker.kind, text, suspects, patience_s, environment, failed[text[:24]] < 3)
                    break
                if number % 1000 == 0:
                    yield f"{number} scripts, {late + target.late} of them ended, {servers} servers, at most {max(most_memory, target.most_memory) // MEGABYTE} MB"
            late += target.late
            most_memory = max(most_memory, target.most_memory)
            target.close()
    yield f"{number} scripts, {late} of them ended, {servers} servers, at most {most_memory // MEGABYTE} MB"


def fails(requests: list[Request], patience_s: float, environment: dict[str, str] | None) -> str:
    """How a fresh server fails by these requests alone; empty if it does not."""
    with running_server(*FLAGS, environment=environment) as server:
        target = Target(server, patience_s)
        try:
            target.attack(requests)
            target.look()
        except Unkillable:
            return ""
        except Failure as failure:
            return str(failure)
        finally:
            target.close()
    return ""


def reported(
    seed: str, kind: str, text: str, suspects: list[list[Request]], patience_s: float, environment: dict[str, str] | None, shorten: bool
) -> Report:
    """A failure, with the first of the suspects that shows it alone made shorter, by statements."""
    for requests in suspects:
        found = fails(requests, patience_s, environment)
        if not found:
            continue
        ends = time.monotonic() + SHORTENING_S

        def still(parts: list[bytes], requests: list[Request] = requests, found: str = found, ends: float = ends) -> bool:
            if time.monotonic() > ends:
                return False
            return fails(with_code(requests, b"".join(parts)), patience_s, environment)[:24] == found[:24]

        parts = re.findall(rb"\w+|\s+|[^\w\s]", code_of(requests))
        if 2 < len(parts) < 2000 and shorten:  # the sizes halve: the first attempts take the most away
            requests = with_code(requests, b"".join(without(parts, still)))
        return Report(seed, kind, found, requests, True)
    return Report(seed, kind, text, suspects[0], False)


def code_of(requests: list[Request]) -> bytes:
    return max((word for request in requests for word in request[1:4]), key=len)


def with_code(requests: list[Request], code: bytes) -> list[Request]:
    old = code_of(requests)
    return [[code if word == old else word for word in request] for request in requests]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.hostile", description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="how many scripts (default: %(default)s)")
    parser.add_argument("--seed", default="1", help="the first seed (default: %(default)s)")
    parser.add_argument("--python", default="", help="the interpreter that runs the server (default: this one)")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds (default: %(default)s)")
    chosen = parser.parse_args()
    environment = None
    if chosen.python:  # its own penstock, not the one beside the tests
        sys.executable = chosen.python
        environment = {"PYTHONSAFEPATH": "1", "PYTHONPATH": ""}
    failures = 0
    for line in run(chosen.count, chosen.seed, chosen.patience, environment):
        failures += isinstance(line, Report)
        print(line, flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
