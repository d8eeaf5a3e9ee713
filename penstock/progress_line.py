"""How far long work is: one line that is written over on a terminal, a line now and then elsewhere."""

import sys
from typing import Final, TextIO

from penstock.clock import Clock

MEGABYTE: Final = 1_000_000
BAR: Final = 20
TERMINAL_MS: Final = 200
FILE_MS: Final = 5_000


class ProgressLine:
    """Shows a line on `out`, by default standard error, at most every so often."""

    __slots__ = ("_clock", "_every_ms", "_is_terminal", "_out", "_shown_ms", "_width")

    def __init__(self, clock: Clock, out: TextIO | None = None) -> None:
        self._clock = clock
        self._out = sys.stderr if out is None else out
        self._is_terminal = self._out.isatty()
        self._every_ms = TERMINAL_MS if self._is_terminal else FILE_MS
        self._shown_ms = 0
        self._width = 0

    def show(self, text: str, at_once: bool = False) -> None:
        now_ms = self._clock.now_us() // 1000
        if now_ms - self._shown_ms < self._every_ms and not at_once:
            return
        self._shown_ms = now_ms
        if self._is_terminal:
            self._out.write(f"\r{text:<{self._width}}")
            self._width = len(text)
        else:
            self._out.write(f"{text}\n")
        self._out.flush()

    def end(self) -> None:
        if self._is_terminal and self._width:
            self._out.write("\n")
            self._width = 0


def bar(done: int, total: int) -> str:
    """A share as a bar and in bytes; without a bar where the total is not known.

    >>> bar(5_000_000, 10_000_000)
    '[##########..........] 5.0 of 10.0 MB'
    >>> bar(5_000_000, -1)
    '5.0 MB'
    """
    if total <= 0:
        return f"{done / MEGABYTE:.1f} MB"
    full = BAR * done // total
    return f"[{'#' * full}{'.' * (BAR - full)}] {done / MEGABYTE:.1f} of {total / MEGABYTE:.1f} MB"
