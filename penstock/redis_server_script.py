"""`penstock install-redis-server`: a program `redis-server` that is Penstock, for tools that look for one by that name.

It is not installed with the package, so that a Redis on the same machine keeps its name.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

NAME: Final = "redis-server"
MARK: Final = "# Penstock under the name redis-server."
SCRIPT: Final = """\
#!{python}
{mark} Remove this file to end that.
import sys

from penstock.cli import redis_server_main

sys.exit(redis_server_main())
"""
EXECUTABLE: Final = 0o755


def add_parser(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The subcommand's arguments."""
    parser = subcommands.add_parser("install-redis-server", help="make a program redis-server that is Penstock")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="where to put it (default: beside this Python, which is on its PATH)"
    )


def main(chosen: argparse.Namespace) -> int:
    """0, or 1 if something else is there or the folder cannot be written."""
    path = (chosen.folder or Path(sys.executable).parent) / NAME
    try:
        if path.exists() and MARK not in path.read_text(errors="replace"):
            sys.stderr.write(f"{path} is there, and is not Penstock's: it stays as it is\n")
            return 1
        path.write_text(SCRIPT.format(python=sys.executable, mark=MARK))
        path.chmod(EXECUTABLE)
    except OSError as problem:
        sys.stderr.write(f"cannot write {path}: {problem.strerror}\n")
        return 1
    sys.stdout.write(f"{path} is Penstock now\n")
    return 0
