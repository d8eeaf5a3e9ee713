"""No script kills the server, keeps others from it, fills its memory or changes what other scripts see."""

import pytest

from tests.scripts.hostile import Report, run

pytest.importorskip("lupa")

COUNT = 500  # about ten seconds
PATIENT_S = 10.0  # of a processor's time; far more than a client should wait


def test_hostile_scripts_harm_no_client_but_their_own():
    failures = [line for line in run(COUNT, "test", PATIENT_S) if isinstance(line, Report)]

    assert "\n".join(map(str, failures)) == ""
