"""Fixtures for the commands' tests."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.support.effects_beside_redis import RedisSide
from tests.support.reference_server import NoReference, reference_server


@pytest.fixture(scope="session")
def logging_redis() -> Iterator[RedisSide]:
    """A real Redis that keeps a log, to hold dialogues with; tests that need it are skipped where there is none."""
    directives = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--appendfsync", "always"]
    try:
        with reference_server(*directives) as port, contextlib.closing(RedisSide(port)) as redis:
            yield redis
    except NoReference as absence:
        pytest.skip(str(absence))
