"""`penstock top [URL]`: the groups of any Redis-compatible server that need an operator, in a terminal."""

import argparse
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.errors import UsageError
from penstock.observe.companions import needs_extra

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from rich.console import Console

    from penstock.observe import stream_survey
    from penstock.observe.top_screen import Screen
    from penstock.wire_client import WireClient

DEFAULT_URL: Final = "redis://localhost:6379"
EVERY_S: Final = 2.0
ONCE_ROWS: Final = 50  # of each table that --once prints
KEYS: Final = {b"[A": "up", b"[B": "down", b"[5~": "pageup", b"[6~": "pagedown", b"[H": "home"}  # behind an escape


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser("top", help="watch the groups of a server, those that are stuck first")
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, help=f"the server (default: {DEFAULT_URL})")
    parser.add_argument(
        "--every", type=float, default=EVERY_S, metavar="SECONDS", help="between two looks (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="print one picture and end")


def main(parsed: argparse.Namespace) -> int:
    """Watch until `q` or Ctrl-C; returns the exit code."""
    try:
        from rich.console import Console
    except ModuleNotFoundError as missing:
        sys.stderr.write(f"{needs_extra('`penstock top`', 'top', missing)}\n")
        return 1
    from penstock.observe import stream_survey
    from penstock.observe.top_screen import HELP, Screen
    from penstock.wire_client import WireClient, address

    try:
        client = WireClient(address(parsed.url))
        console, screen = Console(), Screen(parsed.url, "" if parsed.once else HELP)
        if parsed.once:
            _print_once(console, screen, stream_survey.take(client))
        else:
            _watch(client, console, screen, parsed.every)
    except KeyboardInterrupt:
        return 0
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
    return 0


def _print_once(console: "Console", screen: "Screen", survey: "stream_survey.Survey") -> None:
    for _ in range(2):  # the groups, then the streams
        console.print(screen.picture(survey, None, 0, ONCE_ROWS))
        screen.press("s")


def _watch(client: "WireClient", console: "Console", screen: "Screen", every_s: float) -> None:
    from rich.live import Live

    from penstock.observe import stream_survey

    watch = stream_survey.Watch()
    before, survey, seconds = None, stream_survey.take(client, watch), 0.0
    with (
        keyboard() as keys,
        Live(screen.picture(survey, None, 0, console.height), console=console, screen=True, auto_refresh=False) as live,
    ):
        live.refresh()
        looked_s = time.monotonic()
        while True:
            for key in keys.read(max(looked_s + every_s - time.monotonic(), 0)):
                if not screen.press(key):
                    return
            now_s = time.monotonic()
            if now_s >= looked_s + every_s:
                before, survey, seconds = survey, stream_survey.take(client, watch), now_s - looked_s
                looked_s = now_s
            live.update(screen.picture(survey, before, seconds, console.height), refresh=True)


class Keyboard:
    """The keys that were pressed at a terminal; none where standard input is no terminal."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def read(self, patience_s: float) -> list[str]:
        """The keys that are pressed within so many seconds, as soon as there are any."""
        if self._fd is None:
            time.sleep(patience_s)
            return []
        if not select.select([self._fd], [], [], patience_s)[0]:
            return []
        return keys_of(os.read(self._fd, 1024)) or ["q"]  # the terminal is gone


def keys_of(pressed: bytes) -> list[str]:
    r"""The keys of what a terminal sends.

    >>> keys_of(b"o\x1b[A/a\x1b"), keys_of("\u00e9".encode())
    (['o', 'up', '/', 'a', '\x1b'], ['é'])
    """
    keys: list[str] = []
    while pressed:
        known = [end for end in KEYS if pressed.startswith(b"\x1b" + end)]
        if known:
            keys.append(KEYS[known[0]])
            pressed = pressed[len(known[0]) + 1 :]
            continue
        text = pressed.decode(errors="replace")
        keys.append(text[0])
        pressed = text[1:].encode()
    return keys


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """The keyboard, key by key; the terminal is as before afterwards."""
    if not sys.stdin.isatty():
        yield Keyboard(None)
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield Keyboard(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
