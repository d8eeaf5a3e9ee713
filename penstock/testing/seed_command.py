"""`penstock seed FILE [URL]`: runs the requests of a file on a server."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.clock import SystemClock
from penstock.errors import UsageError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

LOOK_EVERY: Final = 1000  # requests, between two looks at the clock
DEFAULT_URL: Final = "redis://localhost:6379"


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser("seed", help="run the requests of a file on a server")
    parser.add_argument("file", type=Path, help="requests in redis-cli's syntax, one a line; # begins a comment")
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, help=f"the server (default: {DEFAULT_URL})")


def main(parsed: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from penstock.progress_line import ProgressLine  # imported late: `serve` needs none of this
    from penstock.testing import seeding
    from penstock.wire_client import WireClient, address

    count = 0
    progress = ProgressLine(SystemClock())
    try:
        lines = list(seeding.requests_of(parsed.file.read_text(errors="surrogateescape")))
        client = WireClient(address(parsed.url))
        for line in lines:
            seeding.check(line, client.ask(*line.words))
            count += 1
            if count % LOOK_EVERY == 0:
                progress.show(f"{100 * count // len(lines)}% of {len(lines)} requests")
        client.close()
    except OSError as problem:
        sys.stderr.write(f"{parsed.file}: {problem.strerror}\n")
        return 1
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
    finally:
        progress.end()
    sys.stdout.write(f"{count} requests\n")
    return 0
