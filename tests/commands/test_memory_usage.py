"""MEMORY USAGE answers what Redis would take for a value, within a factor of two."""

from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from tests.support.dialogue import Dialogue
from tests.support.sized_values import requests

OF_REDIS = {  # as Redis 8.6.3 answered
    "string 0": 32,
    "string 10": 48,
    "string 40": 64,
    "string 41": 80,
    "string 1000": 1056,
    "string 100000": 102432,
    "appended 1000": 2080,
    "appended 100000": 200736,
    "integer 5": 32,
    "integer 18": 32,
    "bits 1000000": 127008,
    "hyperloglog 100": 544,
    "hyperloglog 5000": 14368,
    "list 1 6": 41,
    "list 1 20": 61,
    "list 1 200": 243,
    "list 100 6": 239,
    "list 100 20": 2239,
    "list 100 100": 10490,
    "list 1000 6": 2911,
    "list 1000 20": 22245,
    "list 1000 200": 205455,
    "list 10000 20": 221565,
    "list 100000 6": 466223,
    "list 100000 20": 2214930,
    "set 1 6": 42,
    "set 1 20": 61,
    "set 1 200": 368,
    "set 100 6": 240,
    "set 100 20": 2239,
    "set 100 100": 15224,
    "set 1000 6": 37170,
    "set 1000 20": 54280,
    "set 1000 200": 256280,
    "set 10000 20": 656696,
    "set 100000 6": 4661842,
    "set 100000 20": 6172952,
    "zset 1 6": 43,
    "zset 1 20": 63,
    "zset 1 200": 1104,
    "zset 100 6": 439,
    "zset 100 20": 2439,
    "zset 100 100": 20504,
    "zset 1000 6": 85992,
    "zset 1000 20": 102024,
    "zset 1000 200": 293144,
    "zset 10000 20": 1129576,
    "zset 100000 6": 9303016,
    "zset 100000 20": 10910408,
    "hash 1 6": 43,
    "hash 1 20": 83,
    "hash 1 200": 580,
    "hash 100 6": 439,
    "hash 100 20": 4439,
    "hash 100 100": 26424,
    "hash 1000 6": 44060,
    "hash 1000 20": 78280,
    "hash 1000 200": 468280,
    "hash 10000 20": 896696,
    "hash 100000 6": 5550732,
    "hash 100000 20": 8572952,
    "timed-hash 1 20": 117,
    "timed-hash 100 20": 5463,
    "timed-hash 1000 20": 96280,
    "stream 1 1 1": 306,
    "stream 1 5 10": 395,
    "stream 100 1 1": 1395,
    "stream 100 5 10": 7230,
    "stream 100 1 1000": 102687,
    "stream 10000 1 10": 205788,
    "stream 10000 5 10": 694806,
    "stream 100000 1 10": 2055624,
    "groups 1": 629,
    "groups 1000": 170069,
    "consumers 1000": 111143,
    "pending 1 1": 861,
    "pending 100 1": 16110,
    "pending 10000 1": 1537383,
    "pending 10000 10": 1538474,
    "acknowledged 10000": 827431,
    "trimmed 10000 10": 1395,
    "trimmed 1000 0": 256,
    "with-holes 10000": 115788,
}


def cases() -> Iterator[ParameterSet]:
    """A hundred thousand parts are slow to make, and are measured as ten thousand are."""
    for name, size in OF_REDIS.items():
        _, count, *sizes = name.split()
        yield pytest.param(name, size, id=name, marks=[pytest.mark.slow] if sizes and count == "100000" else [])


@pytest.mark.parametrize(("name", "size"), list(cases()))
def test_usage_is_about_that_of_redis(dialogue: Dialogue, name: str, size: int) -> None:
    for request in requests(name):
        dialogue.words(*[word.encode() for word in request])

    assert size / 2 <= dialogue("MEMORY USAGE k") <= size * 2


def test_usage_counts_the_name_of_the_key(dialogue: Dialogue) -> None:
    dialogue(f"SET {'k' * 1000} v")

    assert 1000 <= dialogue(f"MEMORY USAGE {'k' * 1000}") <= 2000


def test_samples_0_measures_every_part(dialogue: Dialogue) -> None:
    short = [b"%04d" % number for number in range(600)]
    words = [*short, *[short[number] * 100 for number in range(200)]]
    dialogue.words(b"SADD", b"k", *words)

    assert dialogue("MEMORY USAGE k") * 2 < dialogue("MEMORY USAGE k SAMPLES 0")


def test_purge_has_the_c_library_give_free_memory_back(dialogue: Dialogue) -> None:
    given: list[str] = []
    dialogue.engine.memory.give_back = lambda: given.append("back")

    assert dialogue("MEMORY PURGE") == b"OK"
    assert given == ["back"]
