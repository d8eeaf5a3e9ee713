"""Scripts over the network: redis-py's own locks and scripts, and a script that does not end."""

import threading
from collections.abc import Iterator

import pytest

from tests.serverproc import ServerProcess, running_server

redis = pytest.importorskip("redis")
pytest.importorskip("lupa")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--busy-reply-threshold", "50") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[object]:
    with redis.Redis(port=server.port) as one:
        yield one


def test_redis_py_takes_extends_and_releases_its_lock(client):
    with client.lock("lock", timeout=5) as lock:
        assert lock.extend(10)
        assert lock.reacquire()
        assert client.pttl("lock") > 4000

    assert client.exists("lock") == 0


def test_redis_py_registers_a_script(client):
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")

    assert [add(["count"], [3]), add(["count"], [4])] == [3, 7]


def test_an_endless_script_is_killed_by_somebody_who_connects_meanwhile(server, client):
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(refusal(client.eval, "while true do end", 0)))
    asking.start()
    with redis.Redis(port=server.port, retry=None) as other:
        while refusal(other.ping) == "":
            pass
        assert other.script_kill()
    asking.join(20)

    assert said[0].startswith("Script killed by user with SCRIPT KILL...")
    assert client.ping()


def refusal(ask: object, *words: object) -> str:
    """What the server refused it with; empty where it did not."""
    try:
        ask(*words)
    except redis.ResponseError as refused:
        return str(refused)
    return ""
