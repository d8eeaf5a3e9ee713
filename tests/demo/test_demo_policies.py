"""The demo of policies: its judge, and a small run."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.flights.data import read_flights
from examples.flights_policies.judge import handled_in, judge, overtaken, picture, table

FLIGHTS = 2_000
POISON = 1_500


def all_handled() -> list[tuple[int, str, int]]:
    return [(serial, f"N{serial % 7}", serial) for serial in range(FLIGHTS) if serial != POISON]


def test_a_run_in_which_all_but_poison_was_handled_is_clean() -> None:
    assert judge(FLIGHTS, all_handled(), [POISON], 0, 0, 0, 0).is_clean()


def test_a_flight_that_was_neither_handled_nor_a_dead_letter_is_lost() -> None:
    verdict = judge(FLIGHTS, all_handled()[1:], [POISON], 0, 0, 0, 0)

    assert verdict.lost == 1
    assert not verdict.is_clean()


def test_a_flight_that_is_handled_after_a_later_one_of_its_aircraft_was_overtaken() -> None:
    assert overtaken([(7, "N1", 1), (0, "N1", 2), (8, "N2", 3), (7, "N1", 4)]) == 1
    assert overtaken([(7, "-", 1), (0, "-", 2), (7, "N1", 3), (7, "N1", 4)]) == 0


@pytest.mark.parametrize("dead", [[], [POISON, POISON], [POISON, 3]], ids=["none", "twice", "no-poison"])
def test_dead_letters_that_are_not_the_poison_are_a_fault(dead: list[int]) -> None:
    verdict = judge(FLIGHTS, all_handled(), dead, 0, 0, 0, 0)

    assert verdict.wrong == 1
    assert "must be 0" in table(verdict, FLIGHTS, 1.0)


def test_a_line_of_a_journal_that_a_death_cut_off_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.journal").write_text("handled 5 N1 20\nhandled 6 N")
    (tmp_path / "b.journal").write_text("handled 4 - 10\n")

    assert handled_in(tmp_path) == [(4, "-", 10), (5, "N1", 20)]


def test_the_picture_has_a_bar_where_entries_were_delivered_again() -> None:
    lines = picture([(0.0, 0), (0.5, 0), (1.5, 40), (2.5, 60)], [(1.2, "worker-1 killed")]).splitlines()

    assert [line.count("#") for line in lines] == [0, 0, 46, 23]
    assert lines[2].endswith("40  worker-1 killed")


@pytest.mark.slow
def test_workers_without_recovery_lose_nothing_while_two_of_them_die() -> None:
    try:
        read_flights(1)
    except FileNotFoundError as reason:
        pytest.skip(str(reason))
    words = [sys.executable, "-m", "examples.flights_policies", "--quiet", "--flights", str(FLIGHTS)]

    done = subprocess.run(
        [*words, "--ack-wait-ms", "15000"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=500,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"handled{FLIGHTS - 1:>47,}" in done.stdout
