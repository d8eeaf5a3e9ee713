"""Fixtures for the server floor."""

import pytest

from tests.support.fake_server import FakeServer


@pytest.fixture
def fake_server() -> FakeServer:
    """A server with the default settings and no network."""
    return FakeServer()
