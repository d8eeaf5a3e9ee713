"""Fixtures for the commands' tests."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.effects_beside_redis import RedisSide


@pytest.fixture(scope="session")
def logging_redis() -> "Iterator[RedisSide]":
    """A real Redis that keeps a log, to hold dialogues with; tests that need it are skipped where there is none."""
    from tests.support.effects_beside_redis import RedisSide
    from tests.support.reference_server import NoReference, reference_server

    directives = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--appendfsync", "always"]
    try:
        with reference_server(*directives) as port, contextlib.closing(RedisSide(port)) as redis:
            yield redis
    except NoReference as absence:
        pytest.skip(str(absence))


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
