"""The log's threads: work is done, or an error says that it is not."""

import functools
import resource
import threading
import time
from collections.abc import Iterator

import pytest
import redis

from penstock.server.turns.log_threads import LogThreads
from tests.support.server_process import ServerProcess, running_server

FIVE_MB = 5 * 2**20  # less than a thread's stack


@pytest.fixture
def threads() -> Iterator[LogThreads]:
    of_a_log = LogThreads()
    yield of_a_log
    of_a_log.shutdown()


def test_a_job_is_done_in_a_thread_of_its_own(threads: LogThreads) -> None:
    names = []
    threads.submit(lambda: names.append(threading.current_thread().name)).result()

    assert names == ["log"]


def test_a_job_does_not_wait_for_another(threads: LogThreads) -> None:
    first, second = threading.Event(), threading.Event()
    waiting = threads.submit(lambda: second.set() if first.wait(30) else None)
    threads.submit(first.set)
    waiting.result()

    assert second.is_set()


@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), MemoryError(), SystemExit()])
def test_what_went_wrong_is_told_and_the_next_job_is_done(
    threads: LogThreads, failure: MemoryError | OSError | SystemExit
) -> None:
    def fail() -> None:
        raise failure

    assert threads.submit(fail).exception() is failure
    assert threads.submit(lambda: None).exception() is None


def test_jobs_wait_in_turn_where_there_are_enough_threads() -> None:
    threads = LogThreads(1)
    done: list[int] = []
    futures = [threads.submit(functools.partial(done.append, number)) for number in range(5)]
    assert [future.exception() for future in futures] == [None] * 5
    threads.shutdown()

    assert done == list(range(5))


# -- a real process ---------------------------------------------------------------------------------------------------


def address_space(server: ServerProcess) -> int:
    """Bytes that the process has mapped."""
    with open(f"/proc/{server.pid}/statm") as file:  # noqa: PTH123 a file of the system's
        return int(file.read().split()[0]) * resource.getpagesize()


def writes_until(client: redis.Redis, refused: bool) -> str:
    """What the first write was answered that was refused, or was not."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            client.set("a", "1")
            answer = ""
        except redis.ResponseError as refusal:
            answer = str(refusal)
        if bool(answer) == refused:
            return answer
        time.sleep(0.05)  # another process starts its thread once a second
    raise AssertionError("the server went on as before")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
def test_a_server_that_may_start_no_thread_refuses_writers_until_it_may() -> None:
    with running_server("--appendfsync", "everysec") as server:
        client = redis.Redis(port=server.port)
        client.ping()
        before = resource.prlimit(server.pid, resource.RLIMIT_AS, (address_space(server) + FIVE_MB, -1))
        refused = writes_until(client, refused=True)
        resource.prlimit(server.pid, resource.RLIMIT_AS, before)

        assert refused == "MISCONF Errors writing to the AOF file: can't start new thread"
        assert writes_until(client, refused=False) == ""
