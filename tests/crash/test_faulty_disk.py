"""Faults that crash tests arm in a real server."""

import errno

import pytest

from penstock.errors import UsageError
from tests.crash.faulty_disk import FaultyDisk, parse


def reached(disk: FaultyDisk, *points: str) -> list[int | None]:
    """The error numbers that these moments led to; 0 for none."""
    numbers: list[int | None] = []
    for point in points:
        try:
            disk.reach(point)
            numbers.append(0)
        except OSError as failure:
            numbers.append(failure.errno)
    return numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sync:eio", [errno.EIO] * 4),
        ("sync:enospc@2", [0, errno.ENOSPC, 0, 0]),
        ("sync:eio@2-3", [0, errno.EIO, errno.EIO, 0]),
        ("sync:eio@3-", [0, 0, errno.EIO, errno.EIO]),
        ("sync:eio@1,sync:enospc@1-2", [errno.EIO, errno.ENOSPC, 0, 0]),
        ("write:eio", [0] * 4),
        ("sync:sleep1ms", [0] * 4),
    ],
)
def test_a_fault_strikes_at_its_occurrences(text: str, expected: list[int]) -> None:
    assert reached(FaultyDisk(parse(text)), *["sync"] * 4) == expected


@pytest.mark.parametrize("text", ["sync", "sync:burn", "sync:eio@", "sync:eio@x", "sync:eio,", "sync:sleepms"])
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a fault"):
        parse(text)
