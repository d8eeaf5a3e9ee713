"""The streams that a query names and no server has: a mistyped name, or a stream that nothing was added to yet."""

import warnings
from collections.abc import Collection
from typing import Final

from penstock.pipeline.connector.connection.client import now_s
from penstock.pipeline.connector.connection.connection_options import Keys
from penstock.pipeline.errors import PipelineError

WARN_EVERY_S: Final = 60.0
SHOWN: Final = 5


class MissingStreams:
    """Counts them, and warns of them when they are first missed and each minute after that.

    `fails`: the option failOnMissingStream, PipelineError instead.
    """

    def __init__(self, keys: Keys, fails: bool) -> None:
        self._named = [name.encode() for name in keys.names]
        self._fails = fails
        self._since_s: float | None = None
        self._due_s = 0.0
        self.count = 0

    def look(self, present: Collection[bytes]) -> None:
        """Compare with the keys that are there, which may be those of several servers."""
        missing = [name for name in self._named if name not in present]
        self.count = len(missing)
        if not missing:
            self._since_s = None
            return
        shown = ", ".join(repr(name.decode(errors="replace")) for name in missing[:SHOWN])
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        text = f"of the streams that 'stream' names these are not there: {shown}{more}"
        if self._fails:
            raise PipelineError(f"{text} (failOnMissingStream=false waits for them)")
        if self._since_s is None:
            self._since_s = self._due_s = now_s()
        if now_s() >= self._due_s:
            minutes = round((now_s() - self._since_s) / 60)
            # The text changes: Python shows a warning with the same one only once.
            warnings.warn(f"{text} (for {minutes} min)" if minutes else text, stacklevel=2)
            self._due_s = now_s() + WARN_EVERY_S
