"""What is true of every command, over the whole table."""

import random
import re
import sys
import time

import pytest

from penstock.engine.aof import rewrite
from penstock.engine.engine import Engine
from penstock.storage.streams import ids
from penstock.storage.streams.pending.pending_block import id_of
from penstock.storage.streams.stream import Stream
from tests.support import wire
from tests.support.agreement import Master, assert_agree
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine, rdb_based_engine
from tests.support.keyspace_picture import SAVED, keyspace
from tests.support.log import UnitLog
from tests.support.random_words import Request
from tests.support.same_result import assert_equal, told_on_failure, values
from tests.support.seeds import seeds
from tests.support.stream_histories import PASS, RESTART, WAYS, Histories
from tests.support.table_engine import OWN_WORDS, prepared, rows
from tests.support.table_requests import TableRequests

SEEDS = seeds(quick=1, full=4)
FOUND = {
    42: "a replica showed a pause that was over",
    60: "an entry with a lease that had ended was deleted twice by one XDEL, and acknowledged twice",
    185: "an XCLAIM with an id twice moved what it had claimed to the dead letters",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_gets_a_whole_reply(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    engine, session = prepared()
    for row in rows(engine):
        for request in (requests.valid(row), requests.broken_of(row), requests.broken_of(row), requests.valid(row)):
            answer = engine.handle(session, request)
            engine.clients.outgoing.clear()
            assert b"internal error" not in answer.lower(), request
            assert not any(isinstance(value, bytes) for value in values(answer)), request
            if session.blocked is not None or session.queue is not None or session.closing or session.channels:
                engine.server.disconnect(session)
                session = engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
            engine.conditions.paused_until_ms = 0
            session.is_silent, session.reply_skip = False, 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refusal_changes_nothing(seed: int) -> None:
    requests = TableRequests(random.Random(seed))
    engine, session = prepared()
    before = keyspace(engine)
    refused = 0
    for row in rows(engine):
        for request in (requests.valid(row), requests.broken_of(row), requests.broken_of(row)):
            answer = engine.handle(session, request)
            if answer.startswith(b"-"):
                with told_on_failure([request]):
                    assert_equal(before, keyspace(engine), ("before", "after"))
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
    before = keyspace(engine)
    for row in rows(engine):
        if "readonly" in row.flags:
            for request in (requests.valid(row), requests.broken_of(row)):
                engine.handle(session, request)
                with told_on_failure([request]):
                    assert log.units == []
                    assert_equal(before, keyspace(engine), ("before", "after"))
                if session.blocked is not None:
                    engine.server.disconnect(session)
                    session = engine.server.connect()


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
                plain.server.disconnect(old)
                typed.server.disconnect(new)
                old, new = plain.server.connect(), typed.server.connect()
            old.resp, new.resp = 2, 3
            plain.conditions.paused_until_ms = typed.conditions.paused_until_ms = 0
            old.is_silent = new.is_silent = False
            old.reply_skip = new.reply_skip = 0
            with told_on_failure([request]):
                assert_equal(flat(answers[0]), flat(answers[1]), ("RESP2", "RESP3"))


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


# -- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(quick=8, full=60))
def test_master_replica_and_restart_agree(seed: int) -> None:
    assert_agree(Histories(random.Random(seed)).history(240))


@pytest.mark.parametrize("seed", FOUND)
def test_master_replica_and_restart_agree_where_they_once_differed(seed: int) -> None:
    assert_agree(Histories(random.Random(seed)).history(240))


@pytest.mark.parametrize("version", ["8.0", "7.2"])
@pytest.mark.parametrize("seed", seeds(quick=2, full=50))
def test_they_agree_in_the_words_of_an_older_redis(seed: int, version: str) -> None:
    assert_agree(Histories(random.Random(seed), for_older=True).history(240), version)


@pytest.mark.parametrize("seed", seeds(quick=4, full=60))
def test_they_agree_on_idempotent_ids_that_expire(seed: int) -> None:
    assert_agree(of_producers(random.Random(seed), 120))


def of_producers(chance: random.Random, count: int) -> list[Request]:
    """Requests with few idempotent ids, which are remembered for a second, and now and then a second that passes."""
    requests: list[Request] = [["XADD", "s", f"{NOW_MS}-0", "f", "v"], ["XCFGSET", "s", "IDMP-DURATION", "1"]]
    added_ms = [NOW_MS]
    while len(requests) < count:
        iid, entry_id = chance.choice("xyz"), f"{chance.choice(added_ms[-4:])}-{chance.randrange(2)}"
        passed_ms = chance.choice((1, 400, 1100))
        added_ms += [added_ms[-1] + passed_ms]
        requests += [
            *([["XADD", "s", "IDMP", "p", iid, "*", "f", "v"], ["XADD", "s", "*", "f", "v"]] * chance.randrange(2)),
            ["XIDMPRECORD", "s", "p", iid, entry_id],
            chance.choice((["XCFGSET", "s", "IDMP-MAXSIZE", chance.choice("23")], ["COPY", "s", "t", "REPLACE"])),
            *([[RESTART, chance.choice(WAYS)]] * (chance.random() < 0.05)),
            [PASS, str(passed_ms)],
        ]
    return requests


@pytest.mark.parametrize(
    "last", ["XTRIM s MAXLEN 1 DELREF", "XTRIM s MAXLEN 0 DELREF", "XADD s DELREF MAXLEN ~ 1 * f v"]
)
@pytest.mark.parametrize("seed", seeds(quick=2, full=40))
def test_a_trim_with_delref_leaves_nothing_pending_below_the_first_entry(seed: int, last: str) -> None:
    master = Master()
    for request in Histories(random.Random(seed)).history(60):
        master.take(request)
    master.take(["DISCARD"])
    master.take(["SELECT", "0"])
    master.take(["XADD", "s", "*", "f", "v"])
    is_refused = master.take(last.split()).startswith(b"-")

    stream = master.engine.keyspace.databases[0].values.get(b"s")
    if isinstance(stream, Stream) and not is_refused:
        first_id = stream.first_id if stream.length else ids.MAX
        assert [
            group.name
            for group in stream.groups.values()
            if group.pel.count and id_of(group.pel.by_id.first()) < first_id
        ] == []
    master.check()


@pytest.mark.parametrize("seed", seeds(quick=1, full=12))
def test_a_server_that_loaded_an_rdb_base_can_go_on_with_a_base_of_requests(seed: int) -> None:
    master = Master()
    for request in Histories(random.Random(seed)).history(240):
        master.take(request)
    again = rdb_based_engine(master.engine, master.now_ms)

    assert_equal(rewritten(master.engine, master.now_ms), rewritten(again, master.now_ms), ("master", "after the RDB"))


def rewritten(engine: Engine, now_ms: int) -> dict[str, object]:
    """What a base of requests holds; an RDB file does not keep the order of what was delivered at one moment."""
    lines = list(rewrite.base_lines(engine.keyspace, engine.settings, now_ms))
    return keyspace(loaded_engine(lines, now_ms), SAVED)


def main() -> None:
    """Histories for so many seconds of CPU, from a seed on: `python -m tests.test_laws 600 100000`."""
    seconds, first = float(sys.argv[1]), int(sys.argv[2])
    count = found = 0
    while time.process_time() < seconds:
        try:
            assert_agree(Histories(random.Random(first + count)).history(240))
        except AssertionError as difference:
            found += 1
            sys.stdout.write(f"seed {first + count}: {difference}\n")
        count += 1
    sys.stdout.write(f"{count} histories from seed {first} on, {found} of them with a difference\n")


if __name__ == "__main__":
    main()
