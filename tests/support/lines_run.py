"""How many lines of Python something runs: what it costs, without a clock."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(act: Callable[[], object]) -> int:
    """Call a function. In a compiled build, lines of compiled code are not counted."""
    run = 0

    def count(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal run
        run += event == "line"
        return count

    former = sys.gettrace()
    sys.settrace(count)
    act()
    sys.settrace(former)
    return run
