"""pytest's plugin: fixtures of an embedded server, fresh in each test. It is installed with the package.

    def test_an_order_is_queued(penstock):
        penstock.xadd("orders", {"id": "1"})

`--penstock-compat=8.2` runs a suite against the commands of an older server. `--penstock-url=redis://...` runs it on a
real one: its database (a number further for each worker of xdist) is emptied before each test.
`@pytest.mark.penstock(...)` has directives for one test, `@pytest.mark.penstock_client(...)` options of its clients.
The setting `penstock_scope` has tests share a server.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    import redis
    import redis.asyncio

    from penstock.testing.cluster import Cluster
    from penstock.testing.embedded import Server
    from penstock.testing.external import ExternalServer
    from penstock.testing.loops.turned_clock import TurnedClock

SERVER_OF_NODE: Final = pytest.StashKey["Server"]()  # of a test, or of what shares a server
RESET_OF_NODE: Final = pytest.StashKey[Callable[[], object]]()
SCOPES: Final = ("function", "class", "module", "package", "session")
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
    parser.addini("penstock_scope", f"how long a server lives: {', '.join(SCOPES)}", default="function")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "penstock(**directives): directives of this test's embedded server")
    config.addinivalue_line("markers", "penstock_client(**options): options of redis.Redis for this test's clients")
    if config.getini("penstock_scope") not in SCOPES:
        raise pytest.UsageError(f"penstock_scope is one of {', '.join(SCOPES)}")


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    """The scope of the server: the setting `penstock_scope`."""
    return config.getini("penstock_scope")


@pytest.fixture(scope=_scope)
def penstock_server(request: pytest.FixtureRequest) -> "Iterator[Server | ExternalServer]":
    """A server of this test's own, in memory; with --penstock-url the one that is named there.

    With a wider `penstock_scope`, the tests of a class, a module or the session share it; each finds it new.
    """
    url = request.config.getoption("--penstock-url")
    if url:
        from penstock.testing.external import ExternalServer

        if request.node.get_closest_marker("penstock") is not None:
            pytest.skip("the directives of @pytest.mark.penstock are for an embedded server")
        external = ExternalServer(url, _worker_number(request.config))
        yield from _shared(request, external, external.empty)
        return
    from penstock.testing.embedded import Server  # imported late: most tests of a suite need no server

    directives: dict[str, Any] = {}
    if request.config.getoption("--penstock-compat"):
        directives["compat_version"] = request.config.getoption("--penstock-compat")
    with Server(**(directives | _marked(request, "penstock"))) as server:
        request.node.stash[SERVER_OF_NODE] = server
        yield from _shared(request, server, server.reset)
        del request.node.stash[SERVER_OF_NODE]  # pytest keeps the items to the end: every server would stay


def _shared(request: pytest.FixtureRequest, server: Any, reset: Callable[[], object]) -> Iterator[Any]:
    """Yield a server; the tests that share it are each followed by `reset`."""
    if request.scope == "function":
        yield server
        return
    request.node.stash[RESET_OF_NODE] = reset
    yield server
    del request.node.stash[RESET_OF_NODE]


@pytest.fixture(scope=_scope)
def penstock_url(penstock_server: "Server | ExternalServer") -> str:
    """The URL of the test's server, for what takes one; a client in the process needs none."""
    return penstock_server.url


@pytest.fixture
def penstock(request: pytest.FixtureRequest, penstock_server: "Server | ExternalServer") -> "Iterator[redis.Redis]":
    """A redis-py client of the test's server; @pytest.mark.penstock_client(...) has its options."""
    with penstock_server.client(**_marked(request, "penstock_client")) as client:
        yield client


@pytest.fixture
def async_penstock(request: pytest.FixtureRequest, penstock_server: "Server | ExternalServer") -> "redis.asyncio.Redis":
    """A redis-py client of the test's server for the test's event loop; options as those of `penstock`."""
    return penstock_server.async_client(**_marked(request, "penstock_client"))


def _marked(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """The keywords of a test's marks of a name; the closest mark wins."""
    keywords: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(name))):
        keywords |= mark.kwargs
    return keywords


@pytest.fixture(scope=_scope)
def penstock_clock(penstock_server: "Server | ExternalServer") -> "TurnedClock":
    """The clock of the test's server. On another server (--penstock-url) the test is skipped."""
    clock: TurnedClock | None = getattr(penstock_server, "clock", None)
    if clock is None:
        pytest.skip("the clock of another server cannot be turned")
    return clock


@pytest.fixture
def penstock_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """A cluster of this test's own, of three processes; `@pytest.mark.penstock(nodes=2, replicas=1)` has another."""
    from penstock.testing.cluster import Cluster  # imported late, likewise

    with Cluster(**_marked(request, "penstock")) as cluster:
        yield cluster


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse directives of a test that has no server of its own."""
    scope = item.config.getini("penstock_scope")
    if scope == "function" or "penstock_server" not in getattr(item, "fixturenames", ()):
        return
    kinds: dict[str, type[pytest.Collector]] = {
        "class": pytest.Class, "module": pytest.Module, "package": pytest.Package, "session": pytest.Session,
    }  # fmt: skip
    sharing = item.getparent(kinds[scope])
    for node, _ in item.iter_markers_with_node("penstock"):
        if sharing is not None and node not in sharing.listchain():
            pytest.fail(
                f"penstock_scope is {scope}: @pytest.mark.penstock of {node.name} comes too late", pytrace=False
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Make the servers as new that the next test shares."""
    yield
    for node in item.listchain():
        if reset := node.stash.get(RESET_OF_NODE, None):
            reset()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to a failure what the server was asked, and how its groups stand."""
    report: Any = yield
    server = next((node.stash[SERVER_OF_NODE] for node in item.listchain() if SERVER_OF_NODE in node.stash), None)
    if call.when == "call" and report.failed and server is not None:
        from penstock.testing.faults.failure_report import groups_text, requests_text

        report.sections.append(("penstock: last requests", requests_text(server)))
        report.sections.append(("penstock: groups", groups_text(server)))
    return report  # type: ignore[no-any-return]  # pytest's hooks return it so


def _worker_number(config: pytest.Config) -> int:
    """0 without xdist, or for its first worker."""
    worker: str = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return int(worker.removeprefix("gw"))
