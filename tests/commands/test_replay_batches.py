"""The short way of a delivery's line leads where the ordinary one does."""

import random
from collections.abc import Callable

import pytest

from penstock.commands.streams import replay_batches
from penstock.engine.aof.replay import Replay
from penstock.engine.effects import pack
from penstock.engine.engine import Engine
from penstock.engine.table import command_table
from penstock.engine.table.command_table import Command
from penstock.storage.streams.stream import Stream
from tests.commands.test_rewrite import picture
from tests.support.builds import replaces_functions
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, value_of
from tests.support.seeds import seeds

ADDED = [f"XADD s {number}-{number % 3} f v" for number in range(1, 400)]
SOME = " ".join(f"{number}-{number % 3}" for number in range(5, 30))
MANY = " ".join(f"{number}-{number % 3}" for number in range(5, 390))
GROUP = "XGROUP CREATE s g 0"


def delivery(ids: str, consumer: str = "al", time_ms: int = NOW_MS - 1000, count: int = 1, last: str = "0-0") -> str:
    return f"XCLAIM s g {consumer} 0 {ids} TIME {time_ms} RETRYCOUNT {count} FORCE JUSTID LASTID {last}"


TAKEN = {
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


def loaded(story: list[str]) -> tuple[Engine, list[str]]:
    engine = make_engine()
    said: list[str] = []
    Replay(engine.server, said.append).lines([b"".join(pack(tuple(line.encode().split())) for line in story)])
    return engine, said


def shown(engine: Engine) -> object:
    stream = engine.keyspace.databases[0].values.get(b"s")
    if not isinstance(stream, Stream):
        return stream
    stream.check()
    people = [(c.name, c.seen_ms, c.active_ms) for group in stream.groups.values() for c in group.consumers_by_name()]
    return picture(engine), people


def with_plain_handlers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have engines that are made from here on replay every line by its plain handler."""
    for name in list(command_table.REPLAYED):
        monkeypatch.delitem(command_table.REPLAYED, name)


@replaces_functions
@pytest.mark.parametrize("story", [*TAKEN.values(), *NOT_TAKEN.values()], ids=[*TAKEN, *NOT_TAKEN])
def test_the_short_way_leads_where_the_ordinary_one_does(monkeypatch: pytest.MonkeyPatch, story: list[str]) -> None:
    short, said = loaded(story)
    with_plain_handlers_only(monkeypatch)
    ordinary, said_there = loaded(story)
    assert (shown(short), said) == (shown(ordinary), said_there)


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


@replaces_functions
@pytest.mark.parametrize("seed", seeds(10, 30))
def test_entries_that_are_appended_together_are_as_if_one_by_one(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    together, said = loaded(adds(seed))
    monkeypatch.setattr(replay_batches, "append_run", lambda ctx, requests, start: 0)
    one_by_one, said_there = loaded(adds(seed))
    assert (shown(together), said) == (shown(one_by_one), said_there)
    nodes = [[node.size for node in value_of(engine, b"s").nodes] for engine in (together, one_by_one)]
    assert nodes[0] == nodes[1]


@replaces_functions
def test_acknowledgements_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[int] = []
    xack: Callable[..., bytes] = vars(replay_batches)["xack"]
    monkeypatch.setattr(replay_batches, "xack", lambda ctx, request: words.append(len(request)) or xack(ctx, request))
    story = [*ADDED, GROUP, delivery(SOME), *(f"XACK s g {one}" for one in SOME.split())]
    engine, said = loaded([*story, "XGROUP CREATECONSUMER s g bo"])
    assert said == []
    assert words == [3 + len(SOME.split())]
    assert value_of(engine, b"s").groups[b"g"].pending == 0


@replaces_functions
def test_plain_entries_are_appended_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[list[bytes]] = []
    append = replay_batches.append
    monkeypatch.setattr(replay_batches, "append", lambda ctx, request: alone.append(request) or append(ctx, request))
    engine, said = loaded(["XGROUP CREATE s g 0 MKSTREAM", *(f"XADD s 5-{number} f v" for number in range(1000))])
    assert said == []
    assert len(alone) <= 1  # the last one, which the quick reader leaves alone
    assert value_of(engine, b"s").length == 1000


@replaces_functions
@pytest.mark.parametrize("story", TAKEN.values(), ids=TAKEN)
def test_deliveries_take_it(monkeypatch: pytest.MonkeyPatch, story: list[str]) -> None:
    taken: list[bool] = []
    deliver = replay_batches.deliver
    monkeypatch.setattr(
        replay_batches, "deliver", lambda ctx, request: taken.append(deliver(ctx, request)) or taken[-1]
    )
    loaded(story)
    assert taken
    assert all(taken)


@pytest.mark.parametrize("words", [(b"XADD",), (b"XADD", b"s"), (b"XADD", b"s", b"9-9", b"f"), (b"XCLAIM",) * 17])
def test_a_damaged_line_takes_the_ordinary_way(words: tuple[bytes, ...]) -> None:
    engine = make_engine()
    Replay(engine.server, pytest.fail).lines([pack((b"XADD", b"s", b"1-1", b"f", b"v"))])

    row = engine.commands.rows[words[0]]
    assert isinstance(row, Command) and row.replay_handler is not None
    assert row.replay_handler(engine.server.context, [list(words)], 0) == 0
