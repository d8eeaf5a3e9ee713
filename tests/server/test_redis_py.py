"""redis-py with no special options: sync and asyncio, both protocols, its own parsers and hiredis."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from redis._parsers import (
    _AsyncHiredisParser,
    _AsyncRESP2Parser,
    _AsyncRESP3Parser,
    _HiredisParser,
    _RESP2Parser,
    _RESP3Parser,
)
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.no_retry import NO_RETRY
from tests.support.server_process import ServerProcess, running_server

SYNC = [(2, _HiredisParser), (3, _HiredisParser), (2, _RESP2Parser), (3, _RESP3Parser)]
ASYNC = [(2, _AsyncHiredisParser), (3, _AsyncHiredisParser), (2, _AsyncRESP2Parser), (3, _AsyncRESP3Parser)]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--save", "") as process:
        yield process


def streams_of(answer: Any) -> dict[str, list[Any]]:
    """What a read answers, whichever of its shapes the protocol and the client's version give it."""
    pairs = answer.items() if isinstance(answer, dict) else answer
    found: dict[str, list[Any]] = {}
    for name, entries in pairs or ():
        nested = (
            bool(entries) and isinstance(entries[0], list) and bool(entries[0]) and isinstance(entries[0][0], tuple)
        )
        found[name] = entries[0] if nested else entries
    return found


@pytest.mark.parametrize(("protocol", "parser"), SYNC)
def test_a_queue_lives_its_life(server: ServerProcess, protocol: int, parser: type) -> None:
    pool = redis.ConnectionPool(port=server.port, protocol=protocol, parser_class=parser, decode_responses=True)
    client = redis.Redis(connection_pool=pool)
    client.flushall()
    assert client.xgroup_create("jobs", "workers", "0", mkstream=True)

    with client.pipeline() as pipeline:
        for number in range(10):
            pipeline.xadd("jobs", {"n": str(number)})
        added = pipeline.execute()
    read = streams_of(client.xreadgroup("workers", "alice", {"jobs": ">"}, count=4))
    assert [entry_id for entry_id, _ in read["jobs"]] == added[:4]
    assert client.xack("jobs", "workers", *added[:2]) == 2
    assert client.execute_command("XNACK", "jobs", "workers", "FAIL", "IDS", 1, added[2]) == 1
    claimed = client.xclaim("jobs", "workers", "bob", 3_600_000, [added[2]])
    assert claimed == [(added[2], {"n": "2"})]
    taken = client.xautoclaim("jobs", "workers", "bob", 0, "0-0", justid=True)
    assert set(added[2:4]) <= {str(one) for part in taken for one in (part if isinstance(part, list) else [part])}
    pending = client.xpending("jobs", "workers")
    assert (pending["pending"], pending["min"], pending["max"]) == (2, added[2], added[3])
    assert [row["consumer"] for row in client.xpending_range("jobs", "workers", "-", "+", 10)] == ["bob", "bob"]
    assert client.xinfo_groups("jobs")[0]["lag"] == 6
    assert client.xinfo_stream("jobs", full=True)["length"] == 10
    assert {row["name"] for row in client.xinfo_consumers("jobs", "workers")} == {"alice", "bob"}
    assert (
        streams_of(client.xreadgroup("workers", "carol", {"jobs": ">"}, block=20, noack=True))["jobs"][0][0] == added[4]
    )
    assert not client.xreadgroup("workers", "carol", {"jobs": ">"}, block=20)
    assert client.xtrim("jobs", maxlen=0) == 10
    pool.disconnect()


@pytest.mark.parametrize(("protocol", "parser"), ASYNC)
def test_a_waiting_task_is_woken(server: ServerProcess, protocol: int, parser: type) -> None:
    async def life() -> None:
        pool = redis.asyncio.ConnectionPool(
            port=server.port, protocol=protocol, parser_class=parser, decode_responses=True
        )
        client = redis.asyncio.Redis(connection_pool=pool)
        await client.flushall()
        await client.xgroup_create("jobs", "workers", "0", mkstream=True)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(
            client.xreadgroup("workers", "alice", {"jobs": ">"}, count=10, block=20_000)
        )
        while (await client.info("clients"))["blocked_clients"] == 0:
            pass
        added = await client.xadd("jobs", {"n": "1"})
        assert streams_of(await waiting)["jobs"][0][0] == added
        assert await client.xack("jobs", "workers", added) == 1
        await client.aclose()
        await pool.disconnect()

    asyncio.run(life())


def test_a_user_is_made_logs_in_and_is_shown_out(server: ServerProcess) -> None:
    admin = redis.Redis(port=server.port, decode_responses=True)
    admin.acl_setuser(
        "amy", enabled=True, passwords=["+pw"], commands=["+set", "+client|id"], categories=["+@read"], keys=["a:*"]
    )
    once_more = Retry(NoBackoff(), 1)
    amy = redis.Redis(port=server.port, username="amy", password="pw", decode_responses=True, retry=once_more)

    assert amy.set("a:1", "x")
    with pytest.raises(redis.exceptions.NoPermissionError, match="No permissions to access a key"):
        amy.get("b")
    with pytest.raises(redis.exceptions.NoPermissionError, match="run the 'flushall' command"):
        amy.flushall()
    with pytest.raises(redis.exceptions.AuthenticationError, match="invalid username-password pair"):
        redis.Redis(port=server.port, username="amy", password="wrong", retry=NO_RETRY).ping()
    assert (admin.acl_getuser("amy") or {})["keys"] == ["~a:*"]
    assert admin.acl_dryrun("amy", "get", "b") == "User amy has no permissions to access the 'b' key"

    first = amy.client_id()
    admin.acl_deluser("amy")
    with pytest.raises(redis.exceptions.AuthenticationError):
        amy.client_id()
    assert str(first) not in {client["id"] for client in admin.client_list()}
