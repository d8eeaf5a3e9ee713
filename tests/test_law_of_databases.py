"""The law of databases: a user with rules about databases learns nothing of the others, and changes nothing there.

Requests are made of each row of a Valkey's table, and handed over one by one, in batches, in a transaction, in scripts.
Two engines differ in nothing but what is in the database that the user may not use: after the same requests the replies
are the same on both, and that database is as before. The user may have selected it while that was allowed, and a
request may wait there.
"""

import random
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.same_result import Difference, assert_same, text_of, values
from tests.support.seeds import seeds
from tests.support.table_engine import APART, OWN_WORDS
from tests.support.table_requests import PLAIN_WORDS, TableRequests, Vocabulary
from tests.support.word_batches import batches_of

Request = list[bytes]
NAMES: Final = ("with one content", "with another")
CALL: Final = b"return redis.pcall(unpack(ARGV))"
DATABASES: Final = 3
OPEN: Final = (0, 2)  # that the user may use in the end
CLOSED: Final = 1
NUMBERS: Final = (b"0", b"1", b"2")
SHARE_OF_OTHERS: Final = 0.12  # of the commands that have keys, or nothing to do with data
RULES: Final = "on nopass +@all -@admin ~* &*"
FILLED: Final = (
    "SET n 5", "SET text {0}", "RPUSH l {0} b", "HSET h f {0}", "SADD set {0} x", "ZADD z 1 {0}", "PFADD hll {0}",
    "GEOADD geo 13 38 {0}", "XADD s 1-0 f {0}", "XADD s 2-0 f {0}", "XGROUP CREATE s g 0", "SETBIT bits {0} 1",
    "XGROUP CREATECONSUMER s g bob", "XREADGROUP GROUP g alice COUNT 1 STREAMS s >", "SET name{0} x",
    "SET one{1} x",
)  # fmt: skip
# They end the session, change its user or its replies, open or close what the law opens and closes, or tell of the
# whole server, as in Valkey.
NOT_HERE: Final = frozenset({
    *APART, "QUIT", "RESET", "AUTH", "HELLO", "MULTI", "EXEC", "DISCARD", "CLIENT|REPLY", "CLIENT|KILL", "CLIENT|PAUSE",
    "CLIENT|UNBLOCK", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "WAIT", "WAITAOF",
    *(OWN_WORDS - {"RANDOMKEY", "MEMORY|USAGE", "SLOWLOG|GET"}),
})  # fmt: skip
WORDS: Final = Vocabulary({
    **PLAIN_WORDS.words,
    "key": ("n", "text", "l", "h", "set", "z", "hll", "geo", "s", "s", "bits", "new", "namexxx"),
    "group": ("g",), "consumer": ("alice",), "id": (">", "0", "1-0", "2-0", "3-0"), "pattern": ("*", "name*"),
    "db": ("0", "1", "1", "2"), "destination-db": ("0", "1", "1", "2"), "index": ("0", "1", "1", "2"),
    "index1": ("0", "1", "2"), "index2": ("0", "1", "2"), "integer": ("0", "1", "2", "100"), "cursor": ("0",),
    "seconds": ("100",), "milliseconds": ("100",), "timeout": ("0", "1"), "script": ("return redis.call('dbsize')",),
})  # fmt: skip


class Nowhere:
    """Takes every key that MIGRATE sends."""

    def ask(
        self, host: str, port: str, timeout_ms: int, db_index: int, login: list[bytes], requests: list[list[bytes]]
    ) -> list[bytes]:
        return [b"+OK"] * len(requests)


class Side:
    """A Valkey with keys in each database, an administrator and a user."""

    def __init__(self, content: str) -> None:
        """content: what is in the database that the user may not use."""
        settings = settings_with(compat_version="valkey-9.2", databases=str(DATABASES))
        self.engine: Engine = make_engine(ManualClock(NOW_MS), settings=settings)
        self.engine.waiting.migrator = Nowhere()
        self.admin: Session = self.engine.server.connect("127.0.0.1:1", "127.0.0.1:2")
        self.user: Session = self.engine.server.connect("127.0.0.1:3", "127.0.0.1:2")
        self.elsewhere: Session = self.engine.server.connect("127.0.0.1:4", "127.0.0.1:2")  # of the same user
        self.replies: list[bytes] = []
        for number in (0, CLOSED):
            self.ask(f"SELECT {number}")
            text = content if number == CLOSED else "300"
            for line in FILLED:
                self.ask(line.format(text, number))
        self.grant("alldbs")
        self.take([[b"AUTH", b"joe", b"x"]])
        self.engine.handle(self.elsewhere, [b"AUTH", b"joe", b"x"])

    def ask(self, line: str) -> None:
        answer = self.engine.handle(self.admin, [word.encode() for word in line.split()])
        assert not answer.startswith(b"-"), (line, answer)
        self.collect()

    def grant(self, databases: str) -> None:
        self.ask(f"ACL SETUSER joe reset {RULES} {databases}")

    def close(self) -> None:
        """The user may no longer use one database."""
        self.grant("db=" + ",".join(map(str, OPEN)))

    def take(self, requests: list[Request]) -> None:
        """Hand requests over as they come in one piece; one that waits is released."""
        batches = batches_of(requests, self.engine.batch_shapes)
        while batches:
            batches = self.engine.handle_batches(self.user, batches, 1 << 30, self.replies, [])
            self.collect()
            self.release()

    def release(self) -> None:
        """The user waits no longer."""
        if self.user.blocked is not None:
            self.engine.waiting.release(self.user.blocked, b"+released\r\n")
            self.collect()

    def collect(self) -> None:
        outgoing, self.engine.clients.outgoing = self.engine.clients.outgoing, []
        self.replies += [reply for session, reply in outgoing if session is self.user]

    def closed(self) -> dict[str, object]:
        """What is in the database that the user may not use."""
        return {key: shown for key, shown in keyspace(self.engine).items() if key.startswith(f"{CLOSED} ")}


# -- the doors --------------------------------------------------------------------------------------------------------

Door = Callable[[Side, list[Request]], None]


def one_by_one(side: Side, requests: list[Request]) -> None:
    side.close()
    for request in requests:
        side.take([request])


def in_batches(side: Side, requests: list[Request]) -> None:
    side.close()
    side.take(requests)


def from_within(side: Side, requests: list[Request]) -> None:
    """The database was selected when that was allowed."""
    side.take([[b"SELECT", b"1"]])
    side.close()
    side.take(requests)


def in_a_transaction(side: Side, requests: list[Request]) -> None:
    """EXEC judges what was queued before the rights were taken."""
    side.take([[b"MULTI"], *requests])
    side.close()
    side.take([[b"EXEC"]])


def in_a_transaction_from_within(side: Side, requests: list[Request]) -> None:
    side.take([[b"SELECT", b"1"], [b"MULTI"], *requests])
    side.close()
    side.take([[b"EXEC"]])


def behind_another_session(side: Side, requests: list[Request]) -> None:
    """The user has asked the same elsewhere, where it was allowed."""
    side.take([[b"SELECT", b"1"]])
    side.close()
    for request in requests:
        for batch in batches_of([request], side.engine.batch_shapes):
            side.engine.handle_batches(side.elsewhere, [batch], 1 << 30, [], [])
        if side.elsewhere.blocked is not None:
            side.engine.waiting.release(side.elsewhere.blocked, b"+released\r\n")
        side.take([request])


def in_scripts(side: Side, requests: list[Request]) -> None:
    side.close()
    for request in requests:
        side.take([[b"EVAL", CALL, b"0", *request]])


def in_scripts_from_within(side: Side, requests: list[Request]) -> None:
    side.take([[b"SELECT", b"1"]])
    side.close()
    for request in requests:
        side.take([[b"EVAL", CALL, b"0", *request], [b"EVAL", CALL, b"1", b"s", *request]])


DOORS: Final[list[Door]] = [
    one_by_one, in_batches, from_within, in_a_transaction, in_a_transaction_from_within, behind_another_session,
]  # fmt: skip
if find_spec("lupa") is not None:
    DOORS.extend([in_scripts, in_scripts_from_within])

# -- stories ----------------------------------------------------------------------------------------------------------

MOVERS: Final = ("SELECT", "SELECT", "COPY", "MOVE", "SWAPDB", "FLUSHALL", "FLUSHDB")


def rows_of(engine: Engine) -> list[Row]:
    every = [row for top in engine.commands.rows.values() for row in (top, *top.subcommands.values())]
    return [row for row in every if not row.is_container and row.name not in NOT_HERE]


def story(chance: random.Random, made: TableRequests, rows: dict[str, Row], row: Row) -> list[Request]:
    """Requests of a row, among others that name databases."""
    requests = [made.valid(row) for _ in range(3)]
    requests += [made.valid(rows[chance.choice(MOVERS)]) for _ in range(3)]
    chance.shuffle(requests)
    varied: list[Request] = []
    for request in requests:
        varied.append(request)
        if request[-1] in NUMBERS:  # batches of requests with the same beginning
            varied.append([*request[:-1], chance.choice(NUMBERS)])
    return varied


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_nothing_is_learned_or_changed_in_a_closed_database(seed: int) -> None:
    """By a third of the commands; two seeds have the same third."""
    rows = {row.name: row for row in rows_of(Side("111").engine)}
    for row in list(rows.values())[seed % 3 :: 3]:
        chance = random.Random(f"{seed}/{row.name}")
        if (row.has_keys or not (row.write or "readonly" in row.flags)) and chance.random() > SHARE_OF_OTHERS:
            continue
        made = TableRequests(chance, WORDS)
        door = chance.choice(DOORS)
        history = story(chance, made, rows, row)
        assert_same(history, partial(undue, door), NAMES, text_of, f"{row.name} {door.__name__}")


def undue(door: Door, requests: list[Request]) -> Difference | None:
    """What the user learned or changed without the right to, if anything."""
    sides = [Side("111"), Side("222")]
    before = [side.closed() for side in sides]
    for side in sides:
        door(side, requests)
        side.engine.tick()
        side.collect()
    if sides[0].replies != sides[1].replies:
        one, other = (values(b"".join(side.replies)) for side in sides)
        return Difference("reply", one, other, len(requests), "what may not be read")
    for was, side in zip(before, sides, strict=True):
        if side.closed() != was:
            return Difference("state", was, side.closed(), len(requests), "what may not be changed")
    return None


WAITERS: Final = (
    "XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g bob BLOCK 0 STREAMS s >", "BLPOP l 0", "BRPOP l 0",
    "BLMOVE l other left left 0", "BRPOPLPUSH l other 0", "BLMPOP 0 1 l left", "BZPOPMIN z 0", "BZPOPMAX z 0",
    "BZMPOP 0 1 z MIN",
)  # fmt: skip
EMPTIED: Final = ("SELECT 1", "DEL l z", "XGROUP SETID s g $")


@pytest.mark.parametrize("line", WAITERS)
def test_a_blocked_request_gets_nothing_when_its_user_has_lost_the_database(line: str) -> None:
    waiting, alone = Side("111"), Side("111")
    waiting.take([[b"SELECT", b"1"]])
    for side in (waiting, alone):
        for request in EMPTIED:
            side.ask(request)
    waiting.engine.handle(waiting.user, [word.encode() for word in line.split()])
    assert waiting.user.blocked is not None

    for side in (waiting, alone):
        side.close()
        side.replies.clear()
        for request in ("RPUSH l a", "ZADD z 1 a", "XADD s 9-0 f v"):
            side.ask(request)

    assert waiting.replies == [b"-NOPERM No permissions to access database\r\n"]
    assert waiting.closed() == alone.closed()


def test_the_table_says_which_commands_block() -> None:
    blocking = {row.name for row in rows_of(Side("111").engine) if "blocking" in row.flags}

    assert {line.split()[0] for line in WAITERS} == blocking
