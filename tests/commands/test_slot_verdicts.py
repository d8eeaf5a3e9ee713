"""A node of a cluster runs the usual request without the gate; the gate's rules are the oracle of that."""

import random

import pytest

from penstock.commands.registry import table
from penstock.engine.cluster.cluster_map import ClusterMap, Member
from penstock.engine.cluster.hash_slots import SLOTS, slot_of
from penstock.engine.session import NO_CLIENT
from penstock.engine.table.row import Row
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.key_requests import KeyRequests
from tests.support.seeds import seeds
from tests.support.word_batches import batches_of

KEYS = ("k", "{k}1", "{k}2", "get", "store", "1")
EVERY = [one for row in table().values() for one in (row, *row.subcommands.values()) if not one.is_container]


def node_s_map(chance: random.Random) -> ClusterMap:
    """Three nodes that divide the slots of KEYS, some of which move or belong to none; the first node is this one."""
    nodes = [Member(id, "127.0.0.1", 7000 + place, 17000 + place, bytearray(SLOTS)) for place, id in enumerate("abc")]
    for slot in range(SLOTS):
        nodes[0].slots[slot] = 1
    for key in KEYS:
        slot = slot_of(key.encode())
        owner = chance.choice([*nodes[:1] * 3, *nodes[1:], None])
        for one in nodes:
            one.slots[slot] = one is owner
        if chance.random() < 0.4:
            opened = nodes[0].migrating if owner is nodes[0] else nodes[0].importing
            opened[slot] = "b"
    if chance.random() < 0.2:
        nodes[0].master_id = "b"
    nodes[1].is_failed = chance.random() < 0.2
    return ClusterMap(nodes, 1, "a")


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_what_runs_without_the_gate_is_what_the_gate_lets_through(seed: int) -> None:
    chance = random.Random(seed)
    requests = KeyRequests(chance, KEYS)
    for full_coverage in ("yes", "no"):
        engine = make_engine(settings=settings_with(cluster_enabled="yes", cluster_require_full_coverage=full_coverage))
        rules = engine.server.cluster
        assert rules is not None
        for row in EVERY:
            if chance.random() < 0.8:
                rules.node.adopt(node_s_map(chance))
            request = requests.made_of(row).words
            if row.fits(len(request)) and rules.serves(row, request):
                rules.admit(NO_CLIENT, row, request, 1)


def test_what_a_node_has_and_does_not_move_runs_without_the_gate() -> None:
    engine = make_engine(settings=settings_with(cluster_enabled="yes"))
    rules = engine.server.cluster
    assert rules is not None

    def served(line: str) -> bool:
        request = [word.encode() for word in line.split()]
        row: Row = table()[request[0]]
        return rules.serves(row, request)

    assert all(map(served, ["PING", "XADD k * a b", "XREADGROUP GROUP g c STREAMS k >", "MSET {k}1 a {k}2 b"]))
    assert not any(map(served, ["MSET k a other b", "EVAL return 0 k", "EXEC", "SPUBLISH k m", "MIGRATE h 1 k 0 1"]))


def test_each_request_of_a_pipeline_is_asked_for_its_own_slot() -> None:
    dialogue = Dialogue(make_engine(settings=settings_with(cluster_enabled="yes")))
    dialogue("CONFIG SET cluster-require-full-coverage no", f"CLUSTER DELSLOTS {slot_of(b'b')}")
    requests = [[b"SET", key, b"1"] for key in (b"a", b"a", b"b", b"a")]
    replies: list[bytes] = []

    left = batches_of(requests, dialogue.engine.commands.batch_shapes)
    while left:
        left = dialogue.engine.handle_batches(dialogue.session, left, 1 << 30, replies, [])

    assert b"".join(replies) == b"+OK\r\n+OK\r\n-CLUSTERDOWN Hash slot not served\r\n+OK\r\n"
