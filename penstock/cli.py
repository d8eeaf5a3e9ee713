"""The command line: `penstock serve` and the other subcommands; and the server under the name redis-server.

The words after `serve` are parsed as redis-server parses its own (config/config_file.py), not by argparse.
"""

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Final

from penstock import check_log, redis_server_script
from penstock.config import config_file, directive_help
from penstock.engine.versions import BUILD, PENSTOCK_VERSION, REDIS_VERSION
from penstock.errors import UsageError
from penstock.observe import doctor, top
from penstock.server.command_line import hide_secrets
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

SERVE_USAGE: Final = """\
usage: {program} [--check] [redis.conf | -] [--directive value ...]

Serve streams in the Redis protocol. Takes a configuration file, or - to read one from standard input, and every
directive of a redis.conf as a flag; what comes later wins. With --check, says whether they are right, and ends.

  {program}
  {program} redis.conf --port 7000
  {program} --dir data --appendfsync always --requirepass secret
  {program} --port 0 --unixsocket run/penstock.sock
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `penstock`; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:  # argparse cannot parse this: every directive is a flag and may take several words
        return serve(words[1:], "penstock serve")
    if words[:1] == ["pipeline"]:
        from penstock.pipeline.cli import main as pipeline  # imported late: only this subcommand needs it

        return pipeline(words[1:])
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


def redis_server_main(arguments: Sequence[str] | None = None) -> int:
    """The command `redis-server`, for programs that start a server by that name; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-v"], ["--version"]):
        sys.stdout.write(
            f"Redis server v={REDIS_VERSION} sha=00000000:0 malloc=libc bits=64 build=penstock-{PENSTOCK_VERSION}\n"
        )
        return 0
    return serve(words, "redis-server")


def _serve_help(program: str) -> str:
    about = f"\nDirectives, by group ({program} --help DIRECTIVE tells of one):\n\n"
    return SERVE_USAGE.format(program=program) + about + directive_help.overview()


def serve(words: Sequence[str], program: str) -> int:
    """Run a server until it is stopped, or with --check only read its settings; 0, or 1 if it cannot start."""
    if words[:1] in (["-h"], ["--help"]):
        told = directive_help.described(words[1]) if len(words) > 1 else _serve_help(program)
        sys.stdout.write(told)
        return 0
    only_checks = words[:1] == ["--check"]
    words = words[only_checks:]
    if not hide_secrets(words):
        sys.stderr.write("warning: the list of processes shows a password: put it into a configuration file\n")
    try:
        piped = sys.stdin.buffer.read() if words[:1] == [config_file.STANDARD_INPUT] else b""
        settings = config_file.start(words, piped.decode(errors="surrogateescape"))
        for warning in settings.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        if only_checks:
            from penstock.server.run import check

            check(settings)
            sys.stdout.write("The settings are right.\n")
            return 0
        from penstock.observe import companions  # imported late: bad flags fail fast
        from penstock.server.run import serve as run

        return run(settings, companions=companions.wanted(settings))
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
