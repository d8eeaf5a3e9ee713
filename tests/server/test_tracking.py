"""Client-side caching over TCP: the order of replies and messages, and redis-py's cache."""

import random
from collections.abc import Iterator

import pytest
import redis
from redis.cache import CacheConfig

from penstock.protocol.reply import bulks as packed
from tests.support.fake_server import FakeServer
from tests.support.seeds import seeds
from tests.support.server_process import ServerProcess, running_server

ROUNDS = 300
INVALIDATE = b">2\r\n$10\r\ninvalidate\r\n"


def pipeline(*lines: str) -> bytes:
    return b"".join(packed(line.encode().split()) for line in lines)


def test_own_changes_of_prefixes_come_once_behind_all_replies_of_a_pipeline(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(pipeline("HELLO 3", "CLIENT TRACKING ON BCAST"))

    told = client.says(pipeline("SET k 1", "SET k 2", "SET j 2", "PING"))

    assert told == b"+OK\r\n+OK\r\n+OK\r\n+PONG\r\n" + INVALIDATE + packed([b"j", b"k"])


def test_own_changes_of_keys_that_were_read_come_behind_each_reply(fake_server: FakeServer) -> None:
    client = fake_server.connect()
    client.says(pipeline("HELLO 3", "CLIENT TRACKING ON"))

    told = client.says(pipeline("GET k", "SET k 1", "GET k", "FLUSHALL", "PING"))

    assert told == b"".join([
        b"_\r\n",
        b"+OK\r\n", INVALIDATE + packed([b"k"]),
        b"$1\r\n1\r\n",
        INVALIDATE + b"_\r\n", b"+OK\r\n",
        b"+PONG\r\n",
    ])  # fmt: skip


def test_no_client_is_notified_of_a_change_before_it_is_logged(fake_server: FakeServer) -> None:
    fake_server.keeps_a_log()
    reader, writer = fake_server.connect(), fake_server.connect()
    reader.says(pipeline("HELLO 3", "CLIENT TRACKING ON", "GET k"))
    fake_server.log_writer.holds = True
    writer.says(pipeline("SET k 1"))

    assert (reader.received(), writer.received()) == (b"", b"")
    fake_server.log_writer.sync()
    assert (reader.received(), writer.received()) == (INVALIDATE + packed([b"k"]), b"+OK\r\n")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--save", "") as process:
        yield process


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_the_cache_of_redis_py_is_never_stale(server: ServerProcess, seed: int) -> None:
    chance = random.Random(seed)
    clients = [
        redis.Redis(port=server.port, protocol=3, cache_config=CacheConfig(), decode_responses=True) for _ in "ab"
    ]
    model: dict[str, str] = {}
    clients[0].flushall()
    for number in range(ROUNDS if seed < 2 else ROUNDS * 10):
        client, key = chance.choice(clients), f"k{chance.randrange(5)}"
        if chance.random() < 0.3:
            client.set(key, str(number))
            model[key] = str(number)
        else:
            assert client.get(key) == model.get(key)
    cache = clients[0].get_cache()
    assert cache is not None
    assert cache.size > 0
    for client in clients:
        client.close()
