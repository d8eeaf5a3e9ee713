"""A master and all that is made of it: what its log, its rewritten log, its snapshot and its replica hold is the same.

What no log carries is left out: seen and active times, and what the read of a history raised (docs/log.md).
"""

from collections.abc import Iterator

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.engine import Engine
from penstock.engine.replication import master as links
from penstock.engine.replication import role
from penstock.engine.replication.stream_applier import StreamApplier
from penstock.engine.session import Session
from penstock.protocol.log_reader import whole_requests
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine, saved_engine, settings_with
from tests.support.first_difference import lines
from tests.support.keyspace_picture import View, keyspace
from tests.support.log import UnitLog
from tests.support.random_words import Request
from tests.support.same_result import listed, text_of
from tests.support.shrinking import shortest
from tests.support.stream_histories import PASS, RESTART

MOST_BLOCKED = 4  # readers that wait
CHECKED_EVERY = 60  # requests
BEHIND_MS = 70


class Disagreement(Exception):
    """A copy differs: which, where, and what is there on either side."""


class Master:
    """An engine with a log and a replica; its client goes on with another connection where one blocks."""

    def __init__(self, words_of: str = "newest") -> None:
        """words_of: the Redis that must load the log and follow (aof-compat-version)."""
        self.clock = ManualClock(NOW_MS)
        self.log = UnitLog()
        self._words_of = words_of
        self.replica = Replica(self._settings())
        self.reads_history = False
        self.has_ties = True  # what was delivered at one moment is in order; no RDB file has that
        self._go_on_with(make_engine(self.clock, settings=self._settings()))

    def _go_on_with(self, engine: Engine) -> None:
        self.engine = engine
        engine.effects.use(self)
        self._blocked: list[Session] = []
        self._session = engine.server.connect("127.0.0.1:50000")

    def _settings(self) -> Settings:
        return settings_with(aof_compat_version=self._words_of)

    @property
    def now_ms(self) -> int:
        return self.clock.now_us() // 1000

    def append(self, unit: bytes) -> None:
        """As a log's."""
        self.log.append(unit)
        self.replica.apply(unit)

    def take(self, request: Request) -> bytes:
        """The answer; none where time passes, the server starts again, or the client blocks."""
        answer = b""
        if request[0] == PASS:
            passed_ms = int(request[1]) if len(request) > 1 else 1
            for clock, engine in ((self.clock, self.engine), (self.replica.clock, self.replica.engine)):
                clock.advance(passed_ms)
                engine.tick()
        elif request[0] == RESTART:
            self._restart("".join(request[1:]))
        else:
            self.reads_history = self.reads_history or _reads_history(request)
            answer = self.engine.handle(self._session, [word.encode("latin-1") for word in request])
            if self._session.blocked is not None:
                self._blocked.append(self._session)
                self._session = self.engine.server.connect("127.0.0.1:50000")
            if len(self._blocked) > MOST_BLOCKED:
                self.engine.server.disconnect(self._blocked.pop(0))
        self.engine.clients.outgoing.clear()
        return answer

    def _restart(self, way: str) -> None:
        base = self._base()
        if way == "rdb":
            again = saved_engine(self.engine, self.now_ms, self.clock, self._settings())
            self.has_ties = False
        else:
            again = loaded_engine(
                base if way == "base" else self.log.units, self.now_ms, None, self.clock, self._settings()
            )
        if way != "log":
            self.log.units[:] = base
        self._go_on_with(again)

    def _base(self) -> list[bytes]:
        return list(base_lines(self.engine.keyspace, self.engine.settings, self.now_ms))

    # -- the law ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise Disagreement if a copy differs."""
        for name, copy, has_ties in self._copies():
            view = View(False, not self.reads_history, has_ties and self.has_ties, self.now_ms)
            there, here = keyspace(copy, view), keyspace(self.engine, view)
            if there != here:
                raise Disagreement("\n".join([name, *lines(here, there, ("master", "there"))]))
        assert not self.replica.said, self.replica.said

    def _copies(self) -> Iterator[tuple[str, Engine, bool]]:
        """Each with its name, and whether it has what was delivered at one moment in order."""
        now_ms = self.now_ms
        yield "the replica", self.replica.engine, True
        yield "after kill -9", loaded_engine(self.log.units, now_ms), True
        yield "the replica after kill -9", loaded_engine(self.replica.log.units, now_ms), True
        yield "after a rewrite", loaded_engine(self._base(), now_ms), True
        if self._words_of == "newest":
            yield "after a rewrite as an RDB file", rdb_based_engine(self.engine, now_ms), False
        yield "after SAVE", saved_engine(self.engine, now_ms), False


class Replica:
    """An engine that follows, by what its master's stream has; its clock is behind the master's."""

    def __init__(self, settings: Settings) -> None:
        self.clock = ManualClock(NOW_MS - BEHIND_MS)
        self.log = UnitLog()
        self.said: list[str] = []
        self.engine = make_engine(self.clock, self.log, settings)
        role.follow(self.engine.server, "127.0.0.1", 7001)
        master = self.engine.replication.master
        assert master is not None
        master.set_link(links.CONNECTED, NOW_MS)
        self._applier = StreamApplier(self.engine, 0, self.said.append)

    def apply(self, unit: bytes) -> None:
        self._applier.apply(whole_requests(unit).requests)


def _reads_history(request: Request) -> bool:
    """Whether an XREADGROUP, or a script with one, asks for something else than new entries."""
    words = [word.upper() for word in request]
    if "XREADGROUP" not in words or "STREAMS" not in words:
        return False
    streams = words[words.index("STREAMS") + 1 :]
    return any(place != ">" for place in streams[len(streams) // 2 :])


def disagreement(requests: list[Request], words_of: str, every: int = 0) -> tuple[int, str]:
    """What differs after a history, or after so many of its requests, empty if nothing does; and after how many."""
    master = Master(words_of)
    for count, request in enumerate(requests, 1):
        try:
            master.take(request)
            if count == len(requests) or (every and count % every == 0):
                master.check()
        except Exception as error:  # of any kind: it is shown with the requests that lead to it
            return count, f"{type(error).__name__}: {error}"
    return len(requests), ""


def assert_agree(requests: list[Request], words_of: str = "newest") -> None:
    """Fail with the shortest history that shows a difference, and the difference."""
    __tracebackhide__ = True
    count, found = disagreement(requests, words_of, CHECKED_EVERY)
    if not found:
        return
    kind = _kind_of(found)

    def shows(fewer: list[Request]) -> bool:
        return _kind_of(disagreement(fewer, words_of)[1]) == kind

    fewest = shortest(requests[:count], shows)
    raise AssertionError(
        "\n".join([disagreement(fewest, words_of)[1] or found, "after", *listed(map(text_of, fewest), len(fewest))])
    )


def _kind_of(found: str) -> str:
    """The copy that differs, or the error."""
    return found.partition("\n")[0][:60]
