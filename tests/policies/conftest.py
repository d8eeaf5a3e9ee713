"""An engine; a test moves its clock and reads its log."""

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.engine import Engine
from penstock.protocol import log_reader
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, rdb_based_engine, settings_with
from tests.support.keyspace_picture import KEPT, SAVED, keyspace
from tests.support.log import UnitLog
from tests.support.same_result import assert_equal


class PolicyDialogue(Dialogue):
    """A client of an engine with a test clock. `since` gives the log's lines since it was last asked.

    asked: what this client and those that `another` made requested, but for what only reads.
    """

    def __init__(self, engine: Engine, log: UnitLog) -> None:
        super().__init__(engine)
        self._log = log
        self._read = 0
        self.asked: list[list[bytes]] = []

    def words(self, *words: bytes) -> bytes:
        row = self.engine.commands.rows.get(words[0].upper())
        if row is None or "readonly" not in row.flags:
            self.asked.append(list(words))
        return super().words(*words)

    def another(self) -> "PolicyDialogue":
        other = PolicyDialogue(self.engine, self._log)
        other.asked = self.asked
        return other

    def since(self) -> list[str]:
        """The requests that were logged, each unit as one text."""
        units, self._read = self._log.units[self._read :], len(self._log.units)
        return [" ; ".join(_lines(unit)) for unit in units]

    def reloaded(self) -> Engine:
        """An engine that has loaded the log; it holds the same."""
        engine = loaded_engine(self._log.units, self.engine.clock.now_us() // 1000)
        assert_equal(keyspace(self.engine, KEPT), keyspace(engine, KEPT), ("before", "reloaded"))
        return engine

    def rewritten(self) -> Engine:
        """An engine that has loaded a new base file; it holds the same.

        So does a base that is an RDB file, but for the order of what was delivered at one moment.
        """
        now_ms = self.engine.clock.now_us() // 1000
        from_rdb = rdb_based_engine(self.engine, now_ms)
        assert_equal(keyspace(self.engine, SAVED), keyspace(from_rdb, SAVED), ("before", "from an RDB base"))
        engine = loaded_engine(base_lines(self.engine.keyspace, self.engine.settings, now_ms), now_ms)
        assert_equal(keyspace(self.engine, KEPT), keyspace(engine, KEPT), ("before", "from a base"))
        return engine


def _lines(unit: bytes) -> list[str]:
    requests = log_reader.whole_requests(unit).requests
    return [b" ".join(words).decode() for words in requests if words[0] not in (b"MULTI", b"EXEC", b"SELECT")]


@pytest.fixture
def dialogue() -> PolicyDialogue:
    return made()


def made(**directives: str) -> PolicyDialogue:
    log = UnitLog()
    engine = make_engine(MovableClock(ManualClock(NOW_MS)), log, settings_with(**directives))
    said = PolicyDialogue(engine, log)
    assert said(f"PENSTOCK.CLOCK SET {NOW_MS}") == b"OK" or directives
    return said
