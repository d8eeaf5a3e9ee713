"""`penstock import` and `penstock export` on the command line."""

import argparse
import sys
from pathlib import Path
from typing import Final

from penstock.errors import UsageError
from penstock.wire_client import Address, address

IMPORT: Final = """\
Copy everything that a running server has (Redis, Valkey, Penstock) into a directory, where `penstock serve --dir`
finds it. The server goes on serving. With --follow its changes are followed until Ctrl-C.
"""
EXPORT: Final = "Write everything that a running server has into an RDB file, which any Redis of its version loads."
CODES: Final = "exit codes: 0 the same numbers of keys here and there; 1 they differ, or it failed"


def add_parsers(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    importing = subcommands.add_parser("import", help="copy a running server's data", description=IMPORT, epilog=CODES)
    importing.add_argument("source", metavar="redis://host:port")
    importing.add_argument("--follow", action="store_true", help="go on with what is written there, until Ctrl-C")
    importing.add_argument("--dir", metavar="D", type=Path, default=Path(), help="an empty directory; here by default")
    exporting = subcommands.add_parser(
        "export", help="write a running server's data into a file", description=EXPORT, epilog=CODES
    )
    exporting.add_argument("file", metavar="FILE.rdb", type=_file)
    exporting.add_argument("source", metavar="redis://host:port", nargs="?", default="redis://127.0.0.1:6379")
    exporting.add_argument("--replace", action="store_true", help="write over a file that is there")


def _file(word: str) -> Path:
    if "://" in word:
        raise argparse.ArgumentTypeError(f"the file comes first, the server behind it: FILE.rdb {word}")
    return Path(word)


def server_address(url: str) -> Address:
    """UsageError where the URL leads to one database or to a unix socket: a replica's link has neither."""
    where = address(url)
    if where.path or where.db:
        raise UsageError(f"{url}: the whole server is copied, over TCP; redis://host:port was expected")
    return where


def main(parsed: argparse.Namespace) -> int:
    """The exit code."""
    try:
        source = server_address(parsed.source)
        if parsed.subcommand == "export":
            from penstock.transfer.exporting import export  # imported late: `penstock version` is quick

            return export(parsed.file, source, parsed.replace)
        from penstock.transfer.importing import import_from  # imported late: it brings the server

        return import_from(source, parsed.dir, parsed.follow)
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1
