"""Faults that find real bugs in a queue's code: each test has the code with the bug, and what the fault shows."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError

import penstock
from tests.support.no_retry import NO_RETRY

MONTH_MS = 31 * 86_400_000


@pytest.fixture
def client(server: penstock.Server) -> Any:
    made: Any = server.client(retry=NO_RETRY)
    made.xgroup_create("jobs", "workers", "0", mkstream=True)
    for number in range(3):
        made.xadd("jobs", {"n": number}, id=f"{number + 1}-0")
    return made


def test_a_worker_that_dies_after_its_read_leaves_entries_pending(server: penstock.Server, client: Any) -> None:
    server.faults.die_after("XREADGROUP")
    worker = server.client()

    with pytest.raises(server.faults.Died):
        try:
            worker.xreadgroup("workers", "alice", {"jobs": ">"}, count=2)
        except Exception:  # a worker's loop, which goes on whatever happens
            worker.xack("jobs", "workers", "1-0")

    assert client.xpending("jobs", "workers")["consumers"] == [{"name": b"alice", "pending": 2}]
    assert client.xreadgroup("workers", "bob", {"jobs": ">"})[0][1] == [(b"3-0", {b"n": b"2"})]
    assert client.info("clients")["connected_clients"] == 1


def test_a_worker_in_an_event_loop_dies_too(server: penstock.Server, client: Any) -> None:
    async def work() -> None:
        await server.async_client().xreadgroup("workers", "alice", {"jobs": ">"}, block=1000)

    server.faults.die_after("xreadgroup")
    with pytest.raises(server.faults.Died):
        asyncio.run(work())

    assert client.xpending("jobs", "workers")["pending"] == 3


def test_a_worker_that_dies_after_a_pop_takes_the_only_copy_along(server: penstock.Server, client: Any) -> None:
    server.faults.die_after("BLPOP")
    client.rpush("list", "only copy")

    with pytest.raises(server.faults.Died):
        server.client().blpop(["list"], 5)

    assert client.llen("list") == 0


@pytest.mark.parametrize(("requests", "done"), [(0, 0), (2, 2), (3, 3)], ids=["before", "in the middle", "behind"])
def test_a_reset_in_a_pipeline_leaves_its_first_requests_done(
    server: penstock.Server, client: Any, requests: int, done: int
) -> None:
    pipeline = client.pipeline(transaction=False)
    for _ in range(4):
        pipeline.incr("n")

    server.faults.reset_after(requests)
    with pytest.raises(RedisConnectionError):
        pipeline.execute()

    assert int(client.get("n") or 0) == done


def test_a_reset_in_a_transaction_leaves_nothing_done(server: penstock.Server, client: Any) -> None:
    pipeline = client.pipeline()
    pipeline.incr("n").incr("n")
    client.ping()

    server.faults.reset_after(3)
    with pytest.raises(RedisConnectionError):
        pipeline.execute()

    assert client.get("n") is None


def test_faults_find_the_same_whether_a_client_is_connected_yet(server: penstock.Server) -> None:
    options: dict[str, Any] = {"retry": None, "db": 1, "client_name": "worker"}

    server.faults.drop_replies()
    with pytest.raises(RedisConnectionError):
        server.client(**options).xadd("jobs", {"number": 1})
    server.faults.reset_after(1)
    with pytest.raises(RedisConnectionError):
        pipeline: Any = server.client(**options).pipeline(transaction=False)
        pipeline.incr("n").incr("n").execute()
    server.clock.stop()
    began = server.clock.now_us()
    with server.faults.slow(seconds=2):
        client = server.client(**options)
        client.ping()

    assert server.clock.now_us() == began + 2_000_000
    assert client.xlen("jobs") == 1
    assert client.get("n") == b"1"


def test_a_reset_counts_requests_that_come_in_pieces(server: penstock.Server, client: Any) -> None:
    client.ping()

    server.faults.reset_after(1)
    client.set("k", "x" * 100_000)
    with pytest.raises(RedisConnectionError):
        client.set("k", "y" * 100_000)

    assert client.strlen("k") == 100_000
    assert client.get("k") == b"x" * 100_000


def test_a_slow_server_lets_a_lock_expire_while_its_holder_works(server: penstock.Server, client: Any) -> None:
    lock = client.lock("lock", timeout=5)
    assert lock.acquire(blocking=False)

    with server.faults.slow(seconds=2):
        client.incr("a")
        client.incr("b")
        client.incr("c")

    assert client.lock("lock").acquire(blocking=False)
    with pytest.raises(redis.exceptions.LockNotOwnedError):
        lock.release()


def test_a_failover_loses_what_the_replica_had_not(server: penstock.Server, client: Any) -> None:
    digest = client.script_load("return 1")
    replica = server.snapshot()
    client.xreadgroup("workers", "alice", {"jobs": ">"})
    client.xack("jobs", "workers", "1-0")

    server.fail_over(replica)

    delivered = client.xreadgroup("workers", "alice", {"jobs": ">"})
    assert [entry for entry, _ in delivered[0][1]] == [b"1-0", b"2-0", b"3-0"]
    with pytest.raises(NoScriptError):
        client.evalsha(digest, 0)


def test_an_unreachable_server_keeps_its_keys(server: penstock.Server, client: Any) -> None:
    with server.faults.unreachable(), pytest.raises(RedisConnectionError):
        client.ping()

    assert client.xlen("jobs") == 3


def test_a_full_disk_refuses_writes_while_reads_go_on(tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as server:
        client = server.client()
        client.set("k", "v")
        with server.faults.failing_log():
            client.set("k", "first")
            with pytest.raises(redis.ResponseError, match="MISCONF"):
                client.set("k", "second")
            assert client.get("k") == b"first"
        assert client.set("k", "third")


def test_a_month_shows_keys_that_never_expire_and_entries_that_stay_pending(
    server: penstock.Server, client: Any
) -> None:
    client.set("session:1", "x", ex=3600)
    client.set("session:2", "x")
    client.xreadgroup("workers", "gone", {"jobs": ">"})

    server.clock.advance(days=31)

    assert client.keys("session:*") == [b"session:2"]
    oldest = client.xpending_range("jobs", "workers", "-", "+", 1)
    assert oldest[0]["time_since_delivered"] >= MONTH_MS
