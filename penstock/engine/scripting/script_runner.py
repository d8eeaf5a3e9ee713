"""The interface for running long scripts beside the engine, which never waits. The server's runner is a thread."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

Lock: TypeAlias = AbstractContextManager[object, None]


class ScriptRunner(Protocol):
    """Runs one job at a time.

    lock: held while a request of the script runs; code that runs beside a late script holds it, too. late: what the
    last job answered that took longer than it was waited for.
    """

    lock: Lock
    late: bytes

    def run(self, job: Callable[[], bytes], seconds: float) -> bytes | None:
        """The job's result; None if it takes longer than so many seconds: its end is reported to the server."""
