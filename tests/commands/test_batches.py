"""Batches are answered at once, with nothing to be seen of it."""

import random
from collections.abc import Callable

import pytest

from penstock.commands.streams.changing.xadd_batch import add_batch
from penstock.engine.engine import Engine
from penstock.protocol.reply import bulks as packed
from tests.support.batch_sides import Side, assert_batches_agree, passing
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.seeds import seeds
from tests.support.word_batches import batches_of

QUICK = (
    b"SET key value", b"set key value", b"SET key value PX 1", b"SET key value EX number", b"SET key value ex 100",
    b"SET key value EXAT number", b"EXPIRE key number", b"EXPIRE key 100", b"expire key seconds", b"EXPIRE key 9 GT",
    b"GET key", b"INCR key", b"INCRBY key number", b"DEL key", b"UNLINK key", b"DEL key key",
    b"DECR key", b"APPEND key value", b"GETDEL key", b"MGET key key", b"LPUSH key value", b"RPUSH key value value",
    b"RPUSH key value", b"LPOP key", b"RPOP key", b"LPOP key 2", b"HSET key value value", b"HSET key value",
    b"HSET key value value value value", b"SADD key number", b"SADD key value value", b"ZADD key NX value",
    b"HGET key value", b"HDEL key value",
    b"SADD key value", b"SPOP key", b"ZADD key number value", b"ZADD key value value", b"ZINCRBY key number value",
    b"ZPOPMIN key", b"PING", b"PING value", b"XLEN key", b"XDEL key 5-5", b"SETNX key value", b"LLEN key",
    b"GETBIT key number", b"GETRANGE key 0 number", b"SETRANGE key number value", b"LRANGE key 0 number",
    b"LINSERT key BEFORE value value", b"LREM key number value", b"HGETALL key", b"SMEMBERS key", b"SUNION key key",
    b"ZRANGE key 0 number", b"ZRANGE key 0 number WITHSCORES", b"XRANGE key - +", b"XPENDING key value",
    b"XPENDING key g - + 9", b"SDIFFSTORE key key key",
)  # fmt: skip
KEYS_OF_OTHER_TYPES = ((b"n",), (b"a", b"b", b"n"), (b"a", b"list", b"hash", b"set", b"zset", b"n", b"stream"))
KEYS = (b"s", b"s", b"s", b"t", b"text")
VALUES = (b"v", b"", b"12", b"-7", b"-x", b"v" * 63, b"v" * 64, b"v" * 126, b"v" * 5000, b"007", b"*5\r\n$4\r\nXADD")


class Pipelines:
    """Requests in long runs of the same command."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.added = [1]

    def next(self) -> list[list[bytes]]:
        chance = self.chance
        key, count = chance.choice(KEYS), chance.choice((1, 2, 3, 10, 100, 300))
        kind = chance.random()
        if kind < 0.2:
            return self.of_other_types(count)
        if kind < 0.27:
            return self.with_ids(key, count)
        if kind < 0.55:
            width, name = chance.choice((1, 1, 2, 5)), chance.choice((b"XADD", b"xadd"))
            return [[name, key, b"*", *self.fields(width)] for _ in range(count)]
        if kind < 0.6:
            return self.idempotent(key, count)
        if kind < 0.66:
            head = [b"XADD", key, chance.choice((b"MAXLEN", b"maxlen")), b"~", b"%d" % chance.randrange(500), b"*"]
            return [head + self.fields(1) for _ in range(count)]
        if kind < 0.72:
            return [[b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"%d" % count, b"STREAMS", key, b">"]]
        if kind < 0.74:
            return [self.unlike() for _ in range(count)]
        if kind < 0.75:
            return [[b"XADD", key, b"*", b"odd"], [b"XADD"], [b"XADD", key], [b"XADD", key, b"5-5", b"f", b"v"]]
        if kind < 0.8:
            adds = chance.choice(([[b"XADD", key, b"*", b"f", b"v"]] * 3, self.with_ids(key, 5)))
            return [[b"MULTI"], *chance.choice((adds, self.of_other_types(9))), [b"EXEC"]]
        if kind < 0.82:
            return [[b"XACK", key, b"g", b"1-1", chance.choice((b"*", b"2-2")), b"*", b"3-3"]] * 3
        if kind < 0.85:
            return [[b"XTRIM", key, b"MAXLEN", b"~", b"50"], [b"XLEN", key]]
        return [[b"XACK", key, b"g", *self.ids()] for _ in range(count)]

    def idempotent(self, key: bytes, count: int) -> list[list[bytes]]:
        """XADDs with IDMP, some of which come again, or are refused; now and then more than the stream remembers."""
        chance = self.chance
        trim = chance.choice(([], [], [b"MAXLEN", b"~", b"%d" % chance.randrange(200)], [b"MAXLEN", b"=", b"7"]))
        producers, most = chance.choice((1, 1, 5)), chance.choice((50, 1_000, 100_000))
        empty = 0.01 if chance.random() < 0.1 else 0.0
        requests = []
        for _ in range(count):
            pid = b"" if chance.random() < empty else b"p%d" % chance.randrange(producers)
            iid = b"" if chance.random() < empty else b"%d" % chance.randrange(most)
            requests.append([b"XADD", key, b"IDMP", pid, iid, *trim, b"*", *self.fields(2)])
        return [[b"XCFGSET", key, b"IDMP-MAXSIZE", chance.choice((b"40", b"100"))], *requests]

    def with_ids(self, key: bytes, count: int) -> list[list[bytes]]:
        """XADDs with ids that ascend, most of them one by one; some come again, or have a form that is rarely sent."""
        chance = self.chance
        ids: list[bytes] = []
        ms, seq = NOW_MS + self.added[0], 0
        for _ in range(count):
            ms, seq = (ms, seq + chance.choice((1, 1, 1, 1, 2))) if chance.random() < 0.8 else (ms + 1, 0)
            ids.append(b"%d-%d" % (ms, seq))
        self.added[0] = ms - NOW_MS + chance.choice((1, 1, 0))
        odd = chance.choice((0, 0, 0, 1, 3))
        for at in chance.sample(range(count), min(odd, count)):
            padded = ids[at].replace(b"-", b"-0")
            ids[at] = chance.choice((ids[0], padded, b"0" + ids[at], b"5-*", b"9", b"0-0", b"5-x"))
        name, width = chance.choice((b"XADD", b"XADD", b"xadd")), chance.choice((1, 2))
        return [[name, key, own, *self.fields(width)] for own in ids]

    def unlike(self) -> list[bytes]:
        """An XADD or XACK with neighbours that may have other keys, options, or ids of their own."""
        chance = self.chance
        key = chance.choice((b"s", b"t", b"t", b"text", b"u%d" % chance.randrange(99)))
        if chance.random() < 0.2:
            return [b"XACK", key, b"g", *self.ids()]
        self.added[0] += chance.randrange(2)
        own = b"%d-%d" % (NOW_MS + self.added[0], chance.randrange(3))
        options = chance.choice(([], [], [], [b"NOMKSTREAM"], [b"MAXLEN", b"7"]))
        return [b"XADD", key, *options, chance.choice((b"*", b"*", own, b"5-*", b"0-0")), *self.fields(1)]

    def of_other_types(self, count: int) -> list[list[bytes]]:
        """Requests with one name and different keys, some of the wrong type, some that are refused."""
        chance = self.chance
        name, *words = chance.choice(QUICK).split()
        keys = chance.choice(KEYS_OF_OTHER_TYPES)
        return [[name, *[self.word(word, keys) for word in words]] for _ in range(count)]

    def word(self, kind: bytes, keys: tuple[bytes, ...]) -> bytes:
        chance = self.chance
        if kind == b"key":
            return chance.choice(keys)
        if kind == b"seconds":
            return chance.choice((b"100", b"100", b"7", b"9" * 15, b"9" * 18))
        return {b"number": b"%d" % chance.randrange(-3, 9), b"value": chance.choice(VALUES)}.get(kind, kind)

    def fields(self, width: int) -> list[bytes]:
        chance = self.chance
        name = b"f" if chance.random() < 0.98 else b"g"
        return [word for at in range(width) for word in (b"%b%d" % (name, at), chance.choice(VALUES[: 6 + at * 2]))]

    def ids(self) -> list[bytes]:
        chance = self.chance
        first = chance.randrange(400)
        ids = [b"%d-%d" % (NOW_MS + first // 100, first % 100 + at) for at in range(chance.choice((1, 1, 1, 5)))]
        return ids if chance.random() < 0.97 else [b"x"]


@pytest.mark.parametrize("way", [Side.together, Side.as_sent, Side.as_they_come])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_answers_state_and_log_are_those_of_one_by_one(seed: int, way: Callable[..., list[bytes]]) -> None:
    pipelines = Pipelines(seed)
    history = [request for step in range(40) for request in [*pipelines.next(), passing(step % 3)]]

    assert_batches_agree(history, way)


@pytest.mark.parametrize("older", ["", "7.2"])
@pytest.mark.parametrize(
    "options",
    [
        "*", "1-1", "0-*", "9999999999999-*", "MAXLEN 3 *", "MAXLEN = 3 7-7", "MAXLEN ~ 100 *", "maxlen ~ 100 7-7",
        "MAXLEN ~ 100 LIMIT 5 *", "LIMIT 5 MAXLEN ~ 0 *", "MINID ~ 5-5 *", "MINID 5 9-*", "NOMKSTREAM MAXLEN ~ 1 *",
        "KEEPREF MAXLEN ~ 1 *", "DELREF MAXLEN ~ 1 *", "ACKED MAXLEN ~ 1 *", "IDMP p i MAXLEN ~ 1 *", "IDMPAUTO p *",
    ],
)  # fmt: skip
def test_the_log_has_an_entry_that_came_alone_as_it_has_any(options: str, older: str) -> None:
    """What came alone is logged from its bytes, not from its words."""
    versions = {"aof_compat_version": older} if older else {}
    by_bytes, by_words = Side(**versions), Side(**versions)
    for key in (b"s", b"k" * 120, b"*"):
        for value in (b"v", b"", b"$1\r\n*\r\n", b"v" * 5000):
            requests = [[b"xadd", key, *options.encode().split(), b"f", value]] * 2
            assert by_bytes.as_they_come(requests) == by_words.one_by_one(requests)
    assert by_bytes.log.text == by_words.log.text


@pytest.mark.parametrize("version", ["8.2", "8.4", "8.6", "8.8"])
def test_idempotent_adds_are_run_or_refused_as_the_version_has_them(version: str) -> None:
    requests = [[b"XADD", b"s", b"IDMP", b"p", b"%d" % (at % 40), b"*", b"f", b"v"] for at in range(60)]
    alone, at_once = Side(compat_version=version), Side(compat_version=version)

    assert at_once.together(requests) == alone.one_by_one(requests)
    assert at_once.picture() == alone.picture()


def test_a_log_for_an_older_redis_has_idempotent_adds_as_plain_ones() -> None:
    requests = [[b"XADD", b"s", b"IDMP", b"p", b"%d" % at, b"*", b"f", b"v"] for at in range(9)]
    alone, at_once = Side(aof_compat_version="7.2"), Side(aof_compat_version="7.2")

    assert at_once.together(requests) == alone.one_by_one(requests)
    assert at_once.picture() == alone.picture()
    assert b"IDMP" not in at_once.log.text


def added_together(side: Side, requests: list[list[bytes]]) -> int:
    """How many of the requests, which are of one batch, the batch handler takes."""
    (batch,) = batches_of(requests, side.engine.batch_shapes)
    side.engine.server.context.begin(side.client.session, NOW_MS * 1000)
    return add_batch(side.engine.server.context, batch, [])


def with_id(entry_id: str) -> list[bytes]:
    return f"XADD stream {entry_id} f v".encode().split()


@pytest.mark.parametrize("last", ["5-9", "5-08", "9", "9-*", "0-0", "7-x", "6-999999999999999999999"])
def test_entries_with_ids_go_together_up_to_one_that_is_not_plainly_above(last: str) -> None:
    requests = [with_id(entry_id) for entry_id in ("5-6", "5-7", "5-9", last, "999-9")]

    assert added_together(Side(), requests) == 3


def test_entries_with_ids_are_read_and_logged_as_they_were_sent() -> None:
    side = Side()
    side.log.clear()
    requests = [with_id(entry_id) for entry_id in ("5-6", "5-7", "5-9", "7-0", "7-1")]

    assert side.together(requests) == [b"$3\r\n%b\r\n" % request[2] for request in requests]
    assert side.log.text == b"".join(map(packed, requests))
    assert side.client("XRANGE stream 5-6 +") == [[request[2], [b"f", b"v"]] for request in requests]


@pytest.mark.parametrize("key", ["new", "text"])
def test_entries_with_ids_for_what_is_no_stream_are_left_to_the_plain_handler(key: str) -> None:
    requests = [f"XADD {key} {at}-1 f v".encode().split() for at in range(1, 5)]

    assert added_together(Side(), requests) == 0


def test_new_idempotent_adds_go_together_up_to_one_that_comes_again() -> None:
    requests = [[b"XADD", b"s", b"IDMP", b"p", b"%d" % (at % 6), b"*", b"f", b"v"] for at in range(9)]

    assert added_together(Side(), requests) == 6


@pytest.mark.parametrize("trim", ["MAXLEN = 9", "MAXLEN ~ 1", "MAXLEN ~ x", "MINID ~ 5"])
def test_what_the_batch_handler_does_not_know_is_left_to_the_plain_one(trim: str) -> None:
    assert added_together(Side(), [f"XADD s {trim} * f v".encode().split()] * 9) == 0


def test_as_many_go_together_as_a_trim_leaves_alone() -> None:
    assert added_together(Side(), [b"XADD s MAXLEN ~ 5 * f v".split()] * 9) == 4


def test_two_reads_with_an_option_that_the_version_hides_are_refused_like_one() -> None:
    settings = settings_with(compat_version="8.2")
    engine = make_engine(settings=settings)
    client = Dialogue(engine)
    client("XADD s 1-0 f v", "XGROUP CREATE s g 0", "XGROUP CREATECONSUMER s g c")
    request = b"XREADGROUP GROUP g c CLAIM 0 STREAMS s >".split()
    replies: list[bytes] = []

    engine.handle_batches(client.session, batches_of([request] * 2, engine.batch_shapes), 1 << 30, replies, [])

    assert replies == [engine.handle(client.session, request)] * 2
    assert replies[0].startswith(b"-ERR syntax error")


@pytest.mark.parametrize("ids", [[b"*"] * 3, [b"2-0", b"2-1", b"2-2"]], ids=["by the server", "given"])
def test_a_blocked_reader_gets_the_first_of_them_alone(engine: Engine, ids: list[bytes]) -> None:
    reader, writer = Dialogue(engine), Dialogue(engine)
    reader("XADD s 1-0 f v", "XREAD BLOCK 0 STREAMS s $")
    answers: list[bytes] = []
    batches = batches_of([[b"XADD", b"s", ids[at], b"f", b"%d" % at] for at in range(3)], engine.batch_shapes)
    while batches:
        batches = engine.handle_batches(writer.session, batches, 1000, answers, [])
    assert len(answers) == 3
    assert reader.arrived() == [[[b"s", [[answers[0].split(b"\r\n")[1], [b"f", b"0"]]]]]]


@pytest.mark.parametrize("ids", [[b"*"] * 2, [b"2-0", b"2-1"]], ids=["by the server", "given"])
def test_a_watcher_learns_of_them(engine: Engine, ids: list[bytes]) -> None:
    watcher, writer = Dialogue(engine), Dialogue(engine)
    watcher("XADD s 1-0 f v", "WATCH s", "MULTI", "PING")
    batches = batches_of([[b"XADD", b"s", own, b"f", b"v"] for own in ids], engine.batch_shapes)
    engine.handle_batches(writer.session, batches, 1000, [], [])
    assert watcher("EXEC") is None


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_reads_at_once_come_to_the_same_state_by_a_shorter_log(seed: int) -> None:
    assert_batches_agree(reads(random.Random(seed)), Side.together, shorter_log=True)


def reads(chance: random.Random) -> list[list[bytes]]:
    """Pipelines of equal XREADGROUPs, with entries that are added and deleted before them."""
    history: list[list[bytes]] = []
    for step in range(40):
        key, count = chance.choice((b"s", b"t")), chance.choice((1, 2, 10, 50))
        history += [[b"XADD", key, b"*", b"f", b"v"]] * chance.choice((1, 3, 40))
        history.append([b"XDEL", key, b"%d-%d" % (NOW_MS + step, chance.randrange(9))])
        words = [b"NOACK"] if chance.random() < 0.1 else [b"BLOCK", b"0"] if chance.random() < 0.2 else []
        reader = chance.choice((b"alice", b"bob", b"%d" % step))
        read = [b"XREADGROUP", b"GROUP", b"g", reader, b"COUNT", b"%d" % count, *words, b"STREAMS", key, b">"]
        history += [read] * (1 if b"BLOCK" in words else chance.choice((2, 5, 100)))
        history.append(passing(1))
    return history


def test_reads_at_once_are_one_unit_of_the_log() -> None:
    requests = [b"XGROUP CREATECONSUMER s g c".split(), *[[b"XADD", b"s", b"*", b"f", b"v"]] * 9]
    requests += [b"XREADGROUP GROUP g c COUNT 2 STREAMS s >".split()] * 4
    alone, at_once = Side(), Side()

    assert at_once.together(requests) == alone.one_by_one(requests)
    assert len(at_once.log.text) < len(alone.log.text)
