"""Requests that follow one another in a pipeline are answered at once, with nothing to be seen of it."""

import random
from collections.abc import Callable
from typing import cast

import pytest

from penstock.clock import ManualClock
from penstock.commands.registry import new_engine
from penstock.commands.streams.xadd_batch import add_run
from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.protocol.limits import Limits
from penstock.protocol.request_batch import alike, shape_of
from penstock.protocol.request_reader import RequestReader, packed
from tests.commands.test_hash_expiry import loaded
from tests.conftest import NOW_MS
from tests.dialogue import Dialogue

KEYS = (b"s", b"s", b"s", b"t", b"text")
VALUES = (b"v", b"", b"12", b"-7", b"-x", b"v" * 63, b"v" * 64, b"v" * 126, b"v" * 5000, b"007", b"*5\r\n$4\r\nXADD")


class Log:
    """A log in memory."""

    def __init__(self) -> None:
        self.text = b""

    def append(self, unit: bytes) -> None:
        self.text += unit


class Side:
    """An engine, its log, and one client."""

    def __init__(self, seed: int) -> None:
        settings = Settings()
        for name, value in (
            ("stream-node-max-bytes", "300" if seed % 2 else "4096"),
            ("stream-node-max-entries", "30"),
            ("enable-debug-command", "yes"),
        ):
            settings.read_line([name, value], set())
        self.clock = ManualClock(NOW_MS)
        self.log = Log()
        self.engine = new_engine(settings, self.clock, random.Random(1), None, self.log)
        self.client = Dialogue(self.engine)
        self.client("SET text x", "XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE t g 0 MKSTREAM")

    def one_by_one(self, requests: list[list[bytes]]) -> list[bytes]:
        return [answer for answer in (self.client.words(*request) for request in requests) if answer]

    def together(self, requests: list[list[bytes]]) -> list[bytes]:
        answers: list[bytes] = []
        logged: list[int] = []
        while requests:
            done = self.engine.handle_several(self.client.session, requests, 1 << 30, answers, logged)
            requests = requests[done:]
        assert logged == sorted(set(logged))
        return answers

    def as_sent(self, requests: list[list[bytes]]) -> list[bytes]:
        """As a connection does it: what is alike in the bytes first."""
        answers: list[bytes] = []
        logged: list[int] = []
        data = b"".join(map(packed, requests))
        reader = RequestReader(Limits())
        while data:
            found = alike(data, shape_of(data, self.engine.alike_names))
            if found is not None and self.engine.answer_alike(self.client.session, found, answers, logged):
                data = data[found.size :]
                continue
            reader.feed(data)
            requests = []
            while (request := reader.next()) is not None:
                requests.append(request)
            return answers + self.together(requests)
        assert logged == sorted(set(logged))
        return answers

    def picture(self) -> list[object]:
        shown: list[object] = [self.client(f"XINFO STREAM {key} FULL COUNT 0") for key in ("s", "t")]
        shown += [self.client(f"XINFO STREAM {key}", f"XPENDING {key} g") for key in ("s", "t")]
        statistics = {name: rows.calls for name, rows in self.engine.statistics.rows.items()}
        return [*shown, self.client("DEBUG DIGEST"), statistics, self.engine.context.dirty, self.log.text]


class Pipelines:
    """Requests in long runs of the same command."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.added = [1]

    def next(self) -> list[list[bytes]]:
        chance = self.chance
        key, count = chance.choice(KEYS), chance.choice((1, 2, 3, 10, 100, 300))
        kind = chance.random()
        if kind < 0.5:
            width, name = chance.choice((1, 1, 2, 5)), chance.choice((b"XADD", b"xadd"))
            return [[name, key, b"*", *self.fields(width)] for _ in range(count)]
        if kind < 0.6:
            head = [b"XADD", key, chance.choice((b"MAXLEN", b"maxlen")), b"~", b"%d" % chance.randrange(500), b"*"]
            return [head + self.fields(1) for _ in range(count)]
        if kind < 0.7:
            return [[b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"%d" % count, b"STREAMS", key, b">"]]
        if kind < 0.75:
            return [[b"XADD", key, b"*", b"odd"], [b"XADD"], [b"XADD", key], [b"XADD", key, b"5-5", b"f", b"v"]]
        if kind < 0.8:
            return [[b"MULTI"], *[[b"XADD", key, b"*", b"f", b"v"]] * 3, [b"EXEC"]]
        if kind < 0.82:
            return [[b"XACK", key, b"g", b"1-1", chance.choice((b"*", b"2-2")), b"*", b"3-3"]] * 3
        if kind < 0.85:
            return [[b"XTRIM", key, b"MAXLEN", b"~", b"50"], [b"XLEN", key]]
        return [[b"XACK", key, b"g", *self.ids()] for _ in range(count)]

    def fields(self, width: int) -> list[bytes]:
        chance = self.chance
        name = b"f" if chance.random() < 0.98 else b"g"
        return [word for at in range(width) for word in (b"%b%d" % (name, at), chance.choice(VALUES[: 6 + at * 2]))]

    def ids(self) -> list[bytes]:
        chance = self.chance
        first = chance.randrange(400)
        ids = [b"%d-%d" % (NOW_MS + first // 100, first % 100 + at) for at in range(chance.choice((1, 1, 1, 5)))]
        return ids if chance.random() < 0.97 else [b"x"]


@pytest.mark.parametrize("way", [Side.together, Side.as_sent])
@pytest.mark.parametrize("seed", range(40))
def test_answers_state_and_log_are_those_of_one_by_one(seed: int, way: Callable[..., list[bytes]]) -> None:
    pipelines, alone, at_once = Pipelines(seed), Side(seed), Side(seed)
    for step in range(40):
        requests = pipelines.next()
        assert way(at_once, requests) == alone.one_by_one(requests)
        for side in (alone, at_once):
            side.clock.advance(step % 3)
        assert at_once.picture() == alone.picture()
    for side in (alone, at_once):
        for key in (b"s", b"t"):
            side.engine.keyspace.databases[0].values[key].check()


@pytest.mark.parametrize("trim", ["MAXLEN = 9", "MAXLEN ~ 1", "MAXLEN ~ x", "MINID ~ 5"])
def test_behind_a_request_that_goes_alone_no_other_is_looked_at(trim: str) -> None:
    side = Side(0)
    request = f"XADD s {trim} * f v".encode().split()
    behind = cast(list[bytes], None)  # whoever looks at it fails

    side.engine.context.begin(side.client.session, NOW_MS * 1000)
    assert add_run(side.engine.context, [request, behind], 0, []) == 0


def test_as_many_go_together_as_a_trim_leaves_alone() -> None:
    side = Side(0)
    requests = [b"XADD s MAXLEN ~ 5 * f v".split()] * 9

    side.engine.context.begin(side.client.session, NOW_MS * 1000)
    assert add_run(side.engine.context, requests, 0, []) == 4


def test_a_parked_reader_gets_the_first_of_them_alone(engine: Engine) -> None:
    reader, writer = Dialogue(engine), Dialogue(engine)
    reader("XADD s 1-0 f v", "XREAD BLOCK 0 STREAMS s $")
    answers: list[bytes] = []
    logged: list[int] = []
    requests = [[b"XADD", b"s", b"*", b"f", b"%d" % at] for at in range(3)]
    while requests:
        requests = requests[engine.handle_several(writer.session, requests, 1000, answers, logged) :]
    assert len(answers) == 3
    assert reader.arrived() == [[[b"s", [[answers[0].split(b"\r\n")[1], [b"f", b"0"]]]]]]


def test_a_watcher_learns_of_them(engine: Engine) -> None:
    watcher, writer = Dialogue(engine), Dialogue(engine)
    watcher("XADD s 1-0 f v", "WATCH s", "MULTI", "PING")
    engine.handle_several(writer.session, [[b"XADD", b"s", b"*", b"f", b"v"]] * 2, 1000, [], [])
    assert watcher("EXEC") is None


@pytest.mark.parametrize("seed", range(8))
def test_reads_at_once_come_to_the_same_state_by_a_shorter_log(seed: int) -> None:
    chance = random.Random(seed)
    alone, at_once = Side(seed), Side(seed)
    for step in range(40):
        key, count = chance.choice((b"s", b"t")), chance.choice((1, 2, 10, 50))
        more = [[b"XADD", key, b"*", b"f", b"v"]] * chance.choice((1, 3, 40))
        gone = [[b"XDEL", key, b"%d-%d" % (NOW_MS + step, chance.randrange(9))]]
        words = [b"NOACK"] if chance.random() < 0.1 else [b"BLOCK", b"0"] if chance.random() < 0.2 else []
        reader = chance.choice((b"alice", b"bob", b"%d" % step))
        read = [b"XREADGROUP", b"GROUP", b"g", reader, b"COUNT", b"%d" % count, *words, b"STREAMS", key, b">"]
        requests = [*more, *gone, *[read] * (1 if b"BLOCK" in words else chance.choice((2, 5, 100)))]
        assert at_once.together(list(requests)) == alone.one_by_one(requests)
        assert at_once.picture()[:-1] == alone.picture()[:-1]
        for side in (alone, at_once):
            side.clock.advance(1)
    for side in (alone, at_once):
        again = loaded([side.log.text], side.clock.now_us() // 1000)
        assert digest_of(again) == digest_of(side.engine)
        side.engine.keyspace.databases[0].check()
    assert len(at_once.log.text) < len(alone.log.text)


def digest_of(engine: Engine) -> list[object]:
    said = Dialogue(engine)
    shown: list[object] = []
    for key in ("s", "t"):
        shown += [said(f"XPENDING {key} g - + 100000"), said(f"XINFO GROUPS {key}"), said(f"XRANGE {key} - +")]
    return shown
