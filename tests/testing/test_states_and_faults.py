"""Embedded servers go back to snapshots, take seed files, show what was asked, and fail when a test says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError

import penstock
from penstock import cli
from penstock.errors import UsageError
from penstock.testing.trace import NO_REPLY
from tests.support.late_script import LIBRARY

SEED = """\
# two orders and their group
XADD orders 1-0 item "a \\"book\\""
XADD orders 2-0 item pen

XGROUP CREATE orders workers 0
"""


@pytest.fixture
def client(server: penstock.Server) -> redis.Redis:
    return server.client(retry=None)


# -- the log ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[penstock.Server]:
    """A server that keeps its log on a directory."""
    with penstock.Server(tmp_path, appendfsync="always") as server:
        yield server


def test_always_closes_the_connection_of_a_change_that_the_log_does_not_take(logged: penstock.Server) -> None:
    client = logged.client(retry=None)
    client.set("before", 1)

    with logged.faults.failing_log():
        with pytest.raises(RedisConnectionError):
            client.set("meanwhile", 1)
        with pytest.raises(
            redis.ResponseError, match="MISCONF Errors writing to the AOF file: No space left on device"
        ):
            client.set("refused", 1)
        assert client.get("before") == b"1"
    client.set("after", 1)

    logged.restart()
    assert client.mget("before", "meanwhile", "refused", "after") == [b"1", b"1", None, b"1"]


def test_everysec_confirms_a_change_that_the_log_does_not_take_yet(tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as server:
        client = server.client(retry=None)
        with server.faults.failing_log():
            assert client.set("meanwhile", 1)
            with pytest.raises(redis.ResponseError, match="MISCONF"):
                client.set("refused", 1)

        server.restart()
        assert client.mget("meanwhile", "refused") == [b"1", None]


def test_the_last_write_is_gone_after_a_crash_in_the_middle_of_it(logged: penstock.Server) -> None:
    client = logged.client()
    client.set("first", 1)
    client.set("second", 1)

    logged.restart(lost_bytes=3)

    assert (client.get("first"), client.get("second")) == (b"1", None)


def test_a_server_in_memory_has_no_log_that_could_fail(server: penstock.Server) -> None:
    with pytest.raises(UsageError, match="failing_log needs a server on a directory"), server.faults.failing_log():
        pass
    with pytest.raises(UsageError, match="there is no log whose end could be lost"):
        server.restart(lost_bytes=1)


# -- states -----------------------------------------------------------------------------------------------------------


def test_a_server_goes_back_to_a_snapshot_as_often_as_one_likes(server: penstock.Server, client: redis.Redis) -> None:
    server.clock.stop()
    client.xadd("s", {"f": "v"}, id="1-0")
    client.xgroup_create("s", "g", "0")
    client.set("k", "v", ex=1000)
    client.hset("h", "field", "value")
    server.client(db=3).rpush("l", "x")
    snapshot = server.snapshot()

    for _ in range(2):
        client.xreadgroup("g", "alice", {"s": ">"})
        client.delete("k", "h")
        client.set("more", "v")
        server.restore(snapshot)

        assert client.xinfo_groups("s")[0]["pending"] == 0
        assert sorted(client.keys()) == [b"h", b"k", b"s"]
        assert client.ttl("k") == 1000
        assert server.client(db=3).lrange("l", 0, -1) == [b"x"]


@pytest.mark.parametrize(
    "change",
    [
        "ACL SETUSER default -flushall -function", "ACL SETUSER default off", "ACL SETUSER default resetkeys",
        "CONFIG SET requirepass secret", "CONFIG SET maxmemory 1", "CLIENT PAUSE 100000 ALL",
    ],
)  # fmt: skip
def test_a_server_goes_back_to_a_snapshot_whatever_clients_may_do(server: penstock.Server, change: str) -> None:
    server.client().acl_setuser("keeper", enabled=True, nopass=True, commands=["+@all"], keys=["*"])
    keeper = server.client(username="keeper")
    keeper.execute_command("FUNCTION", "LOAD", LIBRARY)
    snapshot = server.snapshot()
    keeper.set("k", "v")
    keeper.execute_command(*change.split())

    server.restore(snapshot)

    assert [len(db) for db in server.engine.keyspace.databases] == [0] * 16
    assert list(server.engine.keyspace.libraries) == [b"lib"]


def test_a_server_goes_back_to_a_snapshot_where_clients_have_no_flushall() -> None:
    with penstock.Server(rename_command="FLUSHALL gone") as server:
        snapshot = server.snapshot()
        server.client().set("k", "v")
        server.restore(snapshot)
        assert not server.client().dbsize()


def test_a_watching_client_learns_that_the_keys_were_replaced(server: penstock.Server, client: redis.Redis) -> None:
    client.set("k", "v")
    snapshot = server.snapshot()
    with client.pipeline() as pipe:
        pipe.watch("k")
        server.restore(snapshot)
        pipe.multi()
        pipe.set("k", "w")

        with pytest.raises(redis.WatchError):
            pipe.execute()


def test_a_server_with_a_log_is_not_taken_back(tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as server, pytest.raises(UsageError, match="restore needs a server in memory"):
        server.restore(server.snapshot())


def test_a_seed_file_is_loaded(server: penstock.Server, client: redis.Redis, tmp_path: Path) -> None:
    (tmp_path / "seed.redis").write_text(SEED)

    assert server.load(tmp_path / "seed.redis") == 3
    assert client.xrange("orders", count=1) == [(b"1-0", {b"item": b'a "book"'})]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SET k v\nINCR k\n", "line 2: INCR k: ERR value is not an integer"),
        ('SET k "v\n', "line 1: a quote is not closed"),
    ],
    ids=["an error", "a quote"],
)
def test_a_line_that_fails_is_named(server: penstock.Server, tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "seed.redis").write_text(text)

    with pytest.raises(UsageError, match=error):
        server.load(tmp_path / "seed.redis")


def test_the_command_seed_fills_a_server(
    server: penstock.Server, client: redis.Redis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "seed.redis").write_text(SEED)
    client.config_set("requirepass", "secret")

    assert cli.main(["seed", str(tmp_path / "seed.redis"), server.url + "/2"]) == 0
    assert capsys.readouterr().out == "3 requests\n"
    assert server.client(db=2, password="secret").xlen("orders") == 2


def test_the_command_seed_shows_how_far_a_long_file_is(
    server: penstock.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "seed.redis").write_text("RPUSH jobs x\n" * 2500)

    assert cli.main(["seed", str(tmp_path / "seed.redis"), server.url]) == 0
    assert capsys.readouterr().err.startswith("40% of 2500 requests\n")


@pytest.mark.parametrize(
    ("url", "error"),
    [("http://localhost", "http://localhost: redis://"), ("redis://127.0.0.1:1", "127.0.0.1:1 cannot be reached")],
)
def test_the_command_seed_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, error: str
) -> None:
    (tmp_path / "seed.redis").write_text(SEED)

    assert cli.main(["seed", str(tmp_path / "seed.redis"), url]) == 1
    assert error in capsys.readouterr().err


# -- trace ------------------------------------------------------------------------------------------------------------


def test_the_trace_has_requests_and_replies(server: penstock.Server, client: redis.Redis) -> None:
    client.ping()
    server.trace.clear()

    client.set("k", "v")
    with pytest.raises(redis.ResponseError):
        client.incr("k")

    first, second = server.trace.exchanges
    assert (first.request, first.reply) == ((b"SET", b"k", b"v"), b"OK")
    assert second.request == (b"INCRBY", b"k", b"1")
    assert str(second).endswith("'INCRBY' 'k' '1' -> ReplyError('ERR value is not an integer or out of range')")


def test_the_trace_shows_which_clients_wait(server: penstock.Server, client: redis.Redis) -> None:
    link = server.client().connection_pool.get_connection()
    link.send_command("BLPOP", "l", 0)

    assert [one.request for one in server.trace.exchanges if one.reply is NO_REPLY] == [(b"BLPOP", b"l", b"0")]


def test_an_inline_request_is_answered_without_a_trace(server: penstock.Server) -> None:
    link = server.client().connection_pool.get_connection()
    link.send_packed_command([b"PING\r\n"])

    assert link.read_response() == b"PONG"


# -- faults -----------------------------------------------------------------------------------------------------------


def test_a_lost_reply_leaves_the_request_done(server: penstock.Server, client: redis.Redis) -> None:
    client.set("n", 1)
    server.faults.drop_replies(1)

    with pytest.raises(RedisConnectionError):
        client.incr("n")

    assert client.get("n") == b"2"


def test_delayed_replies_arrive_in_the_end(server: penstock.Server, client: redis.Redis) -> None:
    impatient = server.client(socket_timeout=0.01, retry=None)
    impatient.ping()
    client.ping()
    connection = client.connection_pool.get_connection()

    with server.faults.delayed_replies():
        connection.send_command("PING")
        with pytest.raises(redis.TimeoutError):
            impatient.ping()

    assert connection.read_response() == b"PONG"
    assert impatient.ping() is True


def test_closed_connections_are_seen_by_every_client(server: penstock.Server, client: redis.Redis) -> None:
    connection = client.connection_pool.get_connection()
    connection.send_command("BLPOP", "l", 0)

    server.faults.close_connections()

    with pytest.raises(RedisConnectionError):
        connection.read_response()
    assert client.ping() is True


def test_refused_writes_are_misconf(server: penstock.Server, client: redis.Redis) -> None:
    with server.faults.refused_writes():
        with pytest.raises(redis.ResponseError, match="MISCONF"):
            client.set("k", "v")
        assert client.get("k") is None

    assert client.set("k", "v") is True


def test_a_full_memory_refuses_writes(server: penstock.Server, client: redis.Redis) -> None:
    client.set("k", "v")
    with server.faults.full_memory():
        with pytest.raises(redis.OutOfMemoryError):
            client.set("k", "w")
        assert client.get("k") == b"v"

    assert client.set("k", "w") is True


def test_the_memory_of_the_test_does_not_count_as_the_servers() -> None:
    with penstock.Server(maxmemory="2mb") as server:  # no process of Python is so small
        client = server.client()
        for half in range(2):
            client.mset({f"k{half}{number}": b"x" * 100_000 for number in range(10)})
            server.clock.advance(seconds=60)  # what is used is read ten times a second, seldom on a busy machine

        with pytest.raises(redis.OutOfMemoryError):
            client.set("k", "v")
        client.flushall()
        server.clock.advance(seconds=60)
        assert client.set("k", "v") is True
        assert client.info("memory")["used_memory"] < 1_000_000


def test_a_policy_that_would_delete_every_key_is_not_filled() -> None:
    with penstock.Server(maxmemory_policy="allkeys-lru") as server:
        fault = server.faults.full_memory()
        with pytest.raises(UsageError, match="noeviction"):
            fault.__enter__()


def test_a_restart_keeps_what_is_in_the_directory(tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as server:
        client = server.client()
        client.set("k", "v")
        server.clock.advance(hours=1)

        server.restart()

        assert client.get("k") == b"v"
        assert server.client().get("k") == b"v"


def test_a_restart_in_memory_forgets(server: penstock.Server, client: redis.Redis) -> None:
    client.set("k", "v")

    server.restart()

    assert server.client().get("k") is None


def test_a_restart_has_the_directives_of_the_start_as_that_of_a_process(tmp_path: Path) -> None:
    with penstock.Server(tmp_path, maxmemory="1gb") as server:
        client = server.client()
        client.config_set("maxmemory", "2gb")
        client.config_set("appendfsync", "always")

        server.restart()

        assert client.config_get("maxmemory", "appendfsync") == {"maxmemory": "1073741824", "appendfsync": "everysec"}


def test_a_reset_server_is_new_and_its_clients_connect_again(server: penstock.Server, client: redis.Redis) -> None:
    url, began = server.url, server.clock.now
    client.set("k", "v")
    server.clock.advance(days=1)
    server.clock.stop()

    server.reset()

    assert (client.get("k"), client.info("stats")["total_connections_received"]) == (None, 1)
    assert redis.from_url(url).get("k") is None
    assert began <= server.clock.now < began + 3600
    assert [exchange.request[1] for exchange in server.trace.exchanges if exchange.request[0] == b"SET"] == []


def test_a_reset_server_may_have_been_shut_down(server: penstock.Server, client: redis.Redis) -> None:
    client.shutdown()

    server.reset()

    assert client.ping()


def test_a_server_on_a_directory_is_not_reset(logged: penstock.Server) -> None:
    with pytest.raises(UsageError, match="reset needs a server in memory"):
        logged.reset()
