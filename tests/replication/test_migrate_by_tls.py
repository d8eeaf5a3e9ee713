"""MIGRATE to a target that speaks TLS (tls-cluster), of either kind."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.reference_server import NoReference, free_port, reference_server
from tests.support.server_process import running_server
from tests.support.wire import Bulk, Connection, Error, Integer, NullBulk, Simple

CONNECTING = Error(b"IOERR error or timeout connecting to the client")
LOST = Error(b"IOERR error or timeout reading to target instance")
PATIENCE_MS = "20000"


class Papers:
    """Certificates that know each other, and a stranger's."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        self.authority = str(authority.file)
        self.stranger = str(Authority(folder, "stranger").file)
        server, client = authority.sign("server"), authority.sign("client")
        self.of_server = ("--tls-cert-file", str(server.certificate), "--tls-key-file", str(server.key))
        self.of_client = ("--tls-client-cert-file", str(client.certificate), "--tls-client-key-file", str(client.key))
        self.trust = ("--tls-ca-cert-file", self.authority)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def source(papers: Papers) -> Iterator[int]:
    """The port of a server that encrypts what it moves, and shows a client's certificate."""
    flags = ("--tls-cluster", "yes", "--appendonly", "no", *papers.of_server, *papers.of_client, *papers.trust)
    with running_server(*flags) as server:
        yield server.port


@contextmanager
def target(kind: str, papers: Papers) -> Iterator[tuple[int, int]]:
    """The ports of a target, for TLS and without."""
    tls_port = free_port()
    flags = ("--tls-port", str(tls_port), *papers.of_server, *papers.trust)
    if kind == "penstock":
        port = free_port()
        with running_server("--appendonly", "no", "--port", str(port), *flags):
            yield tls_port, port
        return
    try:
        with reference_server(*flags) as port:
            yield tls_port, port
    except NoReference as why:
        pytest.skip(str(why))


class Sides:
    """A client of the source, one of the target, and the target's ports."""

    def __init__(self, here: Connection, there: Connection, tls_port: int, port: int) -> None:
        self.here = here
        self.there = there
        self.tls_port = str(tls_port)
        self.port = str(port)

    def migrate(self, port: str, key: str, *options: str) -> object:
        return self.here.ask("MIGRATE", "127.0.0.1", port, key, "0", PATIENCE_MS, *options)


@pytest.fixture(params=["penstock", "redis"])
def sides(request: pytest.FixtureRequest, source: int, papers: Papers) -> Iterator[Sides]:
    with ExitStack() as stack:
        tls_port, port = stack.enter_context(target(request.param, papers))
        here = stack.enter_context(Connection("127.0.0.1", source, 60.0))
        there = stack.enter_context(Connection("127.0.0.1", port, 60.0))
        here.ask("FLUSHALL")
        assert here.ask("CONFIG", "SET", "tls-ca-cert-file", papers.authority) == Simple(b"OK")
        yield Sides(here, there, tls_port, port)


def test_keys_go_and_stay_with_copy(sides: Sides) -> None:
    for key in "abc":
        sides.here.ask("SET", key, f"value of {key}")

    assert sides.migrate(sides.tls_port, "a") == Simple(b"OK")
    assert sides.migrate(sides.tls_port, "", "COPY", "KEYS", "b", "c") == Simple(b"OK")
    assert sides.there.ask("GET", "c") == Bulk(b"value of c")
    assert sides.there.ask("DBSIZE") == Integer(3)
    assert sides.here.ask("EXISTS", "a", "b", "c") == Integer(2)


def test_users_log_in(sides: Sides) -> None:
    sides.there.ask("ACL", "SETUSER", "mover", "on", ">secret", "~*", "+@all")
    sides.there.ask("ACL", "SETUSER", "default", "off")
    sides.here.ask("SET", "k", "1")
    refused = sides.migrate(sides.tls_port, "k")
    assert isinstance(refused, Error) and b"NOAUTH" in refused.text
    wrong = sides.migrate(sides.tls_port, "k", "AUTH2", "mover", "wrong")
    assert isinstance(wrong, Error) and b"WRONGPASS" in wrong.text

    assert sides.migrate(sides.tls_port, "k", "AUTH2", "mover", "secret") == Simple(b"OK")
    assert sides.here.ask("EXISTS", "k") == Integer(0)


def test_what_cannot_be_reached_by_tls_keeps_the_key_here(sides: Sides) -> None:
    sides.here.ask("SET", "k", "1")

    assert sides.migrate(str(free_port()), "k") == CONNECTING
    assert sides.here.ask("MIGRATE", "127.0.0.1", sides.port, "k", "0", "300") == CONNECTING, "it speaks no TLS there"
    assert sides.here.ask("GET", "k") == Bulk(b"1")
    assert sides.there.ask("GET", "k") == NullBulk()


def test_a_target_that_a_stranger_vouches_for_gets_nothing(sides: Sides, papers: Papers) -> None:
    sides.here.ask("SET", "k", "1")
    assert sides.here.ask("CONFIG", "SET", "tls-ca-cert-file", papers.stranger) == Simple(b"OK")

    assert sides.migrate(sides.tls_port, "k") == CONNECTING
    assert sides.there.ask("GET", "k") == NullBulk()


def test_without_tls_cluster_nothing_is_encrypted(sides: Sides) -> None:
    sides.here.ask("SET", "k", "1")
    sides.here.ask("CONFIG", "SET", "tls-cluster", "no")
    try:
        assert sides.migrate(sides.tls_port, "k") == LOST
        assert sides.migrate(sides.port, "k") == Simple(b"OK")
    finally:
        sides.here.ask("CONFIG", "SET", "tls-cluster", "yes")


def test_tls_cluster_needs_an_authority() -> None:
    with running_server("--appendonly", "no") as server, Connection("127.0.0.1", server.port, 60.0) as client:
        answer = client.ask("CONFIG", "SET", "tls-cluster", "yes")
        assert isinstance(answer, Error) and b"Unable to update TLS configuration" in answer.text
