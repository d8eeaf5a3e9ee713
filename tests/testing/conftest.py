"""What the tests of embedded servers have in common."""

from collections.abc import Iterator

import pytest

import penstock


@pytest.fixture
def server() -> Iterator[penstock.Server]:
    with penstock.Server() as embedded:
        yield embedded
