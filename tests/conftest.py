"""Fixtures for every test.

What a fixture needs is imported when it is first used: a test of a structure needs no engine, and few need Hypothesis.
"""

import contextlib
import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Hundreds of servers and Spark's workers are started: each would compile every module anew, and so would pytest.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if TYPE_CHECKING:
    from penstock.clock import ManualClock
    from penstock.engine.engine import Engine
    from tests.support.dialogue import Dialogue
    from tests.support.effects_beside_redis import RedisSide
    from tests.support.whole_modules import WholeModules


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: three workers for two processors, since many tests wait for processes that they have started."""
    return max((os.cpu_count() or 1) * 3 // 2, 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "WholeModules | None":
    """Of `--dist loadgroup`, by modules."""
    if config.option.dist != "loadgroup":
        return None
    from tests.support.whole_modules import WholeModules

    return WholeModules(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """The quick run collects no slow seeds, and has fewer examples of Hypothesis."""
    from tests.support import seeds

    seeds.marks_run = config.option.markexpr


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which build the tests run on; pytest's own header is silent under -q."""
    import penstock
    from penstock.engine.versions import BUILD

    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:  # a worker has none
        reporter.write_line(f"penstock: the {BUILD} build in {Path(penstock.__file__).parent}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not run: pytest is silent about reasons under -q."""
    from tests.support.skips import skip_lines

    skipped = terminalreporter.getreports("skipped")
    for line in skip_lines(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)):
        terminalreporter.write_line(line)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Hypothesis's profile must be there when a module is imported: its `@settings` are read then."""
    if isinstance(collector, pytest.Module) and "hypothesis" in collector.path.read_text(encoding="utf-8"):
        load_profile()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is collected is garbage: to look for it was a quarter of the CPU of each worker's collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without a test of Hypothesis its plugin would import all of it only to see that it has nothing to report."""
    plugins = session.config.pluginmanager
    if "hypothesis" not in sys.modules and plugins.has_plugin("hypothesispytest"):
        plugins.unregister(name="hypothesispytest")
    spare_collections()


def spare_collections() -> None:
    """The garbage collector goes through no collected test again, and seldom: it was a fifth of the CPU of many tests.

    An engine is a circle of some thousand objects, so 700 of them, Python's own threshold, are reached by each test.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@functools.cache
def load_profile() -> None:
    """No verdict depends on how long something took: the machine may have other work."""
    import hypothesis

    from tests.support.seeds import examples

    calm = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile(
        "patient", max_examples=examples(100), deadline=None, suppress_health_check=calm
    )
    hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Chaos is slow, and so is what needs Spark."""
    for item in items:
        if item.get_closest_marker("chaos"):
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def clock() -> "ManualClock":
    """The engine's clock; it stands still until a test turns it."""
    from penstock.clock import ManualClock
    from tests.support.clock import NOW_MS

    return ManualClock(NOW_MS)


@pytest.fixture
def engine(clock: "ManualClock") -> "Engine":
    """An engine with the default settings and no log."""
    from tests.support.engines import make_engine

    return make_engine(clock)


@pytest.fixture
def dialogue(engine: "Engine") -> "Dialogue":
    """A client of `engine`: dialogue("XADD s 1-0 f v", "XLEN s") returns the last reply."""
    from tests.support.dialogue import Dialogue

    return Dialogue(engine)


@pytest.fixture(scope="session")
def reference_port() -> Iterator[int]:
    """The port of a real Redis, started once; tests that need it are skipped where there is none."""
    from tests.support.reference_server import NoReference, reference_server

    try:
        with reference_server() as port:
            yield port
    except NoReference as absence:
        pytest.skip(str(absence))


@pytest.fixture(scope="module")
def valkey() -> Iterator[int]:
    """The port of a real Valkey; tests that need it are skipped where there is none."""
    from tests.support.reference_server import NoReference, reference_binary, reference_server

    try:
        binary = reference_binary("valkey")
    except NoReference as absence:
        pytest.skip(str(absence))
    with reference_server(binary=binary) as port:
        yield port


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
