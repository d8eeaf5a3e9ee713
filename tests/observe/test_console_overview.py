"""The console's overview: stuck groups first; streams by part of a name, in any order, with pending entries only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.chromium import PROGRAM, chromium
from tests.support.console_client import ConsoleClient, serving_console

STREAMS = 300
STUCK = "s250"


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """A server with many streams, of which one is stuck, and its console."""
    with serving_console("--penstock-test-clock", "yes") as (server, port):
        with redis.Redis(port=server.port, decode_responses=True) as client:
            pipe = client.pipeline(transaction=False)
            for number in range(STREAMS):
                pipe.xadd(f"s{number:03}", {"f": "v"})
                pipe.xgroup_create(f"s{number:03}", "workers", "$")
            for _ in range(3):
                pipe.xadd("orders:long", {"f": "v"})
            pipe.xgroup_create("orders:long", "late", "0")
            pipe.xadd("mails", {"f": "v"})
            pipe.xgroup_create("mails", "busy", "0")
            pipe.execute()
            client.xgroup_create(STUCK, "stuck", "0")
            client.xreadgroup("stuck", "alice", {STUCK: ">"})
            client.execute_command("PENSTOCK.CLOCK", "ADVANCE", 3_600_000)
            client.xreadgroup("busy", "bob", {"mails": ">"})
        yield server.port, port


@pytest.fixture
def console(ports: tuple[int, int]) -> ConsoleClient:
    console = ConsoleClient(ports[1])
    console.enter()
    return console


def test_the_overview_begins_with_what_is_stuck(console: ConsoleClient) -> None:
    shown = console.view("overview")

    (row,) = shown["stuck"]
    assert (row["key"], row["name"], row["gone"], row["pending"]) == (STUCK, "stuck", 1, 1)
    assert row["oldest_idle_ms"] >= 3_600_000
    assert (shown["stuck_total"], shown["looked"], shown["total"]) == (1, STREAMS + 2, STREAMS + 2)


def test_streams_are_found_by_a_part_of_a_name(console: ConsoleClient) -> None:
    assert [row["key"] for row in console.view("overview", pattern="rder")["streams"]] == ["orders:long"]
    assert [row["key"] for row in console.view("overview", pattern="mail?")["streams"]] == ["mails"]


def test_only_streams_with_pending_entries_are_shown_where_that_is_chosen(console: ConsoleClient) -> None:
    shown = console.view("overview", only="pending")

    assert [row["key"] for row in shown["streams"]] == ["mails", STUCK]
    assert shown["chosen"] == 2


ORDERS = [
    ("name", "mails"),
    ("-name", "s299"),
    ("length", "orders:long"),
    ("lag", "orders:long"),
    ("groups", STUCK),
    ("pending", "mails"),
    ("trouble", STUCK),
]


@pytest.mark.parametrize(("order", "first"), ORDERS)
def test_streams_are_ordered(console: ConsoleClient, order: str, first: str) -> None:
    assert console.view("overview", sort=order)["streams"][0]["key"] == first


def test_an_order_that_is_not_there_is_refused(console: ConsoleClient) -> None:
    assert console.get("/api/view?view=overview&sort=colour").status == 400


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (apt-get install chromium)")
async def test_a_person_sees_what_is_stuck_and_sorts_by_a_click(ports: tuple[int, int], tmp_path: Path) -> None:
    async with chromium() as page:
        await page.open(f"http://127.0.0.1:{ports[1]}/")
        await page.shows(STUCK)
        first_table = await page.value("document.querySelector('table caption').textContent")
        await page.press("Largest lag")
        await page.shows("orders:long")
        await page.until("document.querySelector('[aria-sort=descending]')?.textContent === 'Largest lag'")
        await page.picture(tmp_path / "overview.png")
        await page.value("document.getElementById('only').click()")
        await page.until("!document.body.textContent.includes('orders:long')")
        complaints = page.complaints

    assert first_table == "Groups that are stuck"
    assert (tmp_path / "overview.png").stat().st_size > 0
    assert complaints == []
