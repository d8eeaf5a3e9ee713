"""The law of the loader's way: its functions (`@replayed`) leave what the plain handlers leave, line by line."""

import random

import pytest

from penstock.engine.aof.replay import Replay
from penstock.engine.context import Context
from penstock.engine.effects import pack
from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.engine.table.command_table import Command, ReplayHandler
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.engines import engine_with_loader, make_engine, value_of
from tests.support.keyspace_picture import keyspace
from tests.support.same_result import Difference, assert_same, states_differ
from tests.support.seeds import seeds

ADDED = [f"XADD s {number}-{number % 3} f v" for number in range(1, 400)]
SOME = " ".join(f"{number}-{number % 3}" for number in range(5, 30))
MANY = " ".join(f"{number}-{number % 3}" for number in range(5, 390))
GROUP = "XGROUP CREATE s g 0"


def delivery(ids: str, consumer: str = "al", time_ms: int = NOW_MS - 1000, count: int = 1, last: str = "0-0") -> str:
    return f"XCLAIM s g {consumer} 0 {ids} TIME {time_ms} RETRYCOUNT {count} FORCE JUSTID LASTID {last}"


TAKEN = {
    "one entry": [*ADDED, GROUP, delivery("5-2"), delivery("6-0"), "XACK s g 6-0", delivery("7-1", "bo", NOW_MS)],
    "new entries": [*ADDED, GROUP, delivery(SOME)],
    "new entries of several segments": [*ADDED, GROUP, delivery(MANY, last="4-1")],
    "a consumer that is there": [*ADDED, GROUP, "XGROUP CREATECONSUMER s g al", delivery(SOME)],
    "pending entries": [*ADDED, GROUP, delivery(SOME), delivery(MANY, "bo")],
    "released entries": [*ADDED, GROUP, delivery(SOME), "XNACK s g FAIL IDS 2 7-1 6-0", delivery(SOME, "bo")],
    "a clock that stepped back": [*ADDED, GROUP, delivery(MANY), "XACK s g 7-1", delivery(SOME, time_ms=5)],
    "a time to come": [*ADDED, GROUP, delivery(SOME, time_ms=NOW_MS + 5)],
    "in a transaction": [*ADDED, GROUP, "MULTI", delivery(SOME), "XGROUP SETID s g 29-2 ENTRIESREAD 5", "EXEC"],
    "acknowledged one by one": [*ADDED, GROUP, delivery(MANY), *(f"XACK s g {one}" for one in SOME.split())],
    "acknowledged twice": [*ADDED, GROUP, delivery(SOME), *["XACK s g 6-0 7-1", "XACK s g 9-0", "XACK s g 7-1"] * 3],
    "around deleted entries": [*ADDED, GROUP, "XDEL s 7-1", delivery(SOME.replace(" 7-1", ""))],
}
NOT_TAKEN = {
    "one entry": [*ADDED, GROUP, delivery("5-2"), delivery("6-0"), "XACK s g 6-0", delivery("7-1", "bo", NOW_MS)],
    "a deleted entry": [*ADDED, GROUP, "XDEL s 7-1", delivery(SOME)],
    "a deleted pending entry": [*ADDED, GROUP, delivery(SOME), "XDEL s 7-1", delivery(SOME, "bo")],
    "another order": [*ADDED, GROUP, delivery("20-2 " + SOME)],
    "an id twice": [*ADDED, GROUP, delivery(SOME + " 29-2")],
    "an id that is written otherwise": [*ADDED, GROUP, delivery(SOME.replace(" 7-1", " 07-1"))],
    "another count": [*ADDED, GROUP, delivery(SOME, count=2)],
    "not all that follow": [*ADDED, GROUP, delivery(SOME.replace(" 7-1", ""))],
    "no number": [*ADDED, GROUP, delivery(SOME).replace(f"TIME {NOW_MS - 1000}", "TIME x")],
    "acknowledged under no id": [*ADDED, GROUP, delivery(SOME), "XACK s g 6-0", "XACK s g x", *["XACK s g 7-1"] * 4],
    "acknowledged without an id": [*ADDED, GROUP, delivery(SOME), *["XACK s g 7-1"] * 5, "XACK s h 6-0"],
    "acknowledged in no group": [*ADDED, *["XACK s g 7-1"] * 5, *["XACK t g 7-1"] * 5],
    "acknowledged in a string": ["SET s 1", *["XACK s g 7-1"] * 5],
    "no group": [*ADDED, delivery(SOME)],
    "no stream": ["SET s 1", delivery(SOME)],
    "nothing": [delivery(SOME)],
    "ids below the last": [*ADDED, "XADD s 5-0 f v", "XADD s 399-0 f v"],
    "other forms of ids": ["XADD s 5 f v", "XADD s 06-1 f v", "XADD s 7-* f v", "XADD s * f v", "XADD s 5- f v"],
    "words that are missing": [*ADDED, "XADD s 400-0 f v g", "XADD s 400-1 f v g w"],
    "options": [*ADDED, "XADD s MAXLEN 3 400-0 f v", "XADD s NOMKSTREAM 401-0 f v", "XADD t NOMKSTREAM 1-0 f v"],
    "a string": ["SET s 1", "XADD s 1-0 f v"],
}


def load(engine: Engine, story: list[str]) -> list[str]:
    """Have an engine load lines; what it reports."""
    said: list[str] = []
    Replay(engine.server, said.append).lines([b"".join(pack(tuple(line.encode().split())) for line in story)])
    return said


def taken(story: list[str]) -> tuple[Engine, dict[str, list[int]]]:
    """An engine that loaded lines; by command, how many of them its loader's function took in each call."""
    counts: dict[str, list[int]] = {"XADD": [], "XACK": [], "XCLAIM": []}

    def counting(name: str, function: ReplayHandler) -> ReplayHandler:
        def counted(ctx: Context, requests: list[list[bytes]], start: int) -> int:
            counts[name].append(function(ctx, requests, start))
            return counts[name][-1]

        return counted

    engine = engine_with_loader(counting)
    assert load(engine, story) == []
    return engine, counts


def seen(engine: Engine, said: list[str]) -> dict[str, object]:
    """What must be the same: the keyspace with seen times and orders, what was counted, and what was reported."""
    nodes = {
        key.decode(): [node.size for node in value.nodes]
        for key, value in engine.keyspace.databases[0].values.items()
        if isinstance(value, Stream)
    }
    return {"keys": keyspace(engine), "nodes": nodes, "hits": engine.server.statistics.hits, "said": said}


def assert_same_both_ways(story: list[str]) -> None:
    def compare(lines: list[str]) -> Difference | None:
        line_by_line, together = engine_with_loader(lambda name, function: None), make_engine()
        expected, found = seen(line_by_line, load(line_by_line, lines)), seen(together, load(together, lines))
        return states_differ(expected, found, len(lines))

    assert_same(story, compare, ("line by line", "together"), str)


@pytest.mark.parametrize("story", [*TAKEN.values(), *NOT_TAKEN.values()], ids=[*TAKEN, *NOT_TAKEN])
def test_the_loader_leaves_what_the_plain_handlers_leave(story: list[str]) -> None:
    assert_same_both_ways(story)


class LogLines:
    """Random lines of a log as clients' requests make them: entries, deliveries, acknowledgements, in short runs."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._ids = ["1-0"]
        self._delivered = 0  # how many of them were, to the group g
        self._now_ms = NOW_MS - 100_000

    def story(self, count: int) -> list[str]:
        lines = ["XADD s 1-0 f v", GROUP, "XGROUP CREATE s h 0"]
        makers = (self._entries, self._entries, self._delivery, self._delivery, self._delivery, self._acknowledged)
        while len(lines) < count:
            self._now_ms += self._chance.choice((0, 0, 1, 40, -3))
            lines += self._chance.choice((*makers, self._acknowledged, self._other))()
        return lines

    def _entries(self) -> list[str]:
        made: list[str] = []
        ms, seq = map(int, self._ids[-1].split("-"))
        for _ in range(self._chance.choice((1, 2, 5, 20, 140))):
            ms, seq = self._chance.choice(((ms, seq + 1), (ms, seq + 1), (ms, seq + 1), (ms + 1, 0)))
            self._ids.append(f"{ms}-{seq}")
            made.append(f"XADD s {ms}-{seq} {self._chance.choice(('f v', 'f v', 'f w', 'g 1'))}")
        return made

    def _delivery(self) -> list[str]:
        """Of the entries behind the last delivery, or of some that were delivered before."""
        count = self._chance.choice((1, 1, 2, 3, 7, 30, 150))
        first = self._delivered if self._chance.random() < 0.7 else self._chance.randrange(len(self._ids))
        some = self._ids[first : first + count]
        if not some:
            return []
        if self._chance.random() < 0.1:
            some = self._chance.sample(some, len(some))
        self._delivered = max(self._delivered, first + len(some))
        group, retries = self._chance.choice("ggggh"), self._chance.choice((1, 1, 1, 1, 2))
        options = f"TIME {self._now_ms} RETRYCOUNT {retries} FORCE JUSTID LASTID {some[-1]}"
        return [f"XCLAIM s {group} {self._chance.choice('ab')} 0 {' '.join(some)} {options}"]

    def _acknowledged(self) -> list[str]:
        first = self._chance.randrange(self._delivered + 1)
        return [
            f"XACK s {self._chance.choice('ggggggggh')} {one}"
            for one in self._ids[first : first + self._chance.choice((1, 3, 4, 9, 60))]
        ]

    def _other(self) -> list[str]:
        one = self._chance.choice(self._ids)
        return [
            self._chance.choice(
                (
                    f"XDEL s {one}",
                    f"XNACK s g FAIL IDS 1 {one} RETRYCOUNT 0 FORCE",
                    f"XGROUP SETID s g {one} ENTRIESREAD 1",
                    "XGROUP DELCONSUMER s g b",
                    f"XTRIM s MINID = {self._ids[self._delivered // 2]}",
                    "XACK s g x",
                )
            )
        ]


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_any_log_is_loaded_as_line_by_line(seed: int) -> None:
    assert_same_both_ways(LogLines(seed).story(120))


def adds(seed: int) -> list[str]:
    """XADDs to two streams, mostly plain and mostly ascending, with this and that between."""
    chance = random.Random(seed)
    story = ["XADD s 1-0 f v", "XADD t 1-0 f v"]
    ms, seq = 1, 0
    for _ in range(chance.choice((5, 50, 500))):
        step = chance.random()
        if step < 0.1:
            ms, seq = ms + chance.choice((1, 5)), chance.choice((0, 1, 130))
        elif step < 0.12:
            story.append(chance.choice((f"XADD s {ms}-{seq} f again", f"XADD s MAXLEN 3 {ms}-{seq + 1} f v", "DEL t")))
        elif step < 0.14:
            story.append(chance.choice(("XDEL s 1-0", "XTRIM s MAXLEN 50", "XADD s * f v", f"XADD s 0{ms + 1}-1 f v")))
        else:
            seq += chance.choice((1, 1, 1, 1, 1, 2))
        fields = chance.choice(("f v", "f v", "f v", f"f {'w' * 70}", "f -5", "g v", "f 1 g 2", f"f {'x' * 5000}"))
        story.append(f"XADD {chance.choice('ssssssst')} {ms}-{seq} {fields}")
    return story


@pytest.mark.parametrize("seed", seeds(5, 30))
def test_entries_that_are_appended_together_are_as_if_one_by_one(seed: int) -> None:
    assert_same_both_ways(adds(seed))


def test_acknowledgements_are_one() -> None:
    story = [*ADDED, GROUP, delivery(SOME), *(f"XACK s g {one}" for one in SOME.split())]
    engine, counts = taken([*story, "XGROUP CREATECONSUMER s g bo"])
    assert counts["XACK"] == [len(SOME.split())]
    assert value_of(engine, b"s").groups[b"g"].pel.count == 0


def test_plain_entries_are_appended_together() -> None:
    engine, counts = taken(["XGROUP CREATE s g 0 MKSTREAM", *(f"XADD s 5-{number} f v" for number in range(1000))])
    assert sorted(counts["XADD"])[-1] >= 999  # the quick reader leaves the last one alone
    assert value_of(engine, b"s").length == 1000


@pytest.mark.parametrize("story", TAKEN.values(), ids=TAKEN)
def test_deliveries_take_it(story: list[str]) -> None:
    _, counts = taken(story)
    assert set(counts["XCLAIM"]) == {1}


@pytest.mark.parametrize("words", [(b"XADD",), (b"XADD", b"s"), (b"XADD", b"s", b"9-9", b"f"), (b"XCLAIM",) * 17])
def test_a_damaged_line_takes_the_ordinary_way(words: tuple[bytes, ...]) -> None:
    engine = make_engine()
    Replay(engine.server, pytest.fail).lines([pack((b"XADD", b"s", b"1-1", b"f", b"v"))])

    row = engine.commands.rows[words[0]]
    assert isinstance(row, Command) and row.replay_handler is not None
    assert row.replay_handler(engine.server.context, [list(words)], 0) == 0


def test_no_reply_is_built_of_a_claim_that_is_replayed() -> None:
    engine, _ = taken([*ADDED, GROUP, delivery(SOME)])
    session = Session(0)
    session.privileged = True
    ctx = Context(engine.server, session)
    ctx.begin(session, engine.now_us())

    reply = engine.run(ctx, engine.commands.rows[b"XCLAIM"], delivery(SOME, count=2).encode().split(), 0)

    assert reply == b"*0\r\n"
    block, slot = value_of(engine, b"s").groups[b"g"].pel.by_id.first()
    assert block.counts[slot] == 2
