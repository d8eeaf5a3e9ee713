"""Addresses of servers on the command line."""

import pytest

from penstock.errors import UsageError
from penstock.transfer import counts, progress
from penstock.transfer.address import Address


def test_an_address_may_have_a_user_and_a_password() -> None:
    address = Address("redis://me:p%40ss@cache:7000")

    assert (address.host, address.port) == ("cache", 7000)
    assert address.login() == [b"AUTH", b"me", b"p@ss"]
    assert Address("redis://:pw@cache").login() == [b"AUTH", b"pw"]
    assert Address("redis://[::1]").login() == []
    assert address.shown == "cache:7000"


@pytest.mark.parametrize(
    "text", ["cache:6379", "redis://", "redis://cache:x", "redis://cache/1", "rediss://cache", "redis://cache:99999"]
)
def test_what_is_no_address_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected|TLS"):
        Address(text)


def test_the_numbers_of_both_sides_stand_beside_each_other() -> None:
    assert counts.table({"hash": 2}, {"hash": 2, "set": 1}) == [
        "hash          2 here          2 there",
        "set           0 here          1 there  (differs)",
    ]


def test_a_bar_needs_to_know_the_whole() -> None:
    assert progress.bar(5_000_000, 10_000_000) == "[##########..........] 5.0 of 10.0 MB"
    assert progress.bar(5_000_000, -1) == "5.0 MB"
