"""The disk of an embedded server on a directory: the system's files, until a test has the log fail."""

from penstock.storage.aof.append_log import WRITE
from penstock.storage.aof.disk import SystemDisk


class FailingDisk(SystemDisk):
    """While `error` is set, nothing can be written into the log."""

    def __init__(self) -> None:
        self.error: OSError | None = None

    def reach(self, point: str) -> None:
        if self.error is not None and point == WRITE:
            raise self.error
