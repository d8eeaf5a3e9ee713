"""What rules allow, beside a naive model of them (tests/support/access_model.py)."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.access_model import (
    COMMAND_WORDS,
    COMMANDS,
    KEY_NAMES,
    PATTERNS,
    REQUESTS,
    allows,
    in_parentheses,
    without_useless,
)
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine

NAMES = st.sampled_from(KEY_NAMES)
COMMAND_RULES = st.builds(lambda sign, name: sign + name, st.sampled_from("++-"), st.sampled_from(COMMAND_WORDS))
KEY_RULES = st.builds(
    lambda kind, pattern: kind + pattern, st.sampled_from(["~", "%R~", "%W~"]), st.sampled_from(PATTERNS)
)
CHANNEL_RULES = st.builds(lambda pattern: "&" + pattern, st.sampled_from(PATTERNS))
ONE_RULE = st.one_of(COMMAND_RULES, COMMAND_RULES, KEY_RULES, CHANNEL_RULES)
SELECTORS = st.lists(st.lists(ONE_RULE, max_size=6), min_size=1, max_size=3)
ENGINE = make_engine()


@given(SELECTORS, st.sampled_from(list(COMMANDS)), NAMES, NAMES)
def test_a_request_is_allowed_if_one_selector_allows_all_of_it(
    selectors: list[list[str]], name: str, first: str, second: str
) -> None:
    root, *others = [without_useless(rules) for rules in selectors]
    request = REQUESTS[name].format(first, second)
    dialogue = Dialogue(ENGINE)

    made = dialogue.words(b"ACL", b"SETUSER", b"u", b"reset", *map(str.encode, root), *map(in_parentheses, others))
    answer = dialogue(f"ACL DRYRUN u {request}")

    assert made == b"+OK\r\n"
    assert (answer == b"OK") is any(allows(rules, name, request.split()) for rules in (root, *others))
