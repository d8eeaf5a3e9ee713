"""Laws of policies over random histories (history.py); `python -m tests.policies.test_policy_laws 20000` by hand."""

import sys

import hypothesis
from hypothesis import strategies

from tests.policies.history import Step, picture, told

numbers = strategies.integers(0, 10_000)
histories = strategies.lists(strategies.tuples(strategies.integers(0, 16), numbers, numbers), min_size=20, max_size=80)


@hypothesis.given(histories)
@hypothesis.settings(max_examples=15, derandomize=True)
def test_nothing_is_lost_and_a_restart_finds_the_same(steps: list[Step]) -> None:
    told(steps).check_log()


@hypothesis.given(histories)
@hypothesis.settings(max_examples=8, derandomize=True)
def test_nothing_depends_on_how_the_clock_is_moved(steps: list[Step]) -> None:
    assert picture(told(steps, pieces=1)) == picture(told(steps, pieces=3))


if __name__ == "__main__":
    examples = hypothesis.settings(max_examples=int(sys.argv[1]), derandomize=False, deadline=None, print_blob=True)
    examples(hypothesis.given(histories)(lambda steps: told(steps).check_log()))()
