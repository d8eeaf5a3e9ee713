"""Many streams in one query: what a look at them parses, and what an offset has of them.

The oracles are `stream_states`, which parses every reply, and a dict with every position.
"""

import base64
import json
import random
import zlib
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection import stream_info
from penstock.pipeline.connector.connection.client import Access, Client, Endpoint
from penstock.pipeline.connector.connection.stream_info import StreamLooks, StreamState, stream_states
from penstock.pipeline.connector.source import offsets
from penstock.pipeline.connector.source.offsets import Base, Places, Position, StreamOf, cursor_json, cursor_of
from penstock.pipeline.errors import PipelineError
from tests.pipeline.connector.loss_history import Server, reached
from tests.pipeline.driving import Query
from tests.support.seeds import seeds

KEYS = [b"k%d" % number for number in range(6)]
A_REPLY = b"".join(b"*%d\r\n$6\r\nlength\r\n:1\r\n" % many for many in range(14, 40, 2))  # it begins like one
VALUES = (
    b"plain",
    A_REPLY,
    b"\r\n" + A_REPLY,
    b"\r\n-ERR no such key",
    b"-ERR no such key\r\n" * 3,
    b"x" * 20_000,
    A_REPLY * 200,
)


def act(server: Server, chance: random.Random) -> None:
    key = chance.choice(KEYS)
    words: list[list[Any]] = [
        ["XADD", key, "*", "v", chance.choice(VALUES)],
        ["XADD", key, "*", "v", chance.choice(VALUES)],
        ["XTRIM", key, "MAXLEN", 1],
        ["DEL", key],
        ["XGROUP", "CREATE", key, "g", "0"],
        ["XSETID", key, "9999999999999-0"],
    ]
    server.ask(*chance.choice(words))


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_a_look_finds_the_states_that_parsing_every_reply_finds(seed: int) -> None:
    chance, server, looks = random.Random(seed), Server(), StreamLooks()
    client = Client(Endpoint("main", "nowhere", 1), Access())
    keys = list(KEYS)
    with reached(server):
        for _ in range(12):
            for _ in range(chance.choice([0, 1, 2, 10])):
                act(server, chance)
            if chance.random() < 0.2:
                keys = sorted(chance.sample(KEYS, chance.randint(0, len(KEYS))))
            before = dict(looks.states)
            changed = looks.look(client, keys)

            assert looks.states == stream_states(client, keys)
            assert {key for key in KEYS if before.get(key) != looks.states.get(key)} <= changed


def test_a_key_that_is_no_stream_is_named_though_the_others_are() -> None:
    server, looks = Server(), StreamLooks()
    client = Client(Endpoint("main", "nowhere", 1), Access())
    server.ask("XADD", "k0", "*", "v", "1")
    server.ask("SET", "k1", "text")

    with reached(server), pytest.raises(PipelineError, match="key 'k1': WRONGTYPE"):
        looks.look(client, [b"k0", b"k1"])


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_offsets_with_a_base_have_every_position(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "PLAIN", 2)
    chance = random.Random(seed)
    streams: list[StreamOf] = [(name, b"\xff%d" % number) for name in ("a", "b") for number in range(20)]
    known: dict[StreamOf, Position] = {}
    places = Places()
    for at in range(1, 30):
        batch = {
            stream: Position(
                at << 64,
                chance.choice([at, None]),
                cuts=(1,) * chance.randint(0, 1),
                seen=chance.choice([None, StreamState(at, 1, at << 64, at, 0)]),
            )
            for stream in chance.sample(streams, chance.choice([0, 1, 2, 20]))
        }
        known = {stream: place.bare() for stream, place in known.items()} | batch
        written = json.loads(json.dumps(cursor_json(places.after(batch))))
        places = cursor_of(written, chance.choice([places.base, Base(), None]))

        assert {stream: places.get(stream) for stream in places.streams()} == known
        assert batch.keys() <= places.at.keys()  # a base is of no batch
        assert len(places.at) - len(batch) <= max(2, len(known) // offsets.PART)


def test_a_base_of_before_it_had_the_states_of_streams_is_read() -> None:
    columns = [["s", "t"], ["1-1", "2-0"], [1, None]]
    packed = base64.b64encode(zlib.compress(json.dumps(columns).encode())).decode()

    places = cursor_of({"v": 2, "at": {}, "base": {"main": packed}})
    assert places.get(("main", b"s")) == Position(1 << 64 | 1, 1)
    assert places.get(("main", b"t")) == Position(2 << 64, None)


@pytest.fixture
def many(server: redis.Redis) -> redis.Redis:
    with server.pipeline(transaction=False) as pipe:
        for number in range(offsets.PLAIN + 100):
            pipe.xadd(f"s:{number:04d}", {"n": number}, "1-1")
        pipe.execute()
    return server


def test_a_query_of_many_streams_works_and_notes_for_those_that_changed(
    many: redis.Redis, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(endpoints=endpoint, streamPattern="s:*", startingId="earliest")
    assert len(query.batch() or ()) == offsets.PLAIN + 100
    assert query.batch() is None
    parsed: list[int] = []
    state_of = StreamState.of
    monkeypatch.setattr(stream_info.StreamState, "of", lambda reply: parsed.append(1) or state_of(reply))
    for number in range(3):
        many.xadd("s:0077", {"n": 1}, f"2-{number}")
        many.xadd("s:0078", {"n": 1}, f"2-{number}")
        assert query.ids() == [f"2-{number}"] * 2
        assert query.batch() is None

    assert len(parsed) == 6
    assert list(query.log[-1]["at"][""]) == ["s:0077", "s:0078"]
    assert list(query.reader.reportLatestOffset()["at"][""]) == ["s:0077", "s:0078"]
    assert query.log[-1]["base"] == query.log[2]["base"]
    query.stop()


def test_a_query_of_many_streams_that_is_started_again_runs_its_batch_again_and_goes_on(
    many: redis.Redis, endpoint: str
) -> None:
    query = Query(endpoints=endpoint, streamPattern="s:*", startingId="latest")
    many.xadd("s:0077", {"n": 1}, "2-1")
    query.plan()
    first = query.run()
    many.xadd("s:0078", {"n": 1}, "2-2")
    query.start_driver()
    query.log[0] = query.reader.initialOffset()  # Spark keeps none: batch 0 begins where the query would begin now

    assert [row["_id"] for row in query.run()] == [row["_id"] for row in first] == ["2-1"]
    assert query.ids() == ["2-2"]
    assert query.batch() is None
    query.stop()


def test_an_offset_of_many_streams_without_a_base_is_read_on(
    many: redis.Redis, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(offsets, "PLAIN", 10_000)  # as before there were bases
        query = Query(endpoints=endpoint, streamPattern="s:*", startingId="earliest")
        query.batch()
    assert "base" not in query.log[-1]
    many.xadd("s:0077", {"n": 1}, "2-1")

    query.start_driver()
    assert query.ids() == ["2-1"]
    assert len(query.log[-1]["at"][""]) == 1
    query.stop()
