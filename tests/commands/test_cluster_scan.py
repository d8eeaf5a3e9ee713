"""CLUSTERSCAN shows the keys of every slot, also while slots move; the replies are those of a Valkey 9.1.2."""

import random

import pytest

from penstock.engine.cluster.hash_slots import SLOTS, SlotTags, slot_of
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with

tag_of = SlotTags().of

LAST = tag_of(SLOTS - 1).decode()
ZERO, ONE, TWO = (tag_of(slot).decode() for slot in range(3))


@pytest.fixture
def node_client() -> Dialogue:
    return new_node()


def new_node() -> Dialogue:
    client = Dialogue(make_engine(settings=settings_with(cluster_enabled="yes", compat_version="valkey-9.1")))
    client("CONFIG SET cluster-require-full-coverage no")
    return client


def owner(clients: list[Dialogue], slot: int) -> Dialogue:
    """The node that has a slot."""
    for client in clients:
        cluster = client.engine.server.cluster
        if cluster is not None and cluster.node.owns(slot):
            return client
    raise AssertionError("no node has the slot")


def scanned(clients: list[Dialogue], *words: str) -> list[bytes]:
    """The keys of a whole iteration. Each step goes to the node that owns the cursor's slot."""
    found: list[bytes] = []
    cursor, request = b"0", " ".join(words)
    while True:
        cursor, keys = owner(clients, slot_of(cursor))(f"CLUSTERSCAN {cursor.decode()} {request}")
        found += keys
        if cursor == b"0":
            return found


@pytest.mark.parametrize("slot", [0, 1, 4095, 9999, SLOTS - 1])
def test_a_tag_is_in_its_slot(slot: int) -> None:
    assert slot_of(b"0-{%b}-0" % tag_of(slot)) == slot


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", "ERR wrong number of arguments for 'clusterscan' command"),
        ("x", "ERR Invalid cursor"),
        ("00", "ERR Invalid cursor"),
        ("''", "ERR Invalid cursor"),
        (f"0-{{{ONE}}}", "ERR Invalid cursor"),
        (f"0-{{{ONE}}}-x", "ERR Invalid cursor"),
        (f"0-{{{ONE}}}--1", "ERR Invalid cursor"),
        (f"0-{{{ONE}}}-0-0", "ERR Invalid cursor"),
        (f"0-{{{ONE}}}-18446744073709551616", "ERR Invalid cursor"),
        ("0 help", "ERR syntax error"),
        ("0 COUNT", "ERR syntax error"),
        ("x COUNT 0", "ERR syntax error"),
        ("x COUNT y", "ERR value is not an integer or out of range"),
        ("x TYPE foo", "ERR unknown type name 'foo'"),
        ("x SLOT 16384", "ERR Invalid or out of range slot"),
        ("0 SLOT -1", "ERR Invalid or out of range slot"),
        ("0 SLOT '1 '", "ERR Invalid or out of range slot"),
        ("0 SLOT 1 SLOT 2", "ERR SLOT option can only be specified once"),
        ("0 NOVALUES", "ERR NOVALUES option can only be used in HSCAN"),
        (f"0-{{{ZERO}}}-0 SLOT 1", "ERR Cursor slot mismatch with SLOT argument"),
    ],
)
def test_what_is_refused(node_client: Dialogue, words: str, text: str) -> None:
    assert str(node_client(f"CLUSTERSCAN {words}")) == text


@pytest.mark.parametrize(
    ("words", "cursor"),
    [
        ("0", f"0-{{{ZERO}}}-0"),
        ("0 SLOT 1", f"0-{{{ONE}}}-0"),
        (f"0 MATCH {{{ONE}}}*", f"0-{{{ONE}}}-0"),
        (f"0 MATCH *{{{ONE}}}", f"0-{{{ZERO}}}-0"),
        (f"0 MATCH {{{ONE}}}* SLOT 1", f"0-{{{ONE}}}-0"),
        (f"0 MATCH {{{ONE}}}* SLOT 0", "0"),
        (f"0 MATCH {{{ONE}}}* SLOT 2", "0"),
        (f"0-{{{ZERO}}}-0 MATCH {{{ONE}}}*", f"0-{{{ONE}}}-0"),
        (f"0-{{{TWO}}}-0 MATCH {{{ONE}}}*", "0"),
        (f"0-{{{ONE}}}-0 MATCH {{{ONE}}}*", "0"),
        (f"0-{{{ONE}}}-0 SLOT 1", "0"),
        (f"0-{{{LAST}}}-0", "0"),
    ],
)
def test_where_an_iteration_goes_on(node_client: Dialogue, words: str, cursor: str) -> None:
    assert node_client(f"CLUSTERSCAN {words}") == [cursor.encode(), []]


def test_all_keys_are_shown_once_if_nothing_changes(node_client: Dialogue) -> None:
    keys = sorted(b"k%d" % number for number in range(3000))
    node_client(*[f"SET {key.decode()} v" for key in keys], f"XADD {{{ONE}}}s 1-0 f v")

    assert sorted(scanned([node_client])) == sorted([*keys, f"{{{ONE}}}s".encode()])
    assert sorted(scanned([node_client], "COUNT 1000 MATCH k1*")) == [key for key in keys if key.startswith(b"k1")]
    assert scanned([node_client], "COUNT 500 TYPE stream") == [f"{{{ONE}}}s".encode()]
    assert sorted(scanned([node_client], f"SLOT {slot_of(b'k7')}")) == [b"k1309", b"k7"]


def test_a_step_for_one_slot_meets_more_keys_than_it_shows(node_client: Dialogue) -> None:
    node_client(*[f"SET k{number} v" for number in range(900)], f"SET {{{ONE}}}k v")

    assert node_client(f"CLUSTERSCAN 0-{{{ONE}}}-0 SLOT 1") == [b"0", [f"{{{ONE}}}k".encode()]]


def test_an_iteration_goes_through_all_nodes(node_client: Dialogue) -> None:
    other = new_node()
    node_client("CLUSTER DELSLOTSRANGE 100 5000 9000 16000")
    other("CLUSTER DELSLOTSRANGE 0 99 5001 8999 16001 16383")
    nodes, keys = [node_client, other], [b"k%d" % number for number in range(400)]
    for key in keys:
        owner(nodes, slot_of(key))(f"SET {key.decode()} v")

    assert sorted(scanned(nodes)) == sorted(keys)


@pytest.mark.parametrize("seed", range(5))
def test_no_key_is_left_out_when_slots_move_in_between(seed: int) -> None:
    """A slot moves with its keys, behind, before or below the walk."""
    chance = random.Random(seed)
    nodes = [new_node(), new_node()]
    nodes[0]("CLUSTER DELSLOTSRANGE 8192 16383")
    nodes[1]("CLUSTER DELSLOTSRANGE 0 8191")
    keys = {b"k%d" % number for number in range(300)}
    of_slot = [slot_of(key) for key in sorted(keys)]
    for key in keys:
        nodes[slot_of(key) >= 8192](f"SET {key.decode()} v")
    found: set[bytes] = set()
    cursor = b"0"
    for _ in range(1000):
        cursor, shown = owner(nodes, slot_of(cursor))(f"CLUSTERSCAN {cursor.decode()} COUNT 20")
        found.update(shown)
        if cursor == b"0":
            break
        slot = chance.choice([*of_slot, slot_of(cursor)])
        source = owner(nodes, slot)
        target = nodes[source is nodes[0]]
        moved = source(f"CLUSTER GETKEYSINSLOT {slot} 1000")
        for key in moved:
            source(f"DEL {key.decode()}")
        source(f"CLUSTER DELSLOTS {slot}")
        target(f"CLUSTER ADDSLOTS {slot}", *[f"SET {key.decode()} v" for key in moved])
    assert cursor == b"0"
    assert found == keys


def test_slots_that_the_node_gets_during_a_walk_have_a_walk_of_their_own(node_client: Dialogue) -> None:
    before = [f"{{{tag_of(slot).decode()}}}{number}" for slot in range(30) for number in range(50)]
    after = [f"{{{tag_of(slot).decode()}}}" for slot in range(30, 60)]
    node_client("CLUSTER DELSLOTSRANGE 30 16383", *[f"SET {key} v" for key in before])

    cursor, found = node_client(f"CLUSTERSCAN 0-{{{ZERO}}}-0")
    node_client("CLUSTER ADDSLOTSRANGE 30 16383", *[f"SET {key} v" for key in after])
    while cursor != b"0":
        cursor, keys = node_client(f"CLUSTERSCAN {cursor.decode()}")
        found += keys
    assert sorted(found) == sorted([key.encode() for key in before + after])


def test_a_cursor_goes_to_the_node_of_its_slot(node_client: Dialogue) -> None:
    node_client("CLUSTER DELSLOTS 1")

    assert str(node_client(f"CLUSTERSCAN 0-{{{ONE}}}-0")) == "CLUSTERDOWN Hash slot not served"
    assert node_client(f"CLUSTERSCAN 0-{{{ZERO}}}-0") == [f"0-{{{ONE}}}-0".encode(), []]
    assert node_client(f"CLUSTERSCAN 0-{{{TWO}}}-0") == [b"0", []]
    node_client("CLUSTER DELSLOTSRANGE 13907 13907")
    assert str(node_client("CLUSTERSCAN 0")) == "CLUSTERDOWN Hash slot not served"
    assert node_client("MULTI", f"CLUSTERSCAN 0-{{{TWO}}}-0", f"SET {{{TWO}}} v", "EXEC")[1:] == [b"OK"]


def test_the_cursor_is_no_key(node_client: Dialogue) -> None:
    node_client("ACL SETUSER u on nopass ~foo +@all")

    assert node_client(f"ACL DRYRUN u CLUSTERSCAN 0-{{{ONE}}}-0") == b"OK"
    assert str(node_client("COMMAND GETKEYS CLUSTERSCAN 0")) == "ERR The command has no key arguments"


def test_without_a_cluster_it_is_refused() -> None:
    client = Dialogue(make_engine(settings=settings_with(compat_version="valkey-9.1")))

    assert str(client("CLUSTERSCAN x FOO")) == "ERR This instance has cluster support disabled"
