"""`penstock check-log`: reads a log while no server runs, says how far it is whole, and cuts off what is not.

Exit codes: 0 whole, or mended; 1 damaged; 2 unusable, which nothing here mends. (redis-check-aof has 0 and 1.)
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Final, TextIO

from penstock.clock import Clock, SystemClock
from penstock.commands import registry
from penstock.engine.aof.aof_check import NOWHERE, WHOLE, Findings, Inspection
from penstock.engine.rdb.rdb_check import RdbFindings, look_through
from penstock.engine.rdb.rdb_loading import is_rdb
from penstock.errors import UsageError, sentence_of
from penstock.progress_line import ProgressLine, bar
from penstock.storage.aof import manifest as manifests
from penstock.storage.aof.disk import SystemDisk
from penstock.storage.aof.log_directory import LOCK_NAME, write_all

FINE: Final = 0
DAMAGED: Final = 1
UNUSABLE: Final = 2

LONG_BYTES: Final = 16 * 1024 * 1024  # files from which on progress is shown
COPIED_BYTES: Final = 1024 * 1024
ROW_BYTES: Final = 16
ROWS_AROUND: Final = 2

KINDS: Final = {manifests.BASE: "base", manifests.INCREMENT: "increment"}
DESCRIPTION: Final = """\
Read a log while no server writes it: what is in its files, how far they are whole, and what is wrong behind that.
PATH is a server's directory, the log's own directory, its manifest, one of its files, or an RDB file.
"""
CODES: Final = "exit codes: 0 whole, or mended; 1 damaged; 2 unusable, nothing here can mend it"


class Part:
    """A file of the log; `kind` is for a person. Only the first may hold RDB, only the last one's end may be cut."""

    __slots__ = ("is_first", "is_last", "kind", "path")

    def __init__(self, path: Path, kind: str, is_first: bool, is_last: bool) -> None:
        self.path = path
        self.kind = kind
        self.is_first = is_first
        self.is_last = is_last


def add_parser(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subcommands.add_parser(
        "check-log", help="look through a log, and mend it", description=DESCRIPTION, epilog=CODES
    )
    parser.add_argument("path", metavar="PATH", type=Path)
    parser.add_argument("--fix", action="store_true", help="cut a damaged end off; the bytes are kept in a file beside")
    parser.add_argument(
        "--truncate-to-timestamp", metavar="SECONDS", type=int, default=NOWHERE,
        help="cut off what a log with timestamps (aof-timestamp-enabled) has from after this unix time",
    )  # fmt: skip


def run(words: argparse.Namespace, out: TextIO, errors: TextIO, clock: Clock) -> int:
    """Check, and mend if that was asked for: the exit code. `clock` times the progress that `errors` gets."""
    try:
        progress = ProgressLine(clock, errors)
        return Check(SystemDisk(), out, progress, words.fix, words.truncate_to_timestamp).run(words.path)
    except (UsageError, OSError) as problem:
        errors.write(f"{sentence_of(problem)}\n")
        return UNUSABLE


class Check:
    """One check. Nothing is changed without `fix` or a time."""

    __slots__ = ("_disk", "_fix", "_later_than_s", "_names", "_out", "_progress")

    def __init__(self, disk: SystemDisk, out: TextIO, progress: ProgressLine, fix: bool, later_than_s: int) -> None:
        self._disk = disk
        self._out = out
        self._progress = progress
        self._fix = fix
        self._later_than_s = later_than_s
        self._names = frozenset(registry.table())

    def run(self, path: Path) -> int:
        parts = parts_of(path)
        lock = None
        if self._fix or self._later_than_s != NOWHERE:
            lock = self._disk.lock(str(parts[0].path.parent / LOCK_NAME))
            if lock is None:
                raise UsageError(f"A server is using the log in {parts[0].path.parent}: stop it first.")
        try:
            codes = [self._part(part) for part in parts]
        finally:
            if lock is not None:
                lock.close()
        return max(codes, default=FINE)

    def _part(self, part: Part) -> int:
        path = str(part.path)
        if not part.path.exists():
            raise UsageError(f"{path} is missing, and the manifest names it.")
        size = self._disk.size(path)
        start = 0

        def show(done: int) -> None:
            if size >= LONG_BYTES:
                self._progress.show(f"{part.path.name}: {bar(done, size)}")

        try:
            if part.is_first and is_rdb(self._disk, path):
                snapshot = look_through(self._disk, path, show)
                self._report_snapshot(part, snapshot)
                if snapshot.problem:
                    return UNUSABLE
                start = snapshot.end
                if start == size:
                    return FINE
            found = Inspection(self._disk, path, self._names, self._later_than_s).run(show, start)
        finally:
            self._progress.end()
        self._report(part, found)
        code = self._mend(part, found)
        if found.unknown:
            return UNUSABLE
        return code

    def _report_snapshot(self, part: Part, found: RdbFindings) -> None:
        by_type = ", ".join(f"{count} {name}" for name, count in sorted(found.counts.items()))
        by = f" by {found.written_by}" if found.written_by else ""
        how = "damaged" if found.problem else "whole"
        held = f"{found.keys} keys ({by_type})" if found.keys else "no keys"
        if found.libraries:
            held += f", {found.libraries} libraries of functions"
        self._say(f"{part.path} ({part.kind}): an RDB file of version {found.version}{by}: {held}, {how}")
        if found.expiring:
            self._say(f"  {found.expiring} keys have a time of expiry")
        if found.empty:
            self._say(f"  {found.empty} keys have no value: a start leaves them out")
        for line in found.corrected:
            self._say(f"  a start corrects this: {line}")
        if found.left_out:
            self._say(f"  data of modules ({', '.join(found.left_out)}): a start leaves it out")
        if found.problem:
            self._say(f"  {found.problem}: a start is refused, and nothing here can mend it")

    def _report(self, part: Part, found: Findings) -> None:
        how = "whole" if found.state == WHOLE else f"whole up to byte {found.whole}, then {found.state}"
        counts = f"{found.requests} requests in {found.units} units, {found.size} bytes"
        self._say(f"{part.path} ({part.kind}): {counts}, {how}")
        for name, at in list(found.unknown.items())[:ROW_BYTES]:
            self._say(f"  no command has the name {name!r} (the request at byte {at}): a start is refused")
        if found.problem:
            self._say(f"  {found.problem}")
            for row in hex_rows(self._disk, str(part.path), found.problem_at, found.size):
                self._say(f"  {row}")

    def _mend(self, part: Part, found: Findings) -> int:
        """Cut where that was asked for and is possible: the exit code for this file."""
        cut_at = found.size
        if found.later_at != NOWHERE:
            if not part.is_last:
                raise UsageError(
                    f"{part.path} goes on after that time, and is not the log's last file: nothing is cut."
                )
            cut_at = found.later_at
        elif found.problem:
            if not self._fix:
                self._say("  a start mends or refuses it, by aof-load-truncated; --fix cuts it off")
                return DAMAGED
            if not part.is_last:
                self._say("  it is not the log's last file: cutting it would lose what follows. Nothing was changed.")
                return DAMAGED
            cut_at = found.whole
        if cut_at == found.size:
            return FINE
        kept = self._cut(part.path, cut_at, found.size)
        self._say(f"  mended: {found.size - cut_at} bytes from byte {cut_at} on were cut off, and are now in {kept}")
        return FINE

    def _cut(self, path: Path, at: int, size: int) -> Path:
        """Move the end of a file to a file beside it, for good."""
        beside = unused(path.with_name(f"{path.name}.cut-{at}"))
        disk = self._disk
        copy = disk.create(str(beside))
        try:
            for offset in range(at, size, COPIED_BYTES):
                write_all(copy, disk.read(str(path), offset, COPIED_BYTES))
            copy.sync()
        finally:
            copy.close()
        disk.sync_directory(str(path.parent))
        file = disk.append_to(str(path))
        try:
            file.truncate(at)
            file.sync()
        finally:
            file.close()
        return beside

    def _say(self, line: str) -> None:
        self._out.write(line + "\n")


def parts_of(path: Path) -> list[Part]:
    """The files to look through, in order. UsageError where there is no log."""
    if not path.exists():
        raise UsageError(f"There is no {path}.")
    if path.is_dir():
        path = manifest_in(path)
    if path.suffix != ".manifest":
        return [Part(path, "one file", True, True)]
    files = manifests.parse(path.read_bytes()).files()
    if not files:
        raise UsageError(f"{path} names no files.")
    return [Part(path.parent / file.name, KINDS[file.kind], file is files[0], file is files[-1]) for file in files]


def manifest_in(directory: Path) -> Path:
    """The manifest in a directory or in one below it; else a log of before Redis 7, which is one file; else RDB."""
    found = sorted(directory.glob("*.manifest")) or sorted(directory.glob("*/*.manifest"))
    found = [path for path in found if not path.name.startswith("temp-")] or sorted(directory.glob("*.aof"))
    found = found or sorted(path for path in directory.glob("*.rdb") if not path.name.startswith("temp-"))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{directory} holds several logs: {', '.join(map(str, found))}. Name one.")
    raise UsageError(f"There is no log in {directory}.")


def unused(path: Path) -> Path:
    """The path, or with a number behind it: nothing is overwritten."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def hex_rows(disk: SystemDisk, path: str, at: int, size: int) -> list[str]:
    """The bytes around a place, with a mark below it.

    `00000010  2a 33 0d 0a ...  *3..`
    """
    first = max(0, at // ROW_BYTES - ROWS_AROUND) * ROW_BYTES
    last = min(size, (at // ROW_BYTES + ROWS_AROUND + 1) * ROW_BYTES)
    rows = []
    for offset in range(first, last, ROW_BYTES):
        row = disk.read(path, offset, ROW_BYTES)
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{offset:08x}  {row.hex(' '):<{3 * ROW_BYTES}} {shown}")
        if offset <= at < offset + ROW_BYTES:
            rows.append(" " * (10 + 3 * (at - offset)) + "^^")
    if at >= last:
        rows.append("the file ends here")
    return rows


def main(words: argparse.Namespace) -> int:
    """With the process's own streams."""
    try:
        return run(words, sys.stdout, sys.stderr, SystemClock())
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DAMAGED
