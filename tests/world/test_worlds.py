"""Simulated worlds: a server under faults of disk, network, clock and processes, replayable by a number."""

import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from tests.support.seeds import seeds
from tests.world import casts
from tests.world.world import World

ROOT = Path(__file__).parents[2]
FOUND = {
    280: "a file of the log that was loaded, was not synced, and was torn amid the log after a rewrite",
    70: "what a killed process had confirmed was not synced by the next one",
    226: "a reader that blocked right after a jump of the clock waited as long as the jump",
    648: "a log whose files could not be read at the start stayed locked",
}
TURNED_BACK = {  # found when a mend was taken back
    14: "XDELEX DELREF that only drops references was not logged",
    38: "replies were sent before the log was written",
}
FOUND_OF_CASTS = {
    (casts.SYNCS, 26): "what a sync had failed to write was trusted after a kill: the log had a hole, and did not load",
    (casts.RIGHTS, 52): "LMOVEM of a whole list onto itself lost the key's time at a restart",
    (casts.QUOTAS, 70): "zeros that a loss of power left in a private line were a word of it: the log did not load",
    (casts.LIMITS, 50_059): "a policy that may evict, set after a limit, evicted nothing until the next request",
    (
        casts.SAVES,
        50_091,
    ): "a reader waited as long as a second jump of the clock, which went back to where it was",
    (casts.SYNCS, 96): "what was confirmed after such a hole was cut off",
}
TURNED_BACK_OF_CASTS = {
    (casts.SWITCHES, 71): "writes were confirmed while the log was held for its first base",
    (casts.GROUPS, 2): "entries were read before earlier ones of their key were done",
    (casts.QUOTAS, 2): "a restart began a new span of RATE",
    (casts.DUMPS, 13): "FLUSHALL did not save: what it had emptied came back",
    (casts.DUMPS, 15): "a child put its file in place after its server had been killed, over a newer one",
    (casts.READERS, 5_000_001): "blocked requests had falling numbers: the last one was served first",
    (casts.WAITING, 5_000_000): "what one request offered went to readers in another order than that of their coming",
    (casts.READERS, 2): "readers of a group were served last come first served",
    (casts.REWINDS, 20): "an entry behind a raised and lowered last id came into a segment with lower ids",
    (casts.SUBSCRIBERS, 0): "the last of several subscribers was sent nothing; several messages came in reversed order",
    (casts.LIMITS, 3): "what was over the limit was evicted by the next request only",
}
FOUND_OF_ANY = FOUND_OF_CASTS | TURNED_BACK_OF_CASTS


@pytest.mark.parametrize("seed", seeds(8, 100))
def test_no_judge_objects_to_a_world(seed: int) -> None:
    assert World(seed).run() == []


@pytest.mark.parametrize("seed", seeds(2, 50))
@pytest.mark.parametrize(
    "cast",
    [cast for cast in casts.ALL.values() if cast.name not in ("queues", "batches", "importers", "reruns")],
    ids=attrgetter("name"),
)
def test_no_judge_objects_to_a_world_of_another_cast(cast: casts.Cast, seed: int) -> None:
    assert World(seed, cast).run() == []


@pytest.mark.parametrize("seed", FOUND | TURNED_BACK)
def test_no_judge_objects_to_a_world_in_which_something_was_found(seed: int) -> None:
    assert World(seed).run() == []


@pytest.mark.parametrize(("cast", "seed"), FOUND_OF_ANY, ids=[f"{cast.name} {seed}" for cast, seed in FOUND_OF_ANY])
def test_no_judge_objects_to_a_world_of_a_cast_in_which_something_was_found(cast: casts.Cast, seed: int) -> None:
    assert World(seed, cast).run() == []


def test_a_world_happens_again_by_its_number() -> None:
    worlds = [World(7, is_told=True) for _ in range(2)]
    for world in worlds:
        world.run()

    assert worlds[0].story.lines == worlds[1].story.lines


@pytest.mark.parametrize(("cast", "seed"), [(casts.REWINDS, 0), (casts.DUMPS, 1)], ids=["rewinds", "dumps"])
def test_each_byte_of_a_world_whose_administrator_asks_info_is_sent_again(cast: casts.Cast, seed: int) -> None:
    worlds = [World(seed, cast) for _ in range(2)]
    for world in worlds:
        world.run()

    assert worlds[0].network.digest() == worlds[1].network.digest()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--seeds", "1"], ["--servers", "--seeds", "1-3"]], ids=["casts", "servers"])
def test_each_byte_of_a_world_is_sent_again_in_another_process(words: list[str]) -> None:
    lines = [
        subprocess.run(
            [sys.executable, "-m", "tests.world", *words],
            cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for seed in ("1", "2")
    ]  # fmt: skip

    assert lines[0][-1].startswith("bytes of all worlds: ")
    assert lines[0][-1] == lines[1][-1]
