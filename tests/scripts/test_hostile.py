"""No script kills the server, keeps others from it, fills its memory or changes what other scripts see."""

import pytest

from tests.scripts.hostile import Report, run

pytest.importorskip("lupa")

COUNT = 500  # about ten seconds
PATIENT_S = 10.0  # of a processor's time; far more than anybody should wait


def test_hostile_scripts_harm_nobody_but_themselves():
    failures = [line for line in run(COUNT, "test", PATIENT_S) if isinstance(line, Report)]

    assert "\n".join(map(str, failures)) == ""
