"""`penstock seed FILE [URL]`: runs the requests of a file on a server."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.errors import UsageError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

DEFAULT_URL: Final = "redis://localhost:6379"


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subcommands.add_parser("seed", help="run the requests of a file on a server")
    parser.add_argument("file", type=Path, help="requests in redis-cli's syntax, one a line; # begins a comment")
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, help=f"the server (default: {DEFAULT_URL})")


def main(parsed: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from penstock.testing import seeding  # imported late: `serve` needs none of this
    from penstock.wire_client import WireClient, address

    count = 0
    try:
        lines = list(seeding.requests_of(parsed.file.read_text(errors="surrogateescape")))
        client = WireClient(address(parsed.url))
        for line in lines:
            seeding.check(line, client.ask(*line.words))
            count += 1
        client.close()
    except OSError as problem:
        sys.stderr.write(f"{parsed.file}: {problem.strerror}\n")
        return 1
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
    sys.stdout.write(f"{count} requests\n")
    return 0
