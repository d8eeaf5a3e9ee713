"""The console over HTTP: what each user sees, and what is changed how."""

import asyncio
import re
import socket
import sys
from collections.abc import Iterator
from importlib import resources
from typing import Any, cast

import hiredis
import pytest
import redis

from penstock.engine.session import NOWHERE, Endpoints
from penstock.errors import UsageError
from penstock.observe import companions
from penstock.observe.console.console_server import ConsoleServer
from penstock.observe.console.engine_client import EngineDoor
from penstock.observe.console.logins import MOST_FAILURES, MOST_LOGINS, Logins, Refused
from penstock.observe.console.web import FILES
from penstock.policies import GroupOptions, StreamOptions
from penstock.server.connections.connection import Connection
from penstock.server.turns.turn import Turn
from tests.support.console_client import ConsoleClient, serving_console
from tests.support.engines import settings_with
from tests.support.fake_server import FakeServer, FakeTransport

NO_INLINE = re.compile(rb"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style|javascript:", re.IGNORECASE)
ELSEWHERE = re.compile(rb"https?://(?!www\.w3\.org/)|@import|url\(")


@pytest.fixture(scope="module")
def open_server() -> Iterator[tuple[int, int]]:
    """The ports of a server without a password, and of its console."""
    with serving_console() as (server, port):
        yield server.port, port


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[tuple[int, int]]:
    """The same with a password."""
    with serving_console("--requirepass", "secret") as (server, port):
        yield server.port, port


@pytest.fixture
def client(open_server: tuple[int, int]) -> Iterator[redis.Redis]:
    with redis.Redis(port=open_server[0], decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
def console(open_server: tuple[int, int]) -> ConsoleClient:
    console = ConsoleClient(open_server[1])
    console.enter()
    return console


@pytest.fixture
def guarded(guarded_server: tuple[int, int]) -> ConsoleClient:
    return ConsoleClient(guarded_server[1])


@pytest.fixture
def keeper(guarded_server: tuple[int, int]) -> Iterator[redis.Redis]:
    with redis.Redis(port=guarded_server[0], password="secret", decode_responses=True) as client:
        client.flushall()
        client.xadd("orders", {"number": "1"}, id="1-0")
        yield client


def with_pending(client: redis.Redis) -> None:
    client.xadd("orders", {"number": "1", "customer": "Zoë"}, id="1-0")
    client.xadd("orders", {"number": "2"}, id="2-0")
    client.xgroup_create("orders", "shop", "0")
    client.xreadgroup("shop", "alice", {"orders": ">"}, count=1)


def entries_of(client: redis.Redis, key: str) -> Any:
    return client.xrange(key)


# -- the page ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_the_page_runs_no_inline_script_and_loads_nothing_from_elsewhere(
    console: ConsoleClient, path: str
) -> None:
    answer = console.get(path)

    assert answer.status == 200
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert NO_INLINE.search(answer.body) is None
    assert ELSEWHERE.search(answer.body) is None


def test_every_file_of_the_page_is_served() -> None:
    page = resources.files("penstock.observe.console") / "page"
    assert {one.name for one in page.iterdir()} == {name for name, _ in FILES.values()}


def test_a_path_outside_the_page_is_not_there(console: ConsoleClient) -> None:
    assert console.get("/../console_server.py").status == 404
    assert console.get("/page/").status == 404


# -- what is shown ----------------------------------------------------------------------------------------------------


def test_the_overview_shows_streams_only(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)
    client.set("plain", "x")

    shown = console.view("overview")

    (row,) = shown["streams"]
    assert (row["key"], row["length"], row["groups"], row["pending"], row["lag"]) == ("orders", 2, 1, 1, 1)
    assert (shown["total"], shown["complete"], shown["keys"]) == (1, True, 2)


def test_the_overview_shows_the_streams_of_a_pattern_a_page_at_a_time(
    client: redis.Redis, console: ConsoleClient
) -> None:
    for number in range(30):
        client.xadd(f"a:{number:02}", {"f": "v"})
    client.xadd("b", {"f": "v"})

    shown = console.view("overview", pattern="a:*", start="25")

    assert shown["total"] == 30
    assert [row["key"] for row in shown["streams"]] == [f"a:{number}" for number in range(25, 30)]


def test_another_database_has_streams_of_its_own(client: redis.Redis, console: ConsoleClient) -> None:
    client.execute_command("SELECT", 3)
    client.xadd("elsewhere", {"f": "v"})
    client.execute_command("SELECT", 0)

    assert [row["key"] for row in console.view("overview", db="3")["streams"]] == ["elsewhere"]
    assert console.view("overview")["streams"] == []


def test_a_stream_shows_its_groups_and_newest_entries(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)

    shown = console.view("stream", key="orders")

    assert [(row["name"], row["pending"], row["lag"]) for row in shown["group_rows"]] == [("shop", 1, 1)]
    assert [row["id"] for row in shown["entries"]] == ["2-0", "1-0"]
    assert shown["entries"][1]["fields"][1] == [{"text": "customer"}, {"text": "Zo%C3%AB"}]


def test_a_group_shows_consumers_and_pending_entries(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)

    shown = console.view("group", key="orders", group="shop")

    assert [(row["name"], row["pending"]) for row in shown["consumer_rows"]] == [("alice", 1)]
    assert [(row["id"], row["consumer"], row["deliveries"]) for row in shown["pending_rows"]] == [("1-0", "alice", 1)]


def test_an_entry_shows_its_fields_and_its_owner(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)

    shown = console.view("entry", key="orders", id="1-0")

    assert shown["fields"][0] == [{"text": "number"}, {"text": "1"}]
    assert [(row["group"], row["consumer"]) for row in shown["held"]] == [("shop", "alice")]


def test_a_long_value_is_shortened_and_its_size_is_told(client: redis.Redis, console: ConsoleClient) -> None:
    client.xadd("big", {"f": "x" * 100_000}, id="1-0")

    ((_, value),) = console.view("entry", key="big", id="1-0")["fields"]

    assert (len(value["text"]), value["size"]) == (65536, 100_000)


def test_names_that_are_no_text_are_shown_and_found_again(client: redis.Redis, console: ConsoleClient) -> None:
    client.execute_command("XADD", b"\xff /%?", "1-0", "f", "v")

    (row,) = console.view("overview")["streams"]

    assert console.view("stream", key=row["key"])["length"] == 1


def test_a_stream_that_is_gone_is_an_error_in_words(client: redis.Redis, console: ConsoleClient) -> None:
    assert console.view("stream", key="nothing") == {"error": "ERR no such key"}


@pytest.mark.parametrize("asked", ["view=x", "db=16", "db=-1", "start=1e9", "view=overview&start=99999"])
def test_a_view_that_no_page_asks_for_is_refused(console: ConsoleClient, asked: str) -> None:
    assert console.get(f"/api/view?{asked}").status == 400


def test_a_page_is_told_of_changes_while_it_is_open(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)

    with console.events("stream", key="orders") as events:
        before = next(events)
        client.xadd("orders", {"number": "3"})
        after = next(one for one in events if one["length"] != before["length"])

    assert (before["length"], after["length"]) == (2, 3)


# -- changes ----------------------------------------------------------------------------------------------------------


def test_an_action_is_shown_before_it_is_run_and_with_its_reply_after(
    client: redis.Redis, console: ConsoleClient
) -> None:
    with_pending(client)
    claim: dict[str, object] = {"key": "orders", "group": "shop", "consumer": "bob", "ids": ["1-0"]}

    before = console.act("claim", **claim)
    (untouched,) = client.xpending_range("orders", "shop", "-", "+", 10)
    after = console.act("claim", **claim, run=True)
    (claimed,) = client.xpending_range("orders", "shop", "-", "+", 10)

    assert before == {"lines": ["XCLAIM orders shop bob 0 1-0 JUSTID"]}
    assert after == before | {"replies": [['1) "1-0"']]}
    assert (untouched["consumer"], claimed["consumer"]) == ("alice", "bob")


@pytest.mark.parametrize(
    ("action", "asked", "lines"),
    [
        ("acknowledge", {"ids": ["1-0"]}, ["XACK orders shop 1-0"]),
        ("release", {"ids": ["1-0"], "mode": "FAIL"}, ["XNACK orders shop FAIL IDS 1 1-0"]),
        (
            "release",
            {"ids": ["1-0"], "mode": "FAIL", "delay_ms": "500"},
            ["PENSTOCK.XNACK orders shop FAIL IDS 1 1-0 DELAY 500"],
        ),
        ("delete-consumer", {"consumer": "my%20worker"}, ['XGROUP DELCONSUMER orders shop "my worker"']),
        (
            "policy",
            {"options": {"ACKWAIT": "1000", "BACKOFF": "1 2", "KEY": ""}},
            ["PENSTOCK.POLICY orders GROUP shop ACKWAIT 1000 BACKOFF 1 2"],
        ),
        (
            "policy",
            {"options": {"RATE": "10 1000", "FAIR": "YES", "PAUSE": "NONE", "BACKOFF": "NONE"}},
            ["PENSTOCK.POLICY orders GROUP shop RATE 10 1000 FAIR YES PAUSE NONE BACKOFF NONE"],
        ),
        ("policy", {"reset": True}, ["PENSTOCK.POLICY orders GROUP shop RESET"]),
        (
            "policy",
            {"group": "", "options": {"MAXLEN": "0", "REFERENCES": "ACKED"}},
            ["PENSTOCK.POLICY orders MAXLEN 0 ACKED"],
        ),
        (
            "dead-letter",
            {"ids": ["1-0"], "target": "dead"},
            [
                'XADD dead * number 1 customer "Zo\\xc3\\xab" _stream orders _group shop _id 1-0 _deliveries 1'
                ' _consumer alice _reason "moved by hand"',
                "XACK orders shop 1-0",
            ],
        ),
        ("claim", {"ids": ["1-0"], "consumer": "b", "db": 2}, ["SELECT 2", "XCLAIM orders shop b 0 1-0 JUSTID"]),
    ],
)
def test_each_action_is_a_redis_cli_command(
    client: redis.Redis, console: ConsoleClient, action: str, asked: dict[str, object], lines: list[str]
) -> None:
    with_pending(client)

    assert console.act(action, **{"key": "orders", "group": "shop"} | asked) == {"lines": lines}


def test_dead_letters_go_where_the_policy_says_and_come_back(client: redis.Redis, console: ConsoleClient) -> None:
    with_pending(client)
    client.execute_command("PENSTOCK.POLICY orders GROUP shop DEADLETTER dead")

    moved = console.act("dead-letter", key="orders", group="shop", ids=["1-0"], target="dead", run=True)
    ((dead_id, dead),) = entries_of(client, "dead")
    console.act("redrive", key="dead", ids=[dead_id], run=True)

    assert moved["lines"] == ["XNACK orders shop FATAL IDS 1 1-0"]
    assert dead["_reason"] == "fatal"
    assert client.xlen("dead") == 0
    assert entries_of(client, "orders")[-1][1] == {"number": "1", "customer": "Zoë"}


def test_an_entry_is_not_acknowledged_if_its_dead_letter_cannot_be_written(
    client: redis.Redis, console: ConsoleClient
) -> None:
    with_pending(client)
    client.set("dead", "no stream")
    asked = {"action": "dead-letter", "key": "orders", "group": "shop", "ids": ["1-0"], "target": "dead", "run": True}

    answer = console.post("/api/action", asked)

    assert (answer.status, answer.json) == (409, {"error": "dead holds a string, no stream."})
    assert client.xpending("orders", "shop")["pending"] == 1


@pytest.mark.parametrize("action", ["dead-letter", "redrive"])
def test_an_entry_that_cannot_be_added_elsewhere_stays(
    client: redis.Redis, console: ConsoleClient, action: str
) -> None:
    with_pending(client)
    client.xreadgroup("shop", "alice", {"orders": ">"})
    client.xadd("full", {"f": "v"}, f"{2**64 - 1}-{2**64 - 2}")  # one id is left

    moved = console.act(action, key="orders", group="shop", target="full", ids=["1-0", "2-0"], run=True)

    pending = [one["message_id"] for one in client.xpending_range("orders", "shop", "-", "+", 10)]
    present = [entry_id for entry_id, _ in entries_of(client, "orders")]
    assert client.xlen("full") == 2
    assert (pending if action == "dead-letter" else present) == ["2-0"]
    assert moved["lines"][-1].endswith(" 1-0")
    assert "exhausted" in moved["replies"][1][0]


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "flushall", "key": "orders"},
        {"action": "acknowledge", "key": "orders", "group": "shop", "ids": []},
        {"action": "acknowledge", "key": "orders", "group": "shop", "ids": ["1-0"] * 101},
        {"action": "acknowledge", "key": "orders", "group": "shop", "ids": ["$"]},
        {"action": "acknowledge", "key": "orders", "ids": ["1-0"]},
        {"action": "claim", "key": "orders", "group": "shop", "consumer": "", "ids": ["1-0"]},
        {"action": "claim", "key": "orders", "group": "shop", "consumer": "a", "ids": ["1-0"], "min_idle_ms": -1},
        {"action": "release", "key": "orders", "group": "shop", "ids": ["1-0"], "mode": "KEEP"},
        {"action": "policy", "key": "orders", "options": {}},
        {"action": "policy", "key": "orders", "options": {"KEY": "customer"}},
        {"action": "policy", "key": "orders", "options": {"KEEPREF": "KEEPREF"}},
        {"action": "policy", "key": "orders", "options": {"REFERENCES": "\ud800"}},
        {"action": "policy", "key": "orders", "group": "shop", "options": {"REFERENCES": "ACKED"}},
        {"action": "policy", "key": "orders", "group": "shop", "options": {"RATE\ud800": "1 1"}},
        {"action": ["claim"], "key": 1},
    ],
)
def test_an_action_that_no_page_asks_for_is_refused(console: ConsoleClient, asked: dict[str, object]) -> None:
    assert console.post("/api/action", asked).status == 400


@pytest.mark.parametrize("known", [StreamOptions, GroupOptions], ids=["stream", "group"])
def test_the_form_of_a_policy_has_each_option(known: type[StreamOptions] | type[GroupOptions]) -> None:
    script = (resources.files("penstock.observe.console") / "page/actions.js").read_text()
    shown = set(re.findall(r'(?:field\(|\[)"([A-Z]+)", "', script))

    assert {option.upper() for option in known.__annotations__} - shown == set()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 50_000, b'"' + b"x" * 100_000 + b'"'])
def test_a_body_that_is_no_action_is_refused(console: ConsoleClient, body: bytes) -> None:
    assert console.post("/api/action", body).status in (400, 413)


# -- rights to pages---------------------------------------------------------------------------------------------------


def test_nothing_is_shown_without_a_login_when_a_password_is_set(guarded: ConsoleClient) -> None:
    assert guarded.enter().json == {"user": None}
    assert guarded.get("/api/view?view=overview").status == 401
    assert guarded.get("/api/events?view=overview").status == 401
    assert guarded.post("/api/action", {"action": "acknowledge"}).status == 401


def test_the_servers_password_opens_the_console(guarded: ConsoleClient, keeper: redis.Redis) -> None:
    wrong = guarded.enter("default", "guess")
    right = guarded.enter("default", "secret")

    assert (wrong.status, wrong.json["error"][:28]) == (403, "invalid username-password pa")
    assert right.json["user"] == "default"
    assert "HttpOnly" in right.headers["Set-Cookie"]
    assert "SameSite=Strict" in right.headers["Set-Cookie"]
    assert guarded.view("overview")["total"] == 1


def test_a_user_sees_and_changes_what_the_rules_allow(guarded: ConsoleClient, keeper: redis.Redis) -> None:
    keeper.xadd("hidden", {"f": "v"})
    keeper.xgroup_create("orders", "shop", "0")
    keeper.acl_setuser("looker", True, passwords=["+pw"], keys=["orders"], categories=["+@read", "+@connection"])
    guarded.enter("looker", "pw")

    rows = {row["key"]: row for row in guarded.view("overview")["streams"]}
    acknowledged = guarded.act("acknowledge", key="orders", group="shop", ids=["1-0"], run=True)

    assert rows["orders"]["length"] == 1
    assert rows["hidden"]["error"].startswith("NOPERM")
    assert acknowledged["replies"][0][0].startswith("(error) NOPERM")


def test_a_user_that_is_deleted_is_logged_out(guarded: ConsoleClient, keeper: redis.Redis) -> None:
    keeper.acl_setuser("guest", True, passwords=["+pw"], keys=["*"], commands=["+@all"])
    guarded.enter("guest", "pw")
    guarded.view("overview")

    keeper.acl_deluser("guest")

    assert guarded.get("/api/view?view=overview").status in (401, 503)
    assert guarded.get("/api/view?view=overview").status == 401


def test_a_user_that_logs_out_is_out(guarded: ConsoleClient, keeper: redis.Redis) -> None:
    guarded.enter("default", "secret")

    assert guarded.post("/api/logout", {}).status == 200
    assert guarded.get("/api/view?view=overview").status == 401


def test_the_server_sees_the_console_as_a_client(client: redis.Redis, console: ConsoleClient) -> None:
    with client.monitor() as monitor:
        console.view("stream", key="orders")
        assert any("XINFO STREAM orders" in one["command"] for one in (monitor.next_command() for _ in range(9)))
    assert "penstock-console" in [one["name"] for one in client.client_list()]


def test_a_session_comes_from_where_its_browser_is(client: redis.Redis, console: ConsoleClient) -> None:
    seen = {one["name"]: one for one in client.client_list()}["penstock-console"]

    assert (seen["addr"].partition(":")[0], seen["laddr"]) == ("127.0.0.1", f"127.0.0.1:{console.port}")
    assert "U" not in seen["flags"]


@pytest.mark.parametrize(
    ("address", "answer"), [("127.0.0.1:50000", b"+OK"), ("192.0.2.7:50000", b"-ERR DEBUG command not allowed.")]
)
def test_what_clients_of_this_machine_may_do_is_not_for_browsers_of_others(address: str, answer: bytes) -> None:
    server = FakeServer()
    server.settings.read_line(["enable-debug-command", "local"], set())
    connection = Connection(server.turn, client=Endpoints(address, "192.0.2.1:8379"))
    pair = FakeTransport(peer="", local="")  # its ends have no names
    connection.connection_made(pair)

    connection.data_received(b"DEBUG SLEEP 0\r\n")
    server.loop.turn()

    assert b"".join(pair.written).startswith(answer)


def test_where_the_database_or_the_transaction_is_refused_nothing_is_run(
    guarded: ConsoleClient, keeper: redis.Redis
) -> None:
    keeper.xgroup_create("orders", "shop", "0")
    keeper.xreadgroup("shop", "alice", {"orders": ">"})
    keeper.execute_command("ACL SETUSER clerk on >pw +@all -select -multi ~orders %R~dead")
    guarded.enter("clerk", "pw")
    chosen: dict[str, Any] = {"key": "orders", "group": "shop", "ids": ["1-0"], "run": True}

    elsewhere = guarded.post("/api/action", {"action": "acknowledge", "db": 1} | chosen)
    popped = guarded.post("/api/action", {"action": "command", "line": "blpop orders 1", "run": True})

    assert (elsewhere.status, popped.status) == (409, 409)
    assert "run the 'select' command" in elsewhere.json["error"]
    assert "run the 'multi' command" in popped.json["error"]
    assert keeper.xpending("orders", "shop")["pending"] == 1


def test_a_change_without_the_pages_token_is_refused(console: ConsoleClient) -> None:
    console.csrf = ""
    assert console.post("/api/action", {"action": "acknowledge"}).status == 403


@pytest.mark.parametrize(
    "header",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Content-Type": "text/plain"},
    ],
    ids=lambda header: next(iter(header)),
)
def test_what_another_site_sends_is_refused(console: ConsoleClient, header: dict[str, str]) -> None:
    assert console.post("/api/action", {"action": "acknowledge"}, **header).status == 403
    assert console.post("/api/login", {"user": "default", "password": "x"}, **header).status == 403


@pytest.mark.parametrize("header", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}], ids=str)
def test_pages_of_other_sites_begin_no_session_and_end_none(console: ConsoleClient, header: dict[str, str]) -> None:
    for _ in range(MOST_LOGINS + 1):
        assert ConsoleClient(console.port).get("/api/session", **header).status == 403

    assert console.get("/", **header).status == 200
    assert console.get("/api/view?view=overview").status == 200


def test_without_a_password_the_console_is_not_reached_by_another_name(console: ConsoleClient) -> None:
    unknown = ConsoleClient(console.port)

    assert unknown.get("/api/session", Host="evil.example").json == {"user": None}
    assert console.get("/api/view?view=overview", Host="evil.example").status == 403
    assert unknown.get("/api/session", Host=f"localhost:{console.port}").json["user"] == "default"


class RefusingDoor:
    """Stands for a server that takes no password."""

    async def client(self, browser: Endpoints) -> "RefusingDoor":
        return self

    async def ask(self, *words: bytes) -> hiredis.ReplyError | bytes:
        await asyncio.sleep(0)  # the server is another loop
        return hiredis.ReplyError("WRONGPASS invalid username-password pair or user is disabled.")

    def close(self) -> None:
        """Nothing is open."""


class TrustingDoor(RefusingDoor):
    """Stands for a server that takes every password."""

    async def ask(self, *words: bytes) -> hiredis.ReplyError | bytes:
        return b"OK"


async def test_passwords_cannot_be_tried_without_end() -> None:
    logins = Logins(cast(EngineDoor, RefusingDoor()), lambda: 1000.0)
    for _ in range(MOST_FAILURES):
        with pytest.raises(Refused, match="invalid username-password pair"):
            await logins.with_password("default", "guess", NOWHERE)

    with pytest.raises(Refused, match="Too many logins have failed"):
        await logins.with_password("default", "secret", NOWHERE)


async def test_passwords_that_are_tried_at_the_same_time_count_too() -> None:
    logins = Logins(cast(EngineDoor, RefusingDoor()), lambda: 1000.0)

    guesses = [logins.with_password("default", "x", NOWHERE) for _ in range(100)]
    answers = await asyncio.gather(*guesses, return_exceptions=True)

    assert sum("invalid username-password pair" in str(answer) for answer in answers) == MOST_FAILURES


async def test_logins_that_succeed_are_not_counted() -> None:
    logins = Logins(cast(EngineDoor, TrustingDoor()), lambda: 1000.0)
    for _ in range(MOST_FAILURES + 1):
        await logins.with_password("default", "secret", NOWHERE)


# -- starting ---------------------------------------------------------------------------------------------------------


def test_a_server_without_aiohttp_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "penstock.observe.console.console_server", raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)

    with pytest.raises(UsageError, match="console-port needs the package aiohttp: install the extra `console`"):
        companions.wanted(settings_with(console_port="1"))


def test_a_port_that_is_taken_stops_the_start_with_its_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"cannot listen on 127.0.0.1:{port} \(console-port\)"):
            ConsoleServer(settings_with(console_port=str(port))).start(cast(Turn, None))
