"""Glob patterns over bytes of every kind, short ones and long ones, as a real Redis matches them."""

from random import Random
from typing import Any

import pytest

from penstock.engine.matching.globs import LONGEST_EXPRESSION, Glob, is_plain
from tests.against_redis.conftest import Reference
from tests.support.seeds import seeds
from tests.support.wire import Array, Bulk, parse

SPECIAL = [b"*", b"?", b"[", b"]", b"^", b"-", b"\\"]
LETTERS = [b"a", b"b", b"c", b"A", b"B", b"Z", b"\0", b"\n", b"\xe0", b"\xff", b"_"]


def some_pattern(random: Random, most: int) -> bytes:
    return b"".join(random.choices([*SPECIAL, *LETTERS], k=random.randint(1, most)))


def some_key(random: Random) -> bytes:
    return b"".join(random.choices([*LETTERS, b"]", b"-", b"\\", b"*"], k=random.randint(1, 9)))


def fitting_pattern(random: Random, key: bytes, length: int) -> bytes:
    """A long pattern that a key of repeated bytes may fit."""
    words = [b"?", b"*?", b"[" + key[:1] + b"]", b"[^\0]", b"[a-z]", b"\\" + key[:1], key[:1]]
    return b"".join(random.choices(words, weights=[3, 1, 3, 3, 3, 3, 9], k=length))


def asked(reference: Any, *request: bytes) -> list[bytes]:
    reference.piped.send([list(request)])
    value, _ = parse(reference.piped.answer(), 0)
    assert isinstance(value, Array)
    return [word.text for word in value.elements if isinstance(word, Bulk)]


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_keys_fit_the_patterns_that_they_fit_in_redis(reference: Reference, seed: int) -> None:
    random = Random(seed)
    keys = [some_key(random) for _ in range(300)]
    reference.piped.send([[b"FLUSHALL"]])
    reference.piped.answer()
    asked_keys = set(keys)
    reference.piped.send([[b"SET", key, b"v"] for key in asked_keys])
    for _ in asked_keys:
        reference.piped.answer()
    for _ in range(500):
        pattern = some_pattern(random, 9)
        glob = Glob(pattern)
        assert set(asked(reference, b"KEYS", pattern)) == {key for key in asked_keys if glob.matches(key)}, pattern


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_long_keys_fit_the_long_patterns_that_they_fit_in_redis(reference: Reference, seed: int) -> None:
    random = Random(seed)
    keys = {b"a" * length for length in range(280, 2400, 7)} | {b"ab" * length for length in range(150, 900, 11)}
    reference.piped.send([[b"FLUSHALL"], *[[b"SET", key, b"v"] for key in keys]])
    for _ in range(len(keys) + 1):
        reference.piped.answer()
    for _ in range(60):
        pattern = fitting_pattern(random, b"a", random.randint(LONGEST_EXPRESSION, 2000))
        glob = Glob(pattern)
        assert set(asked(reference, b"KEYS", pattern)) == {key for key in keys if glob.matches(key)}, pattern


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_names_of_settings_fit_patterns_in_any_case_as_in_redis(reference: Reference, seed: int) -> None:
    random = Random(seed)
    names = sorted(asked(reference, b"CONFIG", b"GET", b"*")[::2])  # Redis's own order differs by process
    for _ in range(300):
        name = random.choice(names)
        pattern = bytearray(random.choice([name, name.upper()]))
        for place in random.choices(range(len(name) - 1), k=3):
            pattern[place : place + 1] = random.choice(
                [b"*", b"?", b"[A-Z]", b"[^a-M]", b"[!-_]", b"[Z-a]", b"\\A", b"["]
            )
        if is_plain(bytes(pattern)):
            continue  # with an escape only: a name, which CONFIG GET looks up as it is
        glob = Glob(bytes(pattern), ignore_case=True)
        found = asked(reference, b"CONFIG", b"GET", bytes(pattern))[::2]
        assert set(found) == {name for name in names if glob.matches(name)}, pattern
