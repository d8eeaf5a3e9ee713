"""Simulated worlds: a server under faults of disk, network, clock and processes, replayable by a number."""

from operator import attrgetter

import pytest

from tests.support.seeds import seeds
from tests.world import casts
from tests.world.world import World

FOUND = {
    280: "a file of the log that was loaded, was not synced, and was torn amid the log after a rewrite",
    70: "what a killed process had confirmed was not synced by the next one",
    226: "a reader that blocked right after a jump of the clock waited as long as the jump",
    648: "a log whose files could not be read at the start stayed locked",
}
FOUND_OF_CASTS = {
    (casts.SYNCS, 26): "what a sync had failed to write was trusted after a kill: the log had a hole, and did not load",
    (casts.RIGHTS, 52): "LMOVEM of a whole list onto itself lost the key's time at a restart",
    (casts.SYNCS, 96): "what was confirmed after such a hole was cut off",
}


@pytest.mark.parametrize("seed", seeds(60, 600))
def test_no_judge_objects_to_a_world(seed: int) -> None:
    assert World(seed).run() == []


@pytest.mark.parametrize("seed", seeds(12, 300))
@pytest.mark.parametrize(
    "cast", [cast for cast in casts.ALL.values() if cast is not casts.QUEUES], ids=attrgetter("name")
)
def test_no_judge_objects_to_a_world_of_another_cast(cast: casts.Cast, seed: int) -> None:
    assert World(seed, cast).run() == []


@pytest.mark.parametrize("seed", FOUND, ids=[str(seed) for seed in FOUND])
def test_no_judge_objects_to_a_world_in_which_something_was_found(seed: int) -> None:
    assert World(seed).run() == []


@pytest.mark.parametrize(("cast", "seed"), FOUND_OF_CASTS, ids=[f"{cast.name} {seed}" for cast, seed in FOUND_OF_CASTS])
def test_no_judge_objects_to_a_world_of_a_cast_in_which_something_was_found(cast: casts.Cast, seed: int) -> None:
    assert World(seed, cast).run() == []


def test_a_world_happens_again_by_its_number() -> None:
    worlds = [World(7, is_told=True) for _ in range(2)]
    for world in worlds:
        world.run()

    assert worlds[0].story.lines == worlds[1].story.lines
