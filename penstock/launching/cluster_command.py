"""`penstock cluster N`: a cluster of N nodes on this machine, for tests of cluster applications, and for its cores."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from penstock.config import config_file
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.launching.launcher import FAILED, HIGHEST_PORT, Launcher, Plan
from penstock.server.line_writer import LineWriter

DEFAULT_PORT: Final = 7000
DEFAULT_FOLDER: Final = "penstock-cluster"
DESCRIPTION: Final = """\
Start N nodes of a Redis cluster on this machine, one process and one port each from a base port on, with the slots
divided among them. Ctrl-C stops all of them. Everything is kept in one folder. A node that dies is started again.
This is one machine: for several, see docs/cluster.md.
"""
USAGE: Final = "penstock cluster [-h] [--port PORT] [--dir DIR] [--replicas {0,1}] N [-- --directive value ...]"
EPILOG: Final = "The directives behind -- are for every node."
OWN_DIRECTIVES: Final = (
    "port", "dir", "tls-port", "unixsocket", "logfile", "pidfile", "cluster-enabled", "cluster-launcher",
    "cluster-port",
    "cluster-announce-port", "cluster-announce-tls-port", "cluster-announce-bus-port", "replicaof", "metrics-port",
    "console-port", "tls-replication", "tls-cluster", "supervised",
)  # fmt: skip
"""Directives that nodes cannot share, or that the launcher chooses."""


def main(arguments: Sequence[str]) -> int:
    """Run a cluster until it is stopped; returns the exit code."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    parsed = _parser().parse_args(words[:at])
    try:
        directives = words[at + 1 :]
        settings = settings_of(directives)
        ports = range(parsed.port, parsed.port + parsed.nodes * (1 + parsed.replicas))
        if not 0 < ports[0] <= ports[-1] <= HIGHEST_PORT:
            raise UsageError(f"ports {ports[0]} to {ports[-1]} are not between 1 and {HIGHEST_PORT}")
        plan = Plan(parsed.nodes, parsed.replicas, ports, Path(parsed.dir), with_login(directives, settings))
        return asyncio.run(_run(plan, settings))
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return FAILED
    except OSError as problem:
        sys.stderr.write(f"{problem.filename or parsed.dir}: {problem.strerror}\n")
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("penstock cluster", usage=USAGE, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("nodes", type=_count, metavar="N", help="how many nodes have slots")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"of the first node (default: {DEFAULT_PORT})")
    parser.add_argument("--dir", default=DEFAULT_FOLDER, help=f"folder of the data (default: {DEFAULT_FOLDER})")
    parser.add_argument("--replicas", type=int, choices=(0, 1), default=0, help="of each node; they take its place")
    return parser


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"a number of nodes was expected, not {word!r}")
    if not int(word):
        raise argparse.ArgumentTypeError("at least one node")
    return int(word)


def settings_of(directives: list[str]) -> Settings:
    """The nodes' directives as settings; UsageError if one is wrong, or not for all nodes."""
    if directives and not directives[0].startswith("--"):
        raise UsageError(f"behind -- come directives, such as --appendfsync always, not {directives[0]}")
    settings = config_file.start(directives)
    for name in OWN_DIRECTIVES:
        if name in settings.set_at_start:
            raise UsageError(f"{name} is not one that all nodes can have")
    return settings


def with_login(directives: list[str], settings: Settings) -> list[str]:
    """The directives, with the password by which replicas ask for their master's data if there is one."""
    password = settings.text("requirepass")
    return [*directives, *(["--masterauth", password] if password and not settings.text("masterauth") else [])]


async def _run(plan: Plan, settings: Settings) -> int:
    output = LineWriter(_missing)

    def say(sentence: str) -> None:
        output.say(sys.stdout, sentence + "\n")

    launcher = Launcher(plan, settings, say)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, launcher.stop)
    say_ready = asyncio.create_task(_say_ready(launcher, say))
    code = await launcher.run()
    say_ready.cancel()
    say("The cluster has ended")
    return code


async def _say_ready(launcher: Launcher, say: Callable[[str], None]) -> None:
    await launcher.until(launcher.is_ready)
    say(f"The cluster is ready: redis-cli -c -p {launcher.nodes[0].member.port}")


def _missing(lines: int) -> str:
    return f"({lines} lines are missing here: they were not read)\n"
