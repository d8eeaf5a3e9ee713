"""A headless Chromium, driven by its DevTools protocol: `async with chromium() as page: await page.open(url)`."""

import asyncio
import base64
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_S = 60.0  # what a busy machine may need
STEP_S = 0.05
LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")
SIZE = {"width": 1280, "height": 860, "deviceScaleFactor": 1, "mobile": False}


class Page:
    """One page. `complaints` has errors of scripts, and what the content security policy refused."""

    def __init__(self, link: aiohttp.ClientWebSocketResponse) -> None:
        self._link = link
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []

    async def begin(self) -> None:
        target = await self._call("Target.createTarget", url="about:blank")
        attached = await self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            await self._call(f"{domain}.enable")
        await self._call("Emulation.setDeviceMetricsOverride", **SIZE)

    async def _call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        await self._link.send_json(asked)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                told = json.loads((await self._link.receive()).data)
                if told.get("id") == self._number:
                    assert "error" not in told, f"{method}: {told['error']}"
                    answer: dict[str, Any] = told["result"]
                    return answer
                if told.get("method") == "Runtime.exceptionThrown":
                    self.complaints.append(str(told["params"]["exceptionDetails"]))
                if told.get("method") == "Log.entryAdded" and told["params"]["entry"]["source"] in (
                    "security",
                    "javascript",
                ):
                    self.complaints.append(told["params"]["entry"]["text"])

    async def open(self, url: str) -> None:
        await self._call("Page.navigate", url=url)

    async def dark(self, is_dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        await self._call("Emulation.setEmulatedMedia", features=[scheme])

    async def value(self, script: str) -> Any:
        """What an expression gives, as JSON; a promise is waited for."""
        told = await self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.value(f"Boolean({condition})"):
                await asyncio.sleep(STEP_S)

    async def shows(self, words: str) -> None:
        await self.until(f"document.body?.innerText.includes({json.dumps(words)})")

    async def press(self, name: str) -> None:
        """Click the button or the link with this name, when it is there and may be clicked."""
        one = f"""[...document.querySelectorAll("button, a")].find((one) => !one.disabled && one.offsetParent
            && (one.getAttribute("aria-label") || one.textContent.trim()) === {json.dumps(name)})"""
        await self.until(one)
        await self.value(f"({one}).click()")

    async def type(self, label: str, words: str) -> None:
        """Put words into the field with this label, as a user would."""
        one = f"[...document.querySelectorAll('label')].find((one) => one.textContent.trim() === {json.dumps(label)})"
        await self.until(one)
        await self.value(
            f"(() => {{ const field = ({one}).control; field.focus(); field.select && field.select(); }})()"
        )
        await self._call("Input.insertText", text=words)

    async def enter(self) -> None:
        """Press the key Enter, wherever the focus is."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        await self._call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        await self._call("Input.dispatchKeyEvent", type="keyUp", **key)

    async def names(self, role: str) -> list[str]:
        """The names of all elements of a role, as a screen reader has them."""
        tree = await self._call("Accessibility.getFullAXTree")
        return [
            node.get("name", {}).get("value", "")
            for node in tree["nodes"]
            if not node.get("ignored") and node.get("role", {}).get("value") == role
        ]

    async def narrow(self, width: int) -> None:
        """Show the page as wide as a phone does, in CSS pixels."""
        await self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=True
        )

    async def picture(self, path: Path) -> None:
        shot = await self._call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    """A page of a browser that ends with the block."""
    assert PROGRAM is not None, "ask PROGRAM first"
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        flags = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--disable-gpu"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium's sandbox refuses root
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *flags, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := LISTENING.search(await process.stderr.readline())):
                    assert process.returncode is None, "Chromium has ended"
            rest = asyncio.create_task(process.stderr.read())
            async with (
                aiohttp.ClientSession() as client,
                client.ws_connect(found[1].decode(), max_msg_size=2**26) as link,
            ):
                page = Page(link)
                await page.begin()
                yield page
            rest.cancel()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
