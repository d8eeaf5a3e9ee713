"""Fixtures for the commands' tests."""

from collections.abc import Callable

import pytest


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
