"""The thread of an embedded server sleeps only while there is nothing for it to do, whatever happens meanwhile."""

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
import redis

import penstock
from penstock.clock import SystemClock
from penstock.testing.loops.inline_loop import LONGEST_WAIT_S, InlineLoop
from penstock.testing.loops.loop_thread import LoopThread

PATIENCE_S: Final = 60.0
BUSY_PROCESSES: Final = 3
ROUNDS: Final = 300  # a lost signal hung in the 126th, in November 2026
ROUND_S: Final = 0.002  # the thread wakes up so often by itself, and goes round once more
STEPS: Final = range(1, 25)  # lines that it executes; several rounds
LINES, FIRST_LINE = inspect.getsourcelines(InlineLoop._run_timers)
WAITING: Final = FIRST_LINE + next(at for at, line in enumerate(LINES) if "_changed.wait(" in line)


class Schedule:
    """Does something at one step of the thread, and notes each wait that begins although something is to be done.

    It is done in the thread itself, between two of its lines: as if another thread had its turn there.
    """

    def __init__(self, loop: InlineLoop, at_step: int, act: Callable[[InlineLoop], None]) -> None:
        self._loop = loop
        self._at_step = at_step
        self._act = act
        self._step = 0
        self.lost: list[int] = []  # lines at which it was done, if the thread sleeps over it

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not InlineLoop._run_timers.__code__:
            return None
        if event == "line":
            self._take_step(frame.f_lineno)
        return self.trace

    def _take_step(self, line: int) -> None:
        self._step += 1
        if self._step == self._at_step:
            self._act(self._loop)
        loop = self._loop
        if line == WAITING and (loop._soon or loop._is_closed) and not loop._changed.is_set():
            self.lost.append(line)


@contextmanager
def traced(schedule: Schedule) -> Iterator[None]:
    """Threads that begin meanwhile run by the schedule."""
    threading.settrace(schedule.trace)
    try:
        yield
    finally:
        threading.settrace(None)


@contextmanager
def busy_machine() -> Iterator[None]:
    """Other processes take the processors, and threads are switched much more often than usual."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        sys.setswitchinterval(interval_s)
        for process in busy:
            process.kill()
            process.wait()


def go_round(loop: InlineLoop) -> None:
    loop.call_later(ROUND_S, lambda: go_round(loop))


def close(loop: InlineLoop) -> None:
    loop.close()


def have_it_closed(loop: InlineLoop) -> None:
    loop.call_soon_threadsafe(loop.close)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("act", [close, have_it_closed])
def test_the_thread_does_not_sleep_over_what_it_is_told_at_any_of_its_steps(
    act: Callable[[InlineLoop], None], step: int
) -> None:
    loop = InlineLoop(SystemClock())
    go_round(loop)
    schedule = Schedule(loop, step, act)

    with traced(schedule):
        loop.start_thread()
    assert loop._thread is not None
    loop._thread.join(PATIENCE_S)

    assert schedule.lost == []
    assert not loop._thread.is_alive()


def test_no_wait_is_longer_than_a_second_where_its_caller_gave_no_time() -> None:
    assert LONGEST_WAIT_S <= 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_an_error_ended_is_replaced_when_the_next_client_waits() -> None:
    loop = InlineLoop(SystemClock())
    loop.call_soon(sys.exit)  # ends the thread, without a word on stderr
    loop.start_thread()
    assert loop._thread is not None
    loop._thread.join(PATIENCE_S)
    was_called = threading.Event()

    loop.call_soon_threadsafe(was_called.set)

    assert was_called.wait(PATIENCE_S)
    loop.close()


async def never_ends() -> None:
    """A task that stops its loop, and does not end when it is cancelled."""
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.stop)
    while True:
        with suppress(asyncio.CancelledError):
            await loop.create_future()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_is_not_waited_for_when_its_thread_has_ended() -> None:
    inline = InlineLoop(SystemClock())

    with pytest.raises(RuntimeError, match="the server has ended"):
        LoopThread(inline).run(never_ends())
    inline.close()
    gc.collect()  # the task complains now, where that is expected


def wait_again_and_again(client: redis.Redis) -> None:
    with suppress(redis.RedisError):  # the server is closed
        while True:
            client.blpop(["nothing"], timeout=0.001)


def open_and_close(folder: Path, rounds: list[int]) -> None:
    for number in range(ROUNDS):
        with penstock.Server(folder) as server:
            for _ in range(2):
                threading.Thread(target=wait_again_and_again, args=[server.client()], daemon=True).start()
            server.client().blpop(["nothing"], timeout=0.001)
            server.restart()
            server.client().set("k", number)
            server.client().blpop(["nothing"], timeout=0.001)
        rounds.append(number)


@pytest.mark.slow
def test_a_server_on_a_busy_machine_is_closed_and_restarted_without_a_hang(tmp_path: Path) -> None:
    rounds: list[int] = []
    worker = threading.Thread(target=open_and_close, args=[tmp_path, rounds], daemon=True)

    with busy_machine():
        worker.start()
        worker.join(PATIENCE_S * 5)

    assert len(rounds) == ROUNDS
