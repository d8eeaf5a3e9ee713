"""Fixtures for the commands' tests."""

from collections.abc import Callable

import pytest

from penstock.clock import ManualClock
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.log import UnitLog


@pytest.fixture
def log() -> UnitLog:
    return UnitLog()


@pytest.fixture
def logged(clock: ManualClock, log: UnitLog) -> Dialogue:
    """A client of an engine that has its units in `log`."""
    return Dialogue(make_engine(clock, log))


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], bytes]]:
    """What was handed to the thread of scripts."""
    from penstock.server.script_thread import ScriptThread

    handed: list[Callable[[], bytes]] = []
    run = ScriptThread.run

    def run_told(worker: ScriptThread, job: Callable[[], bytes], seconds: float) -> bytes | None:
        handed.append(job)
        return run(worker, job, seconds)

    monkeypatch.setattr(ScriptThread, "run", run_told)
    return handed
