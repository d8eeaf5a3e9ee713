"""`penstock export FILE.rdb [redis://host:port]`: everything that a running server has, as an RDB file."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from penstock.clock import SystemClock
from penstock.engine.rdb.rdb_check import RdbFindings, look_through
from penstock.errors import UsageError
from penstock.progress_line import ProgressLine, bar
from penstock.storage.aof.disk import SystemDisk
from penstock.transfer import counts
from penstock.transfer.remote import Remote
from penstock.wire_client import Address


def export(path: Path, address: Address, replaces: bool) -> int:
    """The exit code: 0, or 1 where the file is not what the server has. UsageError where it cannot be written."""
    if path.exists() and not replaces:
        raise UsageError(f"{path} exists already (--replace writes over it)")
    temporary = path.with_name(f"{path.name}.part")
    line = ProgressLine(SystemClock())
    try:
        with Remote(address) as remote, temporary.open("wb") as file:
            size = 0
            for piece in remote.snapshot():
                file.write(piece)
                size += len(piece)
                line.show(f"{address.shown}: {bar(size, remote.size)}")
            file.flush()
            os.fsync(file.fileno())
        line.end()
        found = look_through(SystemDisk(), str(temporary), lambda done: line.show(f"checking: {bar(done, size)}"))
        line.end()
        if found.problem:
            raise UsageError(f"what {address.shown} has sent is damaged: {found.problem}")
        temporary.rename(path)
    except OSError as failure:
        raise UsageError(f"{path} cannot be written: {failure.strerror or failure}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()
    return report(path, size, found, address)


def report(path: Path, size: int, found: RdbFindings, address: Address) -> int:
    """Say what the file has and what the server has now; 1 where these differ."""
    with Remote(address) as remote:
        there = counts.of_server(remote)
    version = f"RDB {found.version}, by {found.written_by or 'an unknown server'}"
    sys.stdout.write(f"{path}: {size} bytes, {found.keys} keys ({version})\n")
    for line in counts.table(found.counts, there):
        sys.stdout.write(f"  {line}\n")
    if found.counts != there:
        sys.stdout.write("The numbers differ: keys were written, or have expired, since the file was made.\n")
    return int(found.counts != there)
