"""penstock.Cluster and the fixture penstock_cluster: what a test can do to a cluster."""

from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
from penstock.errors import UsageError
from tests.support.reference_server import LOCALHOST
from tests.support.wire import Bulk, Connection, NullBulk


@pytest.mark.penstock(nodes=2, requirepass="secret")
def test_a_slot_moves_in_steps_and_a_node_with_a_stale_map_answers_as_before(
    penstock_cluster: penstock.Cluster,
) -> None:
    client: Any = penstock_cluster.client(decode_responses=True)
    client.mset({"{a}1": "1", "{a}2": "2"})
    source = penstock_cluster.node_of("{a}1")
    target = 3 - source
    with Connection(LOCALHOST, penstock_cluster.ports[source - 1]) as old:
        old.ask("AUTH", "secret")
        move = penstock_cluster.begin_move("{a}1", to=target)
        carried = move.carry(1)
        left = next(key for key in (b"{a}1", b"{a}2") if key not in carried)
        place = b"%d 127.0.0.1:%d" % (client.keyslot("{a}1"), penstock_cluster.ports[target - 1])
        assert old.ask("GET", carried[0]).text == b"ASK " + place  # type: ignore[union-attr]  # an error
        assert old.ask("MGET", b"{a}1", b"{a}2").text.startswith(b"TRYAGAIN")  # type: ignore[union-attr]
        assert old.ask("GET", left) == Bulk(left[-1:])
        move.carry()
        with penstock_cluster.stale_map(source):
            move.end()
            assert old.ask("GET", left).text == b"ASK " + place  # type: ignore[union-attr]
        assert old.ask("GET", left).text == b"MOVED " + place  # type: ignore[union-attr]
    assert client.mget("{a}1", "{a}2") == ["1", "2"]
    assert penstock_cluster.node_of("{a}1") == target


def test_a_folder_keeps_what_was_written_and_where_slots_were(tmp_path: Path) -> None:
    with penstock.Cluster(nodes=2, dir=tmp_path) as cluster:
        cluster.client().set("a", "1")
        to = 3 - cluster.node_of("a")
        cluster.move_slot("a", to)
    with penstock.Cluster(nodes=2, dir=tmp_path) as cluster:
        assert cluster.node_of("a") == to
        assert cluster.client(decode_responses=True).get("a") == "1"
        cluster.kill(to, restarts=False)
        with pytest.raises(redis.RedisError), cluster.node_client(to, retry=None) as node:
            node.ping()
        cluster.start_node(to)
        with Connection(LOCALHOST, cluster.ports[to - 1]) as own:
            assert own.ask("GET", "a") == Bulk(b"1")
            assert own.ask("GET", "{a}none") == NullBulk()


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"port": 7}, UsageError, "port is not one"),
        ({"nonsense": "x"}, TypeError, "no keyword 'nonsense'"),
        ({"maxmemory": "much"}, UsageError, "memory value"),
    ],
    ids=["port", "unknown", "value"],
)
def test_a_wrong_directive_is_refused(options: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        penstock.Cluster(**options)


def test_nodes_that_cannot_start_are_an_error_of_usage(tmp_path: Path) -> None:
    (tmp_path / "node-1").write_text("no folder")
    with pytest.raises((UsageError, OSError)):
        penstock.Cluster(nodes=1, dir=tmp_path).start()
    with penstock.Cluster(nodes=1) as cluster, pytest.raises(UsageError, match="there is no node 2"):
        cluster.kill(2)


class Hasty(penstock.Cluster):
    """Its nodes have no time to start."""

    _start_s = 0.0


def test_a_cluster_that_is_not_ready_in_time_ends_and_says_so() -> None:
    with pytest.raises(UsageError, match="the nodes are not ready after 0 seconds"):
        Hasty(nodes=1).start()
