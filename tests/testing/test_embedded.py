"""A server in the process: what a test of queue code does with it."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError

import penstock
from penstock.errors import UsageError
from tests.support.deployments import until

PATIENCE_S = 60


@pytest.fixture
def client(server: penstock.Server) -> redis.Redis:
    return server.client()


def begun(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A call in a thread of its own, and where its result will be."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    return thread, results


async def value_of(key: str, client: redis.asyncio.Redis) -> object:
    return await client.get(key)


def refusal_of(call: Callable[[], object]) -> str:
    """The error that a call is answered with."""
    with pytest.raises(redis.ResponseError) as refused:
        call()
    return str(refused.value)


def wait_until_blocked(client: redis.Redis) -> None:
    until(lambda: client.info("clients")["blocked_clients"], "it does not block")


async def until_blocked(client: redis.asyncio.Redis) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while (await client.info("clients"))["blocked_clients"] == 0:
        assert time.monotonic() < until_s
        await asyncio.sleep(0)


# -- clients ----------------------------------------------------------------------------------------------------------


def test_a_client_in_the_process_needs_no_port(client: redis.Redis) -> None:
    client.xadd("s", {"f": "v"}, id="1-0")
    client.xgroup_create("s", "g", "0")

    assert client.xreadgroup("g", "alice", {"s": ">"}) == [[b"s", [(b"1-0", {b"f": b"v"})]]]
    assert client.xpending("s", "g")["pending"] == 1


def test_several_clients_see_the_same_keys(server: penstock.Server, client: redis.Redis) -> None:
    client.set("k", "v")

    assert server.client(decode_responses=True).get("k") == "v"
    assert server.client(db=1).get("k") is None


def test_a_pipeline_and_a_transaction_are_answered(client: redis.Redis) -> None:
    plain = client.pipeline(transaction=False)
    plain.incr("n")
    plain.incr("n")
    assert plain.execute() == [1, 2]
    with client.pipeline() as pipe:
        pipe.watch("n")
        client.incr("n")
        pipe.multi()
        pipe.set("n", 0)
        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_a_pipeline_longer_than_a_turn_is_answered_in_whole(client: redis.Redis) -> None:
    pipe = client.pipeline(transaction=False)
    for at in range(5000):
        pipe.rpush("l", at)

    assert pipe.execute()[-1] == 5000


def test_a_message_reaches_a_subscriber(client: redis.Redis) -> None:
    with client.pubsub(ignore_subscribe_messages=True) as pubsub:
        pubsub.subscribe("news")
        pubsub.get_message(timeout=PATIENCE_S)
        nothing = pubsub.get_message()

        client.publish("news", "hello")

        message = pubsub.get_message(timeout=PATIENCE_S)
    assert nothing is None
    assert message is not None and message["data"] == b"hello"


def test_a_lock_of_redis_py_is_held_by_one(client: redis.Redis) -> None:
    with client.lock("lock", timeout=10):
        assert client.lock("lock").acquire(blocking=False) is False
    assert client.lock("lock").acquire(blocking=False) is True


def test_a_blocked_reader_gets_what_another_thread_adds(server: penstock.Server, client: redis.Redis) -> None:
    waiting, found = begun(lambda: server.client().blpop(["l"], PATIENCE_S))
    wait_until_blocked(client)

    client.rpush("l", "x")

    waiting.join(PATIENCE_S)
    assert found == [[b"l", b"x"]] or found == [(b"l", b"x")]


def test_a_socket_timeout_is_redis_pys(server: penstock.Server) -> None:
    with pytest.raises(redis.TimeoutError):
        server.client(socket_timeout=0.01, retry=None).blpop(["nothing"], 0)


def test_a_client_that_was_killed_connects_again(client: redis.Redis) -> None:
    other = client.client_id()
    client.client_kill_filter(_id=str(other), skipme=False)

    assert client.ping() is True


def test_quit_ends_the_connection(server: penstock.Server) -> None:
    connection = server.client().connection_pool.get_connection()
    connection.send_command("QUIT")

    assert connection.read_response() == b"OK"
    with pytest.raises(RedisConnectionError):
        connection.read_response()


# -- asyncio ----------------------------------------------------------------------------------------------------------


async def test_an_asynchronous_client_is_answered(server: penstock.Server) -> None:
    client = server.async_client()

    assert await client.set("k", "v") is True
    assert await client.get("k") == b"v"


async def test_tasks_of_one_loop_wake_each_other(server: penstock.Server) -> None:
    waiting = asyncio.ensure_future(server.async_client().blpop(["l"], 0))
    client = server.async_client()
    await until_blocked(client)

    await client.rpush("l", "x")

    assert list(await waiting or ()) == [b"l", b"x"]


async def test_a_thread_wakes_a_task(server: penstock.Server) -> None:
    waiting = asyncio.ensure_future(server.async_client().blpop(["l"], 0))
    client = server.async_client()
    await until_blocked(client)

    pushing, _ = begun(lambda: server.client().rpush("l", "x"))

    assert list(await waiting or ()) == [b"l", b"x"]
    pushing.join(PATIENCE_S)


def test_two_event_loops_share_a_server(server: penstock.Server) -> None:
    async def once() -> int:
        async with server.async_client() as client:
            return await client.incr("n")

    assert [asyncio.run(once()), asyncio.run(once())] == [1, 2]


async def test_a_server_is_an_asynchronous_context_manager() -> None:
    async with penstock.Server() as server:
        assert await server.async_client().ping() is True


# -- time -------------------------------------------------------------------------------------------------------------


def test_a_key_that_expires_in_a_day_is_gone_when_the_clock_is_turned(
    server: penstock.Server, client: redis.Redis
) -> None:
    client.set("k", "v", ex=86_400)

    server.clock.advance(days=1, seconds=1)

    assert client.get("k") is None


def test_a_wait_of_an_hour_ends_when_the_clock_is_turned(server: penstock.Server, client: redis.Redis) -> None:
    waiting, found = begun(lambda: server.client().blpop(["l"], 3600))
    wait_until_blocked(client)

    server.clock.advance(hours=1, seconds=1)

    waiting.join(PATIENCE_S)
    assert found == [None]


def test_idle_times_and_ids_follow_the_clock(server: penstock.Server, client: redis.Redis) -> None:
    server.clock.stop()
    server.clock.travel(datetime(2100, 1, 1, tzinfo=UTC))
    client.xadd("s", {"f": "v"})
    client.xgroup_create("s", "g", "0")
    client.xreadgroup("g", "alice", {"s": ">"})

    server.clock.advance(minutes=30)

    assert client.time() == (4102444800 + 1800, 0)
    assert client.xpending_range("s", "g", "-", "+", 10)[0]["time_since_delivered"] == 30 * 60 * 1000
    assert client.xautoclaim("s", "g", "bob", min_idle_time=29 * 60 * 1000)[1][0][0] == b"4102444800000-0"


def test_a_stopped_clock_goes_on_from_where_it_stands(server: penstock.Server) -> None:
    server.clock.stop()
    server.clock.advance(hours=1)
    stood = server.clock.now

    server.clock.start()

    assert 0 <= server.clock.now - stood < PATIENCE_S
    assert not server.clock.is_stopped


@pytest.mark.parametrize("turn", [lambda clock: clock.advance(seconds=-1), lambda clock: clock.travel(5.0)])
def test_time_does_not_go_backwards(server: penstock.Server, turn: Callable[[Any], None]) -> None:
    with pytest.raises(UsageError, match="cannot be turned back"):
        turn(server.clock)


def milliseconds_of(entry_id: Any) -> int:
    return int(entry_id.split(b"-")[0])


def test_what_comes_due_while_the_clock_is_turned_is_done_at_its_moment(
    server: penstock.Server, client: redis.Redis
) -> None:
    server.clock.stop()
    added = client.xadd("later", {"number": 1}, id="*")
    client.execute_command("PENSTOCK.POLICY later FORWARD orders AFTER 1000")
    client.set("short", "x", px=500)

    server.clock.advance(minutes=30)

    entries: Any = client.xrange("orders")
    ((moved, _),) = entries
    assert milliseconds_of(moved) == milliseconds_of(added) + 1000
    assert client.exists("short") == 0


def test_penstock_clock_turns_the_same_clock(server: penstock.Server, client: redis.Redis) -> None:
    client.execute_command("PENSTOCK.CLOCK SET 1800000000000")
    server.clock.advance(seconds=1)
    client.execute_command("PENSTOCK.CLOCK ADVANCE 500")

    assert server.clock.is_stopped
    assert (server.clock.now, client.time()) == (1_800_000_001.5, (1_800_000_001, 500_000))


def test_a_subscriber_hears_of_a_key_that_expires_when_the_clock_is_turned() -> None:
    with penstock.Server(notify_keyspace_events="Ex") as server, server.client().pubsub() as pubsub:
        pubsub.subscribe("__keyevent@0__:expired")
        pubsub.get_message(timeout=PATIENCE_S)
        server.client().set("k", "v", ex=60)

        server.clock.advance(minutes=2)

        message = pubsub.get_message(timeout=PATIENCE_S)
    assert message is not None and message["data"] == b"k"


# -- sockets ----------------------------------------------------------------------------------------------------------


def test_the_url_is_a_real_socket(server: penstock.Server, client: redis.Redis) -> None:
    outside = redis.from_url(server.url, socket_timeout=PATIENCE_S)
    client.set("k", "v")
    waiting, found = begun(lambda: redis.from_url(server.url, socket_timeout=PATIENCE_S).blpop(["l"], PATIENCE_S))
    wait_until_blocked(client)

    client.rpush("l", "x")

    waiting.join(PATIENCE_S)
    assert outside.get("k") == b"v"
    assert list(found[0]) == [b"l", b"x"]
    assert outside.info("server")["tcp_port"] == int(server.url.rpartition(":")[2])


def test_the_url_may_be_a_unix_socket(tmp_path: Path) -> None:
    with penstock.Server(unixsocket=tmp_path / "s.sock") as server:
        assert redis.from_url(server.url, socket_timeout=PATIENCE_S).ping() is True
    assert not (tmp_path / "s.sock").exists()


def test_a_client_of_a_socket_is_closed_with_the_server() -> None:
    with penstock.Server() as server:
        outside = redis.from_url(server.url, retry=None, socket_timeout=PATIENCE_S)
        outside.ping()

    with pytest.raises(RedisConnectionError):
        outside.ping()


def test_a_blocked_client_of_a_socket_that_closes_is_given_nothing(
    server: penstock.Server, client: redis.Redis
) -> None:
    outside = redis.from_url(server.url, socket_timeout=PATIENCE_S)
    link = outside.connection_pool.get_connection()
    link.send_command("BLPOP", "queue", 0)
    wait_until_blocked(client)

    with server._loop.lock:  # the server's thread does not learn of the end before the push
        link.disconnect()
        client.rpush("queue", "job")

    assert client.lrange("queue", 0, -1) == [b"job"]


# -- servers ----------------------------------------------------------------------------------------------------------


def test_fifty_servers_share_nothing() -> None:
    servers = [penstock.Server().start() for _ in range(50)]
    some = [server.client() for server in servers[::10]]
    for number, client in enumerate(some):
        client.set("n", number)

    assert [int(client.get("n") or 0) for client in some] == list(range(5))
    for server in servers:
        server.close()


def test_a_server_costs_no_thread_until_a_client_waits(client: redis.Redis) -> None:
    client.set("k", "v")

    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock")] == []


def test_directives_are_keywords() -> None:
    with penstock.Server(compat_version="8.2", maxmemory="1gb", save="60 1", latency_tracking=False) as server:
        shown = server.client().config_get("maxmemory", "save", "latency-tracking")

        assert shown == {"maxmemory": "1073741824", "save": "60 1", "latency-tracking": "no"}
        assert str(server.client().info("server")["redis_version"]).startswith("8.2")


def test_a_directive_that_is_wrong_is_refused() -> None:
    with pytest.raises(UsageError, match="argument must be a memory value"):
        penstock.Server(maxmemory="much")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("maxmemry", r"no keyword 'maxmemry', .* Did you mean 'maxmemory'\?$"),
        ("append_only", "Did you mean 'appendonly'"),
        ("qqqqqqqq", "there is no such directive.$"),
    ],
    ids=["a letter too few", "a line too many", "nothing like it"],
)
def test_a_keyword_that_is_no_directive_is_a_type_error(name: str, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        penstock.Server(None, **{name: 1})


def test_what_a_configuration_file_may_say_is_a_keyword() -> None:
    with penstock.Server(
        user="bob on nopass ~* +ping", rename_command="FLUSHALL GONE", lua_replicate_commands=True
    ) as server:
        client = server.client()

        assert client.acl_users() == ["bob", "default"]
        assert client.execute_command("GONE")


def test_clients_and_the_url_have_the_password_that_the_server_requires(tmp_path: Path) -> None:
    seed = tmp_path / "seed.redis"
    seed.write_text("SET k v\n")
    with penstock.Server(requirepass="p@ss/word") as server:
        assert server.load(seed) == 1
        assert server.client().get("k") == b"v"
        assert asyncio.run(value_of("k", server.async_client())) == b"v"
        assert redis.from_url(server.url).get("k") == b"v"
        with pytest.raises(redis.AuthenticationError):
            server.client(password=None).get("k")

        server.client().config_set("requirepass", "")
        assert server.client().get("k") == b"v"


def test_the_log_is_a_list_of_the_last_lines(server: penstock.Server) -> None:
    client = server.client()
    for number in range(1010):
        client.client_setname(f"n{number}")
        client.connection_pool.disconnect()

    assert len(server.log) == 1000
    assert [line.rpartition(" ")[0] for line in server.log[-2:]] == ["- Accepted", "- Client closed connection"]


def test_a_client_whose_event_loop_was_closed_does_not_stay(server: penstock.Server, client: redis.Redis) -> None:
    kept = [server.async_client() for _ in range(20)]
    for one in kept:
        asyncio.run(value_of("k", one))  # a loop of its own, closed at the end

    assert client.info("clients")["connected_clients"] == 2


def test_a_directory_keeps_what_was_written(tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as server:
        server.client().set("k", "v")
    with penstock.Server(tmp_path) as again:
        assert again.client().get("k") == b"v"


def test_two_servers_do_not_write_into_one_directory(tmp_path: Path) -> None:
    with penstock.Server(tmp_path), pytest.raises(UsageError):
        penstock.Server(tmp_path).start()


def test_a_relative_directory_is_the_one_that_was_meant_when_the_server_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    server = penstock.Server("data")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with server, server.client() as client:
        client.set("k", "v")
        server.restart()

        assert client.get("k") == b"v"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_server_in_memory_writes_no_file(
    client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    client.set("k", "v")

    with pytest.raises(redis.ResponseError):
        client.save()
    with pytest.raises(redis.ResponseError):
        client.config_set("appendonly", "yes")
    assert client.get("k") == b"v"
    assert list(tmp_path.iterdir()) == []


def test_after_the_end_clients_are_refused(server: penstock.Server, client: redis.Redis) -> None:
    client.ping()
    server.close()

    with pytest.raises(RedisConnectionError):
        client.ping()
    with pytest.raises(UsageError, match="not running"):
        server.client()


def test_a_blocked_client_is_told_when_the_server_ends() -> None:
    def wait(client: redis.Redis) -> str:
        with pytest.raises(RedisConnectionError) as ended:
            client.blpop(["l"], 0)
        return str(ended.value)

    with penstock.Server() as server:
        blocked = server.client(retry=None)
        waiting, found = begun(lambda: wait(blocked))
        wait_until_blocked(server.client())
    waiting.join(PATIENCE_S)

    assert found == ["Connection closed by server."]


def test_a_script_that_takes_long_keeps_others_busy_and_is_killed(server: penstock.Server) -> None:
    client = server.client()
    client.config_set("busy-reply-threshold", 1)
    waiting, found = begun(lambda: refusal_of(lambda: server.client().eval("while true do end", 0)))
    busy = ""
    until_s = time.monotonic() + PATIENCE_S
    while not busy and time.monotonic() < until_s:
        try:
            client.ping()
        except redis.ResponseError as refusal:
            busy = str(refusal)

    assert client.script_kill()
    waiting.join(PATIENCE_S)
    assert "Script killed by user" in found[0]
    assert "busy running a script" in busy


def test_no_host_name_is_looked_up(server: penstock.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    original = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: asked.append(host) or original(host, *rest))

    server.client().ping()

    assert set(asked) <= {"127.0.0.1"}
