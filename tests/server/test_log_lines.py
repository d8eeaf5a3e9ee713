"""The lines of a server's log that programs wait for which start and end a `redis-server` (Redis 8.6.3)."""

import os
import re
import signal
from pathlib import Path

import pytest
import redis

from tests.support.no_retry import NO_RETRY
from tests.support.server_process import ServerProcess, running_server

BEGIN = [r"pid=\d+,", r"\* Server initialized$", r"\* Ready to accept connections tcp$"]
END = [
    r"\* Received SIGTERM scheduling shutdown\.\.\.$",
    r"\* User requested shutdown\.\.\.$",
    r"# Redis is now ready to exit, bye bye\.\.\.$",
]
REWRITE = [
    r"\* Background append only file rewriting started by pid \d+",
    r"\* Background AOF rewrite finished successfully",
]
SAVE = [r"\* Background saving started by pid \d+", r"\* Background saving terminated with success"]
LOADED = {
    "yes": r"\* DB loaded from append only file: \d+\.\d{3} seconds",
    "no": r"\* DB loaded from disk: \d+\.\d{3} seconds",
}


def assert_said_in_order(server: ServerProcess, patterns: list[str]) -> None:
    """Each pattern is in a line behind the line of the one before it."""
    lines = iter(server.lines)
    for pattern in patterns:
        assert any(re.search(pattern, line) for line in lines), f"{pattern} is not in order in:\n{server.said}"


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_a_server_says_what_programs_wait_for_as_redis_says_it(tmp_path: Path, appendonly: str) -> None:
    with running_server("--appendonly", appendonly, dir=tmp_path) as first:
        client = redis.Redis(port=first.port)
        client.set("a", 1)
        client.bgsave()
        first.wait_until_said("terminated with success")
        client.close()
        first.stop()
    with running_server("--appendonly", appendonly, dir=tmp_path) as second:
        os.kill(second.pid, signal.SIGTERM)
        second.wait()

    assert_said_in_order(first, [*BEGIN, *SAVE, *END])
    assert_said_in_order(second, [*BEGIN[:2], LOADED[appendonly], BEGIN[2], *END])


def test_a_rewrite_of_the_log_is_told_as_redis_tells_it() -> None:
    with running_server() as server, redis.Redis(port=server.port) as client:
        client.set("a", 1)
        client.bgrewriteaof()
        server.wait_until_said("finished successfully")

    assert_said_in_order(server, [*BEGIN, *REWRITE])


def test_shutdown_is_told_as_redis_tells_it() -> None:
    with running_server() as server, redis.Redis(port=server.port, retry=NO_RETRY) as client:
        client.shutdown()
        server.wait()

    assert_said_in_order(server, [*BEGIN, *END[1:]])
