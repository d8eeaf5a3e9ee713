"""The console in a real browser: what a person sees, hears and does there."""

import pytest
import redis

from tests.observe.console_scene import set_scene
from tests.support.chromium import PROGRAM, chromium
from tests.support.console_client import serving_console

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (apt-get install chromium)"),
]

FLIGHTS = [{"serial": str(number), "carrier": "UA"} for number in range(200)]


async def test_a_stuck_entry_is_found_and_claimed_by_the_keyboard() -> None:
    with serving_console() as (server, port), redis.Redis(port=server.port, decode_responses=True) as client:
        set_scene(client, FLIGHTS)
        async with chromium() as page:
            await page.open(f"http://127.0.0.1:{port}/")
            await page.press("flights")
            await page.press("desk")
            await page.shows("worker-2")
            await page.value("document.querySelector('tbody input[type=checkbox]').click()")
            await page.until(
                "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Claim …' && !one.disabled)"
            )
            await page.value(
                "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Claim …').focus()"
            )
            await page.enter()
            await page.type("To consumer", "bob")
            await page.shows("XCLAIM flights desk bob 0 ")
            await page.enter()
            await page.shows("This was run")
            logged = await page.value("document.getElementById('log').textContent")
            complaints = page.complaints

        claimed = client.xpending_range("flights", "desk", "-", "+", 10, "bob")
    assert len(claimed) == 1
    assert f"> XCLAIM flights desk bob 0 {claimed[0]['message_id']} JUSTID" in logged
    assert complaints == []


async def test_everything_that_can_be_used_has_a_name_for_a_screen_reader() -> None:
    with serving_console() as (server, port), redis.Redis(port=server.port, decode_responses=True) as client:
        set_scene(client, FLIGHTS)
        async with chromium() as page:
            await page.open(f"http://127.0.0.1:{port}/#/group?key=flights&group=desk")
            await page.shows("worker-2")
            names = {role: await page.names(role) for role in ("button", "checkbox", "link", "table", "columnheader")}
            images = await page.names("image")

    assert all(name for each in names.values() for name in each), names
    assert "Delete consumer worker-2" in names["button"]
    assert names["table"] == ["Consumers", "Pending entries"]
    assert any(name.startswith("Lag: ") for name in images)


async def test_nothing_is_shown_before_the_login() -> None:
    with (
        serving_console("--requirepass", "secret") as (server, port),
        redis.Redis(port=server.port, password="secret", decode_responses=True) as client,
    ):
        set_scene(client, FLIGHTS)
        async with chromium() as page:
            await page.open(f"http://127.0.0.1:{port}/#/stream?key=flights")
            await page.shows("Log in")
            before = await page.value("document.body.innerText")
            await page.type("Password", "guess")
            await page.press("Log in")
            await page.shows("invalid username-password pair")
            await page.type("Password", "secret")
            await page.press("Log in")
            await page.shows("Live tail")
            await page.press("Log out")
            await page.shows("With a user of the server")
            after = await page.value("document.body.innerText")

    assert "carrier" not in before + after
