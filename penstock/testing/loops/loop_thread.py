"""An event loop in a thread of its own, for what cannot do without one: sockets, and links of replication."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import wait
from types import coroutine
from typing import Any, TypeAlias, TypeVar

from penstock.testing.loops.inline_loop import LONGEST_WAIT_S, InlineLoop

Returned = TypeVar("Returned")
Task: TypeAlias = Coroutine[Any, Any, Returned] | Generator[Any, None, Returned]


class LoopThread:
    """The thread of one embedded server, from the first use to `close`.

    Each step of a task, from one await to the next, holds the server's lock: so code written for a server that is alone
    in its event loop runs here unchanged.
    """

    def __init__(self, inline: InlineLoop) -> None:
        self._inline = inline
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop; the first call starts the thread, and does not wait for it. RuntimeError after `close`."""
        with self._starting:
            if self._is_closed:
                raise RuntimeError("the server has ended")
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                loop.set_task_factory(self._task)
                self._thread = threading.Thread(target=_run, args=(loop,), name="penstock-loop", daemon=True)
                self._thread.start()
                self._inline.start_thread()
            return self._loop

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have a function called in the thread, with the lock held, and what is due after it."""
        self.loop().call_soon_threadsafe(self._call, function)

    def call_later(self, delay_s: float, function: Callable[[], object]) -> None:
        """As call_soon, after a time of the machine's clock; called in the thread."""
        self.loop().call_later(delay_s, self._call, function)

    def call_and_wait(self, function: Callable[[], object]) -> None:
        """As call_soon, and wait until it was called; without the lock. Called here if the thread was never started."""
        if self._loop is None:
            self._call(function)
            return
        was_called = threading.Event()

        def call() -> None:
            try:
                function()
            finally:
                was_called.set()

        self.call_soon(call)
        was_called.wait(LONGEST_WAIT_S)

    def run(self, task: Coroutine[Any, Any, Returned]) -> Returned:
        """Run a task in the thread, and wait for its result, without the lock. RuntimeError if the thread ends."""
        future = asyncio.run_coroutine_threadsafe(task, self.loop())
        while not wait([future], LONGEST_WAIT_S).done:
            if (self._thread is None or not self._thread.is_alive()) and not future.done():
                raise RuntimeError("the server has ended")
        return future.result()

    def close(self) -> None:
        """End the tasks and the thread."""
        with self._starting:
            self._is_closed = True
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None and thread is not threading.current_thread():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(LONGEST_WAIT_S)

    def _call(self, function: Callable[[], object]) -> None:
        with self._inline.lock:
            function()
            self._inline.run_due()

    def _task(self, loop: asyncio.AbstractEventLoop, task: Task[Returned], /, **named: Any) -> "asyncio.Task[Returned]":
        """How the loop makes tasks."""
        return asyncio.Task(self._locked(task), loop=loop, **named)

    async def _locked(self, task: Task[Returned]) -> Returned:
        return await _in_steps(task, self._inline)


@coroutine
def _in_steps(task: Task[Returned], inline: InlineLoop) -> Generator[Any, Any, Returned]:
    """Run a task; each step holds the lock, and is followed by what is due."""
    failure: BaseException | None = None
    while True:
        with inline.lock:
            try:
                awaited = task.send(None) if failure is None else task.throw(failure)
            except StopIteration as end:
                result: Returned = end.value
                return result
            finally:
                inline.run_due()
        failure = None
        try:
            yield awaited
        except BaseException as thrown:  # CancelledError above all: it is the task's
            failure = thrown


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """The thread's function, until the loop is stopped."""
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.wait(left, timeout=LONGEST_WAIT_S) if left else asyncio.sleep(0))
    loop.close()
