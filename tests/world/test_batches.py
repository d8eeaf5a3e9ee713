"""Simulated worlds with code that blocks: the pipeline's connector without Spark, and imports."""

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from tests.support.seeds import found, seeds
from tests.world import casts
from tests.world.world import World

FOUND = {
    2: "a task that was run again gave way for ever, when it did not read what it had written before",
    108: "a batch was delivered and written again by the next driver after the server had refused its acknowledgement",
    58: "an entry that was deleted hid that others were trimmed, when a query took it for the reason",
    282: "what was trimmed while a limited batch was counted was missing in silence",
    286: "entries that were added between a look at a stream and a read of its group counted as a stream set back",
}
TURNED_BACK_OF_RERUNS = {5_000_000: "a task that was run again skipped one row more than was written"}
LONG = {282, 286, 5_000_000}


@pytest.mark.parametrize("seed", [*seeds(1, 50), *found(FOUND, LONG)])
def test_no_judge_objects_to_a_world_with_a_query(seed: int) -> None:
    assert World(seed, casts.BATCHES).run() == []


@pytest.mark.parametrize("seed", [*seeds(1, 50), *found(TURNED_BACK_OF_RERUNS, LONG)])
def test_no_judge_objects_to_a_world_whose_tasks_die_amid_their_requests(seed: int) -> None:
    assert World(seed, casts.RERUNS).run() == []


@pytest.mark.parametrize("seed", seeds(1, 50))
def test_no_judge_objects_to_a_world_with_imports(seed: int) -> None:
    assert World(seed, casts.IMPORTERS).run() == []


def test_a_world_with_a_query_happens_again_by_its_number() -> None:
    worlds = [World(2, casts.BATCHES, is_told=True) for _ in range(2)]
    for world in worlds:
        world.run()

    assert worlds[0].story.lines == worlds[1].story.lines
