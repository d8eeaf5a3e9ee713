"""Altered payloads and files: taken or refused, and nothing else happens."""

import random
import tracemalloc
from pathlib import Path

import pytest

from penstock.engine.rdb import rdb_check, rdb_saving
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.errors import UsageError
from penstock.storage.aof.disk import SystemDisk
from tests.interchange.rdb_states import States
from tests.storage.rdb_mutations import BAD, MOST_TIMES, SLACK_BYTES, Attack, mutated, new_dialogue
from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1, 8))
def test_an_altered_payload_is_taken_whole_or_changes_nothing(seed: int) -> None:
    attack = Attack(seed, measures=False)

    attack.run(1000)

    assert attack.taken > 40
    assert attack.refused > 400


@pytest.mark.parametrize(
    "body",
    [
        b"\x01\x81" + b"\xff" * 8 + b"\x00" * 100_000,
        b"\x00\x81" + b"\xff" * 8 + b"\x00" * 100_000,
        b"\x00\xc3\x80\x00\x01\x86\xa0\x81\x00\x00\x00\x00\x00\xff\xff\xff" + b"\x00" * 100_000,
        b"\x0b\x80\x00\x01\x86\xa8\x08\x00\x00\x00\xff\xff\xff\xff" + b"\x00" * 100_000,
        b"\x10\x80\x00\x01\x86\xa6\xa6\x86\x01\x00\xff\xff" + b"\xf0\xff\xff\xff\xff" + b"\x00" * 99_995,
        b"\x0e\x80\x00\x01\x86\xa0" + b"\x00" * 100_000,
        b"\x1a\x80\x00\x01\x00\x00" + b"\x10" * 100_000,
    ],
)
def test_a_length_that_lies_allocates_nothing(dialogue: Dialogue, body: bytes) -> None:
    payload = body + b"\x0d\x00" + bytes(8)

    tracemalloc.start()
    answer = dialogue.words(b"RESTORE", b"r", b"0", payload)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert answer == BAD
    assert most < MOST_TIMES * len(payload) + SLACK_BYTES


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_an_altered_file_is_loaded_or_refused_in_one_sentence(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    said = new_dialogue()
    for request in States(seed).requests(8):
        said.words(*[word.encode() for word in request])
    settings, now_ms = said.engine.settings, said.engine.clock.now_us() // 1000
    whole = b"".join(rdb_saving.snapshot_of(said.engine.keyspace, settings, now_ms).chunks())[:-8]
    path = tmp_path / "dump.rdb"

    outcomes = {attempt(path, mutated(whole, chance)) for _ in range(40)}

    assert "loaded" in outcomes or len(outcomes) > 3
    assert all(len(outcome) < 500 and "\n" not in outcome for outcome in outcomes)


def attempt(path: Path, content: bytes) -> str:
    """What becomes of a file: the same at a start and in a check, but for keys that a check has no place for."""
    path.write_bytes(content)
    disk = SystemDisk()
    found = rdb_check.look_through(disk, str(path), lambda done: None)
    engine = new_dialogue().engine
    try:
        for _ in RdbLoading(engine.server, disk, str(path), lambda line: None).run():
            pass
    except UsageError as refusal:
        assert found.problem or "databases" in str(refusal), refusal
        return str(refusal)
    assert not found.problem
    for db in engine.keyspace.databases:
        db.check()
    return "loaded"
