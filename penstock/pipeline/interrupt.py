"""Ctrl-C on the command line: one line on standard error, an orderly end of Spark, and exit code 130."""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Any, Final

INTERRUPTED: Final = 130  # the exit code of a program that SIGINT ended: 128 + 2
SENTENCE: Final = "penstock pipeline: stopped by Ctrl-C"


class Interrupt:
    """What SIGINT does while a job or a pipeline runs. A second one ends the process at once.

    No exception is raised in the main thread: half-way through a call to the JVM it would break py4j's connection,
    and while the JVM starts it would leave that running without its parent. Instead Spark's work is cancelled from
    another thread, the main thread's call comes back, and what it raises because of that is dropped.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._spark: Any = None

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """SIGINT is ours within. What is raised after it came is dropped, and what libraries log."""
        before = signal.signal(signal.SIGINT, self._on_signal)
        level = logging.root.manager.disable
        try:
            yield
        except Exception:
            if not self.is_requested:
                raise
        finally:
            signal.signal(signal.SIGINT, before)
            logging.disable(level)

    def watch(self, spark: Any) -> bool:
        """Spark has started, and has set a SIGINT handler of its own: set ours again. False if SIGINT came before."""
        self._spark = spark
        signal.signal(signal.SIGINT, self._on_signal)
        return not self.is_requested

    def _on_signal(self, *_: object) -> None:
        if self.is_requested:
            os._exit(INTERRUPTED)
        self.is_requested = True
        logging.disable()  # py4j logs a page for each call that is broken off
        sys.stderr.write(SENTENCE + "\n")
        sys.stderr.flush()
        if self._spark is not None:
            Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """In a thread of its own, because the main thread may be amid a call on its connection to the JVM."""
        with contextlib.suppress(Exception):  # the main thread may have stopped Spark meanwhile
            context = self._spark.sparkContext
            context.setLogLevel("OFF")
            for query in self._spark.streams.active:
                query.stop()
            context.cancelAllJobs()
