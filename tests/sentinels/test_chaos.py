"""Masters are killed, stopped and cut off under load: what both replicas confirmed is there afterwards."""

from typing import Any

import pytest

from tests.sentinels.chaos import FAULTS, WITH_REPLICA, tallies
from tests.sentinels.load import Reader, Tally, Writer
from tests.support.reference_server import NoReference


@pytest.mark.slow
def test_nothing_that_replicas_confirmed_is_lost_however_the_master_is_lost() -> None:
    try:
        seen = tallies("penstock", FAULTS, times=len(FAULTS), seed=0)
    except NoReference as absence:
        pytest.skip(str(absence))

    assert [tally.changes for tally in seen.values()] == [1] * len(FAULTS)
    assert all(tally.confirmed[replicas] for tally in seen.values() for replicas in (1, 2))
    assert [(fault, tally.lost[1], tally.lost[2], tally.went_back) for fault, tally in seen.items()] == [
        (fault, 0, 0, []) for fault in FAULTS
    ]
    assert seen[WITH_REPLICA].lost_by_design > 0


# -- the judge --------------------------------------------------------------------------------------------------------


class Server:
    """What a master has after a change."""

    def __init__(self, numbers: list[int], position: str = "9-0", pending: tuple[str, ...] = ()) -> None:
        self._numbers = numbers
        self._position = position
        self._pending = pending

    def xrange(self, key: str) -> list[tuple[str, dict[str, str]]]:
        return [(f"{number}-0", {"n": str(number)}) for number in self._numbers]

    def xpending_range(self, *words: object) -> list[dict[str, str]]:
        return [{"message_id": entry} for entry in self._pending]

    def xinfo_groups(self, key: str) -> list[dict[str, str]]:
        return [{"last-delivered-id": self._position}]


def writer(confirmed: dict[int, int]) -> Writer:
    found = Writer(NO_CLIENT, "k", 0)
    found.confirmed = confirmed
    return found


def reader(delivered: tuple[str, ...], acked: tuple[str, ...] = ()) -> Reader:
    found = Reader(NO_CLIENT, "alice")
    found.deliveries.update(delivered)
    found.sure.update(delivered)
    found.acked.update(acked)
    found.asked_to_ack.update(acked)
    return found


NO_CLIENT: Any = None


def test_confirmed_writes_that_are_missing_are_counted_by_the_replicas_that_confirmed_them() -> None:
    tally = Tally()

    tally.count_writes(writer({1: 0, 2: 1, 3: 2, 4: 2}), Server([1, 4]))

    assert (tally.confirmed, tally.lost) == ({0: 1, 1: 1, 2: 2}, {1: 1, 2: 1})


def test_of_a_master_that_was_cut_off_with_a_replica_only_what_both_confirmed_counts_as_lost() -> None:
    tally = Tally()

    tally.count_writes(writer({1: 0, 2: 1, 3: 2}), Server([]), is_by_design=True)

    assert (tally.lost, tally.lost_by_design) == ({0: 1, 2: 1}, 1)


@pytest.mark.parametrize(
    ("client", "server", "found"),
    [
        (reader(("1-0", "2-0"), acked=("1-0",)), Server([], pending=("2-0",)), []),
        (reader(("1-0",), acked=("1-0",)), Server([], pending=("1-0",)), ["1-0 is pending again"]),
        (reader(("1-0",)), Server([]), ["1-0 is no longer pending"]),
        (reader(("10-0",)), Server([], pending=("10-0",)), ["10-0 is behind 9-0"]),
    ],
    ids=["as it was", "an acknowledgement was lost", "a delivery was lost", "the position went back"],
)
def test_what_a_group_no_longer_knows_is_named(client: Reader, server: Any, found: list[str]) -> None:
    tally = Tally()

    tally.count_reads([client], server)

    assert tally.went_back == found


def test_an_entry_that_two_masters_delivered_is_counted_once() -> None:
    tally = Tally()

    tally.count_reads([reader(("1-0", "2-0")), reader(("2-0",))], Server([], pending=("1-0", "2-0")))

    assert (tally.delivered, tally.delivered_twice) == (2, 1)
