"""A wait on a busy machine is longer, and ends."""

import pytest

from tests.support.patience import Patience


@pytest.mark.parametrize(
    ("passed_s", "stalled_s", "is_over"),
    [(59, 0, False), (61, 0, True), (100, 50, False), (120, 50, True), (1000, 1000, False), (1300, 1300, True)],
)
def test_time_in_which_processes_wait_for_a_processor_counts_a_twentieth_at_least(
    passed_s: int, stalled_s: int, is_over: bool
) -> None:
    assert Patience(60, 7, 3).is_over_at(7 + passed_s, 3 + stalled_s) is is_over
