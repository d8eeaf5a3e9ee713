"""Which streams the metrics show where there are more than metrics-max-streams: those that need an operator first.

A scrape looks at the groups of at most PIECES pieces of PIECE streams, and again at those that it showed before. With
more streams a walk over them takes several scrapes. It is made in steps of GROUPS_A_STEP groups, about 0.1 ms, between
which the event loop serves clients. What no step divides is the copy of a database's names at the start of a walk: some
40 ns a name, so 4 ms for 100,000 streams at every fifth scrape (2026-11, CPU of two busy cores).
"""

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import chain, islice
from typing import Final, TypeAlias

from penstock.engine.engine import Engine
from penstock.engine.matching.globs import matches
from penstock.observe import urgency
from penstock.storage.streams.pending import claim_walk
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream

EVERY_STREAM: Final = "*"
PIECE: Final = 200  # names that are compared with the pattern in a step, and looked at in one scrape
PIECES: Final = 100
GROUPS_A_STEP: Final = 50  # streams and groups
MOST_CONSUMERS: Final = 100  # of a group, when those that are gone are counted

Name: TypeAlias = tuple[int, bytes]  # database and key
GroupName: TypeAlias = tuple[int, bytes, bytes]


class StreamChoice:
    """Chooses for one scrape after another.

    chosen: database and key of each stream to show, the most urgent first. left_out: streams that are not shown;
    left_out_with_pending: those among them that had pending entries when they were looked at last.
    """

    def __init__(self, piece: int = PIECE, pieces: int = PIECES) -> None:
        self._piece = piece
        self._pieces = pieces
        self.chosen: list[Name] = []
        self.left_out = 0
        self.left_out_with_pending = 0
        self._pattern = ""
        self._names: list[tuple[int, list[bytes]]] = []  # this walk's pieces: of a database, the oldest keys first
        self._at = 0  # how many pieces were looked at
        self._ranks: dict[Name, urgency.Rank] = {}  # of streams with groups, the best that were found
        self._lags: dict[GroupName, int] = {}  # of their groups, at the last look

    def choose(self, engine: Engine, most: int, pattern: str) -> Iterator[None]:
        """Choose at most so many streams that match the pattern; the server may answer clients at each yield."""
        if self._at >= len(self._names) or pattern != self._pattern:
            yield from self._begin_walk(engine, pattern)
        total = sum(len(keys) for _, keys in self._names)
        if total <= most:
            self._at = len(self._names)
            self.chosen = list(_named(self._names))
            self.left_out = self.left_out_with_pending = 0
            return
        before, self._ranks, lags, self._lags = self._ranks, {}, self._lags, {}
        some = self._names[self._at : self._at + self._pieces]
        self._at += len(some)
        yield from self._look(engine, chain(before, _named(some)), lags)
        best = nsmallest(most, self._ranks.items(), key=lambda one: one[1])
        with_pending = sum(1 for of in self._ranks.values() if of[5])
        self._ranks = dict(best)
        others = (name for name in _named(self._names) if name not in self._ranks)
        self.chosen = [name for name, _ in best] + list(islice(others, most - len(best)))
        self.left_out = total - len(self.chosen)
        self.left_out_with_pending = with_pending - sum(1 for _, of in best if of[5])

    def _begin_walk(self, engine: Engine, pattern: str) -> Iterator[None]:
        found: list[tuple[int, list[bytes]]] = []
        glob = pattern.encode(errors="surrogateescape")
        for db_index, db in enumerate(engine.keyspace.databases):
            keys = list(db.streams)
            for start in range(0, len(keys), self._piece):
                some = keys[start : start + self._piece]
                found.append(
                    (db_index, some if pattern == EVERY_STREAM else [key for key in some if matches(glob, key)])
                )
                yield
        self._pattern, self._names, self._at = pattern, found, 0

    def _look(self, engine: Engine, names: Iterable[Name], lags: dict[GroupName, int]) -> Iterator[None]:
        """Rank the streams; those that are gone, and those without groups, get no rank."""
        looked = 0
        for name in names:
            stream = engine.keyspace.databases[name[0]].streams.get(name[1])
            groups: list[Group | None] = [None] if stream is None else [None, *stream.groups.values()]
            for group in groups:
                if stream is not None and group is not None:
                    of = self._rank(name, stream, group, lags, engine.clock.now_us() // 1000)
                    self._ranks[name] = min(of, self._ranks.get(name, of))
                looked += 1
                if looked % GROUPS_A_STEP == 0:
                    yield

    def _rank(self, name: Name, stream: Stream, group: Group, lags: dict[GroupName, int], now_ms: int) -> urgency.Rank:
        pending, lag, oldest_idle_ms, gone = group.pel.count, stream.lag(group) or 0, 0, 0
        if pending:
            oldest_ms = claim_walk.oldest_owned_ms(group.pel.order)
            oldest_idle_ms = 0 if oldest_ms == claim_walk.NONE_LIVE else max(now_ms - oldest_ms, 0)
        if pending or lag > 0:
            some = islice(group.consumers.values(), MOST_CONSUMERS)
            gone = urgency.gone([(now_ms - one.seen_ms, one.pending) for one in some], lag)
        growth = 0
        if lag > 0:
            key = (*name, group.name)
            growth = lag - lags.get(key, lag)
            self._lags[key] = lag
        policy = group.policy
        return urgency.rank(oldest_idle_ms, growth, gone, 0 if policy is None else policy.dead_lettered, lag, pending)


def _named(pieces: list[tuple[int, list[bytes]]]) -> Iterator[Name]:
    return ((db_index, key) for db_index, keys in pieces for key in keys)
