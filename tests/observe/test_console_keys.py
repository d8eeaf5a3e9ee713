"""The console's pages that are no stream's, and actions on all entries that match."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.chromium import PROGRAM, chromium
from tests.support.console_client import ConsoleClient, serving_console

IN_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (apt-get install chromium)"),
]
ENTRIES = 2500  # of the group: three steps
PHONE = 390


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The ports of a server with keys of all types, and of its console."""
    with serving_console() as (server, port), redis.Redis(port=server.port) as client:
        client.set("text", b"caf\xc3\xa9\xff", px=3_600_000)
        client.set("long", "x" * 70_000)
        client.rpush("list", *[f"e{number}" for number in range(250)])
        client.hset("hash", mapping={"field": "v" * 300})
        client.sadd("set", "member")
        client.zadd("zset", {"a": 1.5, "b": 2})
        client.execute_command("ARSET", "array", 0, "x")
        client.xadd("stream", {"n": 1})
        client.config_set("slowlog-log-slower-than", 0)
        client.echo("slow one")
        client.config_set("slowlog-log-slower-than", -1)
        yield server.port, port


@pytest.fixture
def client(ports: tuple[int, int]) -> Iterator[redis.Redis]:
    """A client of that server; the stream `jobs` has a group with pending entries."""
    with redis.Redis(port=ports[0], decode_responses=True) as client:
        client.delete("jobs")
        with client.pipeline(transaction=False) as pipe:
            for number in range(1, ENTRIES + 1):
                pipe.xadd("jobs", {"n": number}, id=f"{number}-0")
            pipe.xgroup_create("jobs", "g", "0")
            pipe.xreadgroup("g", "alice", {"jobs": ">"}, count=ENTRIES - 100)
            pipe.xreadgroup("g", "bob", {"jobs": ">"}, count=100)
            pipe.execute()
        yield client


@pytest.fixture
def console(ports: tuple[int, int]) -> ConsoleClient:
    console = ConsoleClient(ports[1])
    console.enter()
    return console


# -- keys -------------------------------------------------------------------------------------------------------------


def test_keys_of_every_type_are_listed_with_type_expiry_and_memory(console: ConsoleClient) -> None:
    shown = console.view("keys", pattern="[^j]*")
    rows = {row["key"]: row for row in shown["rows"]}

    assert {key: row["type"] for key, row in rows.items()} == {
        "array": "array", "hash": "hash", "list": "list", "long": "string", "set": "set", "stream": "stream",
        "text": "string", "zset": "zset",
    }  # fmt: skip
    assert (rows["list"]["ttl_ms"], 0 < rows["text"]["ttl_ms"] <= 3_600_000) == (None, True)
    assert rows["long"]["memory"] > 70_000


def test_every_page_shows_the_memory_that_memory_usage_tells(client: redis.Redis, console: ConsoleClient) -> None:
    listed = {row["key"]: row["memory"] for row in console.view("keys")["rows"]}

    assert listed == {key: client.memory_usage(key) for key in listed}
    assert {key: console.view("key", key=key)["memory"] for key in ("long", "zset")} == {
        key: listed[key] for key in ("long", "zset")
    }
    assert console.view("stream", key="jobs")["memory"] == listed["jobs"]


def test_keys_are_found_by_type_and_name(console: ConsoleClient) -> None:
    assert [row["key"] for row in console.view("keys", type="string")["rows"]] == ["long", "text"]
    assert [row["key"] for row in console.view("keys", type="string", pattern="on")["rows"]] == ["long"]


VALUES: list[tuple[str, int | None, list[Any]]] = [
    ("text", 6, [[{"text": ""}, {"text": "caf%C3%A9%FF"}]]),
    ("long", 70_000, [[{"text": ""}, {"text": "x" * 65_536, "size": 70_000}]]),
    ("hash", 1, [[{"text": "field"}, {"text": "v" * 200, "size": 300}]]),
    ("set", 1, [[{"text": ""}, {"text": "member"}]]),
    ("zset", 2, [[{"text": "a"}, {"text": "1.5"}], [{"text": "b"}, {"text": "2"}]]),
    ("array", None, []),
]


@pytest.mark.parametrize(("key", "size", "rows"), VALUES, ids=[key for key, *_ in VALUES])
def test_a_value_of_each_type_is_shown(console: ConsoleClient, key: str, size: int | None, rows: list[Any]) -> None:
    shown = console.view("key", key=key)

    assert (shown["size"], shown["rows"], shown["next"]) == (size, rows, 0)


def test_a_long_list_is_shown_a_page_at_a_time(console: ConsoleClient) -> None:
    first = console.view("key", key="list")
    last = console.view("key", key="list", place="200")

    assert (first["size"], len(first["rows"]), first["next"], first["encoding"]) == (250, 100, 100, "listpack")
    assert (last["rows"][0], last["rows"][-1], last["next"]) == (
        [{"text": "200"}, {"text": "e200"}],
        [{"text": "249"}, {"text": "e249"}],
        0,
    )


def test_a_key_that_is_gone_is_an_error_in_words(console: ConsoleClient) -> None:
    assert console.view("key", key="nothing")["error"] == "The key is not there."


def test_the_slow_log_is_shown(console: ConsoleClient) -> None:
    rows = console.view("slow")["rows"]

    assert 'ECHO "slow one"' in [row["line"] for row in rows]


# -- the command line -------------------------------------------------------------------------------------------------


LINES: list[tuple[str, list[str], list[list[str]]]] = [
    ("get text", ["get text"], [['"caf\\xc3\\xa9\\xff"']]),
    ('echo "a b"', ['echo "a b"'], [['"a b"']]),
    ("nonsense", ["nonsense"], [["(error) ERR unknown command 'nonsense'"]]),
    ("blpop none 0", ["MULTI", "blpop none 0", "EXEC"], [["OK"], ["QUEUED"], ["1) (nil)"]]),
]


@pytest.mark.parametrize(("line", "lines", "replies"), LINES, ids=[line for line, *_ in LINES])
def test_a_line_is_run_as_redis_cli_does(
    console: ConsoleClient, line: str, lines: list[str], replies: list[list[str]]
) -> None:
    told = console.act("command", line=line, run=True)

    assert (told["lines"], told["replies"]) == (lines, replies)


REFUSED_LINES = [
    "subscribe c", "unsubscribe a b", "punsubscribe a b", "sunsubscribe a b", "MULTI", "client reply off", "hello 3",
    "auth x", 'get "', "", " ",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED_LINES)
def test_a_line_that_would_change_the_sessions_connection_is_refused(console: ConsoleClient, line: str) -> None:
    refused = console.post("/api/action", {"action": "command", "line": line, "run": True})

    assert refused.status == 400
    assert refused.json["error"]
    assert console.act("command", line="echo x", run=True)["replies"] == [['"x"']]


# -- all entries that match -------------------------------------------------------------------------------------------


def test_an_action_on_all_that_match_goes_on_in_steps_to_the_last(client: redis.Redis, console: ConsoleClient) -> None:
    condition = {"consumer": "alice", "idle_ms": "0", "until": f"{ENTRIES}-0"}
    asked = {"key": "jobs", "group": "g", "run": True}
    first = console.act("acknowledge", all=condition, **asked)
    second = console.act("acknowledge", all=condition | {"after": first["after"]}, **asked)
    third = console.act("acknowledge", all=condition | {"after": second["after"]}, **asked)

    assert [(one["entries"], one["after"]) for one in (first, second, third)] == [
        (1000, "1000-0"),
        (1000, "2000-0"),
        (400, ""),
    ]
    assert first["lines"][0] == "XPENDING jobs g IDLE 0 - 2500-0 1000 alice"
    assert first["replies"] == [["1000 entries"], ["(integer) 1000"]]
    assert client.xpending("jobs", "g")["consumers"] == [{"name": "bob", "pending": 100}]


CONDITIONS = [
    pytest.param({"consumer": "carol"}, id="nothing matches"),
    pytest.param({"idle_ms": 5}, id="a number"),
    pytest.param({"idle_ms": "x"}, id="no number"),
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_that_no_entry_matches_is_refused(
    client: redis.Redis, console: ConsoleClient, condition: dict[str, object]
) -> None:
    answer = console.post("/api/action", {"action": "acknowledge", "key": "jobs", "group": "g", "all": condition})

    assert answer.status == 400


class TestInChromium:
    pytestmark = IN_CHROMIUM

    async def test_all_pending_entries_are_released_with_progress(
        self, client: redis.Redis, ports: tuple[int, int]
    ) -> None:
        async with chromium() as page:
            await page.open(f"http://127.0.0.1:{ports[1]}/#/group?key=jobs&group=g")
            await page.shows("All that match")
            await page.value("document.getElementById('every').click()")
            await page.press("Acknowledge …")
            await page.shows("and so on, to the last entry that matches")
            await page.value("document.querySelector('dialog button.main').click()")
            await page.shows(f"{ENTRIES} entries in all")
            complaints = page.complaints

        assert client.xpending("jobs", "g")["pending"] == 0
        assert complaints == []

    async def test_keys_the_slow_log_and_a_command_line_are_reached_by_a_click(
        self, ports: tuple[int, int], tmp_path: Path
    ) -> None:
        async with chromium() as page:
            await page.open(f"http://127.0.0.1:{ports[1]}/")
            await page.press("Keys")
            await page.press("zset")
            await page.shows("1.5")
            await page.press("Slow log")
            await page.shows('ECHO "slow one"')
            await page.press("Command line")
            await page.type("Command", "lrange list 0 1")
            await page.enter()
            await page.shows('1) "e0"')
            await page.picture(tmp_path / "command.png")
            complaints = page.complaints

        assert complaints == []

    async def test_on_a_phone_every_action_is_in_reach(
        self, client: redis.Redis, ports: tuple[int, int], tmp_path: Path
    ) -> None:
        wide = {}
        async with chromium() as page:
            await page.narrow(PHONE)
            for name, address in (("overview", ""), ("group", "#/group?key=jobs&group=g"), ("keys", "#/keys")):
                await page.open(f"http://127.0.0.1:{ports[1]}/{address}")
                await page.until("document.querySelector('tbody tr')")
                wide[name] = await page.value(
                    "[...document.querySelectorAll('button, a, input, select')].filter((one) => one.offsetParent"
                    f" && one.getBoundingClientRect().right > {PHONE}).map((one) => one.textContent || one.id)"
                )
                await page.picture(tmp_path / f"{name}.png")

        assert wide == {"overview": [], "group": [], "keys": []}
