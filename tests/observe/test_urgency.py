"""The ranking of groups by what needs an operator, and what the metrics make of it."""

import random

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.observe import snapshot, stream_text, urgency
from penstock.observe.metrics_server import ServerCollector
from penstock.observe.snapshot import Snapshot
from penstock.observe.stream_choice import GROUPS_A_STEP, StreamChoice
from tests.support.dialogue import Dialogue
from tests.support.scraping import values_of
from tests.support.seeds import seeds

MOST = 5


def with_streams(dialogue: Dialogue, chance: random.Random, count: int) -> None:
    """Streams that are named by their age; some have groups, with consumers of their own."""
    for number in range(count):
        key = f"s{number:04}"
        dialogue(f"XADD {key} 1-0 f v", f"XADD {key} 2-0 f v")
        for group in range(chance.choice([0, 0, 1, 2])):
            dialogue(f"XGROUP CREATE {key} g{group} 0")


def make_stuck(dialogue: Dialogue, clock: ManualClock, keys: list[str]) -> None:
    """Each key's group has an old pending entry, the first one the oldest."""
    for key in keys:
        dialogue(f"XGROUP CREATE {key} stuck 0", f"XREADGROUP GROUP stuck alice COUNT 1 STREAMS {key} >")
        clock.advance(300_000)


def chosen_in(engine: Engine, choice: StreamChoice) -> list[str]:
    for _ in choice.choose(engine, MOST, "*"):
        pass
    return [key.decode() for _, key in choice.chosen]


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_stuck_streams_are_shown_first_wherever_they_are(
    seed: int, dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    chance = random.Random(seed)
    with_streams(dialogue, chance, chance.randrange(MOST + 1, 60))
    stuck = chance.sample(sorted(name.decode() for name in engine.keyspace.databases[0].streams), 3)
    make_stuck(dialogue, clock, stuck)

    assert chosen_in(engine, StreamChoice())[:3] == stuck


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_a_walk_of_several_scrapes_finds_what_one_scrape_finds(
    seed: int, dialogue: Dialogue, engine: Engine, clock: ManualClock
) -> None:
    chance = random.Random(seed)
    with_streams(dialogue, chance, chance.randrange(MOST + 1, 60))
    make_stuck(dialogue, clock, chance.sample(sorted(key.decode() for key in engine.keyspace.databases[0].streams), 4))
    several = StreamChoice(piece=3, pieces=2)
    for _ in range(10):
        chosen_in(engine, several)

    assert chosen_in(engine, several)[:4] == chosen_in(engine, StreamChoice())[:4]


def test_a_step_looks_at_a_bounded_number_of_groups(dialogue: Dialogue, engine: Engine) -> None:
    dialogue(*[f"XADD s{number} 1-0 f v" for number in range(MOST + 1)])
    dialogue(*[f"XGROUP CREATE s0 g{number} 0" for number in range(10 * GROUPS_A_STEP)])

    assert sum(1 for _ in StreamChoice().choose(engine, MOST, "*")) >= 10


def test_scrapes_look_at_a_bounded_number_of_streams(dialogue: Dialogue, engine: Engine) -> None:
    dialogue(*[f"XADD s{number} 1-0 f v" for number in range(1000)])
    choice = StreamChoice(GROUPS_A_STEP, 2)
    chosen_in(engine, choice)

    assert sum(1 for _ in choice.choose(engine, MOST, "*")) == 2


def test_a_lag_that_grows_comes_before_a_larger_one_that_does_not(dialogue: Dialogue, engine: Engine) -> None:
    dialogue(*[f"XADD s{number} 1-0 f v" for number in range(MOST + 1)], *["XADD s0 * f v"] * 9)
    dialogue("XGROUP CREATE s0 g 0", "XGROUP CREATE s3 g 0")
    choice = StreamChoice()
    first = chosen_in(engine, choice)

    dialogue("XADD s3 * f v")

    assert (first[:2], chosen_in(engine, choice)[:2]) == (["s0", "s3"], ["s3", "s0"])


def test_pending_entries_without_a_series_are_counted(dialogue: Dialogue, engine: Engine, clock: ManualClock) -> None:
    dialogue("CONFIG SET metrics-max-streams 2", *[f"XADD s{number} 1-0 f v" for number in range(9)])
    make_stuck(dialogue, clock, ["s8", "s6", "s7"])
    taken = Snapshot()
    for _ in snapshot.take(engine, taken):
        pass
    registry = CollectorRegistry()
    registry.register(ServerCollector(taken))
    values = values_of(generate_latest(registry).decode() + "".join(stream_text.pieces(taken)))

    assert [name[2] for name in values if name[0] == "redis_stream_length"] == ["s8", "s6"]
    assert values["penstock_metrics_left_out", "streams"] == 7
    assert values["penstock_metrics_left_out", "streams_with_pending"] == 1


SIGNS = [
    pytest.param((90_000, 0, 0, 0, 0, 1), (59_000, 0, 0, 0, 0, 9), id="an old pending entry"),
    pytest.param((0, 5, 0, 0, 5, 0), (0, 0, 0, 0, 99, 0), id="a lag that grows"),
    pytest.param((0, 0, 1, 0, 0, 1), (0, 0, 0, 7, 0, 9), id="consumers that are gone"),
    pytest.param((0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 99, 9), id="dead letters"),
    pytest.param((0, 0, 0, 0, 2, 0), (0, 0, 0, 0, 1, 9), id="lag"),
    pytest.param((10, 0, 0, 0, 0, 2), (20, 0, 0, 0, 0, 1), id="pending entries"),
]


@pytest.mark.parametrize(("first", "second"), SIGNS)
def test_one_sign_comes_before_the_next(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    assert urgency.rank(*first) < urgency.rank(*second) < urgency.WITHOUT_GROUPS
