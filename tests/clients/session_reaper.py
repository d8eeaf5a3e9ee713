"""Ends the processes that a course started, however the course ends.

A reaper is a small process. It reads, a line each, which processes were started (`+pid`) and which have ended (`-pid`).
When its standard input ends, because the course is over, was interrupted or was killed, it kills what is left: every
process of the sessions that these lead.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

PROCESSES = Path("/proc")
SESSION = 3  # of the fields of /proc/PID/stat behind the name: state, parent, group, session
ROUNDS = 20
BETWEEN_ROUNDS_S = 0.05


class SessionReaper:
    """Starts the reaper and tells it what to watch; at the end of `with` it kills what is left and ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )

    def __enter__(self) -> "SessionReaper":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def watch(self, leader: int) -> None:
        """A process that leads a session was started."""
        self._tell(f"+{leader}")

    def forget(self, leader: int) -> None:
        """It has ended, with its children."""
        self._tell(f"-{leader}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")


def end_session(leader: int) -> None:
    """SIGKILL to every process of a session, whatever its group (a work horse of RQ has one of its own)."""
    for _ in range(ROUNDS):
        alive = members(leader)
        if not alive:
            return
        for member in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(BETWEEN_ROUNDS_S)


def members(leader: int) -> list[int]:
    """The session's living processes; without /proc its process group stands for it."""
    if not PROCESSES.joinpath("self/stat").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGKILL)
        return []
    found = []
    for stat in PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if fields[SESSION] == str(leader) and fields[0] not in "ZX":
                found.append(int(stat.parent.name))
    return found


def main() -> None:
    """Watch until standard input ends, then kill what is left."""
    watched: set[int] = set()
    for line in sys.stdin:
        change, leader = line[0], int(line[1:])
        if change == "+":
            watched.add(leader)
        else:
            watched.discard(leader)
    for leader in watched:
        end_session(leader)


if __name__ == "__main__":
    main()
