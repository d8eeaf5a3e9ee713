"""Spark's Python worker processes, which run the tasks of readers and writers."""

import gc
import sys
from typing import Final

DAEMON: Final = "pyspark.daemon"  # the main module of a worker that is used again for the next task


def keep_modules() -> None:
    """Leave what this worker has loaded out of its garbage collections; nothing elsewhere than in a worker.

    The worker collects all garbage after each task, and goes through every object of every module for that: 33 ms with
    Arrow and numpy, a third of the CPU time of a task that reads 50,000 rows (Spark 4.3). To be called by each task;
    the first one of a worker does it.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name == DAEMON and not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
