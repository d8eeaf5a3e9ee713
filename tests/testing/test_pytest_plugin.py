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


def test_a_mark_has_options_of_the_clients(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import asyncio
        import pytest

        @pytest.mark.penstock_client(decode_responses=True, db=3)
        class TestWords:
            def test_blocking(self, penstock):
                assert penstock.echo("word") == "word"
                assert penstock.client_info()["db"] == 3

            @pytest.mark.penstock_client(db=4)
            def test_asynchronous(self, async_penstock):
                async def answers():
                    return await async_penstock.echo("word"), (await async_penstock.client_info())["db"]

                assert asyncio.run(answers()) == ("word", 4)
        """,
        "--strict-markers",
    ).assert_outcomes(passed=2)


def test_a_url_is_a_fixture(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import redis

        def test_url(penstock_url, penstock):
            redis.from_url(penstock_url).set("k", "v")
            assert penstock.get("k") == b"v"
        """,
    ).assert_outcomes(passed=1)


SHARED = """
import pytest

pytestmark = pytest.mark.penstock(maxmemory="1gb")
seen = []

@pytest.fixture(scope="module")
def app(penstock_url, penstock_clock):
    return penstock_url

@pytest.mark.parametrize("number", range(3))
def test_shared(app, penstock, penstock_server, number):
    assert penstock.dbsize() == 0
    assert penstock.info("clients")["connected_clients"] <= 2
    penstock.set("k", "v")
    seen.append(penstock_server)
    assert len(set(seen)) == 1

def test_asynchronous(async_penstock):
    import asyncio

    async def answers():
        assert await async_penstock.dbsize() == 0
        await async_penstock.set("k", "v")

    asyncio.run(answers())
"""


def test_the_tests_of_a_module_may_share_a_server_and_each_finds_it_empty(pytester: pytest.Pytester) -> None:
    run(pytester, SHARED, "-o", "penstock_scope=module").assert_outcomes(passed=4)


LEFT_BEHIND = """
import pytest

pytestmark = pytest.mark.penstock(databases=4)
left = []

def states(client, server):
    return {
        "keys": client.dbsize(),
        "users": client.acl_users(),
        "rights": client.acl_getuser("default")["commands"],
        "functions": client.function_list(),
        "script": client.script_exists("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
        "settings": client.config_get("maxmemory", "databases", "slowlog-log-slower-than"),
        "slow log": client.slowlog_get(),
        "clients": len(client.client_list()),
        "channels": client.pubsub_channels(),
        "stands still": server.clock.is_stopped,
        "set": client.set("full", "disk"),
    }

@pytest.fixture(scope="module")
def app(penstock_server, penstock_url):
    client = penstock_server.client(db=3)
    client.set("setup", 1)
    return client

@pytest.fixture(scope="module")
def found(app):
    return []

def test_first(app, penstock, penstock_server, found):
    penstock.flushall()
    app.connection_pool.disconnect()
    found.append(states(penstock, penstock_server))

def test_second(app, penstock, penstock_server, penstock_clock):
    app.set("k", "v")
    left.append(penstock_server.client().pubsub())
    left[0].subscribe("news")
    penstock.config_set("slowlog-log-slower-than", 0)
    penstock.config_set("maxmemory", "2gb")
    penstock.function_load("#!lua name=l\\nredis.register_function('f', function() return 1 end)")
    penstock.script_load("return 1")
    penstock.acl_setuser("alice", enabled=True, nopass=True)
    penstock.acl_setuser("default", enabled=True, commands=["-flushall", "-client|list"])
    penstock_clock.advance(days=400)
    penstock_clock.stop()
    penstock_server.faults.refused_writes().__enter__()

def test_third(penstock, penstock_server, penstock_url, found):
    import time
    import redis

    assert states(penstock, penstock_server) == found[0]
    assert penstock.time()[0] < time.time() + 60
    with redis.from_url(penstock_url) as other:
        assert other.get("full") == b"disk"

def test_a_client_of_the_module_is_as_it_was(app):
    assert app.client_info()["db"] == 3
    assert app.dbsize() == 0
"""


def test_nothing_of_a_test_is_left_on_the_server_that_the_next_one_shares(pytester: pytest.Pytester) -> None:
    run(pytester, LEFT_BEHIND, "-o", "penstock_scope=module").assert_outcomes(passed=4)


def test_directives_of_a_test_that_shares_its_server_are_refused(pytester: pytest.Pytester) -> None:
    found = run(pytester, SHARED, "-o", "penstock_scope=session")

    found.assert_outcomes(errors=4)
    found.stdout.fnmatch_lines(["penstock_scope is session: @pytest.mark.penstock of *.py comes too late"])


def test_a_scope_that_pytest_has_not_is_refused(pytester: pytest.Pytester) -> None:
    found = run(pytester, QUEUE, "-o", "penstock_scope=test")

    assert found.ret == pytest.ExitCode.USAGE_ERROR
    found.stderr.fnmatch_lines(["ERROR: penstock_scope is one of function, class, module, package, session"])


def test_a_failure_on_a_shared_server_shows_its_last_requests(pytester: pytest.Pytester) -> None:
    text = """
    def test_fails(penstock):
        penstock.set("k", "v")
        assert False
    """
    run(pytester, text, "-o", "penstock_scope=session").stdout.fnmatch_lines(["* 'SET' 'k' 'v' -> *OK*"])


def test_a_test_case_of_unittest_has_the_fixtures_and_needs_none(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import unittest

        import pytest

        import penstock as package

        class WithFixtures(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def with_redis(self, penstock):
                self.redis = penstock

            def test_queue(self):
                self.assertEqual(self.redis.lpush("q", "x"), 1)

        class Alone(unittest.TestCase):
            def setUp(self):
                self.redis = self.enterContext(package.Server()).client()

            def test_queue(self):
                self.assertEqual(self.redis.lpush("q", "x"), 1)

        class Asynchronous(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self):
                self.redis = (await self.enterAsyncContext(package.Server())).async_client()

            async def test_queue(self):
                self.assertEqual(await self.redis.lpush("q", "x"), 1)
        """,
    ).assert_outcomes(passed=3)


def test_a_test_of_anyio_has_the_fixtures(pytester: pytest.Pytester) -> None:
    run(
        pytester,
        """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.fixture
        async def orders(async_penstock):
            await async_penstock.xadd("orders", {"id": "1"})
            return async_penstock

        @pytest.mark.anyio
        async def test_orders(orders, penstock):
            assert await orders.xlen("orders") == penstock.xlen("orders") == 1
        """,
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

def test_url(penstock_server, penstock, penstock_url):
    assert penstock_url.endswith("/1")
    assert penstock.keys() == []
    assert penstock_server.client(decode_responses=True).echo("x") == "x"
    penstock.set("here", "v")
""",
            f"--penstock-url={other.url}/1",
        )

        found.assert_outcomes(passed=3, skipped=1)
        assert redis.from_url(other.url + "/1").keys() == [b"here"]
        assert other.client().keys() == [b"kept"]


def test_tests_that_share_a_server_by_its_url_find_its_database_empty(pytester: pytest.Pytester) -> None:
    with package.Server() as other:
        other.client(db=0).set("kept", "v")

        found = run(pytester, QUEUE, f"--penstock-url={other.url}/1", "-o", "penstock_scope=session")

        found.assert_outcomes(passed=2)
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
    source = Path(package.__file__).parent
    for part in (source, *source.parent.glob("penstock__mypyc.*")):  # what is compiled is beside the package
        (folder / part.name).symlink_to(part)
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
