"""`cluster-enabled yes`: beyond what the transcripts show, what the node is given and what it keeps."""

import errno
import random

import pytest

from penstock.commands.cluster.cluster_changes import MOST_UNANSWERED, TOO_MANY
from penstock.config.settings import Settings
from penstock.engine.cluster.hash_slots import SLOTS, ranges, slot_of
from penstock.engine.cluster.node import Node
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with

REDIS_FILE = (
    "1b3c340ef97d27165d92e1e50f8cdca655e7fe4d 10.1.2.3:6380@6999,redis.local,tls-port=77,nodename=nick,"
    "shard-id=3cc60448addf5972b6be84fc573157d2d4c77787 myself,master - 0 0 3 connected 0-4 6 12-16383 [93-<-abc]\n"
    "vars currentEpoch 5 lastVoteEpoch 0\n"
)


@pytest.fixture
def node_client() -> Dialogue:
    return Dialogue(make_engine(settings=settings_with(cluster_enabled="yes")))


def new_node(settings: Settings | None = None) -> Node:
    return Node(settings or Settings(), random.Random(1))


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        (b"123456789", 12739), (b"foo", 12182), (b"{foo}bar", 12182), (b"{}foo", 9500), (b"foo{}{bar}", 8363),
        (b"foo{{bar}}zap", 4015), (b"foo{bar}{zap}", 5061), (b"", 0), (b"a", 15495), (b"{a", slot_of(b"{a")),
    ],
)  # fmt: skip
def test_a_key_is_in_the_slot_of_its_tag(key: bytes, slot: int) -> None:
    assert slot_of(key) == slot


def test_ranges_are_the_runs_of_slots() -> None:
    assert ranges(bytearray(b"\1\1\0\2\0\0\1")) == [(0, 1), (3, 3), (6, 6)]
    assert ranges(bytearray(4)) == []


def test_a_new_node_serves_every_key(node_client: Dialogue) -> None:
    assert node_client("SET a 1", "SET b 2", "GET a") == b"1"
    assert b"cluster_state:ok" in node_client("CLUSTER INFO")


def test_slots_that_a_new_node_has_may_be_added_once_as_to_a_redis(node_client: Dialogue) -> None:
    assert node_client("CLUSTER ADDSLOTSRANGE 0 5000", "CLUSTER ADDSLOTSRANGE 5001 16383") == b"OK"
    assert str(node_client("CLUSTER ADDSLOTS 7")) == "ERR Slot 7 is already busy"


def test_a_node_without_all_slots_serves_none_unless_it_need_not_have_all(node_client: Dialogue) -> None:
    node_client("CLUSTER DELSLOTS 12182")

    assert str(node_client("GET foo")) == "CLUSTERDOWN Hash slot not served"
    assert str(node_client("GET a")) == "CLUSTERDOWN The cluster is down"
    node_client("CONFIG SET cluster-allow-reads-when-down yes")
    assert node_client("GET a") is None
    assert str(node_client("SET a 1")) == "CLUSTERDOWN The cluster is down and only accepts read commands"
    node_client("CONFIG SET cluster-require-full-coverage no")
    assert node_client("SET a 1") == b"OK"
    assert str(node_client("GET foo")) == "CLUSTERDOWN Hash slot not served"


def test_hard_reset_gives_another_id_and_no_epoch(node_client: Dialogue) -> None:
    old = node_client("CLUSTER MYID")
    assert node_client("CLUSTER BUMPEPOCH") == b"BUMPED 1"
    assert node_client("CLUSTER BUMPEPOCH") == b"STILL 1"
    assert node_client("CLUSTER RESET", "CLUSTER MYID") == old

    assert node_client("CLUSTER RESET HARD", "CLUSTER MYID") != old
    assert b"cluster_my_epoch:0\r\n" in node_client("CLUSTER INFO")


def test_the_node_that_is_named_is_the_node_itself(node_client: Dialogue) -> None:
    own = node_client("CLUSTER MYID").decode()

    assert node_client(f"CLUSTER REPLICAS {own}") == []
    assert node_client(f"CLUSTER COUNT-FAILURE-REPORTS {own}") == 0
    assert str(node_client(f"CLUSTER REPLICATE {own}")) == "ERR Can't replicate myself"
    assert str(node_client(f"CLUSTER FORGET {own}")) == "ERR I tried hard but I can't forget myself..."
    node_client("CLUSTER DELSLOTS 5")
    assert node_client(f"CLUSTER SETSLOT 5 NODE {own}") == b"OK"
    assert str(node_client(f"CLUSTER SETSLOT 5 IMPORTING {own}")) == "ERR I'm already the owner of hash slot 5"


def test_clients_see_that_they_may_read_from_replicas(node_client: Dialogue) -> None:
    assert b" flags=r " in node_client("READONLY", "CLIENT INFO")
    assert b" flags=N " in node_client("READWRITE", "CLIENT INFO")


def test_what_is_written_is_read_again() -> None:
    node, again = new_node(), new_node(settings_with(port="7000"))
    node.owned[7] = 0
    node.epoch, node.current_epoch = 2, 4

    again.read(node.written())

    assert (again.id, again.shard_id, again.epoch, again.current_epoch) == (node.id, node.shard_id, 2, 4)
    assert again.ranges() == [(0, 6), (8, SLOTS - 1)]


def test_the_file_of_a_redis_that_is_alone_is_taken_over() -> None:
    node = new_node()
    node.read(REDIS_FILE)

    assert node.id == "1b3c340ef97d27165d92e1e50f8cdca655e7fe4d"
    assert node.shard_id == "3cc60448addf5972b6be84fc573157d2d4c77787"
    assert (node.epoch, node.current_epoch) == (3, 5)
    assert node.ranges() == [(0, 4), (6, 6), (12, 16383)]


@pytest.mark.parametrize("text", ["nonsense", REDIS_FILE + REDIS_FILE, REDIS_FILE.replace("myself,", ""), "a b c d\n"])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one node"):
        new_node().read(text)


def test_a_node_of_a_cluster_follows_no_master(node_client: Dialogue) -> None:
    assert str(node_client("REPLICAOF NO ONE")) == "ERR REPLICAOF not allowed in cluster mode."
    assert str(node_client("SLAVEOF 127.0.0.1 1")) == "ERR REPLICAOF not allowed in cluster mode."


CHANGES = [
    "ADDSLOTS 4", "ADDSLOTSRANGE 4 9", "DELSLOTS 8000", "DELSLOTSRANGE 8000 9000", "FLUSHSLOTS", "SETSLOT 3 NODE {id}",
    "BUMPEPOCH", "SET-CONFIG-EPOCH 7", "RESET", "RESET HARD", "SAVECONFIG",
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_cannot_be_kept_is_refused_and_not_made(node_client: Dialogue, change: str) -> None:
    files: list[str] = []
    disk_fails: list[bool] = []
    cluster, listener = node_client.engine.server.cluster, node_client.another()
    assert cluster is not None
    node = cluster.node

    def save() -> None:
        if disk_fails:
            raise OSError(errno.ENOSPC, "No space left on device")
        files.append(node.written())

    node.keep_by(save)
    node_client("CLUSTER DELSLOTS 3", "CLUSTER ADDSLOTS 8000")
    listener("HELLO 3", "SSUBSCRIBE c43753")  # of slot 8000
    disk_fails.append(True)
    refusal = node_client(f"CLUSTER {change.format(id=node.id)}")

    assert str(refusal) == "ERR error saving the cluster node config: No space left on device"
    assert node.written() == files[-1]
    assert listener.arrived() == []
    assert str(node_client("CLUSTER ADDSLOTS 8000")) == "ERR Slot 8000 is already busy"
    disk_fails.clear()
    assert str(node_client(f"CLUSTER {change.format(id=node.id)}")) in ("b'OK'", "b'BUMPED 1'")
    assert node.written() == files[-1]


class Owner:
    """A launcher that answers nothing. asked: for these changes."""

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []

    def ask(self, words: list[bytes]) -> int:
        self.asked.append(words)
        return len(self.asked)

    def publish(self, kind: bytes, channel: bytes, message: bytes) -> None:
        raise NotImplementedError


def test_a_transaction_asks_for_a_limited_number_of_changes_of_the_map(node_client: Dialogue) -> None:
    cluster = node_client.engine.server.cluster
    assert cluster is not None
    node = cluster.node
    node.adopt(node.view())
    node.map_owner = owner = Owner()
    node_client("MULTI", *["CLUSTER BUMPEPOCH"] * (MOST_UNANSWERED + 1))

    answers = node_client("EXEC")

    assert answers[:-1] == [b"OK"] * MOST_UNANSWERED
    assert str(answers[-1]) == TOO_MANY.decode()
    assert len(owner.asked) == MOST_UNANSWERED
    node.unanswered -= 1  # one is answered
    assert node_client("MULTI", "CLUSTER BUMPEPOCH", "EXEC") == [b"OK"]


def test_client_unblock_does_not_end_a_change_of_the_map_without_its_reply(node_client: Dialogue) -> None:
    cluster = node_client.engine.server.cluster
    assert cluster is not None
    node = cluster.node
    node.adopt(node.view())
    node.map_owner = Owner()
    node_client("CLUSTER BUMPEPOCH")

    other = Dialogue(node_client.engine)

    assert other(f"CLIENT UNBLOCK {node_client.session.id}") == 0
    assert node_client.session.blocked is node.waiting[1]
