"""Laws of policies over random histories (history.py); `python -m tests.policies.test_policy_laws 20000` by hand."""

import sys
from collections.abc import Callable
from typing import Final

import hypothesis
from hypothesis import strategies

from tests.policies.history import Step, picture, told

SHORT: Final = 12  # steps of a history with a log that is cut at every byte

ADD: Final = (0, 0, 0)
FINISH: Final = (20, 1, 0)
numbers = strategies.integers(0, 10_000)
steps_of = strategies.tuples(strategies.integers(0, 21), numbers, numbers)
histories = strategies.lists(steps_of, min_size=20, max_size=80)


def kept_for_looking_back(kinds: tuple[int, ...]) -> strategies.SearchStrategy[list[Step]]:
    """Histories of these steps behind MAXLEN 3 ACKED, with which entries that no group needs stay for a while."""
    return strategies.tuples(
        strategies.tuples(strategies.just(1), strategies.just(1), strategies.sampled_from((0, 1))),
        strategies.lists(strategies.tuples(strategies.sampled_from(kinds), numbers, numbers), min_size=20, max_size=60),
    ).map(lambda parts: [parts[0], *parts[1]])


going_back = kept_for_looking_back((0, 0, 0, 2, 5, 8, 19, 19, 20))
passing_over = kept_for_looking_back((0, 0, 2, 5, 8, 20, 21))
short_histories = strategies.lists(steps_of, min_size=SHORT, max_size=SHORT)


def check_log(steps: list[Step]) -> None:
    told(steps).check_log()


def check_pieces(steps: list[Step]) -> None:
    assert picture(told(steps, pieces=1)) == picture(told(steps, pieces=3))


def check_cuts(steps: list[Step]) -> None:
    """At every byte; in the quick run see below."""
    told(steps).check_cuts(1)


@hypothesis.given(histories)
@hypothesis.settings(max_examples=12, derandomize=True)
def test_nothing_is_lost_and_a_restart_finds_the_same(steps: list[Step]) -> None:
    check_log(steps)


@hypothesis.given(going_back)
@hypothesis.example([(1, 1, 0), ADD, ADD, FINISH, (19, 0, 0), ADD, ADD])
@hypothesis.settings(max_examples=30, derandomize=True)
def test_what_groups_go_back_to_is_needed_again(steps: list[Step]) -> None:
    check_log(steps)


@hypothesis.given(passing_over)
@hypothesis.example([(1, 1, 0), ADD, ADD, FINISH, (21, 0, 1), ADD, ADD])
@hypothesis.settings(max_examples=10, derandomize=True)
def test_nothing_goes_below_what_groups_passed_over(steps: list[Step]) -> None:
    check_log(steps)


@hypothesis.given(histories)
@hypothesis.settings(max_examples=6, derandomize=True)
def test_nothing_depends_on_how_the_clock_is_moved(steps: list[Step]) -> None:
    check_pieces(steps)


@hypothesis.given(short_histories)
@hypothesis.settings(max_examples=1, derandomize=True)
def test_a_log_that_is_cut_at_any_byte_gives_its_whole_units(steps: list[Step]) -> None:
    told(steps).check_cuts(7)


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    laws: tuple[tuple[Callable[[list[Step]], None], strategies.SearchStrategy[list[Step]], int], ...] = (
        (check_log, histories, wanted),
        (check_log, going_back, wanted // 4),
        (check_log, passing_over, wanted // 4),
        (check_pieces, histories, wanted // 4),
        (check_cuts, short_histories, max(wanted // 200, 1)),
    )
    for law, source, count in laws:
        settings = hypothesis.settings(max_examples=count, derandomize=False, deadline=None, print_blob=True)
        settings(hypothesis.given(source)(law))()
        sys.stdout.write(f"{law.__name__}: {count} histories")
