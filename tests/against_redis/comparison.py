"""A scenario held with both sides, what differs first, and the shortest dialogue that shows it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.against_redis.comparable_replies import ComparableReplies
from tests.against_redis.exclusions import IDMP_SINCE
from tests.against_redis.generator import Generator
from tests.support.compared_sides import InProcess, Piped, Side, latest_made_ms, wall_ms, without_made_ids
from tests.support.first_difference import lines
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.same_result import listed, text_of
from tests.support.shrinking import shortest
from tests.support.wire import Value, parse

BATCH: Final = 200
REFUSED_BLOCKS: Final = ("-1", "x", "9223372036854775807", "1.5")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Requests for two servers that are made empty first."""

    seed: str
    requests: list[Request]
    resp: int = 2
    node_entries: int = 100
    node_bytes: int = 4096

    def opening(self, known: Known) -> list[Request]:
        opening = [["RESET"], ["FLUSHALL"], ["CONFIG", "SET", "stream-node-max-entries", str(self.node_entries)]]
        opening += [["CONFIG", "SET", "stream-node-max-bytes", str(self.node_bytes)]]
        if known.version >= IDMP_SINCE:
            opening += [["CONFIG", "SET", "stream-idmp-duration", "100", "stream-idmp-maxsize", "100"]]
        for key, group in (("s1", "g1"), ("s1", "g2"), ("s2", "g1"), ("s3", "g1"), ("{t}s4", "")):
            opening.append(["XGROUP", "CREATE", key, group, "0", "MKSTREAM"])
        return [*opening, ["HELLO", str(self.resp)], ["SET", "text", "x"]]

    def of(self, requests: list[Request]) -> "Scenario":
        return Scenario(self.seed, requests, self.resp, self.node_entries, self.node_bytes)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first reply that differs: of which client, and how."""

    at: int
    request: Request
    theirs: Value
    ours: Value


@dataclass(slots=True)
class Transaction:
    """The requests that a connection has queued since MULTI, as its replies tell."""

    queued: list[Request] | None = None

    def follow(self, request: Request, reply: bytes) -> None:
        name = request[0].upper()
        if reply == b"+QUEUED\r\n" and self.queued is not None:
            self.queued.append(request)
        elif name == "MULTI" and reply == b"+OK\r\n":
            self.queued = []
        elif name == "EXEC" or (name in ("DISCARD", "RESET") and reply.startswith(b"+")):
            self.queued = None

    def may_make_ids(self, request: Request) -> bool:
        """Whether the reply may tell the time of the server: by an id that `*` made."""
        if request[0].upper() == "EXEC":
            return self.queued is not None and any("*" in queued for queued in self.queued)
        return "*" in request and self.queued is None


def scenario_of(seed: str, chance_of: Generator, count: int) -> Scenario:
    """A scenario of so many requests."""
    chance = chance_of.chance
    entries, size = chance.choice((100, 100, 10, 4, 1, 0)), chance.choice((4096, 4096, 4096, 300, 1000, 0))
    return Scenario(seed, chance_of.requests(count), chance.choice((2, 3)), entries, size)


@dataclass(slots=True)
class Comparison:
    """A reference and the server that is compared with it."""

    reference: Piped
    known: Known
    ours: Side
    handled: int = 0  # requests, but for those of replays
    refused: int = 0  # of them those that the reference answered with an error

    def first_difference(self, scenario: Scenario) -> Difference | None:
        opening = scenario.opening(self.known)
        requests = opening + scenario.requests
        transaction = Transaction()
        for start in range(0, len(requests), BATCH):
            batch = requests[start : start + BATCH]
            self.reference.send(batch)
            self.ours.send(batch)
            for offset, request in enumerate(batch):
                found = self.difference(transaction, request)
                if found is not None:
                    self._drain(len(batch) - offset - 1)
                    return Difference(start + offset - len(opening), request, *found)
            if isinstance(self.ours, InProcess):
                self.ours.check()
        return None

    def difference(self, transaction: Transaction, request: Request, alone: bool = False) -> tuple[Value, Value] | None:
        """Both replies to a request, rounded, where they differ. `alone`: it has not been sent with a batch."""
        if alone:
            self.reference.send([request])
            self.ours.send([request])
        self.handled += 1
        if isinstance(self.ours, InProcess) and not transaction.may_make_ids(request):
            ours = self.ours.answer()
            if self.reference.has_answered(ours):
                self.refused += ours.startswith(b"-")
                transaction.follow(request, ours)
                return None
            theirs = self.reference.answer()
        else:
            theirs = self.reference.answer()
            ours = self.ours.answer(latest_made_ms(parse(theirs)[0]))
        self.refused += theirs.startswith(b"-")
        shown = self._shown(transaction, request, theirs), self._shown(transaction, request, ours)
        transaction.follow(request, theirs)
        return shown if shown[0] != shown[1] else None

    def _shown(self, transaction: Transaction, request: Request, reply: bytes) -> Value:
        comparable = ComparableReplies(wall_ms(), None, self.known.version, self.known.has_texts)
        value = parse(reply)[0]
        if request[0].upper() == "EXEC" and transaction.queued is not None:
            value = comparable.exec(transaction.queued, value)
        elif reply != b"+QUEUED\r\n":
            value = comparable.reply(request, value)
        return value if isinstance(self.ours, InProcess) else without_made_ids(value)

    def _drain(self, count: int) -> None:
        """Let both sides finish a batch with replies that are not wanted any more."""
        for _ in range(count):
            self.reference.answer()
            self.ours.answer()

    def shrunk(self, scenario: Scenario, difference: Difference) -> tuple[Scenario, Difference]:
        """The shortest scenario found that still differs, and how it does; the given one where it does not again."""
        handled, refused = self.handled, self.refused

        def differs(requests: list[Request]) -> bool:
            return not _may_wait(requests) and self.first_difference(scenario.of(requests)) is not None

        requests = scenario.requests[: difference.at + 1]
        if differs(requests):
            scenario = scenario.of(shortest(requests, differs))
            difference = self.first_difference(scenario) or difference
        else:
            scenario = scenario.of([["(seen once; the last requests were)"], *requests[-20:]])
        self.handled, self.refused = handled, refused
        return scenario, difference


class Dialogue:
    """Requests said one by one to both sides; AssertionError at the first reply that differs."""

    def __init__(self, reference: Piped, known: Known, ours: Side, resp: int, node_entries: int) -> None:
        self._comparison = Comparison(reference, known, ours)
        self._scenario = Scenario("chosen by Hypothesis", [], resp, node_entries)
        self._transaction = Transaction()
        for request in self._scenario.opening(known):
            self._say(request)

    def say(self, request: Request) -> None:
        self._scenario.requests.append(request)
        if not _may_wait(self._scenario.requests):
            self._say(request)

    def _say(self, request: Request) -> None:
        found = self._comparison.difference(self._transaction, request, alone=True)
        if found is not None:
            raise AssertionError(report(self._scenario, Difference(len(self._scenario.requests), request, *found)))


def _may_wait(requests: list[Request]) -> bool:
    """Whether a request would be blocked: BLOCK outside MULTI, which shortening may lay open."""
    is_open = False
    for request in requests:
        name = request[0].upper()
        is_open = name == "MULTI" or (is_open and name not in ("EXEC", "DISCARD", "RESET"))
        for word, value in pairwise(request):
            if word.upper() == "BLOCK" and not is_open and value not in REFUSED_BLOCKS:
                return True
    return False


def report(scenario: Scenario, difference: Difference) -> str:
    """The dialogue, the two replies and the seed, for the reader of a failed test."""
    told = [f"seed {scenario.seed}, RESP{scenario.resp}, stream-node-max-entries {scenario.node_entries}"]
    told[0] += f", stream-node-max-bytes {scenario.node_bytes}"
    told += listed(map(text_of, scenario.requests), len(scenario.requests))
    told += [f"  in the reply to {text_of(difference.request)}"]
    return "\n".join([*told, *lines(difference.theirs, difference.ours)])
