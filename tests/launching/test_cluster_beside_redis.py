"""What the nodes of `penstock cluster` answer, beside three nodes of Redis: each line in the same order to both."""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import penstock
from tests.support.deployments import redis_cluster
from tests.support.reference_server import LOCALHOST, NoReference
from tests.support.wire import Connection, Value

# {bar} is in slot 5061, of node 0; {k1} in 12706, of node 2, which moves to node 0; foo in 12182, of node 2.
REDIRECTED = """
0 GET foo
2 SET foo 1
0 MGET foo bar
0 EVAL "return 1" 1 foo
0 EVAL "return redis.call('get','foo')" 0
0 EVAL "#!lua\\nreturn redis.call('get','foo')" 0
0 MULTI
0 SET foo 1
0 EXEC
0 SSUBSCRIBE foo
0 SPUBLISH foo x
0 CLUSTER COUNTKEYSINSLOT 12182
2 CLUSTER COUNTKEYSINSLOT 12182
2 CLUSTER GETKEYSINSLOT 12182 10
0 XADD
0 ASKING
0 GET foo
0 READONLY
0 GET foo
0 READWRITE
0 XREADGROUP GROUP g c STREAMS foo >
0 MIGRATE 127.0.0.1 PORT2 foo 0 1000
"""
REFUSED = """
0 CLUSTER SETSLOT 12182 MIGRATING ID2
0 CLUSTER SETSLOT 866 IMPORTING ID1
0 CLUSTER SETSLOT 866 MIGRATING abc
0 CLUSTER SETSLOT 866 NODE abc
0 CLUSTER SETSLOT 866 FOO ID1
0 CLUSTER SETSLOT 866
0 CLUSTER ADDSLOTS 5
0 CLUSTER ADDSLOTS 16000
0 CLUSTER FORGET ID0
0 CLUSTER REPLICATE ID0
0 CLUSTER REPLICATE ID1
0 CLUSTER REPLICAS ID0
0 CLUSTER REPLICAS abc
0 CLUSTER FAILOVER
0 CLUSTER SET-CONFIG-EPOCH 5
0 CLUSTER COUNT-FAILURE-REPORTS ID2
0 REPLICAOF NO ONE
0 CLUSTER KEYSLOT foo
0 SET {hello}kept 1
0 CLUSTER RESET
0 CLUSTER FLUSHSLOTS
0 DEL {hello}kept
"""
SHOWN = """
0 CLUSTER SLOTS
0 CLUSTER SHARDS
0 CLUSTER NODES
0 CLUSTER INFO
1 CLUSTER SLOTS
1 CLUSTER NODES
0 COMMAND INFO restore-asking
"""
MOVING = """
2 MSET {k1}a 1 {k1}b 2
0 CLUSTER SETSLOT 12706 IMPORTING ID2
2 CLUSTER SETSLOT 12706 MIGRATING ID0
0 CLUSTER NODES
2 CLUSTER NODES
2 GET {k1}a
2 GET {k1}x
2 MGET {k1}a {k1}b
2 MGET {k1}a {k1}x
2 MGET {k1}y {k1}x
2 MSET {k1}a 1 {k1}x 2
2 MULTI
2 GET {k1}a
2 MGET {k1}a {k1}x
2 EXEC
2 MULTI
2 GET {k1}a
2 DEL {k1}a
2 GET {k1}a
2 EXEC
2 GET {k1}a
2 EVAL "return redis.call('get','{k1}x')" 1 {k1}b
2 EVAL "return redis.call('mget','{k1}x','{k1}b')" 1 {k1}b
2 SPUBLISH {k1}channel x
0 SET {k1}a 1
0 ASKING
0 SET {k1}a 1
0 GET {k1}a
0 CLUSTER COUNTKEYSINSLOT 12706
0 CLUSTER GETKEYSINSLOT 12706 10
0 KEYS *
0 ASKING
0 PING
0 GET {k1}a
0 ASKING
0 GET
0 GET {k1}a
0 ASKING
0 NOSUCH
0 GET {k1}a
0 ASKING
0 ASKING
0 GET {k1}a
0 ASKING
0 MULTI
0 GET {k1}a
0 SET {k1}z 1
0 EXEC
0 GET {k1}a
0 ASKING
0 MULTI
0 GET {k1}a
0 EXEC
0 ASKING
0 MGET {k1}a {k1}b
0 ASKING
0 EXISTS {k1}a {k1}a
0 ASKING
0 EVAL "return redis.call('get',KEYS[1])" 1 {k1}a
0 ASKING
0 EVAL "return redis.call('get','{k1}a')" 0
0 ASKING
0 SPUBLISH {k1}channel x
0 RESTORE-ASKING
0 MIGRATE 127.0.0.1 PORT2 {k1}none 0 1000
2 CLUSTER SETSLOT 12706 NODE ID0
2 MIGRATE 127.0.0.1 PORT0 "" 0 1000 KEYS {k1}b {k1}none
2 CLUSTER GETKEYSINSLOT 12706 10
2 GET {k1}b
0 CLUSTER SETSLOT 12706 NODE ID0
2 CLUSTER SETSLOT 12706 NODE ID0
1 CLUSTER SETSLOT 12706 NODE ID0
2 GET {k1}b
0 MGET {k1}a {k1}b
0 CLUSTER SETSLOT 12706 STABLE
2 CLUSTER COUNTKEYSINSLOT 12706
2 MIGRATE 127.0.0.1 PORT0 "" 0 1000 KEYS {k1}b
0 CLUSTER BUMPEPOCH
"""
ABOUT_TIME = re.compile(r" \d+ \d+ (?=\d+ connected)")  # when a node was asked, and heard of
COUNTS = re.compile(r"cluster_stats_messages_\w+:\d+\\r\\n")


class Side:
    """Three nodes, in the order of their slots."""

    def __init__(self, stack: ExitStack, ports: list[int], bus_ports: list[int]) -> None:
        self.ports, self.bus_ports = ports, bus_ports
        self.nodes = [stack.enter_context(Connection(LOCALHOST, port)) for port in ports]
        self.ids = [node.ask("CLUSTER", "MYID").text.decode() for node in self.nodes]  # type: ignore[union-attr]  # a bulk
        for node in self.nodes:
            node.ask("FLUSHALL")

    def ask(self, line: str) -> str:
        """The reply to a line that begins with a node's number; IDs and ports are shown by their node's number."""
        number, *words = shlex.split(line)
        for at, (id, port) in enumerate(zip(self.ids, self.ports, strict=True)):
            words = [word.replace(f"ID{at}", id).replace(f"PORT{at}", str(port)) for word in words]
        reply = shown(self.nodes[int(number)].ask(*[word.replace("\\n", "\n") for word in words]))
        for at, (id, port, bus_port) in enumerate(zip(self.ids, self.ports, self.bus_ports, strict=True)):
            reply = reply.replace(id, f"ID{at}").replace(f"@{bus_port}", "@BUS").replace(str(port), f"PORT{at}")
        return reply


def shown(reply: Value) -> str:
    """A reply without times and counts of messages."""
    return COUNTS.sub("", ABOUT_TIME.sub(" 0 0 ", str(reply)))


def in_order(line: str, reply: str) -> list[str]:
    """The parts of what Redis shows in any order: lines of CLUSTER NODES, elements of CLUSTER SHARDS."""
    if "NODES" in line:
        return sorted(reply.removeprefix('Bulk(text=b"').removeprefix("Bulk(text=b'").split("\\n"))
    return sorted(re.findall(r"'slots'.*?'online'", reply)) if "SHARDS" in line else [reply]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        try:
            theirs = stack.enter_context(redis_cluster(tmp_path_factory.mktemp("redis")))
        except NoReference as absence:
            pytest.skip(str(absence))
        ours = stack.enter_context(penstock.Cluster(nodes=3))
        yield (
            Side(stack, [node.port for node in theirs.nodes], [node.bus_port for node in theirs.nodes]),
            Side(stack, ours.ports, [port + 10_000 for port in ours.ports]),
        )


@pytest.mark.parametrize(
    "lines", [REDIRECTED, REFUSED, SHOWN, MOVING], ids=["redirected", "refused", "shown", "moving"]
)
def test_nodes_answer_as_those_of_redis(sides: tuple[Side, Side], lines: str) -> None:
    theirs, ours = sides
    told = [(line, theirs.ask(line), ours.ask(line)) for line in lines.split("\n") if line]

    for line, one, other in told:
        assert (line, in_order(line, one)) == (line, in_order(line, other))
