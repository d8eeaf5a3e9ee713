"""The judge of `make chaos`: what it calls right."""

import signal

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from tests.pipeline.chaos import Result, judged, main, reason_of


@pytest.mark.parametrize(
    ("result", "faults"),
    [
        (Result("driver", "exactly-once", 4, 100, 0, 0), 0),
        (Result("driver", "exactly-once", 0, 100, 0, 0), 1),
        (Result("task", "idmp", 4, 99, 1, 0), 1),
        (Result("task", "idmp", 4, 101, 0, 1), 1),
        (Result("task", "at-least-once", 4, 101, 0, 1), 0),
    ],
    ids=["right", "no-kill", "missing", "doubled", "may-double"],
)
def test_a_run_is_right_that_killed_something_and_has_every_row_once(result: Result, faults: int) -> None:
    assert len(result.faults()) == faults


def test_a_run_that_killed_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--entries", "0", "--only", "task", "--task-kills", "1", "--seeds", "1", "--delivery", "exactly-once"]
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main(words) == 1
    finally:
        signal.signal(signal.SIGTERM, before)

    assert capsys.readouterr().out.splitlines()[-2:] == [
        "          no task was killed: copy more (--entries)",
        "1 runs, 0 kills (0 tasks): 1 RUNS FAILED",
    ]


@pytest.mark.parametrize(
    ("kills", "least", "code", "line"),
    [
        ((12, 8), 20, 0, "2 runs, 20 kills (12 tasks, 8 drivers): every row once"),
        ((12, 7), 20, 1, "2 runs, 19 kills (12 tasks, 7 drivers): TOO FEW: 20 are needed"),
        ((20, 0), 20, 1, "2 runs, 20 kills (20 tasks, 0 drivers): 1 RUNS FAILED"),
    ],
    ids=["enough", "too few", "no driver"],
)
def test_all_runs_together_must_have_killed_enough(
    kills: tuple[int, int], least: int, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, drivers = kills
    runs = [Result("task", "idmp", tasks, 100, 0, 0), Result("driver", "idmp", drivers, 100, 0, 0)]

    assert judged(runs, least) == code
    assert capsys.readouterr().out.splitlines() == [line]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("26/11/29 WARN\nTraceback:\nServerGone: no master\n  caused by x\n", "ServerGone: no master"),
        ("26/11/29 WARN\nkilled\n", "killed"),
        ("", "nothing was said"),
    ],
    ids=["an error", "no error", "nothing"],
)
def test_what_a_query_said_when_it_ended_is_told(said: str, reason: str) -> None:
    assert reason_of(said) == reason
