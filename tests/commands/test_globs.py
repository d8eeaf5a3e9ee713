"""The pattern language of KEYS, beside a naive matcher and what Redis 8.6.3 answered."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.matching import globs
from penstock.engine.matching.long_globs import LongGlob

CORNERS = [
    (b"", b"", True),
    (b"", b"a", False),
    (b"*", b"a", True),
    (b"*", b"", False),  # PSUBSCRIBE * hears nothing of a channel without a name
    (b"**", b"", False),
    (b"a*", b"a", True),
    (b"*a", b"ba\r\na", True),
    (b"a?c", b"a\nc", True),
    (b"a?c", b"ac", False),
    (b"[abc]", b"b", True),
    (b"[a-c]", b"d", False),
    (b"[c-a]", b"b", True),
    (b"[^a-c]", b"d", True),
    (b"[^a-c]", b"b", False),
    (b"[]", b"]", False),
    (b"[^]", b"a", True),
    (b"[a", b"a", True),
    (b"[", b"[", False),
    (b"[a-", b"-", True),
    (b"[\\]]", b"]", True),
    (b"[\\", b"\\", True),
    (b"\\*", b"*", True),
    (b"\\*", b"a", False),
    (b"a\\", b"a\\", True),
    (b"a]", b"a]", True),
    (b"h[\xe0-\xff]", b"h\xe9", True),
    (b"[a-\xe0]", b"b", False),  # C's bytes are signed: from -32 to 97
    (b"[a-\xe0]", b"B", True),
    (b"[a-\xe0]", b"\xff", True),
]
FOLDED = [
    (b"MAX*", b"maxmemory", True),
    (b"[M-P]ort", b"port", True),
    (b"[Z-a]", b"z", False),
    (b"[!-_]", b"z", False),
    (b"[Z]", b"z", True),
    (b"\\P?RT", b"port", True),
    (b"[\\P]ort", b"port", False),  # escaped in a class, it is not folded
    (b"[\\P]ort", b"Port", True),
    (b"[^P]ort", b"Port", False),
]


@pytest.mark.parametrize(("pattern", "text", "fits"), CORNERS)
def test_what_fits_starts_as_the_pattern_says(pattern: bytes, text: bytes, fits: bool) -> None:
    assert text.startswith(globs.Glob(pattern).start()) >= fits


@pytest.mark.parametrize(
    ("pattern", "start"),
    [(b"", b""), (b"key:*", b"key:"), (b"key", b"key"), (b"a?c", b"a"), (b"a\\*", b"a"), (b"*a", b"")],
)
def test_a_pattern_starts_with_all_before_its_first_sign(pattern: bytes, start: bytes) -> None:
    assert globs.Glob(pattern).start() == start


@pytest.mark.parametrize(("pattern", "text", "fits"), CORNERS)
def test_a_corner_of_the_dialect_is_as_in_redis(pattern: bytes, text: bytes, fits: bool) -> None:
    assert globs.matches(pattern, text) is fits


@pytest.mark.parametrize(("pattern", "text", "fits"), FOLDED)
def test_case_may_be_ignored(pattern: bytes, text: bytes, fits: bool) -> None:
    assert globs.matches(pattern, text, ignore_case=True) is fits


def test_a_pattern_of_many_stars_is_answered_at_once() -> None:
    assert not globs.matches(b"a*" * 200 + b"b", b"a" * 20_000)


@pytest.mark.parametrize(
    "pattern",
    [b"?" * 2_000_000, b"a*" * 1_000_000, b"*" * 2_000_000, b"?a" * 1_000_000, b"[ab]" * 500_000, b"*?" * 1_000_000],
    ids=["any", "stars", "only-stars", "runs", "classes", "any-and-stars"],
)
def test_a_pattern_of_two_million_bytes_takes_little_memory(pattern: bytes) -> None:
    tracemalloc.start()
    glob = globs.Glob(pattern)
    for text in (b"a", b"a" * 1000):
        glob.matches(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 2 * len(pattern)


def test_a_pattern_of_two_hundred_thousand_bytes_is_read_to_its_end_for_a_text_as_long() -> None:
    assert globs.matches(b"?a" * 100_000, b"ba" * 100_000)
    assert not globs.matches(b"?a" * 100_000, b"ba" * 99_999 + b"bb")


@pytest.mark.parametrize(("pattern", "stars"), [(b"a*", 1001), (b"a*", 1002), (b"*a", 1000), (b"*a", 1001)])
def test_a_pattern_with_more_than_a_thousand_stars_before_something_matches_nothing(pattern: bytes, stars: int) -> None:
    """A star at the end counts for nothing (Redis 8.6.3)."""
    assert globs.matches(pattern * stars, b"a" * 2000) is (stars <= 1000 or (pattern, stars) == (b"a*", 1001))


def test_a_long_piece_is_found_behind_a_star() -> None:
    pattern = b"*" + b"[ab]?" * 5000 + b"c*"

    assert not globs.matches(pattern, b"ab" * 20_000)
    assert globs.matches(pattern, b"ab" * 20_000 + b"c")


def naive(pattern: bytes, text: bytes) -> bool:
    """By trying everything."""
    if not pattern:
        return not text
    first, rest = pattern[:1], pattern[1:]
    if first == b"*":
        return any(naive(rest, text[skipped:]) for skipped in range(len(text) + 1))
    if first == b"[":
        members, rest = naive_class(rest)
        return bool(text) and text[0] in members and naive(rest, text[1:])
    if first == b"\\" and rest:
        first, rest = rest[:1], rest[1:]
    elif first == b"?":
        first = text[:1]
    return bool(text) and first == text[:1] and naive(rest, text[1:])


def naive_class(pattern: bytes) -> tuple[set[int], bytes]:
    members: set[int] = set()
    negated = pattern.startswith(b"^")
    rest = pattern[negated:]
    while rest and not rest.startswith(b"]"):
        if rest.startswith(b"\\") and len(rest) > 1:
            members.add(rest[1])
            rest = rest[2:]
        elif rest[1:2] == b"-" and len(rest) > 2:
            members.update(range(min(rest[0], rest[2]), max(rest[0], rest[2]) + 1))  # of ASCII
            rest = rest[3:]
        else:
            members.add(rest[0])
            rest = rest[1:]
    return (set(range(256)) - members if negated else members), rest[1:]


LETTERS = st.sampled_from([bytes([letter]) for letter in b"abc*?[]^-\\"])
PATTERNS = st.lists(LETTERS, max_size=12).map(b"".join)
TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"]", b"-", b"\\"]), min_size=1, max_size=9).map(b"".join)


@given(PATTERNS, TEXTS)
def test_every_pattern_fits_what_trying_everything_finds(pattern: bytes, text: bytes) -> None:
    assert globs.matches(pattern, text) is naive(pattern, text)


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=4))
def test_a_long_pattern_fits_what_trying_everything_finds(pattern: bytes, texts: list[bytes]) -> None:
    """Any pattern may be read as a long one; it is read further for each text."""
    glob = LongGlob(pattern, ignore_case=False)

    assert [glob.matches(text) for text in texts] == [naive(pattern, text) for text in texts]


@given(st.binary(max_size=12), st.binary(min_size=1, max_size=6))
def test_a_long_pattern_ignores_case_as_a_short_one_does(pattern: bytes, text: bytes) -> None:
    assert LongGlob(pattern, ignore_case=True).matches(text) is globs.matches(pattern, text, ignore_case=True)
