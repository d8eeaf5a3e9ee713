"""What a failed law says: the fewest requests that show it, the first difference, and both sides."""

import pytest

from tests.support.first_difference import NOTHING, first_difference
from tests.support.same_result import (
    TRIES,
    Difference,
    assert_same,
    logs_differ,
    replies_differ,
    states_differ,
    told_on_failure,
)
from tests.support.shrinking import without

ADDS = [[b"SET", b"k", b"%d" % number] for number in range(400)]


def differs_at_77_once_12_has_come(history: list[list[bytes]]) -> Difference | None:
    """As a law whose second way answers 77 otherwise once 12 has come."""
    replies = [b"+OK\r\n" for _ in history]
    numbers = [int(request[2]) for request in history]
    found = [b"-ERR\r\n" if number == 77 and 12 in numbers[:at] else b"+OK\r\n" for at, number in enumerate(numbers)]
    return replies_differ(history, replies, b"".join(found), len(history))


def test_the_fewest_requests_are_shown_with_both_replies() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_same(ADDS, differs_at_77_once_12_has_come, ("alone", "batched"))

    assert str(failure.value).splitlines() == [
        "the reply to SET k 77 differs after these requests (shortened from 400):",
        "  > SET k 12",
        "  > SET k 77",
        "  at /1",
        "  alone:   Simple(text=b'OK')",
        "  batched: Error(text=b'ERR')",
    ]


def test_an_error_of_a_way_is_shown_with_the_requests_that_lead_to_it() -> None:
    def compare(history: list[list[bytes]]) -> None:
        assert [b"SET", b"k", b"5"] not in history, "the index is broken"

    with pytest.raises(AssertionError, match=r"AssertionError differs .*\n  > SET k 5\n(.*\n)*.*the index is broken"):
        assert_same(ADDS, compare)


def test_what_is_shown_once_only_is_shown_with_the_requests_of_that_time() -> None:
    outcomes = [Difference("state", 1, 2, 30)]

    with pytest.raises(AssertionError) as failure:
        assert_same(ADDS, lambda history: outcomes.pop() if outcomes else None)

    said = str(failure.value).splitlines()
    assert said[1:3] == ["  (19 more before)", "  > SET k 19"]
    assert said[-4:] == ["  > SET k 29", "  at all of it", "  one by one: 1", "  together:   2"]


def test_ways_that_agree_say_nothing() -> None:
    assert_same(ADDS, lambda history: None)


def test_the_first_line_of_the_log_that_differs_is_shown() -> None:
    ping, echo = b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n"
    found = logs_differ(ping + echo, ping + ping, 2)

    assert found is not None
    assert first_difference(found.expected, found.found) == ("/1", "ECHO a", "PING")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2, 3], [1, 2], ("/2", 3, NOTHING)),
        ([1, 2, 3], [1, 3], ("/1", 2, 3)),
        ({"a": 1}, {"a": 1, "b": 2}, ("/b", NOTHING, 2)),
        ({"s": {"groups": [(1, b"x")]}}, {"s": {"groups": [(1, b"y")]}}, ("/s/groups/0/1", b"x", b"y")),
        (1, "1", ("", 1, "1")),
    ],
    ids=["a part less", "a part less, and another", "a name more", "deep", "types"],
)
def test_the_smallest_part_that_differs_is_found(one: object, other: object, expected: object) -> None:
    assert first_difference(one, other) == expected


def test_equal_states_do_not_differ() -> None:
    assert states_differ({"a": [1]}, {"a": [1]}, 1) is None


def test_shortening_ends_after_so_many_tries() -> None:
    asked: list[int] = []

    def shows(steps: list[int]) -> bool:
        asked.append(len(steps))
        return False

    assert without(list(range(10_000)), shows, TRIES) == list(range(10_000))
    assert len(asked) == TRIES


def test_requests_are_added_to_an_assertion_that_fails_among_them() -> None:
    with pytest.raises(AssertionError) as failure, told_on_failure([["SET", "k", "a b"], ["GET", "k"], ["GET", "k"]]):
        raise AssertionError("no")

    assert failure.value.__notes__ == ["the last requests were\n  > SET k 'a b'\n  > GET k   (2 times)"]
