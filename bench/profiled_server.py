"""`python -m bench.profiled_server FLAGS`: Penstock in plain Python, with its modules' times written down.

It goes the ways of a compiled build (IS_COMPILED), for what it tells is what such a build runs. SIGUSR1 begins a
profile of the loop's thread, and ends it: a file in the folder PROFILE_INTO, {path of a module in the source: seconds}.
With PROFILE_FROM_START a profile lasts from the start to the end.
"""

import asyncio
import cProfile
import json
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import CodeType
from typing import Final

from penstock.native import build

build.IS_COMPILED = True  # type: ignore[misc]  # before any module reads it

from penstock.config import config_file  # noqa: E402
from penstock.server.run import serve  # noqa: E402
from penstock.server.turns.turn import Turn  # noqa: E402

PACKAGE: Final = Path(build.__file__).parent.parent


class Profiler:
    """A companion of the server."""

    def __init__(self, folder: Path, from_start: bool) -> None:
        self._folder = folder
        self._from_start = from_start
        self._profile: cProfile.Profile | None = None

    def start(self, turn: Turn) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.toggle)
        if self._from_start:
            self.toggle()

    def stop(self) -> None:
        if self._profile is not None:
            self.toggle()

    def toggle(self) -> None:
        if self._profile is None:
            self._profile = cProfile.Profile(builtins=False)  # the time of C code is that of its caller
            self._profile.enable()
            return
        self._profile.disable()
        seconds: dict[str, float] = defaultdict(float)
        for entry in self._profile.getstats():
            assert isinstance(entry.code, CodeType), "no C functions were asked for"
            file = Path(entry.code.co_filename)
            if entry.code.co_name != "<module>" and file.is_relative_to(PACKAGE):
                seconds[str(file.relative_to(PACKAGE.parent))] += entry.inlinetime
        self._profile = None
        unfinished = self._folder / f"{time.monotonic_ns()}.part"
        unfinished.write_text(json.dumps(seconds))
        unfinished.rename(unfinished.with_suffix(".json"))


if __name__ == "__main__":
    settings = config_file.start(sys.argv[1:], "")
    sys.exit(
        serve(settings, companions=[Profiler(Path(os.environ["PROFILE_INTO"]), "PROFILE_FROM_START" in os.environ)])
    )
