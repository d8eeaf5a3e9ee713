"""Two engines that get the same requests: one after the other, and in batches; and the law that both end up the same.

A history is a list of requests; PASS ends a pipeline, and turns the clocks.
"""

from collections.abc import Callable, Iterator

from penstock.clock import ManualClock
from penstock.protocol.limits import Limits
from penstock.protocol.reply import bulks as packed
from penstock.protocol.request_batch import RequestBatch
from penstock.protocol.request_reader import RequestReader
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, settings_with, value_of
from tests.support.keyspace_picture import KEPT, keyspace
from tests.support.log import UnitLog
from tests.support.same_result import Difference, assert_same, logs_differ, replies_differ, states_differ
from tests.support.word_batches import batches_of

Request = list[bytes]
ENCODED = ("a", "b", "n", "list", "hash", "set", "zset")


class Side:
    """An engine, its log, and one client."""

    def __init__(self, **directives: str) -> None:
        settings = settings_with(stream_node_max_entries="30", enable_debug_command="yes", **directives)
        self.clock = ManualClock(NOW_MS)
        self.log = UnitLog()
        self.engine = make_engine(self.clock, self.log, settings)
        self.client = Dialogue(self.engine)
        self.client("RPUSH list x", "HSET hash f v", "SADD set x", "ZADD zset 1 x", "XADD stream 5-5 f v")
        self.client("SET text x", "XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE t g 0 MKSTREAM")

    def each(self, requests: list[Request]) -> list[bytes]:
        """The reply to each, empty where there is none."""
        return [self.client.words(*request) for request in requests]

    def one_by_one(self, requests: list[Request]) -> list[bytes]:
        return [answer for answer in self.each(requests) if answer]

    def together(self, requests: list[Request]) -> list[bytes]:
        """In batches made of words."""
        return self._handled(batches_of(requests, self.engine.batch_shapes))

    def as_sent(self, requests: list[Request]) -> list[bytes]:
        """In batches made of bytes, as a connection reads them."""
        reader = RequestReader(Limits(), self.engine.batch_shapes)
        reader.feed(b"".join(map(packed, requests)))
        answers: list[bytes] = []
        while batches := reader.take(1000):
            answers += self._handled(batches)
        return answers

    def as_they_come(self, requests: list[Request]) -> list[bytes]:
        """Each in bytes of its own, from one connection."""
        reader = RequestReader(Limits(), self.engine.batch_shapes)
        answers: list[bytes] = []
        for request in requests:
            reader.feed(packed(request))
            answers += self._handled(reader.take(1000))
        return answers

    def _handled(self, batches: list[RequestBatch]) -> list[bytes]:
        answers: list[bytes] = []
        logged: list[int] = []
        while batches:
            batches = self.engine.handle_batches(self.client.session, batches, 1 << 30, answers, logged)
        assert logged == sorted(set(logged))
        return answers

    def picture(self) -> dict[str, object]:
        """All that can be seen of it but the log, which `logs_differ` compares."""
        shown: dict[str, object] = {}
        for key in ("s", "t"):
            for line in (f"XINFO STREAM {key} FULL COUNT 0", f"XINFO STREAM {key}", f"XPENDING {key} g"):
                shown[line] = self.client(line)
            shown[f"producers of {key}"] = value_of(self.engine, key.encode()).producers.pids
        for line in (*[f"OBJECT ENCODING {key}" for key in ENCODED], "DEBUG DIGEST"):
            shown[line] = self.client(line)
        counts = self.engine.statistics
        return shown | {
            "calls": {name: row.calls for name, row in counts.rows.items()},
            "failed": {name: row.failed for name, row in counts.rows.items()},
            "hits, misses, expired": (counts.hits, counts.misses, counts.expired),
            "times of expiry": dict(self.engine.keyspace.databases[0].expires),
            "dirty": self.engine.server.context.dirty,
        }


def passing(ms: int) -> Request:
    """The step of a history after which so much time has passed."""
    return [b"PASS", b"%d" % ms]


def assert_batches_agree(
    history: list[Request],
    way: Callable[[Side, list[Request]], list[bytes]],
    *setup: str,
    shorter_log: bool = False,
) -> None:
    """Fail if batches of a history's pipelines answer, leave or log something else than the requests one by one.

    way: how the pipelines come in. setup: requests before. shorter_log: a batch may be logged in fewer lines, which
    come to the same state.
    """

    __tracebackhide__ = True

    def compare(steps: list[Request]) -> Difference | None:
        return _difference(steps, way, setup, shorter_log)

    assert_same(history, compare, ("one by one", "in batches"))


def _difference(
    history: list[Request],
    way: Callable[[Side, list[Request]], list[bytes]],
    setup: tuple[str, ...],
    shorter_log: bool,
) -> Difference | None:
    alone, at_once = Side(), Side()
    for side in (alone, at_once):
        side.client(*setup)
    count = 0
    for requests, passed_ms in _pipelines(history):
        count = min(count + len(requests) + 1, len(history))
        found = replies_differ(requests, alone.each(requests), b"".join(way(at_once, requests)), count)
        if found is not None:
            return found
        for side in (alone, at_once):
            side.clock.advance(passed_ms)
            side.engine.tick()
        found = states_differ(alone.picture(), at_once.picture(), count)
        if found is None and not shorter_log:
            found = logs_differ(alone.log.text, at_once.log.text, count)
        if found is not None:
            return found
    for side, way_in in ((alone, "one by one"), (at_once, "in batches")) if shorter_log else ():
        now_ms = side.clock.now_us() // 1000
        here, kept = keyspace(side.engine, KEPT), keyspace(loaded_engine(side.log.units, now_ms), KEPT)
        if here != kept:
            return Difference("state after a restart", here, kept, count, names=(way_in, "from its log"))
    return None


def _pipelines(history: list[Request]) -> Iterator[tuple[list[Request], int]]:
    """The requests of each pipeline, and the time that passes after it. Nothing follows a request that may wait."""
    requests: list[Request] = []
    for step in history:
        if step[0] == b"PASS":
            yield requests, int(step[1])
            requests = []
            continue
        requests.append(step)
        if b"BLOCK" in step:
            yield requests, 0
            requests = []
    yield requests, 0
