"""How long a fuzzer goes on: for so many inputs, or until a time."""

import sys
import time
from dataclasses import dataclass, field
from typing import Final

FOR_EVER: Final = 1 << 62


@dataclass(slots=True)
class Limit:
    """`more` counts an input and tells whether it may still be tried."""

    inputs: int = FOR_EVER
    seconds: float = float("inf")
    done: int = 0
    _began_s: float = field(default_factory=time.monotonic)

    def more(self) -> bool:
        if self.done >= self.inputs or time.monotonic() - self._began_s >= self.seconds:
            return False
        self.done += 1
        return True


@dataclass(frozen=True, slots=True)
class Found:
    """A failure: what the server did, of which input, and the input where it is bytes."""

    part: str
    seed: str
    text: str
    content: bytes = b""

    def __str__(self) -> str:
        shown = f"\n  {self.content[:2000]!r}" if self.content else ""
        return f"{self.part}: {self.text}\n  seed {self.seed}{shown}"


def say(line: object) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
