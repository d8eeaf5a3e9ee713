"""The task that makes links to the master, and what it does with what comes."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from penstock.engine.engine import Engine
from penstock.engine.replication.master import Master
from penstock.engine.replication.stream_applier import StreamApplier
from penstock.engine.session import Session
from penstock.protocol.log_reader import next_request, whole_requests
from penstock.protocol.reply import bulks
from penstock.server.replication.master_link import LONGEST_LINE, LinkLost, MasterLink, Wire
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.log_directory import LogDirectory
from penstock.testing.faults.no_disk import NoDisk
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.memory_disk import MemoryDisk


class Deaf(MasterLink):
    """A link that is lost at the moment at which its task is cancelled, so that the cancellation is lost."""

    async def _link(self, master: Master) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LinkLost("it is closed") from None


def test_a_link_that_misses_its_end_is_not_made_again() -> None:
    async def change_roles() -> int:
        engine = make_engine()
        client = Dialogue(engine)
        link = Deaf(engine, NoDisk(), lambda line: None, lambda: None)
        for request in ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"):
            client(request)
            link.cron()
            for _ in range(5):
                await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(change_roles()) == 1


def wire_with(text: bytes) -> Wire:
    """A link on which everything has come already."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    reader.feed_data(text)
    return Wire(reader, cast(Any, None), Master("127.0.0.1", 1, 0), lambda: 0)


class OutOfMemory:
    """Applies nothing."""

    def apply(self, requests: list[list[bytes]]) -> None:
        raise MemoryError


def test_what_was_run_before_an_unexpected_error_is_not_asked_for_again() -> None:
    engine = make_engine()
    before = engine.replication.id
    link = MasterLink(engine, NoDisk(), lambda line: None, lambda: None)

    async def follow() -> None:
        Dialogue(engine)("REPLICAOF 127.0.0.1 1")
        wire = wire_with(bulks([b"INCR", b"a"]))
        engine.replication.master = wire.master
        with suppress(MemoryError):
            await link._stream(wire, Session(1), cast(StreamApplier, OutOfMemory()))

    asyncio.run(follow())
    assert engine.replication.id != before


class Said:
    """What a link writes."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, text: bytes) -> None:
        self.written = text


class Acknowledging(MasterLink):
    """A link that is up."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, NoDisk(), lambda line: None, lambda: None)
        self.said = Said()
        self._writer = cast(Any, self.said)

    def safe_offset(self) -> int:
        """What it says of its disk."""
        self.acknowledge()
        words, _ = next_request(self.said.written, 0)
        return int(words[4])


def started_log() -> AppendLog:
    log = AppendLog(LogDirectory(MemoryDisk(), "/data", "appendonlydir", "appendonly.aof"))
    log.directory.open()
    log.start()
    return log


def test_another_log_makes_offsets_safe_as_the_one_before_did() -> None:
    engine = make_engine()
    link = Acknowledging(engine)
    safe = []
    for units in (10, 2):  # of the log before, and of one that CONFIG SET appendonly has begun since
        log = engine.persistence.log = started_log()
        for _ in range(units):
            log.append(b"unit")
        engine.replication.pass_on(b"change")
        link.acknowledge()
        log.write()
        log.sync()
        log.append(b"not safe")
        safe.append(link.safe_offset())

    assert safe == [6, 12]


LARGE = [
    pytest.param([b"SET", b"k", b"v" * 8_000_000], id="a long word"),
    pytest.param([b"RPUSH", b"l", *[b"x"] * 100_000], id="many words"),
]


@pytest.mark.parametrize("request_", LARGE)
def test_a_large_request_is_looked_at_few_times(request_: list[bytes]) -> None:
    async def looks() -> int:
        wire, held, count = wire_with(bulks(request_)), b"", 0
        while not whole_requests(held).taken:
            held = await wire.more(held)
            count += 1
        return count

    assert asyncio.run(looks()) <= 6
