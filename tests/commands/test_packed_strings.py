"""Whether short strings are packed, because there are many keys, shows nowhere: tests/storage/test_key_table.py."""

import random

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof import rewrite
from penstock.engine.engine import Engine
from penstock.engine.memory.value_sizes import dataset_bytes
from penstock.storage.key_table import FEW, KeyTable
from tests.against_redis.typed import Mixture, Shapes
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.wire import Value, parse
from tests.support.word_batches import batches_of

REQUESTS = 1500
MANY = FEW + 500


def packing(engine: Engine) -> Engine:
    """The engine, with databases that pack from the first key on."""
    for db in engine.keyspace.databases:
        db.values = KeyTable(few=0, recent=1)
    return engine


def replies(engine: Engine, requests: list[Request], shapes: Shapes) -> list[tuple[Request, list[Value]]]:
    """Each request and its reply, put in order where it has none."""
    session = engine.server.connect()
    found: list[tuple[Request, list[Value]]] = []
    for request in requests:
        answer = engine.handle(session, [word.encode("latin-1") for word in request])
        engine.clients.outgoing.clear()
        values, at = [], 0
        while at < len(answer):
            value, at = parse(answer, at)
            values.append(shapes.of(request, value))
        found.append((request, values))
        if session.closing or session.blocked is not None:
            engine.server.disconnect(session)
            session = engine.server.connect()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_same_requests_get_the_same_replies_and_the_same_log(seed: int) -> None:
    logs = UnitLog(), UnitLog()
    plain, packed = make_engine(log=logs[0]), packing(make_engine(log=logs[1]))
    mixture = Mixture(random.Random(seed), Known())
    requests = [one for one in mixture.requests(REQUESTS) if mixture.shapes.maker_by_chance(one) is None]

    found = replies(packed, requests, mixture.shapes)

    assert found == replies(plain, requests, mixture.shapes)
    assert keyspace(packed) == keyspace(plain)
    assert logs[0].units == logs[1].units
    assert sum(db.values.packed for db in packed.keyspace.databases) > 0
    for db in packed.keyspace.databases:
        db.check()


@pytest.mark.parametrize("seed", range(4))
def test_pipelines_get_the_same_replies_and_the_same_log(seed: int) -> None:
    chance, logs = random.Random(seed), (UnitLog(), UnitLog())
    engines = make_engine(log=logs[0]), packing(make_engine(log=logs[1]))
    sessions = [engine.server.connect() for engine in engines]
    for _ in range(60):
        name = chance.choice([b"SET", b"SET", b"GET", b"INCR", b"EXPIRE", b"DEL", b"MGET", b"APPEND"])
        values = {b"SET": [b"1", b"text", b"x" * 128, b"x" * 129], b"EXPIRE": [b"100", b"-1"], b"APPEND": [b"", b"9"]}
        requests = [
            [name, b"key:%d" % chance.randrange(30), *([chance.choice(values[name])] if name in values else [])]
            for _ in range(chance.randrange(1, 20))
        ]
        answers: list[list[bytes]] = [[], []]
        for engine, session, answer in zip(engines, sessions, answers, strict=True):
            engine.handle_batches(session, batches_of(requests, engine.batch_shapes), 2**40, answer, [])
        assert answers[0] == answers[1], requests

    assert keyspace(engines[1]) == keyspace(engines[0])
    assert logs[0].units == logs[1].units
    engines[1].keyspace.databases[0].check()


def many_keys(dialogue: Dialogue) -> None:
    for number in range(MANY):
        dialogue.words(b"SET", b"key:%d" % number, b"text %d" % number)


def test_many_keys_survive_a_log_an_rdb_file_and_a_reload() -> None:
    dialogue = Dialogue(make_engine(log=UnitLog(), settings=settings_with(enable_debug_command="yes")))
    many_keys(dialogue)
    dialogue("PEXPIREAT key:10400 9000000000000", "RPUSH l a", f"SET long {'x' * 200}")
    engine = dialogue.engine
    assert engine.keyspace.databases[0].values.packed == MANY - FEW
    expected = keyspace(engine)

    again = loaded_engine(list(rewrite.base_lines(engine.keyspace, engine.settings, NOW_MS)))
    assert keyspace(again) == expected
    assert keyspace(rdb_based_engine(engine, NOW_MS)) == expected
    assert dialogue("DEBUG RELOAD") == b"OK"
    assert keyspace(engine) == expected
    engine.keyspace.databases[0].check()


def test_many_keys_are_walked_counted_deleted_and_flushed() -> None:
    dialogue = Dialogue(make_engine())
    many_keys(dialogue)
    expected = sorted(b"key:%d" % number for number in range(MANY))
    names, cursor = [], b"0"
    while True:
        cursor, page = dialogue(f"SCAN {cursor.decode()} COUNT 1000")
        names += page
        if cursor == b"0":
            break
    assert sorted(names) == sorted(dialogue("KEYS *")) == expected
    assert dialogue("RANDOMKEY") in expected
    assert (dialogue("DBSIZE"), dialogue(f"GET key:{FEW + 1}")) == (MANY, b"text %d" % (FEW + 1))

    assert dialogue(f"DEL key:{FEW + 1} key:{FEW + 2} key:1", "DBSIZE") == MANY - 3
    assert dialogue(f"RENAME key:{FEW + 3} renamed", "GET renamed") == b"text %d" % (FEW + 3)
    assert dialogue("FLUSHALL", "DBSIZE") == 0
    engine = dialogue.engine
    while engine.lazy_free.parts:
        engine.lazy_free.free_lazily()
    assert engine.lazy_free.pending() == 0


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-ttl"])
def test_packed_keys_are_evicted(policy: str) -> None:
    engine = packing(make_engine(ManualClock(NOW_MS), settings=settings_with(maxmemory_policy=policy)))
    engine.memory.reading = lambda: (100_000 + dataset_bytes(engine.keyspace), 0)
    dialogue = Dialogue(engine)
    dialogue("CONFIG SET maxmemory 160000")
    for number in range(4000):
        assert dialogue.words(b"SET", b"key:%d" % number, b"text", b"EX", b"%d" % (1000 + number)) == b"+OK\r\n"
        engine.clock.advance(1)  # type: ignore[attr-defined]  # it is a manual one

    assert engine.statistics.evicted > 1000
    assert 50 < len(engine.keyspace.databases[0]) < 3000
    engine.keyspace.databases[0].check()
