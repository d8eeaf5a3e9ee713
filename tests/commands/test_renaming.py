"""rename-command: what clients call a command, and what the log calls it."""

import pytest

from penstock.commands import registry
from penstock.config.settings import Settings
from penstock.engine.aof.replay import Replay
from penstock.engine.engine import Engine
from penstock.engine.table.renaming import ABSENT
from penstock.errors import UsageError
from penstock.protocol.limits import Limits
from penstock.protocol.reply import bulks
from penstock.protocol.request_reader import RequestReader
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.reference_server import NoReference, reference_server
from tests.support.wire import Connection, parse

LINES = [("FLUSHALL", ""), ("SET", "put"), ("get", "Fetch"), ("multi", "mm"), ("exec", "ee"), ("config", "cfg")]
REQUESTS = [
    "FLUSHALL", "flushall async", "SET a 1", "put a 1", "PUT a 2", "Fetch a", "fetch a", "FETCH a b", "get a",
    "put a", "CFG GET hz x", "CONFIG GET timeout", "cfg foo", "cfg get", "COMMAND INFO flushall set",
    "COMMAND GETKEYS put a 1", "COMMAND GETKEYS set a 1", "COMMAND DOCS set", "COMMAND INFO cfg|get",
    "COMMAND INFO config|get", "mm", "put b 3", "SET b 4", "ee", "mm", "put b 5", "ee", "EXEC", "MULTI", "ee",
    "fetch b", "COMMAND LIST FILTERBY PATTERN *fetch*", "COMMAND LIST FILTERBY PATTERN flushall",
    "ACL DRYRUN default set a b", "LPUSH l x", "BLPOP l 0", "cfg set timeout x",
]  # fmt: skip


class EveryUnit(list[bytes]):
    """A log in memory."""


def engine_with(lines: list[tuple[str, str]], log: EveryUnit | None = None) -> Engine:
    settings = Settings()
    settings.renamed = lines
    return make_engine(log=log, settings=settings)


def test_a_command_that_is_renamed_to_nothing_is_gone() -> None:
    client = Dialogue(engine_with([("FLUSHALL", "")]))

    client("SET a 1")
    assert str(client("FLUSHALL")) == "ERR unknown command 'FLUSHALL'"
    assert str(client("flushall")) == "ERR unknown command 'flushall'"
    assert client("GET a") == b"1"


def test_a_renamed_command_answers_to_its_new_name_only() -> None:
    client = Dialogue(engine_with([("FLUSHALL", "b840fc02")]))

    assert str(client("SET a 1", "FLUSHALL")) == "ERR unknown command 'FLUSHALL'"
    assert client("B840FC02", "DBSIZE") == 0


def test_the_log_has_commands_by_their_own_names() -> None:
    log = EveryUnit()
    client = Dialogue(engine_with([("XADD", "xput"), ("XGROUP", "group"), ("MULTI", "mm"), ("EXEC", "ee")], log))
    client("xput s 1-0 f v", "group CREATE s g 0", "mm", "xput s 2-0 f v", "xput s 3-0 f v", "ee")
    written = b"".join(log)

    assert (written.count(b"XADD"), written.count(b"XGROUP"), written.count(b"MULTI")) == (3, 1, 1)
    assert b"xput" not in written


@pytest.mark.parametrize("line", ["xput s 5-0 f v", "xput s * f v", "xput s MAXLEN ~ 1 * f v"])
def test_the_log_has_the_own_name_of_a_command_that_is_logged_from_its_bytes(line: str) -> None:
    log = EveryUnit()
    engine = engine_with([("XADD", "xput")], log)
    reader = RequestReader(Limits(), engine.batch_shapes)
    reader.feed(bulks(line.encode().split()))
    engine.handle_batches(Dialogue(engine).session, reader.take(1), 1 << 30, [], [])

    assert b"XADD" in log[-1]
    assert b"xput" not in log[-1]


@pytest.mark.parametrize("lines", [LINES, [("XADD", ""), ("XGROUP", "")], [("GET", ""), ("XADD", "get")], []])
def test_a_log_is_loaded_whatever_commands_are_called_now(lines: list[tuple[str, str]]) -> None:
    log = EveryUnit()
    client = Dialogue(engine_with([("XADD", "xput")], log))
    client("SET a 1", "xput s 1-0 f v", "XGROUP CREATE s g 0")
    again = engine_with(lines)
    replay = Replay(again.server, pytest.fail)
    replay.begin()
    replay.lines(log)
    replay.end()

    assert sorted(again.keyspace.databases[0].values) == [b"a", b"s"]


def test_a_log_with_the_new_names_is_loaded() -> None:
    engine = engine_with([("SET", "put")])
    replay = Replay(engine.server, pytest.fail)
    replay.begin()
    replay.lines([b"*3\r\n$3\r\nput\r\n$1\r\na\r\n$1\r\n1\r\n"])
    replay.end()

    assert dict(engine.keyspace.databases[0].values.items()) == {b"a": b"1"}


@pytest.mark.parametrize(
    ("lines", "refusal"),
    [
        ([("FLUSHAL", "")], "rename-command FLUSHAL: No such command in rename-command"),
        ([("SET", "get")], "rename-command SET get: Target command name already exists"),
        ([("SET", "put"), ("SET", "x")], "rename-command SET: No such command in rename-command"),
    ],
)
def test_a_mistake_stops_the_start(lines: list[tuple[str, str]], refusal: str) -> None:
    with pytest.raises(UsageError) as caught:
        engine_with(lines)
    assert str(caught.value) == refusal


def test_names_are_given_one_after_the_other() -> None:
    client = Dialogue(engine_with([("GET", ""), ("SET", "get"), ("get", "put")]))

    assert client("put a 1") == b"OK"
    assert str(client("get a")) == "ERR unknown command 'get', with args beginning with: 'a' "


def test_commands_that_are_not_here_can_be_taken_away() -> None:
    assert not ABSENT & set(registry.table())
    engine_with([("REPLICAOF", ""), ("SLAVEOF", ""), ("MIGRATE", "mv")])


def test_a_request_that_waits_under_a_new_name_is_served() -> None:
    engine = engine_with([("BLPOP", "take"), ("LPUSH", "give")])
    waiting, other = Dialogue(engine), Dialogue(engine)
    waiting("take l 0")
    other("give l x")

    assert waiting.arrived() == [[b"l", b"x"]]


def test_renamed_commands_answer_as_those_of_redis() -> None:
    """PING comes in between: behind a renamed command, Redis 8.6.3 takes its old name, too, as its last one."""
    flags = [word for old, new in LINES for word in ("--rename-command", old, new)]
    client = Dialogue(engine_with(LINES))
    try:
        with reference_server(*flags) as port, Connection("127.0.0.1", port) as theirs:
            for line in REQUESTS:
                assert parse(client.raw("PING"))[0] == theirs.ask("PING")
                assert parse(client.raw(line))[0] == theirs.ask(*line.split()), line
    except NoReference as absence:
        pytest.skip(str(absence))
