"""What INFO calls used_memory is what the process grew by, within a tenth; and maxmemory holds."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.server_process import running_server

PAGE = 4096
MIB = 1 << 20


class Watched:
    """A server, and by how much it grew: as it says itself, and as the system does."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self._pid = client.info("server")["process_id"]
        self._first = self._both()

    def fill(self, *requests: Iterator[tuple[object, ...]]) -> None:
        for group in requests:
            pipe = self.client.pipeline(transaction=False)
            for request in group:
                pipe.execute_command(*request)
                if len(pipe) == 500:
                    pipe.execute(raise_on_error=False)
            pipe.execute(raise_on_error=False)

    def growth(self) -> tuple[int, int]:
        used, resident = self._both()
        return used - self._first[0], resident - self._first[1]

    def _both(self) -> tuple[int, int]:
        resident = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * PAGE
        return self.client.info("memory")["used_memory"], resident


@pytest.fixture
def watched() -> Iterator[Any]:
    with running_server("--appendonly", "no") as server, redis.Redis(port=server.port) as client:
        yield Watched(client)


def strings(count: Any) -> Any:
    return (("SET", f"string{number}", "x" * (20, 200, 2000)[number % 3]) for number in range(count))


def entries(count: Any) -> Any:
    return (("XADD", f"stream{number % 7}", "*", "field", "y" * 100) for number in range(count))


def fields(count: Any) -> Any:
    return (("HSET", f"hash{number % 500}", f"field{number}", "z" * 30) for number in range(count))


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process's size"),
]


@pytest.mark.parametrize(
    "filling",
    [lambda: strings(60_000), lambda: entries(150_000), lambda: fields(80_000)],
    ids=["strings", "entries", "fields"],
)
def test_used_memory_is_the_process_s_growth_within_a_tenth(watched: Any, filling: Callable[..., Any]) -> None:
    watched.fill(filling())
    used, resident = watched.growth()

    assert used == pytest.approx(resident, rel=0.1)


def test_what_is_freed_is_not_counted_although_the_process_keeps_it(watched: Any) -> None:
    watched.client.config_set("stream-compress-after", 0)  # streams that rest would take less meanwhile
    watched.fill(strings(60_000), entries(60_000))
    full, resident = watched.growth()
    watched.fill(("DEL", f"string{number}") for number in range(60_000))
    used, still_resident = watched.growth()

    assert full - used > 40 * MIB
    assert still_resident <= resident + MIB
    watched.fill(strings(60_000))
    assert watched.growth()[0] == pytest.approx(full, rel=0.1)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_limit_with_eviction_holds_within_a_tenth(watched: Any, policy: str) -> None:
    limit = watched.client.info("memory")["used_memory"] + 24 * MIB
    watched.client.config_set("maxmemory-policy", policy)
    watched.client.config_set("maxmemory", limit)
    watched.fill(strings(120_000))

    assert watched.client.info("stats")["evicted_keys"] > 40_000
    assert watched.client.info("memory")["used_memory"] < limit * 1.1
    assert watched.growth()[1] < 24 * MIB * 1.5 + 8 * MIB
    assert watched.client.set("one", "more")


def test_a_limit_without_eviction_holds_within_a_tenth(watched: Any) -> None:
    limit = watched.client.info("memory")["used_memory"] + 24 * MIB
    watched.client.config_set("maxmemory", limit)
    watched.fill(strings(120_000))

    # What the last pipeline's buffers took is free again, so a few more values may still fit.
    assert limit * 0.9 < watched.client.info("memory")["used_memory"] < limit * 1.1
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        for number in range(2_000):
            watched.client.set(f"more{number}", "x" * 2_000)
    watched.fill(("DEL", f"string{number}") for number in range(10_000))
    assert watched.client.set("one", "more")
