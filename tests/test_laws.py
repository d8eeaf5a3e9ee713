"""What is true of every command, over the whole table."""

import random
import re

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof import rewrite
from penstock.engine.engine import Engine
from penstock.storage.streams.stream import Stream
from tests.against_redis.generator import Generator, with_new_only
from tests.support import wire
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine
from tests.support.keyspace_picture import picture, stream_picture
from tests.support.log import UnitLog
from tests.support.reference_knowledge import Known
from tests.support.table_engine import OWN_WORDS, prepared, rows
from tests.support.table_requests import TableRequests

SEEDS = range(4)


def replies_of(answer: bytes) -> list[object]:
    values: list[object] = []
    at = 0
    while at < len(answer):
        value, at = wire.parse(answer, at)
        values.append(value)
    return values


@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_gets_a_whole_reply(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    engine, session = prepared()
    for row in rows(engine):
        for request in (requests.valid(row), requests.broken_of(row), requests.broken_of(row), requests.valid(row)):
            answer = engine.handle(session, request)
            engine.outgoing.clear()
            assert b"internal error" not in answer.lower(), request
            replies_of(answer)
            if session.blocked is not None or session.queue is not None or session.closing or session.channels:
                engine.disconnect(session)
                session = engine.connect("127.0.0.1:1", "127.0.0.1:2")
            engine.paused_until_ms = 0
            session.is_silent, session.reply_skip = False, 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refusal_changes_nothing(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    engine, session = prepared()
    before = picture(engine)
    refused = 0
    for row in rows(engine):
        for request in (requests.valid(row), requests.broken_of(row), requests.broken_of(row)):
            answer = engine.handle(session, request)
            if answer.startswith(b"-"):
                assert picture(engine) == before, request
                refused += 1
            if answer[:1] != b"-" or session.queue is not None:
                engine, session = prepared()
    assert refused > 150


@pytest.mark.parametrize("seed", SEEDS)
def test_a_command_that_only_reads_logs_and_changes_nothing(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    log = UnitLog()
    engine, session = prepared(log)
    log.units.clear()
    before = picture(engine)
    for row in rows(engine):
        if "readonly" in row.flags:
            for request in (requests.valid(row), requests.broken_of(row)):
                engine.handle(session, request)
                assert (request, log.units) == (request, [])
                assert picture(engine) == before, request
                if session.blocked is not None:
                    engine.disconnect(session)
                    session = engine.connect()


@pytest.mark.parametrize("seed", SEEDS)
def test_both_protocols_carry_the_same_data(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    plain, old = prepared()
    typed, new = prepared()
    new.resp = 3
    for row in rows(plain):
        if row.name in OWN_WORDS or row.group == "pubsub" or row.name in ("MULTI", "EXEC", "DISCARD"):
            continue
        if row.name == "CLIENT|TRACKING":  # what it sends later exists in one of the protocols only
            continue
        for request in (requests.valid(row), requests.broken_of(row)):
            answers = plain.handle(old, request), typed.handle(new, request)
            if old.blocked is not None or new.blocked is not None:
                assert (old.blocked is None) == (new.blocked is None), request
                plain.disconnect(old)
                typed.disconnect(new)
                old, new = plain.connect(), typed.connect()
            old.resp, new.resp = 2, 3
            plain.paused_until_ms = typed.paused_until_ms = 0
            old.is_silent = new.is_silent = False
            old.reply_skip = new.reply_skip = 0
            assert flat(answers[0]) == flat(answers[1]), request


NUMBER = re.compile(rb"-?(inf|\d+(\.\d+)?(e[+-]?\d+)?)")


def flat(answer: bytes) -> list[object]:
    """The scalars of a reply in order, maps and sets as their elements, doubles as text."""
    scalars: list[object] = []

    def visit(value: wire.Value) -> None:
        match value:
            case wire.Map(pairs):
                for key, inner in pairs:
                    visit(key)
                    visit(inner)
            case wire.Array(elements) | wire.Set(elements) | wire.Push(elements):
                for inner in elements:
                    visit(inner)
            case wire.Integer(number):
                scalars.append(str(float(number)))
            case wire.Boolean(is_true):
                scalars.append(str(float(is_true)))
            case wire.Bulk(text) | wire.Double(text) | wire.Simple(text) | wire.Error(text) | wire.Verbatim(_, text):
                scalars.append(str(float(text)) if NUMBER.fullmatch(text) else text)
            case _:
                scalars.append(None)

    at = 0
    while at < len(answer):
        value, at = wire.parse(answer, at)
        visit(value)
    return scalars


# -- the log ----------------------------------------------------------------------------------------------------------


def random_history(seed: int, log: UnitLog) -> Engine:
    """Some hundred stream requests by several consumers, with a moving clock.

    Histories are not read: no log carries what that changes.
    """
    clock = ManualClock(NOW_MS)
    engine = make_engine(clock, log)
    session = engine.connect()
    requests = Generator(random.Random(seed), Known())
    for _ in range(700):
        request = [word.encode() for word in with_new_only(requests.request())]
        if request[0] != b"CONFIG":  # settings have no line in the log
            engine.handle(session, request)
        if requests.chance.random() < 0.1:
            nack = [b"XNACK", requests.key().encode(), b"g1", b"FAIL", b"IDS", b"1", requests.id().encode(), b"FORCE"]
            engine.handle(session, nack)
        clock.advance(requests.chance.choice((0, 0, 1, 40)))
    return engine


def alike(engine: Engine) -> list[object]:
    """A picture without what no log carries: seen and active times, consumers of fruitless claims."""
    seen: list[object] = []
    for number, db in enumerate(engine.keyspace.databases):
        for key in sorted(db.values):
            value = db.values[key]
            if not isinstance(value, Stream):
                seen.append((number, key, db.expires.get(key), value))
                continue
            entries, counters, groups, _ = stream_picture(value, seen_times=False)
            assert isinstance(groups, list)
            idempotence = kept_by_a_log(value)
            seen.append((number, key, db.expires.get(key), entries, counters, [g[:-1] for g in groups], idempotence))
    return seen


def kept_by_a_log(stream: Stream) -> object:
    """What a producer sent, but for entries beyond the last id: XIDMPRECORD refuses them."""
    producers = stream.producers
    iids = {
        pid: {iid: entry_id for iid, entry_id in made.items() if entry_id <= stream.last_id}
        for pid, made in producers.pids.items()
    }
    return producers.duration_s, producers.max_size, {pid: made for pid, made in iids.items() if made}


def consumers(engine: Engine) -> dict[tuple[bytes, bytes], set[bytes]]:
    found = {}
    for key, value in engine.keyspace.databases[0].values.items():
        if isinstance(value, Stream):
            for group in value.groups.values():
                found[(key, group.name)] = set(group.consumers)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_replaying_the_log_gives_the_same_picture(seed: int) -> None:
    log = UnitLog()
    engine = random_history(seed, log)
    again = loaded_engine(log.units, engine.clock.now_us() // 1000)

    assert alike(again) == alike(engine)
    for place, names in consumers(again).items():
        assert names <= consumers(engine)[place]


@pytest.mark.parametrize("seed", range(12))
def test_a_rewritten_log_gives_the_same_picture(seed: int) -> None:
    engine = random_history(seed, UnitLog())
    now_ms = engine.clock.now_us() // 1000
    again = loaded_engine(list(rewrite.base_lines(engine.keyspace, engine.settings, now_ms)), now_ms)

    assert alike(again) == alike(engine)
    assert consumers(again) == consumers(engine)


def base_of(engine: Engine, now_ms: int) -> bytes:
    return b"".join(rewrite.base_lines(engine.keyspace, engine.settings, now_ms))


@pytest.mark.parametrize("seed", range(12))
def test_a_log_rewritten_as_an_rdb_file_gives_the_same_picture(seed: int) -> None:
    engine = random_history(seed, UnitLog())
    now_ms = engine.clock.now_us() // 1000
    again = rdb_based_engine(engine, now_ms)

    assert alike(again) == alike(engine)
    assert consumers(again) == consumers(engine)
    assert base_of(again, now_ms) == base_of(engine, now_ms), "it could go on with a base of requests"
