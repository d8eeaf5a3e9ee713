"""fakeredis's names over embedded servers: what a suite sees that changed its import."""

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest
import redis
import redis.asyncio

from penstock.testing import fake as fakeredis
from penstock.testing.fake import FakeAsyncRedis, FakeRedis, FakeServer, FakeStrictRedis, TcpFakeServer, aioredis
from tests.support.no_retry import NO_RETRY


def pairs() -> list[Any]:
    """Two clients, and whether they meet on one server."""
    server = FakeServer()
    return [
        pytest.param(FakeRedis(), FakeRedis(), False, id="neither names a place"),
        pytest.param(FakeRedis(server=server), FakeStrictRedis(server=server, db=0), True, id="one server"),
        pytest.param(FakeRedis(server=server), FakeRedis(server=FakeServer()), False, id="two servers"),
        pytest.param(FakeRedis(host="a", port=1), FakeRedis("a", 1), True, id="one host and port"),
        pytest.param(FakeRedis(host="a", port=1), FakeRedis(host="a", port=2), False, id="another port"),
        pytest.param(FakeRedis(port=1), FakeRedis(port=1), False, id="a port without a host"),
        pytest.param(FakeRedis(host="a", port=1), FakeRedis.from_url("redis://a:1"), True, id="a host and its URL"),
        pytest.param(FakeRedis(host="a", port=1), FakeRedis.from_url("redis://a:1/1"), False, id="another database"),
        pytest.param(
            FakeRedis(server=server), FakeRedis.from_url("rediss://c", server=server), True, id="a URL's server"
        ),
        pytest.param(
            FakeRedis(host="localhost"),
            redis.Redis(connection_pool=redis.ConnectionPool(connection_class=fakeredis.FakeConnection)),
            True,
            id="a pool of ours",
        ),
        pytest.param(FakeRedis(host="b", ssl=True, password="p"), FakeRedis(host="b"), True, id="TLS and a password"),
    ]


@pytest.mark.parametrize(("first", "second", "meet"), pairs())
def test_clients_meet_where_those_of_fakeredis_do(first: redis.Redis, second: redis.Redis, meet: bool) -> None:
    first.flushall()
    first.set("k", "v")

    assert second.exists("k") == meet


async def value_of(client: redis.asyncio.Redis) -> object:
    value = await client.get("k")
    await client.aclose()
    return value


@pytest.mark.parametrize(
    "client",
    [
        lambda server: FakeAsyncRedis(server=server),
        lambda server: aioredis.FakeRedis(server=server),
        lambda server: FakeAsyncRedis.from_url("redis://x", server=server),
        lambda server: FakeAsyncRedis(host="d", port=6379),
        lambda server: redis.asyncio.Redis.from_pool(
            redis.asyncio.ConnectionPool(connection_class=fakeredis.FakeAsyncConnection, host="d")
        ),
    ],
    ids=["FakeAsyncRedis", "aioredis.FakeRedis", "from_url", "a place", "a pool of ours"],
)
def test_asynchronous_clients_meet_blocking_ones(client: Any) -> None:
    server = FakeServer()
    FakeRedis(server=server).set("k", "v")
    FakeRedis(host="d").set("k", "v")

    assert asyncio.run(value_of(client(server))) == b"v"


def test_a_server_that_is_not_connected_refuses_and_keeps_its_keys() -> None:
    server = FakeServer()
    client = FakeRedis(server=server)
    client.set("k", "v")

    server.connected = False
    with pytest.raises(redis.ConnectionError):
        client.get("k")
    with pytest.raises(redis.ConnectionError):
        asyncio.run(value_of(FakeAsyncRedis(server=server)))

    server.connected = True
    assert server.connected
    assert client.get("k") == b"v"


@pytest.mark.parametrize(
    "client",
    [
        FakeRedis(),
        FakeRedis(host="e"),
        FakeRedis.from_url("redis://e"),
        FakeAsyncRedis(),
        FakeAsyncRedis.from_url("redis://e"),
    ],
    ids=["FakeRedis", "a place", "from_url", "FakeAsyncRedis", "FakeAsyncRedis.from_url"],
)
def test_a_client_that_is_refused_does_not_try_again(client: Any) -> None:
    made = client.connection_pool.make_connection()

    assert made.retry.get_retries() == 0  # redis-py would sleep for seconds
    assert client.auto_close_connection_pool


def test_a_url_names_a_version_and_a_type_as_the_constructor_does() -> None:
    client = FakeRedis.from_url("redis://f", version="8.2", server_type="redis", lua_modules=None)

    assert client.info("server")["redis_version"].startswith("8.2")


@pytest.mark.parametrize(
    ("version", "server_type", "shown"),
    [
        ((6,), "redis", "7.2"),
        ((7,), "redis", "7.2"),
        ("8.2", "redis", "8.2"),
        (8, "redis", "8."),
        ((8, 4, 1), "redis", "8.4"),
        ((8, 11), "redis", "8.10"),
        (99, "redis", "8.12"),
        ((7, 2), "valkey", "7.2.4"),
    ],
)
def test_a_version_is_the_nearest_that_is_there(version: Any, server_type: str, shown: str) -> None:
    client = FakeRedis(version=version, server_type=server_type)

    assert str(client.info("server")["redis_version"]).startswith(shown)


def test_a_type_of_server_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="Unsupported server type: redsi"):
        FakeRedis(server_type="redsi")


def test_clients_of_other_versions_do_not_meet() -> None:
    FakeRedis(host="h", version="8.2").set("k", "v")

    assert FakeRedis(host="h", version="8.2").get("k") == b"v"
    assert FakeRedis(host="h", version="7.2").get("k") is None


def test_a_client_may_begin_without_a_connection() -> None:
    client = FakeRedis(connected=False)

    with pytest.raises(redis.ConnectionError):
        client.ping()


def test_options_are_redis_pys() -> None:
    client = FakeRedis(decode_responses=True, db=2, single_connection_client=True, protocol=3, client_name="x")
    client.set("k", "v")

    assert client.get("k") == "v"
    assert {name: client.client_info()[name] for name in ("db", "name", "resp")} == {"db": 2, "name": "x", "resp": "3"}


def test_a_required_password_is_asked_for() -> None:
    server = FakeServer(config={b"requirepass": b"secret"})

    assert FakeRedis(server=server, password="secret").ping()
    with pytest.raises(redis.AuthenticationError):
        FakeRedis(server=server, password="wrong").ping()
    with pytest.raises(redis.AuthenticationError):
        FakeRedis(server=server).ping()


USERS = {  # rules behind ACL SETUSER
    "open": "on nopass ~a* +@all", "closed": "on >pw ~a* +@all", "off": "off nopass ~* +@all",
    "gone": "on nopass ~* +@all",
}  # fmt: skip
LOGINS: list[dict[str, Any]] = [
    {"username": name, "password": password}
    for name in (*USERS, "unknown", "default")
    for password in ("pw", "x", None)
]


def whoami(client: Any, secret: str) -> str:
    """The user that a client acts as, and whether it may read a key; or why it is refused."""
    try:
        name = client.acl_whoami()
    except redis.AuthenticationError as refusal:
        return str(refusal)
    try:
        return f"{name} reads {client.get(secret)}"
    except redis.exceptions.NoPermissionError as refusal:
        return f"{name}: {refusal}"


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("login", LOGINS, ids=str)
def test_a_client_has_the_rights_of_its_user_as_over_tcp(login: dict[str, Any], protocol: int) -> None:
    server = FakeServer()
    options: dict[str, Any] = {"protocol": protocol, "decode_responses": True} | login
    with TcpFakeServer(("127.0.0.1", 0)) as tcp:
        host, port = tcp.server_address
        there = redis.Redis(host, port, retry=NO_RETRY, **options)
        here = FakeRedis(server=server, **options)
        for keeper in (redis.Redis(host, port), FakeRedis(server=server)):
            for name, rules in USERS.items():
                keeper.execute_command("ACL", "SETUSER", name, *rules.split())
            keeper.set("secret", "s")
            FakeRedis(server=server, username="gone").ping()
            keeper.acl_deluser("gone")
            keeper.close()

        assert whoami(here, "secret") == whoami(there, "secret")
        here.close()
        there.close()


def test_a_server_lives_as_long_as_what_refers_to_it() -> None:
    client = FakeRedis()
    kept = weakref.ref(client.connection_pool.connection_kwargs["server"])
    pool = client.connection_pool
    del client
    gc.collect()
    assert redis.Redis(connection_pool=pool).ping()

    del pool
    gc.collect()
    assert kept() is None


def test_a_tcp_server_serves_other_clients() -> None:
    with TcpFakeServer(("127.0.0.1", 0), server_type="valkey") as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        host, port = server.server_address
        with redis.Redis(host=host, port=port) as client:
            assert client.set("k", "v")
            assert client.info("server")["server_name"] == "valkey"
        server.shutdown()
        thread.join(60)

    assert not thread.is_alive()
    with pytest.raises(redis.ConnectionError):
        redis.Redis(host=host, port=port, retry=NO_RETRY).ping()


def test_clients_of_valkey_py_reach_a_server_that_passes_for_valkey() -> None:
    valkey = pytest.importorskip("valkey")
    server = FakeServer(server_type="valkey")
    client = fakeredis.FakeValkey(server=server)
    listener = client.pubsub()
    listener.subscribe("c")
    client.publish("c", "1")
    client.publish("c", "2")

    assert isinstance(client, valkey.Valkey)
    assert client.info("server")["server_name"] == "valkey"
    assert [message["data"] for message in iter(listener.get_message, None)] == [1, b"1", b"2"]
    assert asyncio.run(fakeredis.FakeAsyncValkey(server=server).execute_command("PUBSUB", "NUMSUB", "c")) == [b"c", 1]
    server.connected = False
    with pytest.raises(valkey.ConnectionError):
        client.ping()


def test_clients_of_the_same_place_but_of_another_type_do_not_meet() -> None:
    pytest.importorskip("valkey")
    fakeredis.FakeValkey.from_url("valkey://g").set("k", "v")

    assert fakeredis.FakeValkey(host="g").get("k") == b"v"
    assert FakeRedis(host="g").get("k") is None


def test_keys_expire_by_the_time_that_a_test_has_put_in_place_of_the_processs(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeRedis()
    client.set("k", "v", ex=60)
    client.set("kept", "v")
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + 61)  # as freezegun does; time_machine replaces the function itself
    assert client.exists("k", "kept") == 1
    assert client.time()[0] == int(now + 61)
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    assert client.time() == (1000, 0)


def test_a_read_that_blocks_ends_while_the_time_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeRedis()

    monkeypatch.setattr(time, "time", lambda: 1000.0)
    assert client.blpop("none", timeout=0.01) is None
