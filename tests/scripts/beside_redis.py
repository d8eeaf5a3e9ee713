"""Random scripts beside a real Redis: `python -m tests.scripts.beside_redis --count 100000 --seed 1`.

The engine runs in a child process, so that one that dies is a difference like any other. It is a new one, not a fork:
a lock that another thread of this process has would never be free in a fork.
"""

import argparse
import contextlib
import faulthandler
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Final, Protocol

from tests.scripts.grammar import Grammar
from tests.scripts.known_differences import reason_of
from tests.scripts.vocabulary import CJSON_DEFAULTS
from tests.support.compared_sides import InProcess, Piped
from tests.support.random_words import Request
from tests.support.reference_server import NoReference, reference_server
from tests.support.shrinking import without

BATCH: Final = 25  # cases between two resets
SLICE: Final = 2000  # cases a child process
SHORTENING_S: Final = 4.0  # for a difference
SHORTENED: Final = 30  # differences of a group, in a slice
HANGS_S: Final = 120  # for a batch: what takes longer never ends
NO_ANSWER: Final = "Redis does not answer: a table in itself by two ways is a reply without an end"
ENDED: Final = "Redis ends: the `err` of what error is given is looked for by an __index that raises an error itself"
ENDS: Final = re.compile(r"__index(.|\n)*error\(")  # what a script has that may make it end
CLOSED: Final = b"(Redis closed the connection)"
DIED: Final = b"(the process died)"
DEEPEST_REPLY: Final = 50_000  # a table in itself is answered as thousands of arrays in each other
RESET: Final[list[Request]] = [
    ["RESET"], ["EVAL", "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', key) end", "0"],
    ["FUNCTION", "DELETE", "lib"], ["SET", "num", "10"], ["SET", "str", "value"],
    ["RPUSH", "list", "a", "b", "3"], ["SADD", "set", "m"], ["HSET", "hash", "f", "1"], ["ZADD", "zset", "1.5", "m"],
    ["XADD", "stream", "1-1", "f", "v"],
]  # fmt: skip
Reference = Callable[[], contextlib.AbstractContextManager[int]]  # the port of a Redis; a hung one is replaced
SHEBANGS: Final = (
    "#!lua", "#!lua flags=no-writes", "#!lua flags=allow-oom,allow-stale", "#!lua flags=x", "#!python", "#!lua name=x",
)  # fmt: skip
TOKENS: Final = re.compile(  # what makes a loop end is not taken apart
    r"while v\d+ < \d do v\d+ = v\d+ \+ 1|repeat v\d+ = v\d+ \+ 1"
    r"|if type\(v\d+\) == 'number' and v\d+ > 0 then|\[=+\[.*?\]=+\]"
    r"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\d[\w.]*|\w+|\s+|\.\.\.?|[^\w\s]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Case:
    """One script or library, as its statements, and the requests around it: `{}` is its text."""

    statements: tuple[str, ...]
    frame: tuple[tuple[str, ...], ...]

    def requests(self) -> list[Request]:
        text = "\n".join(self.statements)
        return [[text if word == "{}" else word for word in request] for request in self.frame]


@dataclass(frozen=True, slots=True)
class Difference:
    """Requests of which the last is answered otherwise, and the two answers."""

    requests: tuple[tuple[str, ...], ...]
    theirs: bytes
    ours: bytes

    @property
    def text(self) -> str:
        return "\n".join(" ".join(map(repr, request)) for request in self.requests)

    @property
    def group(self) -> str:
        """What differences of one cause have in common, more or less."""
        return repr((shape(self.theirs), shape(self.ours)))


@dataclass(frozen=True, slots=True)
class Found:
    """Of a slice: how many cases, how many of them were refused by both, the differences and those with a reason."""

    cases: int
    refused: int
    differences: tuple[Difference, ...]
    excused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Cases number `first` and following of a seed, by `case_of`, a function that a new process can import."""

    seed: str
    first: int
    size: int
    case_of: Callable[[str], Case]

    def batch(self, at: int) -> list[Case]:
        ends = min(at + BATCH, self.first + self.size)
        return [self.case_of(f"{self.seed}/{number}") for number in range(at, ends)]


class Progress(Protocol):
    """Shared memory in which a child says which case it is at."""

    value: int


def shape(reply: bytes) -> bytes:
    reply = re.sub(rb"[0-9a-f]{40}", b"SHA", reply)
    if not reply.startswith(b"-"):
        return reply[:1]
    return re.sub(rb"'[^']*'|<[^>]*>", b"Q", re.sub(rb"\d+", b"N", reply)).partition(b" script: ")[0][:60]


def case_of(seed: str) -> Case:
    chance = random.Random(seed)
    grammar = Grammar(chance)
    words = chance.choice(((), ("arg1",), ("10", "-2.5"), ("", "a b", "\0\r\n")))
    keys = chance.choice(((), ("str",), ("num", "list"), ("hash",)))
    given = (str(len(keys)), *keys, *words)
    kind = chance.random()
    if kind < 0.2:
        name = "bad-name" if chance.random() < 0.03 else "lib"
        statements = tuple(grammar.library(name))
        load = ("FUNCTION", "LOAD", "REPLACE", "{}")
        call = chance.choice(("FCALL",) * 5 + ("FCALL_RO",))
        return Case(statements, (load, (call, "f", *given), ("FCALL", chance.choice("fffgh"), *given), ("GET", "str")))
    statements = tuple(grammar.script())
    if kind < 0.24:
        statements = (chance.choice(SHEBANGS), *statements)
    command = chance.choice(("EVAL",) * 8 + ("EVAL_RO",))
    if kind < 0.3:
        return Case(statements, (("MULTI",), ("EVAL", "{}", *given), ("GET", "str"), ("EXEC",)))
    return Case(statements, ((command, "{}", *given),))


def opening(first: int) -> list[Request]:
    """What puts both sides into one state: RESP3 every third batch."""
    return [*RESET, ["HELLO", "3" if first // BATCH % 3 == 2 else "2"]]


class Compared:
    """Redis and an engine, asked the same."""

    def __init__(self, reference: Piped) -> None:
        self._reference = reference
        self._engine = InProcess()

    def replies(self, requests: list[Request]) -> Iterator[tuple[Request, bytes, bytes]]:
        self._reference.send(requests)
        self._engine.send(requests)
        theirs = [self._reference.answer() for _ in requests]
        for request, reply in zip(requests, theirs, strict=True):
            yield request, reply, self._engine.answer()

    def first_difference(self, start: list[Request], cases: list[Case]) -> Difference | None:
        requests = [request for case in cases for request in [*case.requests(), ["EVAL", CJSON_DEFAULTS, "0"]]]
        found = None
        for at, (_, theirs, ours) in enumerate(self.replies([*start, *requests])):
            if found is None and at >= len(start) and theirs != ours:
                found = Difference(tuple(map(tuple, requests[: at - len(start) + 1])), theirs, ours)
        return found

    def shortest(self, start: list[Request], cases: list[Case], found: Difference) -> tuple[Difference, Case]:
        """The fewest cases, statements and words of the last that still show a difference of this shape."""
        best = found
        ends = time.monotonic() + SHORTENING_S

        def shows(fewer: list[Case]) -> bool:
            nonlocal best
            if time.monotonic() > ends:
                return False
            other = self.first_difference(start, fewer)
            if other is None or other.group != found.group:
                return False
            best = other
            return True

        if shows(cases[-1:]):
            cases = cases[-1:]
        cases = without(cases, shows) if len(cases) > 1 else cases
        *before, last = cases
        for cut in (str.splitlines, TOKENS.findall):
            joint = "\n" if cut is str.splitlines else ""
            parts = cut("\n".join(last.statements))

            def is_shown(fewer: list[str], joint: str = joint, last: Case = last) -> bool:
                return shows([*before, Case((joint.join(fewer),), last.frame)])

            if len(parts) < 400:
                parts = without(parts, is_shown)
            if is_shown(parts):
                last = Case((joint.join(parts),), last.frame)
        return best, last


def compare_slice(port: int, compares: Slice, minimise: bool, progress: Progress) -> Found:
    """Compare the slice's cases; of a group so many are minimised."""
    sys.setrecursionlimit(DEEPEST_REPLY)
    seen: Counter[str] = Counter()
    refused, differences, excused = 0, [], []

    def found_so_far(cases: int) -> Found:
        faulthandler.cancel_dump_traceback_later()
        return Found(cases, refused, tuple(differences), tuple(excused))

    with contextlib.closing(Piped(port)) as reference:
        compared = Compared(reference)
        first = compares.first
        for at in range(first, first + compares.size, BATCH):
            faulthandler.dump_traceback_later(HANGS_S, exit=True)
            start, cases = opening(at), compares.batch(at)
            for length, case in enumerate(cases, 1):
                asked = start if length == 1 else []
                requests = [*case.requests(), ["EVAL", CJSON_DEFAULTS, "0"]]
                progress.value = at + length - 1
                try:
                    replies = list(compared.replies([*asked, *requests]))
                except TimeoutError:
                    excused.append(NO_ANSWER)
                    return found_so_far(at + length - first)
                except ConnectionError:  # only of a Redis: the engine is in this process
                    ended = Difference(tuple(map(tuple, case.requests())), CLOSED, b"")
                    if ENDS.search(ended.text):
                        excused.append(ENDED)
                    else:
                        differences.append(ended)
                    return found_so_far(at + length - first)
                for _, theirs, ours in replies[len(asked) :]:
                    refused += theirs.startswith(b"-")
                    if theirs == ours:
                        continue
                    found = Difference(tuple(map(tuple, case.requests())), theirs, ours)
                    reason = reason_of(found.text, theirs, ours)
                    if not reason and minimise and seen[found.group] < SHORTENED:
                        seen[found.group] += 1
                        try:
                            found, _ = compared.shortest(start, cases[:length], found)
                        except (TimeoutError, ConnectionError):  # a shorter form hangs or ends Redis
                            differences.append(found)
                            return found_so_far(at + length - first)
                        reason = reason_of(found.text, found.theirs, found.ours, is_shortest=True)
                    if reason:
                        excused.append(reason)
                    else:
                        differences.append(found)
                    break
                else:
                    continue
                # After a difference their keys may differ, too: begin anew.
                list(compared.replies(start))
    return found_so_far(compares.size)


def _child(answers: Connection, port: int, compares: Slice, minimise: bool, progress: Progress) -> None:
    answers.send(compare_slice(port, compares, minimise, progress))


def compare(
    reference: Reference, seed: str, count: int, minimise: bool = True, case_of: Callable[[str], Case] = case_of
) -> Iterator[Found]:
    """Compare so many cases of a seed with a Redis: what each slice of them shows."""
    spawned = multiprocessing.get_context("spawn")
    first = 0
    while first < count:
        compares = Slice(seed, first, min(SLICE, count - first), case_of)
        progress = spawned.Value("q", first)
        ours, theirs = spawned.Pipe()
        with reference() as port:
            child = spawned.Process(target=_child, args=(theirs, port, compares, minimise, progress))
            child.start()
            theirs.close()
            try:
                found = ours.recv()
            except EOFError:
                found = None
                child.join()
                with contextlib.suppress(OSError), contextlib.closing(Piped(port)) as other:  # Redis may run it still
                    other.ask("SCRIPT", "KILL")
                    other.ask("FUNCTION", "KILL")
        if found is None:
            at = int(progress.value)
            case = case_of(f"{seed}/{at}")
            said = b"%b exit code %d at %b/%d" % (DIED, child.exitcode or 0, seed.encode(), at)
            difference = Difference(tuple(map(tuple, case.requests())), b"", said)
            # What the slice found before is lost with the child: compare it again without what kills.
            found = Found(at + 1 - first, 0, (difference,), ())
        child.join()
        ours.close()
        yield found
        first += found.cases


def report(differences: list[Difference]) -> str:
    """The differences by group: how many, and the shortest."""
    groups: dict[str, list[Difference]] = {}
    for one in differences:
        groups.setdefault(one.group, []).append(one)
    lines = []
    for group in sorted(groups.values(), key=len, reverse=True):
        shown = min(group, key=lambda one: len(one.text))
        lines.append(f"{len(group)} times:\n{shown.text}\n  Redis: {shown.theirs!r}\n  here:  {shown.ours!r}\n")
    return "\n".join(lines)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.beside_redis", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many scripts (default: %(default)s)")
    parser.add_argument("--seed", default="1", help="the first seed (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="of a running Redis (default: one is started)")
    parser.add_argument("--quick", action="store_true", help="do not minimise what differs")
    chosen = parser.parse_args()
    differences: list[Difference] = []
    excused: Counter[str] = Counter()
    cases = refused = 0
    try:
        reference = partial(contextlib.nullcontext, chosen.port) if chosen.port else reference_server
        for found in compare(reference, chosen.seed, chosen.count, not chosen.quick):
            cases, refused = cases + found.cases, refused + found.refused
            differences += found.differences
            excused.update(found.excused)
            say(f"{cases} scripts, {len(differences)} differences")
            say(report(list(found.differences)))
    except NoReference as absence:
        say(str(absence))
        return 2
    except KeyboardInterrupt:
        say("stopped: what was found so far")
    say(report(differences))
    for reason, times in excused.most_common():
        say(f"known, {times} times: {reason}")
    known = sum(excused.values())
    say(f"{cases} scripts, {refused} error replies, {known} known differences, {len(differences)} others")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
