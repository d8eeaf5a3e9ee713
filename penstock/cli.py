"""The command line: `penstock serve` and the other subcommands; and the server under the name redis-server.

The words after `serve` are parsed as redis-server parses its own (config/config_file.py), not by argparse.
"""

import gc
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.config import config_file
from penstock.config.settings import DIRECTIVES
from penstock.engine.versions import PENSTOCK_VERSION, REDIS_VERSION
from penstock.errors import UsageError
from penstock.server.command_line import hide_secrets

SERVE: Final = "penstock serve"  # the stand-in of redis-server is stricter
SERVE_USAGE: Final = """\
usage: {program} [--check] [redis.conf | -] [--directive value ...]

Serve streams in the Redis protocol. Takes a configuration file, or - to read one from standard input, and every
directive of a redis.conf as a flag; what comes later wins. `penstock serve` makes the directory of --dir where its
parent is there. With --check, says whether they are right, and ends.

  {program}
  {program} redis.conf --port 7000
  {program} --dir data --appendfsync always --requirepass secret
  {program} --port 0 --unixsocket penstock.sock
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `penstock`; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-h"], ["--help"]) and len(words) > 1:
        words = [words[1], words[0]]  # `penstock --help serve`
    if words and (words[0].lower().removeprefix("--") in DIRECTIVES or words[0].endswith(".conf")):
        sys.stderr.write(f"`{words[0]}` is for a server: penstock serve {shlex.join(words)}\n")
        return 2
    if words[:1] == ["serve"]:  # argparse cannot parse this: every directive is a flag and may take several words
        return serve(words[1:], SERVE)
    if words[:1] == ["pipeline"]:
        from penstock.pipeline.cli import main as pipeline  # imported late: only this subcommand needs it

        return pipeline(words[1:])
    if words[:1] == ["cluster"]:
        from penstock.launching.cluster_command import main as cluster  # imported late, likewise

        return cluster(words[1:])
    from penstock.subcommands import run  # imported late: a server starts without what the others need

    return run(words)


def redis_server_main(arguments: Sequence[str] | None = None) -> int:
    """The command `redis-server`, for programs that start a server by that name; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-v"], ["--version"]):
        sys.stdout.write(
            f"Redis server v={REDIS_VERSION} sha=00000000:0 malloc=libc bits=64 build=penstock-{PENSTOCK_VERSION}\n"
        )
        return 0
    return serve(words, "redis-server")


def _serve_help(program: str, directive: str) -> str:
    """The help of all directives, or of one."""
    from penstock.config import directive_help  # imported late: a server starts without it

    if directive:
        return directive_help.described(directive)
    about = f"\nDirectives, by group ({program} --help DIRECTIVE tells of one):\n\n"
    return SERVE_USAGE.format(program=program) + about + directive_help.overview()


def _make(folder: Path) -> bool:
    """Make the directory of --dir; where that fails, the directive says that there is none."""
    try:
        folder.mkdir()
        sys.stderr.write(f"{folder} is a new directory\n")
    except OSError as problem:
        sys.stderr.write(f"{folder} cannot be made: {problem.strerror}\n")
    return True


def _pass(_: Path) -> bool:
    """A check makes nothing; the directory would be made."""
    return False


def serve(words: Sequence[str], program: str) -> int:
    """Run a server until it is stopped, or with --check only read its settings; 0, or 1 if it cannot start."""
    gc.disable()  # what is imported and built from here on lives as long as the server, which turns it on
    words, only_checks = config_file.without_check(words)
    if not hide_secrets(words):
        sys.stderr.write("warning: the list of processes shows a password: put it into a configuration file\n")
    try:
        if words[:1] in (["-h"], ["--help"]):
            sys.stdout.write(_serve_help(program, "".join(words[1:2])))
            return 0
        piped = sys.stdin.buffer.read() if words[:1] == [config_file.STANDARD_INPUT] else b""
        takes_folder = (_pass if only_checks else _make) if program == SERVE else None
        settings = config_file.start(words, piped.decode(errors="surrogateescape"), takes_folder)
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
    finally:
        gc.enable()
