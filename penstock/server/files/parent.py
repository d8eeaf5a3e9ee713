"""Ties a child process to its server: the child ends when the server does, and replaces no file after that."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final, cast

PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


class ServerEndedError(Exception):
    """The server that forked this process has ended."""


class Parent:
    """The server, as its child sees it. To be made in the server, before the fork."""

    __slots__ = ("_pid", "_signals")

    def __init__(self) -> None:
        self._pid = os.getpid()
        # The system's signal comes when the *thread* that forked ends (prctl(2), PR_SET_PDEATHSIG). An embedded
        # server may fork in any thread of its process; its children only look (`check`).
        self._signals = threading.current_thread() is threading.main_thread()

    def bind(self) -> None:
        """In the child, first: the system kills it when the server ends, even while it is stopped or waits.

        ServerEndedError if the server has ended already. Elsewhere than on Linux, `check` alone ties the child.
        """
        if self._signals and _prctl is not None:
            _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        self.check()

    def check(self) -> None:
        """In the child, from time to time: ServerEndedError if the server has ended."""
        if os.getppid() != self._pid:
            raise ServerEndedError


def _found_prctl() -> Callable[[int, int], int] | None:
    """Linux's prctl. It is looked up in the server, since a child of a process with threads may not load libraries."""
    if sys.platform != "linux":
        return None
    try:
        return cast("Callable[[int, int], int]", ctypes.CDLL(None).prctl)
    except (OSError, AttributeError):
        return None


_prctl: Final = _found_prctl()
