"""What stands on the command line of a move, and what a person is told of it."""

import pytest

from penstock.cli import main
from penstock.errors import UsageError
from penstock.progress_line import bar
from penstock.transfer import counts
from penstock.transfer.cli import server_address


@pytest.mark.parametrize("url", ["cache:6379", "redis://cache/1", "rediss://cache/1", "unix:///run/s.sock"])
def test_what_is_no_server_on_tcp_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(UsageError, match=r"expected|TLS"):
        server_address(url)


@pytest.mark.parametrize("words", [["redis://cache"], ["redis://cache", "all.rdb"]], ids=["alone", "before the file"])
def test_a_server_in_place_of_the_file_is_no_file(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", *words])

    assert ended.value.code == 2
    assert "the file comes first, the server behind it: FILE.rdb redis://cache" in capsys.readouterr().err


def test_the_numbers_of_both_sides_stand_beside_each_other() -> None:
    assert counts.table({"hash": 2}, {"hash": 2, "set": 1}) == [
        "hash          2 here          2 there",
        "set           0 here          1 there  (differs)",
    ]


def test_a_bar_needs_to_know_the_whole() -> None:
    assert bar(5_000_000, 10_000_000) == "[##########..........] 5.0 of 10.0 MB"
    assert bar(5_000_000, -1) == "5.0 MB"
