"""`penstock top [URL]`: a server's streams and groups in a terminal, for any Redis-compatible server."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from penstock.errors import UsageError
from penstock.observe.companions import needs_extra

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from rich.console import RenderableType
    from rich.table import Column

    from penstock.observe.stream_survey import Survey

DEFAULT_URL: Final = "redis://localhost:6379"
EVERY_S: Final = 2.0
OLD_MS: Final = 60_000  # a pending entry that waits longer is shown in colour


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser("top", help="watch the streams and groups of a server")
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, help=f"the server (default: {DEFAULT_URL})")
    parser.add_argument(
        "--every", type=float, default=EVERY_S, metavar="SECONDS", help="between two looks (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="print one picture and end")


def main(parsed: argparse.Namespace) -> int:
    """Watch until Ctrl-C; returns the exit code."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError as missing:
        sys.stderr.write(f"{needs_extra('`penstock top`', 'top', missing)}\n")
        return 1
    from penstock.observe import stream_survey
    from penstock.wire_client import WireClient, address

    try:
        client = WireClient(address(parsed.url))
        survey = stream_survey.take(client)
        console = Console()
        if parsed.once:
            console.print(picture(parsed.url, survey, None, 0))
            return 0
        with Live(picture(parsed.url, survey, None, 0), console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(parsed.every)
                before, survey = survey, stream_survey.take(client)
                live.update(picture(parsed.url, survey, before, parsed.every), refresh=True)
    except KeyboardInterrupt:
        return 0
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1


def picture(url: str, survey: "Survey", before: "Survey | None", seconds: float) -> "RenderableType":
    """The screen: the server in one line, its streams with rates since the survey before, its groups."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    fields = survey.fields
    memory_mb = int(fields.get("used_memory", "0")) / 2**20
    heading = Text(
        f"{url.rpartition('@')[2]}  {fields.get('redis_version', '')}  {fields.get('connected_clients', '?')} clients"
        f"  {fields.get('instantaneous_ops_per_sec', '?')} requests/s  {memory_mb:.0f} MB",
        style="bold",
    )
    added_before = {one.name: one.added for one in before.streams} if before is not None else {}
    streams = Table("stream", _right("entries"), _right("added/s"), expand=True)
    for stream in survey.streams:
        gained = stream.added - added_before.get(stream.name, stream.added)
        streams.add_row(Text(stream.name), str(stream.length), f"{gained / seconds:.1f}" if seconds else "")
    numbers = [_right(name) for name in ("consumers", "lag", "pending", "oldest")]
    groups = Table("stream", "group", *numbers, expand=True)
    for group in survey.groups:
        idle_ms = group.oldest_idle_ms
        oldest = Text("" if idle_ms is None else span(idle_ms), style="red" if (idle_ms or 0) > OLD_MS else "")
        lag = "?" if group.lag is None else str(group.lag)
        names = Text(group.stream), Text(group.name)
        groups.add_row(*names, str(group.consumers), lag, str(group.pending), oldest)
    return Group(heading, streams, groups)


def _right(name: str) -> "Column":
    from rich.table import Column

    return Column(name, justify="right")


def span(ms: int) -> str:
    """A time in the unit that suits it.

    >>> span(950), span(65_000), span(7_500_000), span(200_000_000)
    ('0.9 s', '65.0 s', '125 min', '56 h')
    """
    if ms < 120_000:
        return f"{ms // 100 / 10:.1f} s"
    return f"{ms // 60_000} min" if ms < 4 * 3_600_000 else f"{ms // 3_600_000} h"
