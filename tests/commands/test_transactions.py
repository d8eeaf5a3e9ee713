"""Transactions, beside a real Redis and alone."""

import random
from collections.abc import Callable
from typing import TypeAlias

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis, steps_of_engine
from tests.support.engines import make_engine, settings_with
from tests.support.table_requests import TableRequests, rows_by_name
from tests.support.word_batches import batches_of

Ask: TypeAlias = Callable[[Engine, Session, list[list[bytes]]], list[bytes]]

CHANGES = {
    "set": "SET a 2",
    "deleted": "DEL a",
    "appended nothing": "APPEND a ''",
    "given a time": "EXPIRE a 100",
    "renamed away": "RENAME a b",
    "renamed onto": "RENAME c a",
    "copied onto": "COPY c a REPLACE",
    "moved away": "MOVE a 1",
    "flushed": "FLUSHDB",
    "flushed with all": "FLUSHALL",
    "swapped": "SWAPDB 0 1",
    "persisted": "PERSIST c",
    "given a time by getex": "GETEX a EX 100",
    "freed of it by getex": "GETEX c PERSIST",
    "counted": "INCR a",
    "trimmed": "XTRIM s MAXLEN 0",
}
NO_CHANGES = {
    "read": "GET a",
    "touched": "TOUCH a",
    "renamed to itself": "RENAME a a",
    "copied": "COPY a b",
    "set on a condition that fails": "SET a 2 NX",
    "persisted without need": "PERSIST a",
    "expiry refused": "EXPIRE a 100 XX",
    "swapped with itself": "SWAPDB 0 0",
    "swapped elsewhere": "SWAPDB 2 3",
    "another": "SET b 1",
}
BEFORE = ["MSET a 1", "SET c 1 EXAT 9999999999", "XADD s 1-1 f v", "WATCH a c s"]
AFTER = ["MULTI", "PING", "EXEC", "MULTI", "EXEC"]

DIALOGUES = {
    "queued and run": ["MULTI", "SET a 1", "INCR a", "GET a", "DEL a x", "EXEC", "GET a"],
    "one effect stands alone": ["MULTI", "SET a 1", "GET a", "EXEC", "MULTI", "GET a", "EXEC", "MULTI", "EXEC"],
    "out of place": ["EXEC", "DISCARD", "MULTI", "MULTI", "WATCH a", "UNWATCH", "EXEC", "EXEC"],
    "given up": ["MULTI", "SET a 1", "DISCARD", "GET a", "EXEC"],
    "aborted by what is unknown": ["MULTI", "SET a 1", "FOO", "SET a 2", "EXEC", "GET a", "EXEC"],
    "aborted by a wrong number of words": [
        "MULTI",
        "SET a",
        "EXEC",
        "MULTI",
        "WATCH",
        "EXEC",
        "MULTI",
        "DISCARD x",
        "EXEC",
    ],
    "aborted by a wrong exec": ["EXEC x", "MULTI", "SET a 1", "EXEC x", "EXEC", "WATCH a", "EXEC x", "SET a 1", *AFTER],
    "a refusal inside does not stop the rest": ["MULTI", "SET a x", "INCR a", "EXPIRE a x", "SET b 1", "EXEC"],
    "another database inside": [
        "MULTI",
        "SELECT 1",
        "SET a 1",
        "SELECT 0",
        "SET b 1",
        "EXEC",
        "GET b",
        "MULTI",
        "SELECT 1",
        "EXEC",
        "GET a",
    ],
    "flushed inside": ["MULTI", "SET a 1", "FLUSHALL", "SET b 1", "EXEC"],
    "an overdue key inside": ["SET a 1 PXAT 1", "MULTI", "GET a", "SET a 2", "EXEC"],
    "aborted and watched": ["SET a 1", "WATCH a", "SET a 2", "MULTI", "FOO", "EXEC", *AFTER],
    "unwatched": ["WATCH a", "SET a 1", "UNWATCH", *AFTER],
    "unwatched by giving up": ["WATCH a", "SET a 1", "MULTI", "DISCARD", *AFTER],
    "missing and made": ["WATCH a", "SET a 1", *AFTER],
    "missing and flushed": ["SET b 1", "WATCH a", "FLUSHALL", *AFTER],
    "missing and swapped with nothing": ["WATCH a", "SWAPDB 0 1", *AFTER],
    "missing and swapped in": ["SELECT 1", "SET a 1", "SELECT 0", "WATCH a", "SWAPDB 0 1", *AFTER],
    "swapped there and back": ["SET a 1", "WATCH a", "SWAPDB 0 1", "SWAPDB 0 1", *AFTER],
    "watched in another database": ["SELECT 1", "WATCH a", "SELECT 0", "SET a 1", *AFTER],
    **{f"watched and {name}": [*BEFORE, line, *AFTER] for name, line in {**CHANGES, **NO_CHANGES}.items()},
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_transactions_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


OVERDUE = {  # (before WATCH is sent, after it) when the watched key's time has passed already
    "and looked at": ["GET a"],
    "and flushed": ["FLUSHALL"],
    "and swapped away": ["SWAPDB 0 1"],
    "and left alone": [],
}


@pytest.mark.parametrize("lines", OVERDUE.values(), ids=OVERDUE)
def test_a_key_that_was_overdue_when_it_was_watched_has_not_changed_by_going(
    logging_redis: RedisSide, lines: list[str]
) -> None:
    dialogue = ["SET a 1 PXAT 1", "WATCH a", *lines, *AFTER]

    ours = [step.reply for step in steps_of_engine(dialogue)]

    assert ours == [step.reply for step in logging_redis.play(dialogue)]


def test_a_key_that_expires_while_it_is_watched_breaks_the_transaction(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("SET a 1 PX 100", "WATCH a")
    clock.advance(101)

    assert dialogue("MULTI", "PING", "EXEC") is None


def test_a_key_that_expires_and_is_flushed_while_it_is_watched_breaks_the_transaction(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    dialogue("SET a 1 PX 100", "WATCH a")
    clock.advance(101)

    assert dialogue("FLUSHALL", "MULTI", "PING", "EXEC") is None


def test_another_clients_change_breaks_the_transaction(dialogue: Dialogue) -> None:
    dialogue("SET a 1", "WATCH a")
    dialogue.another()("SET a 2")

    assert dialogue("MULTI", "SET a 3", "EXEC") is None
    assert dialogue("GET a") == b"2"


def test_time_stands_still_inside(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue.engine.settings.read_line(["enable-debug-command", "yes"], set())
    dialogue("SET a 1 PX 100")
    clock.advance(100)

    assert dialogue("MULTI", "GET a", "DEBUG SLEEP 1", "GET a", "EXEC")[0::2] == [b"1", b"1"]


def test_a_reader_does_not_wait_inside(dialogue: Dialogue) -> None:
    assert dialogue("MULTI", "XREAD BLOCK 0 STREAMS s 0", "EXEC") == [None]
    assert dialogue.session.blocked is None


def test_a_reader_is_served_after_the_last_request_of_a_transaction(dialogue: Dialogue) -> None:
    reader = dialogue.another()
    reader("XREAD BLOCK 0 STREAMS s 0")

    dialogue("MULTI", "XADD s 1-1 f v", "XADD s 2-1 f v", "EXEC")

    assert reader.arrived() == [[[b"s", [[b"1-1", [b"f", b"v"]], [b"2-1", [b"f", b"v"]]]]]]


def test_a_reader_is_not_woken_by_what_a_transaction_takes_back(dialogue: Dialogue) -> None:
    reader = dialogue.another()
    reader("XREAD BLOCK 0 STREAMS s 0")

    dialogue("MULTI", "XADD s 1-1 f v", "XDEL s 1-1", "EXEC")

    assert reader.arrived() == []


def test_each_queued_request_is_counted(dialogue: Dialogue) -> None:
    dialogue("MULTI", "SET a x", "INCR a", "EXEC")

    rows = dialogue.engine.statistics.rows
    assert (rows["SET"].calls, rows["INCR"].calls, rows["INCR"].failed, rows["EXEC"].calls) == (1, 1, 1, 1)


def test_a_transaction_that_writes_is_refused_while_the_log_cannot_be_written(dialogue: Dialogue) -> None:
    dialogue("MULTI", "SET a 1")
    dialogue.engine.conditions.trouble = b"MISCONF Errors writing to the AOF file: No space left on device"

    assert str(dialogue("EXEC")) == (
        "EXECABORT Transaction discarded because of: MISCONF Errors writing to the AOF file: No space left on device"
    )
    assert dialogue("MULTI", "GET a", "EXEC") == [None]


# What is run at once in a transaction, or refused with a text of its own; DEBUG alone has too few words.
NOT_QUEUED = {"MULTI", "EXEC", "DISCARD", "WATCH", "QUIT", "RESET", "REPLCONF", "DEBUG"}
ROWS = [row for row in rows_by_name().values() if not row.is_container and row.name not in NOT_QUEUED]


def one_by_one(engine: Engine, session: Session, requests: list[list[bytes]]) -> list[bytes]:
    return [engine.handle(session, request) for request in requests]


def in_batches(engine: Engine, session: Session, requests: list[list[bytes]]) -> list[bytes]:
    replies: list[bytes] = []
    batches = batches_of(requests, engine.batch_shapes)
    while batches:
        batches = engine.handle_batches(session, batches, 1 << 30, replies, [])
    return replies


def in_a_transaction(row: Row, ask: Ask) -> list[bytes]:
    settings = settings_with(enable_debug_command="yes", enable_module_command="yes", penstock_test_clock="yes")
    engine = make_engine(settings=settings)
    request = TableRequests(random.Random(row.name)).valid(row)
    return ask(engine, engine.server.connect(), [[b"MULTI"], request, [b"EXEC"]])


@pytest.mark.parametrize("ask", [one_by_one, in_batches])
def test_a_command_is_queued_where_its_row_does_not_forbid_it(ask: Ask) -> None:
    allowed = [row for row in ROWS if not row.no_multi]

    assert {row.name: in_a_transaction(row, ask)[1] for row in allowed} == {row.name: b"+QUEUED\r\n" for row in allowed}


@pytest.mark.parametrize("ask", [one_by_one, in_batches])
@pytest.mark.parametrize("row", [row for row in ROWS if row.no_multi], ids=lambda row: row.name)
def test_a_command_that_may_not_be_in_a_transaction_is_refused_and_breaks_it(row: Row, ask: Ask) -> None:
    assert in_a_transaction(row, ask)[1:] == [
        b"-ERR Command not allowed inside a transaction\r\n",
        b"-EXECABORT Transaction discarded because of previous errors.\r\n",
    ]
