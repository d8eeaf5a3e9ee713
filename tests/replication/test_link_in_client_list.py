"""The link to a master as a client of its replica: in CLIENT LIST, closed by CLIENT KILL, and made again."""

import re
from collections.abc import Iterator

import pytest

from tests.support.deployments import until
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Bulk, Connection, Integer, Simple

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def master() -> Iterator[ServerProcess]:
    with running_server("--appendonly", "no", "--repl-diskless-sync-delay", "0") as server:
        yield server


@pytest.fixture
def replica(master: ServerProcess) -> Iterator[Connection]:
    with (
        running_server("--appendonly", "no", "--replicaof", f"127.0.0.1 {master.port}") as server,
        Connection("127.0.0.1", server.port, PATIENCE_S) as client,
    ):
        yield client


def text_of(client: Connection, *words: str) -> str:
    shown = client.ask(*words)
    assert isinstance(shown, Bulk)
    return shown.text.decode()


def link_other_than(replica: Connection, id: str) -> str:
    """The link's line in CLIENT LIST, once there is one with another id."""
    shown = ""

    def is_there() -> bool:
        nonlocal shown
        shown = text_of(replica, "CLIENT", "LIST", "TYPE", "master")
        return bool(shown) and id_of(shown) != id

    until(is_there, "there is no other link to the master")
    return shown


def id_of(line: str) -> str:
    return line.split()[0].removeprefix("id=")


@pytest.mark.parametrize("ways", [["ADDR", "{address}"], ["TYPE", "master"], ["ID", "{id}"]], ids=lambda ways: ways[0])
def test_a_killed_link_is_made_again(replica: Connection, master: ServerProcess, ways: list[str]) -> None:
    shown = link_other_than(replica, "")
    address = f"127.0.0.1:{master.port}"
    assert re.fullmatch(rf"id=\d+ addr={address} laddr=127\.0\.0\.1:\d+ .* flags=M .* user=\(superuser\) .*\n", shown)

    assert replica.ask("CLIENT", "KILL", *[way.format(address=address, id=id_of(shown)) for way in ways]) == Integer(1)

    assert f" addr={address} " in link_other_than(replica, id_of(shown))


def test_the_old_form_kills_the_link_by_its_address(replica: Connection, master: ServerProcess) -> None:
    shown = link_other_than(replica, "")

    assert replica.ask("CLIENT", "KILL", f"127.0.0.1:{master.port}") == Simple(b"OK")

    assert link_other_than(replica, id_of(shown))


def test_a_master_has_no_link_in_its_list(replica: Connection) -> None:
    link_other_than(replica, "")
    assert "connected_clients:2" in text_of(replica, "INFO", "clients")

    replica.ask("REPLICAOF", "NO", "ONE")
    until(lambda: not text_of(replica, "CLIENT", "LIST", "TYPE", "master"), "the link to the master stays")
    assert "connected_clients:1" in text_of(replica, "INFO", "clients")
