"""The flights demo: its judge, its journals, and a run ten times smaller than `make demo`."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.audit.journals import Journal, Line, lines
from examples.flights.data import Flight, is_cancelled, read_flights
from examples.flights.judge import Verdict, judge, table

SMALL = 33_677
STREAM = {"1-0": "0", "2-0": "1"}


def sent(entry_id: str, serial: str) -> Line:
    return ("sent", entry_id, serial)


def processed(entry_id: str, serial: str, deliveries: int = 1, source: str = "new", asked_ns: int = 10) -> Line:
    return ("processed", entry_id, serial, str(deliveries), source, str(asked_ns))


def acked(entry_id: str, replied_ns: int = 20) -> Line:
    return ("acked", entry_id, str(replied_ns))


BOTH_SENT = [sent("1-0", "0"), sent("2-0", "1")]
BOTH_DONE = [processed("1-0", "0"), processed("2-0", "1"), acked("1-0"), acked("2-0")]


def verdict_on(*lines: Line, in_stream: dict[str, str] = STREAM, pending: int = 0) -> Verdict:
    return judge(2, in_stream, pending, [*BOTH_SENT, *lines])


def test_a_run_in_which_every_flight_was_processed_once_is_clean() -> None:
    verdict = verdict_on(*BOTH_DONE)

    assert verdict.is_clean()
    assert (verdict.produced, verdict.processed, verdict.redelivered) == (2, 2, 0)


def test_a_flight_that_was_not_processed_is_lost() -> None:
    assert verdict_on(processed("1-0", "0")).lost == 1


def test_an_entry_that_a_producer_was_told_of_and_the_stream_has_not_is_lost() -> None:
    assert verdict_on(*BOTH_DONE, sent("3-0", "1")).lost == 1


def test_a_flight_that_is_in_the_stream_twice_was_sent_twice() -> None:
    assert verdict_on(*BOTH_DONE, in_stream=STREAM | {"3-0": "1"}).sent_twice == 1


def test_work_done_again_after_a_redelivery_is_no_fault() -> None:
    verdict = verdict_on(*BOTH_DONE[:2], processed("2-0", "1", deliveries=2, source="history"), acked("2-0"))

    assert verdict.is_clean()
    assert (verdict.redelivered, verdict.from_history, verdict.repeated) == (1, 1, 1)


def test_work_done_twice_at_the_first_delivery_is_a_fault() -> None:
    verdict = verdict_on(*BOTH_DONE, processed("2-0", "1"))

    assert (verdict.doubled, verdict.repeated) == (1, 0)
    assert not verdict.is_clean()


def test_a_delivery_asked_for_after_the_acknowledgement_was_answered_is_a_fault() -> None:
    late = processed("2-0", "1", deliveries=2, source="autoclaim", asked_ns=30)

    assert verdict_on(*BOTH_DONE, late).came_back == 1


def test_a_delivery_asked_for_before_the_acknowledgement_was_answered_is_none() -> None:
    early = processed("2-0", "1", deliveries=2, source="autoclaim", asked_ns=15)

    assert verdict_on(*BOTH_DONE, early).is_clean()


def test_a_refused_flight_that_another_worker_processes_is_neither_lost_nor_doubled() -> None:
    refused = ("refused", "2-0", "1", "1", "new", "10")
    verdict = verdict_on(BOTH_DONE[0], refused, processed("2-0", "1", deliveries=2, source="claim"))

    assert verdict.is_clean()
    assert (verdict.refused, verdict.taken_over) == (1, 1)


def test_entries_left_pending_are_a_fault() -> None:
    assert not verdict_on(*BOTH_DONE, pending=1).is_clean()


def test_the_table_names_what_must_be_0() -> None:
    shown = table(verdict_on(*BOTH_DONE), 2, 0.5).splitlines()

    assert [line.split("  ")[0] for line in shown if line.endswith("must be 0")] == [
        "lost",
        "sent twice",
        "processed twice without a redelivery",
        "came back after its acknowledgement",
        "left pending",
    ]


def test_a_line_that_a_death_cut_off_is_left_out_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "worker.journal"
    path.write_bytes(b"sent 1-0 0\nsent 2-0")

    Journal(path).write([sent("3-0", "2")])

    assert list(lines(path)) == [sent("1-0", "0"), sent("3-0", "2")]


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    try:
        return read_flights(1_000)
    except FileNotFoundError as reason:
        pytest.skip(str(reason))


def test_flights_are_in_order_of_scheduled_departure(flights: list[Flight]) -> None:
    departures = [tuple(int(flight[name]) for name in ("month", "day", "sched_dep_time")) for flight in flights]

    assert departures == sorted(departures)
    assert [flight["serial"] for flight in flights[:3]] == ["0", "1", "2"]


def test_a_cancelled_flight_has_a_schedule_and_no_departure(flights: list[Flight]) -> None:
    cancelled = [flight for flight in flights if is_cancelled(flight)]

    assert {flight["flight"] for flight in cancelled} >= {"4308", "791"}
    assert all("sched_dep_time" in flight for flight in cancelled)


@pytest.mark.slow
@pytest.mark.usefixtures("flights")
def test_no_flight_is_lost_or_doubled_while_a_worker_a_connection_and_the_server_die() -> None:
    words = [sys.executable, "-m", "examples.flights", "--quiet", "--flights", str(SMALL)]
    root = Path(__file__).parents[2]

    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"processed{SMALL:>41,}" in done.stdout
    assert f"entries in the log{SMALL:>48,}" in done.stdout
