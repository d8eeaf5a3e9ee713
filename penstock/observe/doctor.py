"""`penstock doctor [URL]`: what a support person asks first, of this installation, or of a running server."""

import argparse
import json
import platform
import resource
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from penstock.engine.versions import BUILD, PENSTOCK_VERSION
from penstock.errors import UsageError
from penstock.observe import server_checks
from penstock.observe.finding import Finding

if TYPE_CHECKING:
    from argparse import _SubParsersAction

FEW_FILES: Final = 10_032  # maxclients and the server's own
EXTRAS: Final = (  # and a module that each brings
    ("connect", "grpc"),
    ("console", "aiohttp"),
    ("lua", "lupa"),
    ("metrics", "prometheus_client"),
    ("payload", "fastavro"),
    ("spark", "pyspark"),
    ("testing", "redis"),
    ("top", "rich"),
)
MARKS: Final = {"ok": " ", "hint": "?", "problem": "!"}
OLD_S: Final = 300
BETWEEN_S: Final = 1.0
EXIT_CODES: Final = "Exit code: 0 without a problem (hints do not count), 1 with one, 2 if the server cannot be asked."


def add_parser(subcommands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser(
        "doctor", help="look for what is wrong with this installation, or with a server", epilog=EXIT_CODES
    )
    parser.add_argument("url", nargs="?", help="a running server, as redis://[:password@]host[:port][/db]")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--old", type=float, default=OLD_S, metavar="SECONDS", help=f"pending for longer is a problem ({OLD_S})"
    )
    parser.add_argument(
        "--between", type=float, default=BETWEEN_S, metavar="SECONDS", help="between two looks at the groups (1)"
    )


def main(parsed: argparse.Namespace) -> int:
    """Print the findings; returns the exit code."""
    try:
        found = list(installation())
        if parsed.url:
            found += server_checks.findings(parsed.url, round(parsed.old * 1000), parsed.between)
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 2
    if parsed.json:
        sys.stdout.write(json.dumps([one._asdict() for one in found], indent=2) + "\n")
    else:
        sys.stdout.write("".join(map(lines_of, found)))
    return int(any(one.level == "problem" for one in found))


def lines_of(one: Finding) -> str:
    """A finding as text: `!` marks a problem, `?` a hint; advice and the command that mends it are below."""
    lines = [f"{MARKS[one.level]} {one.about:<18} {one.found}"]
    lines += [f"{'':<21}{words}" for words in (one.advice, one.command and f"> {one.command}") if words]
    return "\n".join(lines) + "\n"


def installation() -> Iterator[Finding]:
    """This machine's Penstock."""
    yield Finding("penstock", f"{PENSTOCK_VERSION}, {BUILD} build")
    yield Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    has_uvloop = find_spec("uvloop") is not None
    yield (
        Finding.hint("event loop", "asyncio", "uvloop would be faster")
        if not has_uvloop
        else Finding("event loop", "uvloop")
    )
    there = [name for name, module in EXTRAS if find_spec(module) is not None]
    yield Finding("extras", ", ".join(there) or "none")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_low = hard != resource.RLIM_INFINITY and hard < FEW_FILES
    shown = f"{soft}, at most {'unlimited' if hard == resource.RLIM_INFINITY else hard}"
    yield Finding.judged(is_low, "open files", shown, "10,000 clients need more", f"ulimit -n {FEW_FILES}")
