"""The launcher's map: what each change leaves, whatever comes before it, and what its text keeps."""

import random

import pytest

from penstock.engine.cluster import cluster_map
from penstock.engine.cluster.cluster_map import ClusterMap, Member
from penstock.engine.cluster.hash_slots import SLOTS, ranges
from penstock.launching.launcher import new_map
from tests.support.seeds import seeds

ACTIONS = ("MIGRATING", "IMPORTING", "NODE", "STABLE", "add", "delete", "bump", "promote")


def check(found: ClusterMap) -> None:
    """Assert what holds of every map."""
    owned = [int.from_bytes(one.slots, "big") for one in found.members]
    assert sum(owned).bit_count() == sum(bits.bit_count() for bits in owned), "no slot has two owners"
    assert found.owners.count(None) == SLOTS - sum(bits.bit_count() for bits in owned)
    for one in found.members:
        for first, last in ranges(one.slots):
            assert found.owners[first : last + 1] == [one] * (last + 1 - first)
    masters = [one for one in found.members if one.is_master]
    assert len({one.epoch for one in masters}) == len(masters), "no two masters have the same epoch"
    assert max(one.epoch for one in masters) <= found.current_epoch
    for one in found.members:
        assert one.is_master or found.member(one.master_id) in masters, "the master of a replica is one"
        assert one.is_master or not any(one.slots), "a replica has no slots"
        assert one.epoch == found.master_of(one).epoch
        assert all(one.slots[slot] for slot in one.migrating), "what goes away is there"
        assert not any(one.slots[slot] for slot in one.importing), "what comes is not there yet"


def change(found: ClusterMap, chance: random.Random) -> None:
    """Make a change, also one that no node lets through: the map may have changed since it was asked."""
    masters = [one for one in found.members if one.is_master]
    by, to, slot = chance.choice(masters), chance.choice(masters), chance.randrange(4)
    action = chance.choice(ACTIONS)
    if action == "promote":
        found.promote(chance.choice([one for one in found.members if not one.is_master]))
    elif action == "bump":
        found.bump(by)
    elif action == "add":
        found.add_slots(by, [slot, slot + 1])
    elif action == "delete":
        found.delete_slots(by, [slot, slot + 1])
    else:
        found.set_slot(by, slot, action, "" if action == "STABLE" else to.id)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_any_changes_leave_each_slot_one_owner_and_each_master_its_epoch(seed: int) -> None:
    chance = random.Random(seed)
    found = new_map(3, 1)
    for _ in range(40):
        change(found, chance)
        check(found)


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_the_text_keeps_the_whole_map(seed: int) -> None:
    chance = random.Random(seed)
    found = new_map(3, 1)
    for _ in range(40):
        change(found, chance)

    text = found.written(found.members[1].id)
    read = cluster_map.read(text)

    assert read.written(read.myself) == text
    assert read.own().id == found.members[1].id
    check(read)


@pytest.mark.parametrize(
    ("masters", "slots"),
    [
        (1, [(0, 16383)]),
        (2, [(0, 8191), (8192, 16383)]),
        (3, [(0, 5460), (5461, 10922), (10923, 16383)]),
        (5, [(0, 3276), (3277, 6553), (6554, 9829), (9830, 13106), (13107, 16383)]),
        (6, [(0, 2730), (2731, 5460), (5461, 8191), (8192, 10922), (10923, 13652), (13653, 16383)]),
    ],
)
def test_slots_are_divided_as_redis_cli_divides_them(masters: int, slots: list[tuple[int, int]]) -> None:
    assert [ranges(one.slots)[0] for one in new_map(masters, 0).members] == slots


def test_a_slot_that_is_given_away_is_on_its_way_no_more() -> None:
    found = new_map(2, 0)
    target, source = found.members
    found.set_slot(target, 9000, "IMPORTING", source.id)
    found.set_slot(source, 9000, "MIGRATING", target.id)

    assert found.set_slot(target, 9000, "NODE", target.id)

    assert found.owners[9000] is target
    assert (source.migrating, target.importing) == ({}, {})
    assert target.epoch == found.current_epoch == 3
    assert not found.set_slot(source, 9000, "NODE", target.id), "nothing is new"


def test_a_promoted_replica_takes_what_is_on_its_way_to_its_master() -> None:
    found = new_map(2, 1)
    source, target, replica, _ = found.members
    found.set_slot(target, 7, "IMPORTING", source.id)
    found.set_slot(source, 7, "MIGRATING", target.id)

    found.promote(replica)

    assert source.master_id == replica.id
    assert replica.migrating == {7: target.id}
    assert target.importing == {7: replica.id}
    check(found)


@pytest.mark.parametrize(
    "line",
    [
        "a b c d",
        "0fca 127.0.0.1:7000@17000 master - 0 0 1 connected 0-x",
        "0fca 127.0.0.1:x@17000 master - 0 0 1 connected 0-1",
        "0fca 127.0.0.1:7000@17000 master - 0 0 1 connected 0-16384",
        "0fca 127.0.0.1:7000@17000 master - 0 0 1 connected [93-?-abc]",
    ],
    ids=["words", "slot", "port", "range", "arrow"],
)
def test_other_texts_are_refused(line: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        cluster_map.read(line)


def test_a_node_is_shown_as_redis_shows_it() -> None:
    one = Member("e1" * 20, "127.0.0.1", 7001, 17001, bytearray(SLOTS))
    one.epoch = 3
    one.slots[5], one.slots[7:9] = 1, b"\1\1"
    one.migrating[7] = "ab"

    assert one.line(True, True) == f"{one.id} 127.0.0.1:7001@17001 myself,master - 0 0 3 connected 5 7-8 [7->-ab]"
    one.is_failed = True
    assert one.line(False, False) == f"{one.id} 127.0.0.1:7001@17001 master,fail - 0 0 3 disconnected 5 7-8"
