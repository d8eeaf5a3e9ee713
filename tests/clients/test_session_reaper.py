"""What a course has started does not outlive it, however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clients.session_reaper import SessionReaper, members

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 30.0
# A worker with a child that has a process group of its own, as RQ's workers have.
WORKER = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
time.sleep(600)
"""
# What runs in a shell's background is started with SIGINT ignored.
COURSE = f"""
import signal, subprocess, sys, time
from tests.clients.session_reaper import SessionReaper
signal.signal(signal.SIGINT, signal.default_int_handler)
with SessionReaper() as reaper:
    worker = subprocess.Popen([sys.executable, "-c", {WORKER!r}], start_new_session=True)
    reaper.watch(worker.pid)
    print(worker.pid, flush=True)
    time.sleep(600)
"""


def wait_for(leader: int, count: int) -> None:
    """Until the session has so many living processes."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(members(leader)) != count:
        assert time.monotonic() < deadline_s, members(leader)
        time.sleep(0.1)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_workers_end_with_a_course_that_is_killed(how: signal.Signals) -> None:
    course = subprocess.Popen(
        [sys.executable, "-c", COURSE],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert course.stdout is not None
    leader = int(course.stdout.readline())
    wait_for(leader, 2)

    course.send_signal(how)
    course.wait(PATIENCE_S)
    course.stdout.close()

    wait_for(leader, 0)


def test_what_has_ended_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        with SessionReaper() as reaper:
            reaper.watch(other.pid)
            reaper.forget(other.pid)

        assert other.poll() is None
        other.communicate(b"\n")

    assert other.returncode == 0
