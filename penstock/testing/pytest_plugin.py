"""pytest's plugin: fixtures of an embedded server, fresh in each test. It is installed with the package.

    def test_an_order_is_queued(penstock):
        penstock.xadd("orders", {"id": "1"})

`--penstock-compat=8.2` runs a suite against the commands of an older server. `--penstock-url=redis://...` runs it on a
real one: its database (a number further for each worker of xdist) is emptied before each test.
`@pytest.mark.penstock(...)` has directives for one test.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    import redis
    import redis.asyncio

    from penstock.testing.embedded import Server
    from penstock.testing.external import ExternalServer
    from penstock.testing.loops.turned_clock import TurnedClock

REQUESTS_SHOWN: Final = 20
SERVER_OF_TEST: Final = pytest.StashKey["Server"]()
PACKAGE: Final = "penstock"


class PlainImports:
    """Finds the modules of this package before pytest does, which would rewrite their assertions.

    pytest marks every package of a distribution that has a plugin, and keeps bytecode of its own: without this, each
    module is compiled anew although the installer has compiled it (400 modules: 1.5 s of CPU in each worker of xdist).
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """The spec that Python has without pytest; None for other packages."""
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] == PACKAGE else None


PLAIN_IMPORTS: Final = PlainImports()


def pytest_addoption(parser: pytest.Parser) -> None:
    if PLAIN_IMPORTS not in sys.meta_path:
        sys.meta_path.insert(0, PLAIN_IMPORTS)
    group = parser.getgroup("penstock")
    group.addoption("--penstock-compat", metavar="VERSION", help="the server passes for this one: 8.2, valkey-9.1")
    group.addoption(
        "--penstock-url", metavar="URL", help="run on this server; its database is emptied before each test"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "penstock(**directives): directives of this test's embedded server")


@pytest.fixture
def penstock_server(request: pytest.FixtureRequest) -> "Iterator[Server | ExternalServer]":
    """A server of this test's own, in memory; with --penstock-url the one that is named there."""
    marks = list(request.node.iter_markers("penstock"))
    url = request.config.getoption("--penstock-url")
    if url:
        from penstock.testing.external import ExternalServer

        if marks:
            pytest.skip("the directives of @pytest.mark.penstock are for an embedded server")
        yield ExternalServer(url, _worker_number(request.config))
        return
    from penstock.testing.embedded import Server  # imported late: most tests of a suite need no server

    directives: dict[str, Any] = {}
    if request.config.getoption("--penstock-compat"):
        directives["compat_version"] = request.config.getoption("--penstock-compat")
    for mark in reversed(marks):  # the closest one wins
        directives |= mark.kwargs
    with Server(**directives) as server:
        request.node.stash[SERVER_OF_TEST] = server
        yield server
        del request.node.stash[SERVER_OF_TEST]  # pytest keeps the items to the end: every server would stay


@pytest.fixture
def penstock(penstock_server: "Server | ExternalServer") -> "redis.Redis":
    """A redis-py client of the test's server."""
    return penstock_server.client()


@pytest.fixture
def async_penstock(penstock_server: "Server | ExternalServer") -> "redis.asyncio.Redis":
    """A redis-py client of the test's server for the test's event loop."""
    return penstock_server.async_client()


@pytest.fixture
def penstock_clock(penstock_server: "Server | ExternalServer") -> "TurnedClock":
    """The clock of the test's server. On another server (--penstock-url) the test is skipped."""
    clock: TurnedClock | None = getattr(penstock_server, "clock", None)
    if clock is None:
        pytest.skip("the clock of another server cannot be turned")
    return clock


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to a failure what the server was asked, and how its groups stand."""
    report: Any = yield
    server = item.stash.get(SERVER_OF_TEST, None)
    if call.when == "call" and report.failed and server is not None:
        from penstock.testing.faults.failure_report import groups_text, requests_text

        report.sections.append(("penstock: last requests", requests_text(server, REQUESTS_SHOWN)))
        report.sections.append(("penstock: groups", groups_text(server)))
    return report  # type: ignore[no-any-return]  # pytest's hooks return it so


def _worker_number(config: pytest.Config) -> int:
    """0 without xdist, or for its first worker."""
    worker: str = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return int(worker.removeprefix("gw"))
