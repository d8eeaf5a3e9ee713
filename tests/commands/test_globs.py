"""The pattern language of KEYS, beside a naive matcher and what Redis 8.6.3 answered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.commands import globs

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
]
FOLDED = [
    (b"MAX*", b"maxmemory", True),
    (b"[M-P]ort", b"port", True),
    (b"[Z-a]", b"z", False),
    (b"[!-_]", b"z", False),
    (b"[Z]", b"z", True),
    (b"\\P?RT", b"port", True),
]


@pytest.mark.parametrize(("pattern", "text", "fits"), CORNERS)
def test_a_corner_of_the_dialect_is_as_in_redis(pattern: bytes, text: bytes, fits: bool) -> None:
    assert globs.matches(pattern, text) is fits


@pytest.mark.parametrize(("pattern", "text", "fits"), FOLDED)
def test_case_may_be_ignored(pattern: bytes, text: bytes, fits: bool) -> None:
    assert globs.matches(pattern, text, ignore_case=True) is fits


def test_a_pattern_of_many_stars_is_answered_at_once() -> None:
    assert not globs.matches(b"a*" * 200 + b"b", b"a" * 20_000)


def naive(pattern: str, text: str) -> bool:
    """Stars, question marks and plain letters, by trying everything."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(naive(pattern[1:], text[skipped:]) for skipped in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and naive(pattern[1:], text[1:])


@given(st.text("ab*?", max_size=8), st.text("ab", min_size=1, max_size=8))
def test_stars_find_what_trying_everything_finds(pattern: str, text: str) -> None:
    assert globs.matches(pattern.encode(), text.encode()) is naive(pattern, text)
