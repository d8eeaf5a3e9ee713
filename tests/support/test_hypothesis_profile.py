"""Tests of Hypothesis run under the profile of conftest.py, which is loaded when their module is imported."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some


@given(some.integers())
@settings(max_examples=1)
def test_no_verdict_depends_on_how_long_something_takes(number: int) -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
