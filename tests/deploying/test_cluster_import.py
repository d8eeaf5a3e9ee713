"""docs/migrating.md, into a Redis Cluster and out of it: what its command lines carry, on three real nodes."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis
from redis.cluster import RedisCluster

from tests.support.deployments import Cluster, redis_cluster
from tests.support.reference_server import LOCALHOST, NoReference, reference_binary
from tests.support.server_process import running_server

pytestmark = pytest.mark.slow

PAGE: Final = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text()
LINES: Final = re.findall(r"^```sh\n(redis-cli [^`]*)^```$", PAGE, re.MULTILINE)
STREAMS, OTHERS, LONG = 200, 300, 100_000
FAR_MS: Final = 4_102_444_800_000  # 2100
BETWEEN_MS: Final = 600_000  # between the times of expiry; MIGRATE sends what is left of one, so it gets some ms later
READERS: Final[dict[bytes, tuple[object, ...]]] = {
    b"string": ("GET",),
    b"list": ("LRANGE", 0, -1),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    b"stream": ("XRANGE", "-", "+"),
}
NOT_COMPARED: Final = {b"seen-time", b"active-time", b"nacked-count"}  # the last is not in Redis 8.6


def shell(line: str, penstock_port: int, node_port: int) -> str:
    """Run a line of the page, its addresses replaced by those that there are."""
    for host, port, there in (("cluster-host", 7001, node_port), ("penstock-host", 6379, penstock_port)):
        for between in (":", " -p ", " "):
            line = line.replace(f"{host}{between}{port}", f"{LOCALHOST}{between}{there}")
    assert "-host" not in line
    path = f"{reference_binary().parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", line], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def fill(client: redis.Redis) -> None:
    """Keys of all types; streams with groups, of which entries are pending for some time, some delivered twice."""
    pipe = client.pipeline(transaction=False)
    for number in range(OTHERS):
        pipe.set(f"string {number} \n\xff", number)
        pipe.rpush(f"list:{number}", *range(number % 9 + 1))
        pipe.hset(f"hash:{number}", mapping={f"f{part}": part for part in range(number % 9 + 1)})
        pipe.sadd(f"set:{number}", *range(number % 9 + 1))
        pipe.zadd(f"zset:{number}", {f"m{part}": part / 8 for part in range(number % 9 + 1)})
        pipe.pexpireat(f"hash:{number}", FAR_MS + number * BETWEEN_MS)
    for number in range(STREAMS):
        key = f"stream:{number}"
        for entry in range(12):
            pipe.xadd(key, {"job": entry}, id=f"{1000 + entry}-{number}")
        pipe.xgroup_create(key, "workers", "0")
        pipe.xgroup_create(key, "idle", "$")
        pipe.xreadgroup("workers", "alice", {key: ">"}, count=7)
        pipe.xack(key, "workers", f"1001-{number}")
        pipe.execute_command("XCLAIM", key, "workers", "bob", 0, f"1002-{number}", "TIME", 5, "RETRYCOUNT", number + 2)
        pipe.xdel(key, f"1003-{number}", f"1009-{number}")
    for entry in range(LONG):
        pipe.xadd("long", {"field": f"value {entry}"}, id=f"{entry + 1}-1")
    pipe.execute()


Client = redis.Redis | RedisCluster


def without_times(shown: dict[bytes, Any]) -> dict[bytes, Any]:
    return {name: value for name, value in shown.items() if name not in NOT_COMPARED}


def groups_of(client: Client, key: bytes) -> list[dict[bytes, Any]]:
    """The groups of a stream with all pending entries, as XINFO shows them, but when consumers were seen."""
    found: dict[bytes, Any] = client.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
    groups = [without_times(one) for one in found[b"groups"]]
    for group in groups:
        group[b"consumers"] = [without_times(one) for one in group[b"consumers"]]
    return groups


def picture(client: Client, key: bytes) -> tuple[object, ...]:
    """All that a key is: type, time of expiry, value; of a stream its counters and groups, too."""
    kind: Any = client.type(key)
    command, *rest = READERS[kind]
    value = client.execute_command(str(command), key, *rest)
    about: object = None
    if kind == b"stream":
        fields = client.execute_command("XINFO", "STREAM", key)
        counters = (b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added")
        about = [fields[name] for name in counters], groups_of(client, key)
    expires = round(client.execute_command("PEXPIRETIME", key) / BETWEEN_MS)
    return kind, expires, value, about


Pictures = dict[bytes, tuple[object, ...]]


def pictures(client: Client, keys: list[bytes]) -> Pictures:
    return {key: picture(client, key) for key in keys}


def changed(client: Client, before: Pictures) -> list[bytes]:
    """The keys that are not what they were."""
    return [key for key, shown in before.items() if picture(client, key) != shown]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    try:
        with redis_cluster(tmp_path) as found:
            yield found
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.fixture
def penstock_port() -> Iterator[int]:
    with running_server("--rdb-compat-version", "8.6", "--appendonly", "no") as server:
        yield server.port


def keys_of(port: int) -> list[bytes]:
    with redis.Redis(LOCALHOST, port) as client:
        return sorted(client.scan_iter(count=1000))


def test_all_keys_go_into_a_cluster_and_out_of_it_with_groups_pending_entries_and_expiries(
    cluster: Cluster, penstock_port: int
) -> None:
    into, out = LINES
    client = redis.Redis(LOCALHOST, penstock_port)
    fill(client)
    keys = keys_of(penstock_port)
    before = pictures(client, keys)
    assert len(keys) == 5 * OTHERS + STREAMS + 1

    shell(into, penstock_port, cluster.nodes[0].port)

    assert sorted(key for node in cluster.nodes for key in keys_of(node.port)) == keys
    assert changed(cluster.client, before) == changed(client, before) == []

    client.xadd("stream:1", {"job": "later"})
    before[b"stream:1"] = picture(client, b"stream:1")
    shell(into, penstock_port, cluster.nodes[1].port)
    assert changed(cluster.client, before) == []

    client.flushall()
    for node in cluster.nodes:
        said = shell(out, penstock_port, node.port)
        assert set(said.split()) == {"OK"}

    assert keys_of(penstock_port) == keys
    assert changed(client, before) == []


def test_the_command_lines_leave_behind_what_the_page_says(cluster: Cluster, penstock_port: int) -> None:
    into, out = LINES
    client = redis.Redis(LOCALHOST, penstock_port)
    for key in ("kept", "with a \x00", "deleted later"):
        client.set(key, "v")
    client.xadd("s", {"f": "v"}, id="1-1")
    client.execute_command("PENSTOCK.POLICY", "s", "MAXLEN", 5)
    assert client.xinfo_stream("s")["penstock-policy"]
    redis.Redis(LOCALHOST, penstock_port, db=1).set("of another database", "v")
    shell(into, penstock_port, cluster.nodes[0].port)
    client.delete("deleted later")

    shell(into, penstock_port, cluster.nodes[0].port)

    assert {key for node in cluster.nodes for key in keys_of(node.port)} == {b"kept", b"deleted later", b"s"}
    client.delete("s")
    for node in cluster.nodes:
        shell(out, penstock_port, node.port)
    assert client.xrange("s") == [(b"1-1", {b"f": b"v"})]
    assert not client.xinfo_stream("s").get("penstock-policy")
