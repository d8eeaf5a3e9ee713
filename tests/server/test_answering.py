"""A reply that goes out at once says what it would have said at the turn's end, and never sooner than it may."""

import random
import shlex

import pytest

from penstock.engine.effects import pack
from tests.support.fake_server import Client, FakeServer
from tests.support.seeds import seeds

REQUESTS = (
    "PING", "ECHO hello", "GET k", "SET k v", "INCR n", "INCR k", "XADD s * f v", "XADD s 1-1 f v", "XLEN s", "XADD",
    "XREADGROUP GROUP g alice COUNT 2 STREAMS s >", "XREADGROUP GROUP g bob BLOCK 50 STREAMS s >", "XACK s g 1-1",
    "XREAD BLOCK 0 STREAMS s $", "XRANGE s - +", "XTRIM s MAXLEN 3", "DEL s", "XGROUP CREATE s g 0 MKSTREAM",
    "BLPOP list 1", "RPUSH list a", "MULTI", "EXEC", "DISCARD", "WATCH k", "SUBSCRIBE news", "UNSUBSCRIBE",
    "PUBLISH news told", "CLIENT REPLY SKIP", "CLIENT REPLY OFF", "CLIENT REPLY ON", "CLIENT PAUSE 20 WRITE",
    "CLIENT UNPAUSE", "CONFIG SET notify-keyspace-events KEA", "CONFIG SET notify-keyspace-events ''", "HELLO 3",
    "PSUBSCRIBE __key*", "PUNSUBSCRIBE", "RESET", "MONITOR", "SELECT 1", "SELECT 0", "NONSENSE",
)  # fmt: skip


def in_one_piece(line: str) -> bytes:
    """As clients send it: this is what may be answered at once."""
    return pack(tuple(word.encode() for word in shlex.split(line)))


def typed(line: str) -> bytes:
    """As a person types it: this takes the long way."""
    return line.encode() + b"\r\n"


def said(fake_server: FakeServer, clients: list[Client], who: int, request: bytes) -> list[bytes]:
    """What all of them received after one of them sent something."""
    clients[who].sends(request)
    fake_server.loop.turn()
    return [client.received() for client in clients]


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_a_request_in_one_piece_is_answered_like_one_that_is_typed(seed: int) -> None:
    chance = random.Random(seed)
    quick, slow = FakeServer(), FakeServer()
    quick_clients, slow_clients = ([fake_server.connect() for _ in range(4)] for fake_server in (quick, slow))
    for _ in range(400):
        who, lines = chance.randrange(4), chance.choices(REQUESTS, k=chance.choice((1, 1, 1, 2, 4)))
        answers = said(quick, quick_clients, who, b"".join(map(in_one_piece, lines)))

        assert answers == said(slow, slow_clients, who, b"".join(map(typed, lines)))

        wait_ms = chance.choice((0, 0, 0, 30))
        quick.loop.pass_ms(wait_ms)
        slow.loop.pass_ms(wait_ms)

        assert [client.received() for client in quick_clients] == [client.received() for client in slow_clients]


@pytest.mark.parametrize("seed", range(10))
def test_a_pipeline_that_comes_in_pieces_is_answered_like_one_that_is_typed(seed: int) -> None:
    chance = random.Random(seed)
    lines = chance.choices(
        ("XADD s * f v", "XADD s * f w", "XACK s g 1-1", "INCR n", "XADD t 1-1 f v"), (8, 8, 2, 1, 1), k=60
    )
    quick, slow = FakeServer(), FakeServer()
    ours, theirs = quick.connect(), slow.connect()
    data = b"".join(map(in_one_piece, lines))
    at = 0
    while at < len(data):
        size = chance.choice((1, 30, 300, 900))
        ours.sends(data[at : at + size])
        quick.loop.turn()
        at += size
    for line in lines:
        theirs.sends(typed(line))
        slow.loop.turn()

    assert ours.received() == theirs.received()


def test_a_client_that_waits_for_a_reply_gets_it_without_a_turn(fake_server: FakeServer) -> None:
    fake_server.engine.effects.use(None)
    client = fake_server.connect()
    client.says(in_one_piece("PING"))
    turns_before = fake_server.log_writer.turns
    client.sends(in_one_piece("XADD s 1-1 f v"))

    assert client.received() == b"$3\r\n1-1\r\n"
    assert fake_server.log_writer.turns == turns_before


def test_no_client_is_told_of_a_change_that_is_not_logged_yet(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    writer, reader, late = fake_server.connect(), fake_server.connect(), fake_server.connect()
    for client in (writer, reader, late):
        client.says(in_one_piece("PING"))
    fake_server.log_writer.holds = True
    writer.sends(in_one_piece("XADD s 1-1 f v"))
    reader.sends(in_one_piece("XLEN s"))
    fake_server.loop.turn()
    late.sends(in_one_piece("XLEN s"))
    fake_server.loop.turn()
    before = [client.received() for client in (writer, reader, late)]
    fake_server.log_writer.sync()

    assert before == [b"", b"", b""]
    assert [client.received() for client in (writer, reader, late)] == [b"$3\r\n1-1\r\n", b":1\r\n", b":1\r\n"]


def test_a_change_in_one_piece_that_could_not_be_logged_is_not_confirmed(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    client = fake_server.connect()
    client.says(in_one_piece("PING"))
    fake_server.log_writer.is_kept = False

    assert client.says(in_one_piece("XADD s 1-1 f v")) == b""
    assert client.transport.closed


def test_a_reply_stays_behind_those_that_are_pending(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(in_one_piece("PING"))
    fake_server.log_writer.holds = True
    client.says(in_one_piece("ECHO first"))  # no command that touches data only: it takes the turn's end
    client.says(in_one_piece("PING"))
    fake_server.log_writer.holds = False
    fake_server.log_writer.sync()
    fake_server.loop.turn()

    assert client.received() == b"$5\r\nfirst\r\n+PONG\r\n"


def test_a_bounded_client_is_measured_before_it_is_answered() -> None:
    fake_server = FakeServer(client_output_buffer_limit="normal 1000 0 0")
    client = fake_server.connect(slow=True)
    client.says(in_one_piece("PING"))
    client.transport.take()
    client.says(in_one_piece("SET k " + "x" * 2000))
    client.transport.take()
    client.says(in_one_piece("GET k"))

    assert client.transport.aborted
