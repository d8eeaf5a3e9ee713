"""bind-source-addr: from where the master and targets of MIGRATE are connected, as they see it."""

from tests.support.deployments import until
from tests.support.server_process import running_server
from tests.support.wire import Bulk, Connection, Simple

PATIENCE_S = 60.0
SOURCE = "127.0.0.9"


def clients(server: Connection) -> bytes:
    listed = server.ask("CLIENT", "LIST")
    assert isinstance(listed, Bulk)
    return listed.text


def test_a_master_and_a_target_see_the_address_that_was_set() -> None:
    with (
        running_server("--appendonly", "no") as there,
        running_server("--appendonly", "no", "--bind-source-addr", SOURCE) as here,
        Connection("127.0.0.1", there.port, PATIENCE_S) as target,
        Connection("127.0.0.1", here.port, PATIENCE_S) as source,
    ):
        source.ask("SET", "k", "v")
        assert source.ask("MIGRATE", "127.0.0.1", str(there.port), "k", "0", "5000") == Simple(b"OK")
        assert b" addr=127.0.0.9:" in clients(target)

        target.ask("CLIENT", "KILL", "TYPE", "normal")
        assert source.ask("REPLICAOF", "127.0.0.1", str(there.port)) == Simple(b"OK")
        until(
            lambda: all(part in clients(target) for part in (b" addr=127.0.0.9:", b" flags=S ")), "the link is not seen"
        )
