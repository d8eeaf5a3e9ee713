"""The plugin of pytest, as a suite sees it that has no conftest."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest
import redis

import penstock as package
from penstock.testing import embedded, external
from penstock.testing.faults import failure_report

pytest_plugins = "pytester"

# pytester forgets what a run inside this process imports: every run would import the whole server again.
IMPORTED = (embedded, external, failure_report)

QUEUE = """
def test_first(penstock):
    assert penstock.xadd("s", {"f": "v"}, id="1-0") == b"1-0"

def test_second(penstock):
    assert penstock.exists("s") == 0
"""


def run(pytester: pytest.Pytester, text: str, *words: str) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess("-p", "penstock.testing.pytest_plugin", "-p", "no:cacheprovider", *words)


def test_each_test_has_a_server_of_its_own(pytester: pytest.Pytester) -> None:
    run(pytester, QUEUE).assert_outcomes(passed=2)


@pytest.mark.slow
def test_the_workers_of_xdist_have_servers_of_their_own(pytester: pytest.Pytester) -> None:
    run(pytester, QUEUE, "-n2").assert_outcomes(passed=2)


def test_the_clock_is_in_the_tests_hand(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        def test_a_day(penstock, penstock_clock):
            penstock.set("k", "v", ex=86400)
            penstock_clock.advance(days=2)
            assert penstock.get("k") is None
        """,
    ).assert_outcomes(passed=1)


def test_an_asynchronous_client_is_in_the_tests_loop(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import asyncio

        def test_async(async_penstock):
            async def go():
                await async_penstock.set("k", "v")
                return await async_penstock.get("k")

            assert asyncio.run(go()) == b"v"
        """,
    ).assert_outcomes(passed=1)


def test_a_mark_has_directives(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest

        pytestmark = pytest.mark.penstock(maxmemory="1gb", databases=2)

        @pytest.mark.penstock(databases=4)
        def test_marked(penstock):
            assert penstock.config_get("maxmemory", "databases") == {"maxmemory": "1073741824", "databases": "4"}
        """,
        "--strict-markers",
    ).assert_outcomes(passed=1)


def test_a_suite_runs_as_an_older_server(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        def test_version(penstock):
            assert penstock.info("server")["redis_version"].startswith("7.2")
        """,
        "--penstock-compat=7.2",
    ).assert_outcomes(passed=1)


def test_a_suite_runs_on_another_server_by_its_url(pytester: pytest.Pytester) -> None:
    with package.Server() as other:
        other.client(db=1).set("old", "v")
        other.client(db=0).set("kept", "v")
        found = run(
            pytester,
            QUEUE
            + """
def test_clock(penstock_clock):
    raise AssertionError("skipped")

def test_url(penstock_server, penstock):
    assert penstock.keys() == []
    assert penstock_server.client(decode_responses=True).echo("x") == "x"
    penstock.set("here", "v")
""",
            f"--penstock-url={other.url}/1",
        )

        found.assert_outcomes(passed=3, skipped=1)
        assert redis.from_url(other.url + "/1").keys() == [b"here"]
        assert other.client().keys() == [b"kept"]


def test_a_failure_shows_the_last_requests_and_the_groups(pytester: pytest.Pytester) -> None:
    found = run(
        pytester,
        """
        def test_fails(penstock):
            penstock.xadd("orders", {"f": "v"}, id="1-0")
            penstock.xadd("orders", {"f": "v"}, id="2-0")
            penstock.xgroup_create("orders", "workers", "0")
            penstock.xreadgroup("workers", "alice", {"orders": ">"}, count=1)
            assert False
        """,
    )

    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "*penstock: last requests*",
            "* 'XADD' 'orders' '1-0' 'f' 'v' -> b'1-0'",
            "* 'XREADGROUP' *",
            "*penstock: groups*",
            "db0 orders workers: length 2, lag 1, pending 1 (alice 1)",
        ]
    )


def installed(folder: Path) -> Path:
    """A folder as an installer leaves it: the package, and what pytest reads of its distribution."""
    about = folder / "penstock_server-0.1.0.dist-info"
    about.mkdir()
    (folder / "penstock").symlink_to(Path(package.__file__).parent)
    (about / "METADATA").write_text("Metadata-Version: 2.4\nName: penstock-server\nVersion: 0.1.0\n")
    plugin = next(point for point in entry_points(group="pytest11") if point.value.startswith("penstock."))
    (about / "entry_points.txt").write_text(f"[pytest11]\n{plugin.name} = {plugin.value}\n")
    (about / "RECORD").write_text("penstock/__init__.py,,\npenstock/testing/embedded.py,,\n")
    return folder


def test_pytest_rewrites_nothing_of_an_installed_penstock_but_the_plugin(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed(tmp_path)))
    pytester.makepyfile(
        """
        import sys
        from _pytest.assertion.rewrite import AssertionRewritingHook

        def test_loaders(penstock):
            assert {
                name
                for name, module in sys.modules.items()
                if name.startswith("penstock") and isinstance(module.__loader__, AssertionRewritingHook)
            } == {"penstock", "penstock.testing", "penstock.testing.pytest_plugin"}
        """
    )

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_server_is_forgotten_when_its_test_has_ended(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import gc
        import weakref

        seen = []

        def test_first(penstock_server):
            seen.append(weakref.ref(penstock_server))

        def test_second():
            gc.collect()
            assert seen[0]() is None
        """,
    ).assert_outcomes(passed=2)
