"""Secrets in a command line."""

import pytest

from penstock.server.command_line import without_secrets

CASES = [
    ("--requirepass secret --port 1", "--requirepass *** --port 1"),
    ("--REQUIREPASS secret", "--REQUIREPASS ***"),
    ("--requirepass --secret --port 1", "--requirepass *** --port 1"),
    ("--masteruser secret --masterauth secret", "--masteruser *** --masterauth ***"),
    ("--metrics-port 1 --metrics-password secret", "--metrics-port 1 --metrics-password ***"),
    ("--user default on >secret --port 1", "--user *** *** *** --port 1"),
    ("--rename-command CONFIG secret", "--rename-command *** ***"),
    ("redis.conf --requirepass", "redis.conf --requirepass"),
    ("--save 60 1 --dir /requirepass", "--save 60 1 --dir /requirepass"),
]


@pytest.mark.parametrize(("words", "shown"), CASES, ids=[words for words, _ in CASES])
def test_the_values_of_secret_directives_are_hidden(words: str, shown: str) -> None:
    assert without_secrets(words.encode().split()) == shown.encode().split()


def test_a_whole_line_in_one_word_is_hidden_behind_its_name() -> None:
    assert without_secrets([b"--requirepass secret"]) == [b"--requirepass ***"]
