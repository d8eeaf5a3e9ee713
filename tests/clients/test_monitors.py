"""What the monitoring tools ask is answered: redis_exporter and Redis Insight, by the requests that they send."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.support.server_process import running_server

EXPORTER = [
    "CLIENT SETNAME redis_exporter",
    "CONFIG GET *",
    "INFO ALL",
    "CLUSTER INFO",
    "LATENCY LATEST",
    "LATENCY HISTOGRAM",
    "SLOWLOG LEN",
    "SLOWLOG GET 1",
    "MODULE LIST",
    "CLIENT LIST",
    "SELECT 0",
    "DBSIZE",
    "SCAN 0 MATCH * COUNT 100",
    "TYPE stream",
    "STRLEN string",
    "LLEN list",
    "SCARD set",
    "ZCARD zset",
    "HLEN hash",
    "XLEN stream",
    "XINFO STREAM stream",
    "XINFO GROUPS stream",
    "XINFO CONSUMERS stream group",
    "MEMORY USAGE stream",
    "GET string",
    "EVAL return{1} 0",
]
INSIGHT = [
    "PING",
    "INFO",
    "INFO keyspace",
    "INFO server",
    "INFO memory",
    "COMMAND",
    "COMMAND COUNT",
    "COMMAND DOCS xadd",
    "MODULE LIST",
    "ACL WHOAMI",
    "ACL LIST",
    "ACL CAT",
    "CLIENT INFO",
    "CLIENT LIST",
    "CONFIG GET databases",
    "CONFIG GET maxmemory*",
    "CONFIG GET slowlog*",
    "CONFIG SET slowlog-max-len 128",
    "SLOWLOG GET 50",
    "SLOWLOG RESET",
    "DBSIZE",
    "SCAN 0 MATCH * COUNT 500 TYPE stream",
    "TYPE hash",
    "TTL hash",
    "OBJECT ENCODING hash",
    "OBJECT FREQ string",
    "OBJECT IDLETIME string",
    "MEMORY USAGE hash SAMPLES 0",
    "HSCAN hash 0 COUNT 500",
    "HTTL hash FIELDS 1 f",
    "SSCAN set 0 COUNT 500",
    "ZSCAN zset 0 COUNT 500",
    "ZRANGE zset 0 500 WITHSCORES",
    "LRANGE list 0 500",
    "GETRANGE string 0 499",
    "XINFO STREAM stream FULL COUNT 10",
    "XREVRANGE stream + - COUNT 500",
    "XRANGE stream - + COUNT 1",
    "XPENDING stream group - + 500",
    "DUMP string",
    "PUBSUB CHANNELS *",
    "PUBSUB NUMSUB news",
    "PUBSUB SHARDCHANNELS *",
    "MEMORY DOCTOR",
    "MEMORY STATS",
    "LATENCY DOCTOR",
    "FUNCTION LIST",
    "LASTSAVE",
    "ROLE",
]
# What a Redis 8.6 with the default configuration refuses too.
REFUSED_BY_REDIS = {
    "CLUSTER INFO": "This instance has cluster support disabled",
    "OBJECT FREQ string": "An LFU maxmemory policy is not selected",
}


@pytest.fixture(scope="module")
def link() -> Iterator[Any]:
    """A client of a server with a key of every type."""
    with running_server() as server, redis.Redis(port=server.port) as link:
        link.response_callbacks.clear()  # replies as they come
        link.set("string", "value")
        link.rpush("list", "a")
        link.sadd("set", "a")
        link.zadd("zset", {"a": 1})
        link.hset("hash", "f", "v")
        link.xadd("stream", {"f": "v"})
        link.xgroup_create("stream", "group", "0")
        link.xreadgroup("group", "alice", {"stream": ">"})
        yield link


@pytest.mark.parametrize("request_line", sorted({*EXPORTER, *INSIGHT} - {*REFUSED_BY_REDIS}))
def test_what_a_monitoring_tool_asks_is_answered(link: Any, request_line: Any) -> None:
    link.execute_command(*request_line.split())


@pytest.mark.parametrize("request_line", REFUSED_BY_REDIS)
def test_what_redis_refuses_to_a_monitoring_tool_is_refused_in_its_words(link: Any, request_line: Any) -> None:
    with pytest.raises(redis.ResponseError, match=REFUSED_BY_REDIS[request_line]):
        link.execute_command(*request_line.split())
