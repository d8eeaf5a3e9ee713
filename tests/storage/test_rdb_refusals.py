"""What RDB's readers refuse and take, beside what released servers do with the same bytes."""

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pytest

from penstock.commands.keys import digests
from penstock.engine.rdb import native_nodes
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.errors import UsageError
from penstock.protocol import entries
from penstock.storage.aof.log_directory import write_all
from penstock.storage.rdb import rdb_reader
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.rdb_reader import RdbReader
from penstock.storage.rdb.source import FileSource
from penstock.storage.rdb.stream_reader import ReadNode, StreamDefaults
from penstock.storage.streams.listpack_nodes import StreamLimits
from tests.storage import rdb_refusals
from tests.storage.rdb_mutations import mutated
from tests.storage.rdb_refusals import BAD, CASES, FILES, OK, SERVERS, STREAMS, TAKEN, Case
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine, value_of
from tests.support.log import UnitLog
from tests.support.memory_disk import MemoryDisk
from tests.support.rdb_bodies import blob, payload
from tests.support.reference_server import NoReference, reference_binary
from tests.support.seeds import seeds

WRITTEN: Final = Path(__file__).parents[1] / "interchange/written_by_redis"
PATH: Final = "/dump.rdb"


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_what_is_taken_and_refused_is_as_the_table_says(dialogue: Dialogue, case: Case) -> None:
    _, ours, body, _ = case

    answer = dialogue.words(b"RESTORE", b"r", b"0", payload(body))

    assert answer == (OK if ours == TAKEN else BAD)


@pytest.mark.parametrize("case", [case for case in CASES if case[1] == TAKEN], ids=lambda case: case[0])
def test_what_was_taken_is_the_same_after_a_restart(case: Case) -> None:
    log = UnitLog()
    engine = make_engine(log=log)
    Dialogue(engine).words(b"RESTORE", b"r", b"0", payload(case[2]))

    value = value_of(engine, b"r")

    digest = digests.of_value(value)
    engine.keyspace.databases[0].check()
    assert digests.of_value(value_of(rdb_based_engine(engine, NOW_MS), b"r")) == digest
    assert digests.of_value(value_of(loaded_engine(log.units), b"r")) == digest


def test_what_differs_from_every_server_that_checks_has_a_reason() -> None:
    recorded = rdb_refusals.recorded()
    cases = CASES + FILES
    assert list(recorded) == [case[0] for case in cases]

    for name, ours, _, why in cases:
        checking = [
            answer for (_, sanitizes), answer in zip(SERVERS, recorded[name], strict=True) if sanitizes == "yes"
        ]
        differs = (ours == TAKEN) != (TAKEN in checking)
        assert bool(why) == (differs or rdb_refusals.DIES in checking), name


@pytest.fixture(params=SERVERS, ids=["-".join(server) for server in SERVERS])
def server(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A kind of server that is there, and its sanitize-dump-payload."""
    kind, sanitizes = request.param
    try:
        reference_binary(kind)
    except NoReference as absence:
        pytest.skip(str(absence))
    return kind, sanitizes


def column(server: tuple[str, str], cases: list[Case]) -> list[str]:
    rows = rdb_refusals.recorded()
    return [rows[case[0]][SERVERS.index(server)] for case in cases]


def test_the_servers_answers_are_those_that_were_recorded(server: tuple[str, str]) -> None:
    assert rdb_refusals.answers_of(*server) == column(server, CASES)


@pytest.mark.slow
def test_the_servers_start_with_the_files_as_was_recorded(server: tuple[str, str]) -> None:
    assert rdb_refusals.starts_of(*server) == column(server, FILES)


# -- what was written with a fault ------------------------------------------------------------------------------------


def loaded(content: bytes) -> tuple[Dialogue, list[str]]:
    """A client of an engine that has loaded a file, and what the loader told."""
    disk = MemoryDisk()
    write_all(disk.create(PATH), content)
    engine = make_engine()
    told: list[str] = []
    for _ in RdbLoading(engine.server, disk, PATH, told.append).run():
        pass
    return Dialogue(engine), told


@pytest.mark.parametrize("case", FILES, ids=[case[0] for case in FILES])
def test_a_file_is_loaded_or_refused_as_the_table_says(case: Case) -> None:
    _, ours, content, _ = case

    with nullcontext() if ours == TAKEN else pytest.raises(UsageError):
        loaded(content)


def test_a_stream_with_a_wrong_length_is_loaded_and_the_correction_is_told() -> None:
    said, told = loaded((WRITTEN / "stream-length.rdb").read_bytes())

    assert said("GET other") == b"kept"
    assert said("XLEN orders") == 3
    assert len(said("XRANGE orders - +")) == 3
    assert told == [f"{PATH}: the key 'orders' in database 0 was corrected: it says that it has 5 entries, and has 3."]


def test_a_stream_with_a_node_of_deleted_entries_is_loaded() -> None:
    said, told = loaded((WRITTEN / "stream-empty-node.rdb").read_bytes())

    assert (said("GET other"), said("XLEN orders"), said("XADD orders 9-0 f v")) == (b"kept", 0, b"9-0")
    assert told == [
        f"{PATH}: the key 'orders' in database 0 was corrected: 1 of its nodes have no live entries, and are left out."
    ]


def test_restore_takes_such_a_stream_and_tells_the_correction(dialogue: Dialogue) -> None:
    told: list[str] = []
    dialogue.engine.persistence.report = told.append

    assert dialogue.words(b"RESTORE", b"r", b"0", (WRITTEN / "stream-length.payload").read_bytes()) == OK

    assert dialogue("XLEN r") == 3
    assert told == ["RESTORE: the key 'r' in database 0 was corrected: it says that it has 5 entries, and has 3."]


# -- two readers of nodes ---------------------------------------------------------------------------------------------


def met_in(content: bytes, read_node: ReadNode | None) -> list[object]:
    """Everything that a reading of a file comes to: values, corrections, and how it ends."""
    disk = MemoryDisk()
    write_all(disk.create(PATH), content)
    defaults = StreamDefaults(StreamLimits(0, 0), 100, 100, entries.encode_columns, read_node)
    reader = RdbReader(FileSource(disk, PATH), defaults, verifies=False)
    met: list[object] = []
    try:
        reader.begin()
        while (what := reader.step()) != rdb_reader.END:
            if what == rdb_reader.KEY:
                met.append((reader.key, digests.of_value(reader.value), reader.corrected()))
    except BadRdb as problem:
        met.append(str(problem))
    return met


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_both_readers_of_nodes_come_to_the_same_on_altered_files(seed: int) -> None:
    chance = random.Random(seed)
    bodies = [body for _, ours, body, _ in STREAMS if ours == TAKEN]

    ends = [both(altered_file(bodies, chance))[-1] for _ in range(150)]

    assert sum(isinstance(end, tuple) for end in ends) > 10, "read to the end"
    assert sum(isinstance(end, str) for end in ends) > 50, "refused"


def altered_file(bodies: list[bytes], chance: random.Random) -> bytes:
    """A stream, and another one that was altered, in a file."""
    whole, altered = chance.sample(bodies, 2)
    altered = mutated(altered, chance)[:-8]
    records = [body[:1] + blob(b"key") + body[1:] for body in (whole, altered)]
    return b"REDIS0014" + b"".join(records) + b"\xff" + bytes(8)


def both(content: bytes) -> list[object]:
    plain, at_once = met_in(content, None), met_in(content, native_nodes.read_node)
    assert plain == at_once, content.hex()
    return plain
