"""How much memory and time this process takes, as the operating system says."""

import os
import resource
import sys
from collections.abc import Callable
from typing import Final

STATM: Final = "/proc/self/statm"
STATM_BYTES: Final = 256  # more than it has: seven numbers
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
RESIDENT: Final = 1  # the second number of statm: resident pages


def resident_bytes() -> int:
    """Memory in use now; where the system does not tell (macOS), the most there ever was."""
    try:
        statm = os.open(STATM, os.O_RDONLY)
    except OSError:
        return peak_bytes()
    try:
        numbers = os.read(statm, STATM_BYTES)
    finally:
        os.close(statm)
    return int(numbers.split(b" ", RESIDENT + 1)[RESIDENT]) * PAGE_BYTES


def peak_bytes() -> int:
    """The most memory there ever was."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def system_bytes() -> int:
    """The machine's memory."""
    return PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")


class CpuTimes:
    """Seconds of processor time, in the system and in this program: ours and our children's."""

    __slots__ = ("children_system", "children_user", "system", "user")

    def __init__(self) -> None:
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.system, self.user = own.ru_stime, own.ru_utime
        self.children_system, self.children_user = children.ru_stime, children.ru_utime


class ProcessUsage:
    """The system's numbers of this process, a function for each; a simulated process has others.

    peak, total: bytes, the most that there ever was and the machine's.
    """

    __slots__ = ("cpu", "peak", "total")

    def __init__(self) -> None:
        self.peak: Callable[[], int] = peak_bytes
        self.total: Callable[[], int] = system_bytes
        self.cpu: Callable[[], CpuTimes] = CpuTimes
