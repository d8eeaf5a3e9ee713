"""The subcommands of `penstock` that argparse parses: all but `serve`, `pipeline` and `cluster`."""

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Final

from penstock import check_log, redis_server_script
from penstock.engine.versions import BUILD, PENSTOCK_VERSION
from penstock.observe import doctor, top
from penstock.testing import seed_command
from penstock.transfer import cli as transfer

VERSION_LINE: Final = f"penstock {PENSTOCK_VERSION} ({BUILD} build, Python {platform.python_version()})"

COMMANDS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "check-log": check_log.main,
    "import": transfer.main,
    "export": transfer.main,
    "seed": seed_command.main,
    "top": top.main,
    "doctor": doctor.main,
    "install-redis-server": redis_server_script.main,
}


def run(words: Sequence[str]) -> int:
    """Run the subcommand that the words name; returns the exit code."""
    parsed = parser().parse_args(words)
    command = COMMANDS.get(parsed.subcommand)
    if command is not None:
        return command(parsed)
    sys.stdout.write(VERSION_LINE + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser for all subcommands except `serve` and `pipeline`."""
    parser = argparse.ArgumentParser("penstock", description="A stream server that speaks the Redis protocol.")
    parser.add_argument("--version", action="version", version=VERSION_LINE)
    subcommands = parser.add_subparsers(title="subcommands", metavar="subcommand", dest="subcommand", required=True)
    subcommands.add_parser("serve", help="run a server; see `penstock serve --help`", add_help=False)
    subcommands.add_parser(
        "cluster", help="run a cluster on this machine; see `penstock cluster --help`", add_help=False
    )
    check_log.add_parser(subcommands)
    transfer.add_parsers(subcommands)
    seed_command.add_parser(subcommands)
    top.add_parser(subcommands)
    doctor.add_parser(subcommands)
    redis_server_script.add_parser(subcommands)
    subcommands.add_parser(
        "pipeline", help="jobs and pipelines on Spark; see `penstock pipeline --help`", add_help=False
    )
    subcommands.add_parser("version", help="print the version")
    return parser
