"""A server in the middle of its work, as the console shows it; and the pictures of it in docs/console.

`python -m tests.observe.console_scene docs/console` takes the pictures anew.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import redis

from examples.flights.data import read_flights
from tests.support.chromium import Page, chromium
from tests.support.console_client import serving_console

WORKERS = ("worker-1", "worker-2", "worker-3", "worker-4")
FLIGHTS = 3_000
STEPS = 12
STEP_S = 2.0


def set_scene(client: Any, flights: list[dict[str, str]]) -> None:
    """A stream with a group; its worker-2 has stopped in the middle of its work, and some other streams."""
    for flight in flights[:200]:
        client.xadd("flights", flight)
    client.xgroup_create("flights", "desk", "0")
    client.xgroup_create("flights", "audit", "0")
    client.execute_command("PENSTOCK.POLICY flights GROUP desk MAXDELIVER 5 DEADLETTER flights:dead")
    for worker in WORKERS:
        client.xreadgroup("desk", worker, {"flights": ">"}, count=12)
    held = [one["message_id"] for one in client.xpending_range("flights", "desk", "-", "+", 5, "worker-2")]
    for _ in range(3):
        client.xclaim("flights", "desk", "worker-2", 0, held)
    for number in range(40):
        client.xadd("bookings", {"number": str(number)})
    client.xgroup_create("bookings", "mail", "$")
    client.xadd("flights:dead", {"serial": "7", "_stream": "flights", "_group": "desk", "_reason": "fatal"})


async def work(client: Any, flights: list[dict[str, str]]) -> None:
    """Some seconds of traffic, so that there are rates and lines to see."""
    left = flights[200:]
    for step in range(STEPS):
        share = 60 + 35 * (step % 4)
        now, left = left[:share], left[share:]
        for flight in now:
            client.xadd("flights", flight)
        for worker in ("worker-1", "worker-3", "worker-4"):
            for _, entries in client.xreadgroup("desk", worker, {"flights": ">"}, count=30):
                client.xack("flights", "desk", *[entry_id for entry_id, _ in entries[:-2]])
        client.xadd("bookings", {"number": str(step)})
        await asyncio.sleep(STEP_S)


async def take(page: Page, port: int, client: redis.Redis, folder: Path) -> None:
    flights = read_flights(FLIGHTS)
    set_scene(client, flights)
    address = f"http://127.0.0.1:{port}/"
    await page.open(address)
    await page.shows("flights:dead")
    await work(client, flights)
    await page.picture(folder / "overview.png")
    await page.press("flights")
    await page.shows("Live tail")
    await page.press("desk")
    await page.shows("worker-2")
    await work(client, flights)
    await page.picture(folder / "group.png")
    await page.dark(True)
    await page.picture(folder / "group-dark.png")
    await page.dark(False)
    await page.open(address + "#/group?key=flights&group=desk&consumer=worker-2")
    await page.shows("Pending entries of worker-2")
    await page.press((await page.value("document.querySelector('table:has(input) tbody th a')?.textContent")) or "")
    await page.shows("carrier")
    await page.picture(folder / "entry.png")
    await page.press("Claim, group desk")
    await page.type("To consumer", "worker-1")
    await page.shows("XCLAIM flights desk worker-1")
    await page.picture(folder / "claim.png")
    await page.press("Run")
    await page.shows("This was run")
    await page.picture(folder / "claimed.png")


async def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with serving_console() as (server, port), redis.Redis(port=server.port, decode_responses=True) as client:
        async with chromium() as page:
            await take(page, port, client, folder)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
