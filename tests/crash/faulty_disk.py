"""A disk that fails, stalls or ends the process at named moments, and a server that has one.

Run as a program it is `penstock serve` with the faults that the environment variable PENSTOCK_FAULT lists,
`point:action@first-last`, separated by commas. The action is taken at the point's first to last occurrence: at every
occurrence without `@`, at one with `@n`. If several faults apply, the first in the list is taken.

    kill         SIGKILL to the server and to the process that reaches the point (a rewrite has a process of its own)
    die          SIGKILL to the process that reaches the point
    stop         SIGSTOP to the process that reaches the point: it goes on with SIGCONT
    eio, enospc  the call fails
    sleep2ms     the call takes 2 ms longer

So `sync:sleep2ms` is a slow disk, and `written:kill@20` a crash after the twentieth write. The points are the constants
of storage/aof/append_log.py, storage/aof/log_directory.py, server/files/rewrite_child.py and server/files/snapshots.py.
"""

import errno
import mmap
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Final

from penstock.clock import SystemClock
from penstock.config import config_file
from penstock.errors import UsageError
from penstock.server.run import serve
from penstock.storage.aof.disk import SystemDisk

VARIABLE: Final = "PENSTOCK_FAULT"
ALWAYS: Final = 1 << 62

_FAULT: Final = re.compile(r"([a-z-]+):(kill|die|stop|eio|enospc|sleep(\d+)ms)(?:@(\d+)(-(\d*))?)?")
_NUMBERS: Final = {"eio": errno.EIO, "enospc": errno.ENOSPC}


class Fault:
    """An action from a point's `first` occurrence to its `last`."""

    __slots__ = ("action", "first", "last", "pause_ms", "point")

    def __init__(self, point: str, action: str, pause_ms: int, first: int, last: int) -> None:
        self.point = point
        self.action = action
        self.pause_ms = pause_ms
        self.first = first
        self.last = last


def parse(text: str) -> list[Fault]:
    """Read a list of faults; UsageError if it is malformed.

    >>> [(fault.action, fault.first, fault.last) for fault in parse("sync:eio@3,write:enospc@5-9")]
    [('eio', 3, 3), ('enospc', 5, 9)]
    """
    faults = []
    for word in text.split(","):
        match = _FAULT.fullmatch(word.strip())
        if match is None:
            raise UsageError(f"{VARIABLE}: {word!r} is not a fault; examples: sync:eio@3 or write:enospc@5-9")
        point, action, pause, first, to, last = match.groups()
        until = ALWAYS if first is None or (to and not last) else int(last or first)
        faults.append(Fault(point, action, int(pause or 0), int(first or 1), until))
    return faults


class FaultyDisk(SystemDisk):
    """The operating system's files, with faults.

    The server and its child processes share the counts of occurrences, one count for each fault.
    """

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self._counts = memoryview(mmap.mmap(-1, 8 * len(faults))).cast("Q")
        self._server_pid = os.getpid()

    def reach(self, point: str) -> None:
        struck: Fault | None = None
        for index, fault in enumerate(self._faults):
            if fault.point == point:
                self._counts[index] += 1
                if struck is None and fault.first <= self._counts[index] <= fault.last:
                    struck = fault
        if struck is not None:
            self._strike(struck)

    def _strike(self, fault: Fault) -> None:
        """Take the action of a fault."""
        if fault.action in ("kill", "die"):
            if fault.action == "kill":
                os.kill(self._server_pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault.pause_ms:
            SystemClock().sleep(fault.pause_ms / 1000)
        else:
            number = _NUMBERS[fault.action]
            raise OSError(number, os.strerror(number))


def main(words: Sequence[str]) -> int:
    """Serve, as `penstock serve` does: the exit code."""
    try:
        settings = config_file.start(words, "")
        return serve(settings, FaultyDisk(parse(os.environ[VARIABLE])))
    except UsageError as mistake:
        sys.stderr.write(f"{mistake}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
