"""The fuzzers, briefly, and what they found before: no input harms the server or a client but its sender."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.access import attack_access
from tests.fuzz.files import READERS, attack_files, attack_payloads, verdict
from tests.fuzz.limit import Found, Limit
from tests.fuzz.live import attack_server, commands, replay, wire

PATIENT_S = 30.0  # of a processor's time; far more than a client should wait
CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.iterdir() if path.suffix != ".resp")


def told(found: Iterator[Found]) -> str:
    return "\n".join(map(str, found))


def test_bytes_that_are_nearly_the_protocol_harm_no_client() -> None:
    assert told(attack_server("wire", wire, "test", Limit(40), PATIENT_S)) == ""


def test_commands_with_hostile_arguments_harm_no_client() -> None:
    assert told(attack_server("commands", commands, "test", Limit(40), PATIENT_S)) == ""


def test_altered_files_are_read_or_refused_in_a_sentence() -> None:
    assert told(attack_files("test", Limit(60), PATIENT_S)) == ""


def test_altered_payloads_are_taken_whole_or_refused() -> None:
    assert told(attack_payloads("test", Limit(150), PATIENT_S)) == ""


def test_rules_allow_what_a_naive_model_allows_by_every_way() -> None:
    assert told(attack_access("test", Limit(100))) == ""


def test_requests_that_were_found_before_harm_no_client() -> None:
    assert replay([path.read_bytes() for path in sorted(CORPUS.glob("*.resp"))], PATIENT_S) == ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_that_was_found_before_is_refused_in_a_sentence(path: Path) -> None:
    assert path.suffix[1:] in READERS
    assert verdict(path.suffix[1:], path.read_bytes(), PATIENT_S) == ""
