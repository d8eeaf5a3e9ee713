"""An exception that nothing catches is reported in the server's log."""

import asyncio
import logging
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.server.server_log import ServerLog, uncaught_errors_logged_in
from tests.support.engines import settings_with

PREFIX = re.compile(r"\d+:M \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} # ")


@pytest.fixture
def log(tmp_path: Path) -> ServerLog:
    return ServerLog(settings_with(logfile=str(tmp_path / "log")), SystemClock())


def messages(folder: Path) -> list[str]:
    """What the log says; every line has the log's form."""
    lines = (folder / "log").read_text().splitlines()
    assert all(PREFIX.match(line) for line in lines)
    return [PREFIX.sub("", line) for line in lines]


def test_a_threads_error_is_told(log: ServerLog, tmp_path: Path) -> None:
    with uncaught_errors_logged_in(log):
        thread = threading.Thread(target=lambda: 1 // 0, name="syncing")
        thread.start()
        thread.join()

    told = messages(tmp_path)
    assert told[0] == "Exception in syncing"
    assert told[-1].startswith("ZeroDivisionError")


def test_an_error_in_the_event_loop_is_told(log: ServerLog, tmp_path: Path) -> None:
    async def fail_in_a_callback() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(0)

    with uncaught_errors_logged_in(log):
        asyncio.run(fail_in_a_callback())

    told = messages(tmp_path)
    assert told[0].startswith("Exception in callback")
    assert told[-1].startswith("ZeroDivisionError")


def test_a_destructors_error_is_told(log: ServerLog, tmp_path: Path) -> None:
    class Broken:
        def __del__(self) -> None:
            raise RuntimeError("cannot end")

    with uncaught_errors_logged_in(log):
        Broken()

    assert messages(tmp_path)[-1] == "RuntimeError: cannot end"


def test_a_library_is_heard_from_warnings_on(log: ServerLog, tmp_path: Path) -> None:
    with uncaught_errors_logged_in(log):
        logging.getLogger("aiohttp.server").info("all is well")
        logging.getLogger("aiohttp.server").warning("half a request\nwas sent")

    assert messages(tmp_path) == ["half a request", "was sent"]


def test_after_the_server_nothing_is_left(log: ServerLog, tmp_path: Path) -> None:
    before = sys.excepthook, threading.excepthook, sys.unraisablehook, list(logging.getLogger().handlers)

    with uncaught_errors_logged_in(log):
        pass

    assert (sys.excepthook, threading.excepthook, sys.unraisablehook, logging.getLogger().handlers) == before


def test_an_error_that_ends_the_process_is_told_on_stderr_too(tmp_path: Path) -> None:
    program = f"""
from penstock.clock import SystemClock
from penstock.config.settings import Settings
from penstock.server.server_log import ServerLog, uncaught_errors_logged_in

settings = Settings()
settings.read_line(["logfile", {str(tmp_path / "log")!r}], set())
with uncaught_errors_logged_in(ServerLog(settings, SystemClock())):
    1 // 0
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert ended.returncode == 1
    assert messages(tmp_path)[-1].startswith("ZeroDivisionError")
    assert ended.stderr == (tmp_path / "log").read_text()
