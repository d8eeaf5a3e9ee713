"""Extended regular expressions of ARGREP, beside those of Python, which mean the same where both know a form."""

import random
import re
from typing import Final

import pytest

from penstock.engine.matching.regexes import MOST_PLACES, Regex
from penstock.errors import ReplyError
from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds

LETTERS: Final = "abB"


def pattern(chance: random.Random, depth: int) -> tuple[str, str]:
    """A random pattern, and the same as Python writes it."""
    roll = chance.random()
    if depth == 0 or roll < 0.35:
        plain = [(letter, letter) for letter in LETTERS]
        others = [
            (".", "."), ("[ab]", "[ab]"), ("[^a]", "[^a]"), ("[a-c]", "[a-c]"), ("^", r"\A"), ("$", r"\Z"),
            (r"\w", r"\w"), (r"\W", r"\W"), (r"\d", r"\d"), (r"\s", r"\s"), (r"\b", r"\b"), (r"\B", r"\B"),
            (r"\.", r"\."), ("[[:upper:]]", "[A-Z]"), ("[]x]", r"[\]x]"), (r"\x41", r"\x41"), ("", ""),
            ("[[:space:]_]", r"[\s_]"), ("[x-]", "[x-]"), (r"\n", r"\n"),
        ]  # fmt: skip
        return chance.choice(plain * 5 + others)
    if roll < 0.6:
        pairs = [pattern(chance, depth - 1) for _ in range(chance.randrange(1, 4))]
        return "".join(pair[0] for pair in pairs), "".join(pair[1] for pair in pairs)
    ours, theirs = pattern(chance, depth - 1)
    if roll < 0.8:
        more = pattern(chance, depth - 1)
        return f"({ours}|{more[0]})", f"(?:{theirs}|{more[1]})"
    times = chance.choice(("*", "+", "?", "{2}", "{1,2}", "{2,}", "{0,1}", "{,2}"))
    return f"({ours}){times}", f"(?:{theirs}){times.replace('{,', '{0,')}"


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_text_matches_where_it_does_in_python(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1500):
        ours, theirs = pattern(chance, 3)
        no_case = chance.random() < 0.3
        flags = re.DOTALL | (re.IGNORECASE if no_case else 0)
        expected = re.compile(theirs.encode(), flags)
        regex = Regex(ours.encode(), no_case) if ours else None
        for _ in range(6):
            text = "".join(chance.choice("aabbB ]x_1.A\n") for _ in range(chance.randrange(1, 8))).encode()
            if regex is not None:  # no text is empty: Python's \B did not match that before 3.14
                shown = text.lower() if no_case else text
                assert regex.matches(shown) == bool(expected.search(text)), (ours, text, no_case)


@pytest.mark.parametrize(
    ("regex", "refusal"),
    [
        ("(a", "Missing ')'"), ("a)", "Missing '('"), ("[a", "Missing ']'"), ("a{1", "Missing '}'"),
        ("a{2,1}", "Invalid contents of {}"), ("a{256}", "Invalid contents of {}"), ("a{x}", "Invalid contents of {}"),
        ("a{}", "Invalid contents of {}"), ("a{,}", "Invalid contents of {}"), ("[b-a]", "Invalid character range"),
        ("[[:foo:]]", "Unknown character class name"), ("[[.ab.]]", "Unknown collating element"),
        ("a\\", "Trailing backslash"), ("*a", "Invalid use"),
        ("a|+", "Invalid use"), (r"\x{zz}", "Invalid regexp"), ("(" * 51 + ")" * 51, "nested too deeply"),
        ("a" + "*" * 300, "nested too deeply"), ("((a{255}){255}){255}", "Out of memory"),
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(regex: str, refusal: str) -> None:
    with pytest.raises(ReplyError, match=re.escape(refusal)):
        Regex(regex.encode())


def test_a_pattern_that_takes_too_many_steps_ends_with_an_error() -> None:
    regex = Regex(b"(a|b)*a(a|b){200}c", most_steps=100_000)
    chance = random.Random(1)

    with pytest.raises(ReplyError, match="takes too long"):
        regex.matches(bytes(chance.choices(b"ab", k=100_000)))


def test_many_sets_of_places_are_forgotten_and_found_again() -> None:
    regex = Regex(b"(a|b)*a(a|b){250}c", most_steps=10_000_000)
    chance = random.Random(2)
    text = bytes(chance.choices(b"ab", k=2000))

    assert not regex.matches(text)
    assert regex.matches(text + b"a" * 251 + b"c")


def test_repeating_nothing_ends(dialogue: Dialogue) -> None:
    assert Regex(b"(){255}{255}{255}{255}x").matches(b"yx")
    assert MOST_PLACES < 255**2


def test_argrep_takes_regular_expressions(dialogue: Dialogue) -> None:
    dialogue("ARSET a 0 error42 Error warning 'an error'")

    assert dialogue("ARGREP a - + RE '^error[0-9]+$'") == [0]
    assert dialogue("ARGREP a - + RE '(err|warn)' NOCASE") == [0, 1, 2, 3]
    assert dialogue("ARGREP a + - RE error EXACT warning LIMIT 2") == [3, 2]
    assert dialogue("ARGREP a - + RE '^e' RE '2$' AND WITHVALUES") == [[0, b"error42"]]
    assert dialogue("ARGREP nokey - + RE x") == []


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("ARGREP nokey 0 1 RE ''", "ERR regular expression is empty"),
        (f"ARGREP nokey 0 1 RE {'x' * 2049}", "ERR regular expression is too long, maximum is 2048 bytes"),
        (r"ARGREP nokey 0 1 RE '(a)\1'", "ERR regular expression backreferences are not supported"),
        ("ARGREP nokey 0 1 RE '('", "ERR invalid regular expression: Missing ')'"),
        ("ARGREP a 0 1 RE", "ERR wrong number of arguments for 'argrep' command"),
    ],
    ids=range(5),
)
def test_argrep_refuses_them_before_it_looks_at_the_key(dialogue: Dialogue, line: str, refusal: str) -> None:
    assert str(dialogue(line)) == refusal
