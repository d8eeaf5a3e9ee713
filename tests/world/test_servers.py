"""Simulated worlds of a master and two replicas, whose master changes by watchers, by FAILOVER, or not at all."""

from operator import attrgetter

import pytest

from tests.support.seeds import found, seeds
from tests.world.replicas import ServersCast, ServersWorld
from tests.world.server_casts import DISKS, LIMITS

FOUND = {
    51: "a ping of the turn in which a copy began followed the copy, too: the replica's offset was ahead",
    71: "as 51, with both replicas",
    268: "a key that had expired in the base, and was kept by the log behind it, was lost at a restart",
    418: "a replica said of an offset of another history that it was on its disk: WAITAOF counted it",
    699: "a replica became master by FAILOVER while its log did not have the copy, and lost everything when it ended",
}

FOUND_OF_CASTS = {
    (DISKS, 5_000_002): "turned back: a replica said of an offset that was not synced that it was on its disk",
    (LIMITS, 5_000_006): "a replica with replica-ignore-maxmemory no evicted nothing",
    (LIMITS, 2005): "the judge's: a replica had evicted a key that the master changed afterwards",
}
LONG = {418, 5_000_006}


@pytest.mark.parametrize("seed", seeds(2, 50))
def test_no_judge_objects_to_a_world_of_servers(seed: int) -> None:
    assert ServersWorld(seed).run() == []


@pytest.mark.parametrize("seed", found(FOUND, LONG), ids=[str(seed) for seed in FOUND])
def test_no_judge_objects_to_a_world_of_servers_in_which_something_was_found(seed: int) -> None:
    assert ServersWorld(seed).run() == []


@pytest.mark.parametrize("seed", seeds(1, 25))
@pytest.mark.parametrize("cast", [DISKS, LIMITS], ids=attrgetter("name"))
def test_no_judge_objects_to_a_world_of_servers_of_another_cast(cast: ServersCast, seed: int) -> None:
    assert ServersWorld(seed, servers=cast).run() == []


@pytest.mark.parametrize(
    ("cast", "seed"), found(FOUND_OF_CASTS, LONG), ids=[f"{cast.name} {seed}" for cast, seed in FOUND_OF_CASTS]
)
def test_no_judge_objects_to_a_world_of_a_servers_cast_in_which_something_was_found(
    cast: ServersCast, seed: int
) -> None:
    assert ServersWorld(seed, servers=cast).run() == []


def test_a_world_of_servers_happens_again_by_its_number() -> None:
    worlds = [ServersWorld(5, is_told=True) for _ in range(2)]
    for world in worlds:
        world.run()

    assert worlds[0].story.lines == worlds[1].story.lines
