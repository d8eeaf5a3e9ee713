"""Fixtures for every test."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import penstock
from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.versions import BUILD
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.reference_server import NoReference, reference_server

# Hundreds of servers and Spark's workers are started: each would compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No verdict depends on how long something took: the machine may have other work.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which build the tests run on; pytest's own header is silent under -q."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:  # a worker has none
        reporter.write_line(f"penstock: the {BUILD} build in {Path(penstock.__file__).parent}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs Spark is slow, and one worker runs all of it: a second session would be a second JVM."""
    for item in items:
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture
def clock() -> ManualClock:
    """The engine's clock; it stands still until a test turns it."""
    return ManualClock(NOW_MS)


@pytest.fixture
def engine(clock: ManualClock) -> Engine:
    """An engine with the default settings and no log."""
    return make_engine(clock)


@pytest.fixture
def dialogue(engine: Engine) -> Dialogue:
    """A client of `engine`: dialogue("XADD s 1-0 f v", "XLEN s") returns the last reply."""
    return Dialogue(engine)


@pytest.fixture(scope="session")
def reference_port() -> Iterator[int]:
    """The port of a real Redis, started once; tests that need it are skipped where there is none."""
    try:
        with reference_server() as port:
            yield port
    except NoReference as absence:
        pytest.skip(str(absence))
