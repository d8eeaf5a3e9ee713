"""Scripts that attack a real server process: `python -m tests.scripts.hostile --count 200000 --seed 1`.

A second client asks all the time, as any other would: it must be answered within seconds, and be able to end what runs.
A script that looks at all that scripts share is run between, and must answer as at the start.
"""

import argparse
import random
import re
import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.fuzz.judge import FORBEARANCE, MEGABYTE, PATIENCE_S, Failure, Judge, Stopwatch
from tests.scripts.hostile_scripts import HostileScripts, Request
from tests.scripts.hostile_vocabulary import CANARY
from tests.scripts.vocabulary import CJSON_DEFAULTS
from tests.support.server_process import ServerProcess, running_server
from tests.support.shrinking import without
from tests.support.wire import Array, Closed, Error, Value, pack

MOST_MEMORY: Final = (512 + 256) * MEGABYTE  # Lua's bound, and what replies and the allocators may take beside it
THRESHOLD_MS: Final = 20
FLAGS: Final = ("--appendonly", "no", "--busy-reply-threshold", str(THRESHOLD_MS))
CANARY_EVERY: Final = 25
SCRIPTS_A_SERVER: Final = 1000
SAME: Final = 24  # failures with texts that begin with as many equal letters are of one kind
SHORTENED: Final = 3  # of a kind; of the rest the seed is told
MOST_PARTS: Final = 2000
SHORTENING_S: Final = 30.0  # to find a shorter script, a server each attempt
BUSY: Final = b"BUSY "
FORBIDDEN: Final = re.compile(rb"LEAK [^\r]*|\+pwned\r")  # a value of the host, or a reply made by hand


@dataclass(frozen=True, slots=True)
class Report:
    """A failure: which script, made by what, and the shortest requests that show it alone, if any do."""

    seed: str
    kind: str
    text: str
    requests: list[Request]
    is_alone: bool | None  # None: it was not tried

    def __str__(self) -> str:
        shown = "\n  ".join(" ".join(map(repr, request)) for request in self.requests)
        alone = "\n  (not by itself: by what went before)" if self.is_alone is False else ""
        return f"{self.text}\n  seed {self.seed}, {self.kind}{alone}\n  {shown}\n"


class Attacker:
    """A client that does not parse replies, for they may be deep and huge: what ends them is the answer to an ECHO."""

    def __init__(self, port: int, patience_s: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), patience_s)
        self._mark = b""
        self._asked = 0
        self.replies = bytearray()

    def send(self, requests: list[Request]) -> None:
        self._asked += 1
        word = b"-- end of %d --" % self._asked
        self._mark = b"$%d\r\n%b\r\n" % (len(word), word)
        self.replies.clear()
        self._socket.sendall(b"".join(pack(*request) for request in [*requests, [b"ECHO", word]]))

    def is_answered(self, seconds: float) -> bool:
        """Whether everything is, once there was silence for so long. Closed if the connection was."""
        while not self.replies.endswith(self._mark):
            if not select.select([self._socket], [], [], seconds)[0]:
                return False
            try:
                piece = self._socket.recv(MEGABYTE)
            except ConnectionError:
                piece = b""
            if not piece:
                raise Closed(bytes(self.replies[-100:]))
            self.replies += piece
        return True

    def close(self) -> None:
        self._socket.close()


class Target:
    """A server under attack: one client that attacks, one that watches."""

    def __init__(self, server: ServerProcess, patience_s: float) -> None:
        self.judge = Judge(server, patience_s, MOST_MEMORY)
        self._attacker = Attacker(server.port, patience_s * FORBEARANCE)
        self.late = 0
        self.judge.asked("EVAL", CJSON_DEFAULTS, "0")
        self._canary = self._canary_answer()

    def attack(self, requests: list[Request]) -> None:
        """Send requests, wait until they are answered, ending what lasts. Failure if that cannot be done."""
        try:
            self._attacker.send(requests)
            self._wait()
        except Closed:
            raise self.judge.ended("the client's connection was closed") from None
        except TimeoutError:
            raise Failure("the requests are not read") from None

    def _wait(self) -> None:
        lasts = Stopwatch(self.judge.server.pid)
        dies: Stopwatch | None = None
        while not self._attacker.is_answered(0.1 if dies else 0.03):
            answer = self.judge.asked("PING")
            if isinstance(answer, Error) and answer.text.startswith(BUSY):
                if dies is None:
                    dies = Stopwatch(self.judge.server.pid)
                    self.late += 1
                killed = [self.judge.asked("SCRIPT", "KILL"), self.judge.asked("FUNCTION", "KILL")]
                if any(isinstance(one, Error) and one.text.startswith(b"UNKILLABLE") for one in killed):
                    raise Unkillable
                if dies.seconds() > self.judge.patience_s:
                    raise Failure(f"SCRIPT KILL did not end it within {self.judge.patience_s} s")
            elif lasts.seconds() > 5 * self.judge.patience_s:
                raise Failure("it is not answered, though the server is not busy")
        found = FORBIDDEN.search(self._attacker.replies)
        if found:
            raise Failure(f"what no script may see or send: {found[0]!r}")

    def look(self) -> None:
        """Failure if the memory's bound was passed, or if what scripts share has changed."""
        self.judge.look()
        settled = self.judge.asked("EVAL", CJSON_DEFAULTS, "0")
        if isinstance(settled, Error):
            raise Failure(f"cjson cannot be set up any more: {settled.text!r}")
        answer = self._canary_answer()
        if answer != self._canary:
            raise Failure(f"what scripts share has changed: {difference(self._canary, answer)}")

    def _canary_answer(self) -> Value:
        return self.judge.asked("EVAL", CANARY, "0", "argument")

    def close(self) -> None:
        self.judge.close()
        self._attacker.close()


class Unkillable(Exception):
    """The script has written: no client may end it, as in Redis."""


def difference(before: Value, after: Value) -> str:
    if isinstance(before, Array) and isinstance(after, Array):
        pairs = zip(before.elements, after.elements, strict=False)
        return "; ".join(f"{one!r:.300} was {other!r:.300}" for other, one in pairs if one != other)
    return f"{after!r:.300}"


@dataclass(slots=True)
class Progress:
    """What was done so far."""

    scripts: int = 0
    ended: int = 0  # by SCRIPT KILL or FUNCTION KILL
    servers: int = 0
    most_memory: int = 0

    def add(self, target: Target) -> None:
        self.ended += target.late
        self.most_memory = max(self.most_memory, target.judge.peak_memory)

    def __str__(self) -> str:
        used = self.most_memory // MEGABYTE
        return f"{self.scripts} scripts, {self.ended} of them killed, {self.servers} servers, at most {used} MB"


def run(
    count: int, seed: str, patience_s: float = PATIENCE_S, environment: dict[str, str] | None = None
) -> Iterator[Report | Progress]:
    """Attack with so many scripts: failures as they are found, and the progress now and then."""
    progress = Progress()
    failed: Counter[str] = Counter()
    while progress.scripts < count:
        progress.servers += 1
        with running_server(*FLAGS, environment=environment) as server:
            target = Target(server, patience_s)
            recent: list[list[Request]] = []
            try:
                for number in range(progress.scripts, min(count, progress.scripts + SCRIPTS_A_SERVER)):
                    maker = HostileScripts(random.Random(f"{seed}/{number}"))
                    requests = maker.requests()
                    recent = [requests, *recent[:CANARY_EVERY]]
                    progress.scripts += 1
                    target.attack(requests)
                    if progress.scripts % CANARY_EVERY == 0:
                        target.look()
            except Unkillable:
                continue
            except Failure as failure:
                kind = str(failure)[:SAME]
                failed[kind] += 1
                suspects = recent if progress.scripts % CANARY_EVERY == 0 else recent[:1]
                found = Report(f"{seed}/{number}", maker.kind, str(failure), requests, None)
                yield shortened(found, suspects, patience_s, environment) if failed[kind] <= SHORTENED else found
            finally:
                progress.add(target)
                target.close()
        yield progress


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


def shortened(
    report: Report, suspects: list[list[Request]], patience_s: float, environment: dict[str, str] | None
) -> Report:
    """The first of the suspects that fails alone, its script made shorter; the report itself if none does."""
    ends = time.monotonic() + SHORTENING_S
    for requests in suspects:
        found = fails(requests, patience_s, environment)
        if not found:
            continue

        def still(parts: list[bytes], requests: list[Request] = requests, found: str = found) -> bool:
            if time.monotonic() > ends:
                return False
            return fails(with_code(requests, b"".join(parts)), patience_s, environment)[:SAME] == found[:SAME]

        parts = [bytes(part) for part in re.findall(rb"\w+|\s+|[^\w\s]", code_of(requests))]
        if 2 < len(parts) < MOST_PARTS:
            parts = without(parts, still)
            requests = with_code(requests, b"".join(parts))
        return Report(report.seed, report.kind, found, requests, True)
    return replace(report, is_alone=False)


def code_of(requests: list[Request]) -> bytes:
    return max((word for request in requests for word in request[1:4]), key=len)


def with_code(requests: list[Request], code: bytes) -> list[Request]:
    old = code_of(requests)
    return [[code if word == old else word for word in request] for request in requests]


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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
        say(line)
    say(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
