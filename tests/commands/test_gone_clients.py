"""A blocked client that has gone, as the system knows and the event loop does not yet, is given nothing."""

import random
import shlex

import pytest

from penstock.server.connections.connection import Connection
from tests.support.blocking_requests import SETUP, TAKE_NOTHING, WAITING, Waiting
from tests.support.dialogue import NO_REPLY, Dialogue
from tests.support.fake_server import FakeServer, FakeTransport
from tests.support.seeds import seeds

CASES = [pytest.param(case, id=name) for name, case in WAITING.items()]


class Peer(FakeTransport):
    """The other end of a session: there or not, and how often that was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.is_there = True
        self.questions = 0

    def is_closing(self) -> bool:
        self.questions += 1
        return not self.is_there


class Client(Dialogue):
    """A dialogue with a session that has a connection to a peer."""

    def __init__(self, server: FakeServer) -> None:
        super().__init__(server.engine)
        self.peer = Peer()
        connection = Connection(server.turn)
        connection.connection_made(self.peer)
        self.session.link = connection

    def received(self) -> bytes:
        """What the session was sent while it waited."""
        return b"".join(answer for session, answer in self.engine.clients.outgoing if session is self.session)


def blocked(server: FakeServer, line: str, count: int) -> list[Client]:
    clients = [Client(server) for _ in range(count)]
    for client in clients:
        assert client(line) == NO_REPLY
    return clients


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def test_every_command_that_waits_is_tried_here(server: FakeServer) -> None:
    waits = {row.name for row in server.engine.commands.rows.values() if "blocking" in row.flags}

    assert waits == set(WAITING) | TAKE_NOTHING


@pytest.mark.parametrize("case", CASES)
def test_an_element_goes_to_the_next_client_that_is_there(server: FakeServer, case: Waiting) -> None:
    pusher = Client(server)
    pusher(case.setup)
    gone, there, behind = blocked(server, case.request, 3)
    gone.peer.is_there = False

    pusher(case.push(1))

    assert [client.received() for client in (gone, there, behind)] == [b"", case.answer(1), b""]
    assert [client.peer.questions for client in (gone, there, behind)] == [1, 1, 0]


@pytest.mark.parametrize("closing", ["CLIENT KILL USER u SKIPME yes", "ACL DELUSER u"])
@pytest.mark.parametrize("case", CASES)
def test_an_element_does_not_go_to_a_client_that_the_same_transaction_closes(
    server: FakeServer, case: Waiting, closing: str
) -> None:
    pusher, closed = Client(server), Client(server)
    pusher(case.setup, "ACL SETUSER u on nopass +@all ~*")
    closed("AUTH u x", case.request)
    (there,) = blocked(server, case.request, 1)

    pusher("MULTI", closing, case.push(1), "EXEC")

    assert [client.received() for client in (closed, there)] == [b"", case.answer(1)]


@pytest.mark.parametrize("case", CASES)
def test_an_element_stays_where_all_clients_have_gone(server: FakeServer, case: Waiting) -> None:
    pusher = Client(server)
    pusher(case.setup)
    gone = blocked(server, case.request, 3)
    for client in gone:
        client.peer.is_there = False

    pusher(case.push(1))

    assert server.engine.clients.outgoing == []
    assert Client(server).words(*map(str.encode, shlex.split(case.request))) == case.answer(1)


@pytest.mark.parametrize("seed", seeds(quick=10, full=60))
def test_elements_go_in_order_to_the_clients_that_are_there(seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice(list(WAITING.values()))
    server = FakeServer()
    pusher = Client(server)
    pusher(case.setup)
    clients = blocked(server, case.request, chance.randint(1, 12))
    for client in clients:
        client.peer.is_there = chance.random() < 0.5
    there = [client for client in clients if client.peer.is_there]
    pushed = chance.randint(1, 12)

    for number in range(1, pushed + 1):
        pusher(case.push(number))

    assert [client.received() for client in there[:pushed]] == [case.answer(n + 1) for n in range(len(there[:pushed]))]
    assert len(server.engine.clients.outgoing) == min(len(there), pushed)
    assert {client.peer.questions for client in clients} <= {0, 1}


@pytest.mark.parametrize("name", ["BLPOP", "BZPOPMIN", "XREADGROUP"])
def test_one_of_ten_thousand_waiting_clients_is_woken_by_asking_that_one_alone(server: FakeServer, name: str) -> None:
    case = WAITING[name]
    pusher = Client(server)
    pusher(case.setup)
    clients = blocked(server, case.request, 10_000)

    pusher(case.push(1))

    assert clients[0].received() == case.answer(1)
    assert sum(client.peer.questions for client in clients) == 1


def test_a_reader_that_takes_nothing_from_others_is_not_asked(server: FakeServer) -> None:
    (reader,) = blocked(server, "XREAD BLOCK 0 STREAMS queue $", 1)

    Client(server)("XADD queue 1-1 f v")

    assert reader.received() != b""
    assert reader.peer.questions == 0


def test_a_pending_entry_is_not_claimed_for_a_client_that_has_gone(server: FakeServer) -> None:
    pusher = Client(server)
    pusher(SETUP, "XADD queue 1-1 f v", "XREADGROUP GROUP g owner STREAMS queue >")
    (gone,) = blocked(server, "XREADGROUP GROUP g c CLAIM 100 BLOCK 0 STREAMS queue >", 1)
    gone.peer.is_there = False

    server.clock.advance(200)
    server.engine.tick()

    assert gone.peer.questions == 1
    assert [row[:2] for row in pusher("XPENDING queue g - + 10")] == [[b"1-1", b"owner"]]


def test_a_request_that_a_pause_held_back_is_not_run_for_a_client_that_has_gone(server: FakeServer) -> None:
    pusher = Client(server)
    pusher("RPUSH queue 1 2", "CLIENT PAUSE 1000 WRITE")
    gone, there = blocked(server, "LPOP queue", 2)
    gone.peer.is_there = False

    pusher("CLIENT UNPAUSE")
    server.engine.tick()

    assert [gone.received(), there.received()] == [b"", b"$1\r\n1\r\n"]
    assert pusher("LRANGE queue 0 -1") == [b"2"]


def test_what_a_client_that_has_gone_sent_behind_is_not_handled(server: FakeServer) -> None:
    (gone,) = blocked(server, "BLPOP queue 0", 1)
    gone.peer.is_there = False

    Client(server)("RPUSH queue 1")

    assert gone.session.blocked is not None
    server.engine.server.disconnect(gone.session)
    assert gone.session.blocked is None


@pytest.mark.parametrize("feed", ["SUBSCRIBE d", "MONITOR"])
def test_a_listener_that_has_become_another_user_is_closed_when_that_one_is_changed(
    dialogue: Dialogue, feed: str
) -> None:
    joe = dialogue.another()
    dialogue("ACL SETUSER joe on nopass +auth")
    joe("HELLO 3")
    joe.raw(feed)
    joe("AUTH joe x")

    dialogue("ACL SETUSER joe +ping")

    assert dialogue.engine.clients.to_close == [joe.session]
